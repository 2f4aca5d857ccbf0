//! One report of many: of different subjects, of different cases of one subject, or of both.

use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use gguf_assay_cases::Corpus;

use super::{CorpusId, Report, SubjectReport};
use crate::{About, CaseResult, Run, Verdict};

/// Contradictions that are named; of more there is only the count.
const NAMED: usize = 10;

/// Merges reports, each with the name of its file. Their order makes no difference. Subjects come out
/// by name, their results in the order of `corpus`.
///
/// Where two reports have a result for one case of a subject, the answer counts that was given; `detail`
/// and `millis` may differ from run to run, so that one of them is kept.
///
/// # Errors
///
/// What contradicts what, in which files, and what to do: other versions or profiles, other cases, or
/// two answers of one subject to one case.
pub fn merge(mut reports: Vec<(String, Report)>, corpus: &Corpus) -> Result<Report, String> {
    reports.sort_by(|(a, _), (b, _)| a.cmp(b));
    let Some((file, first)) = reports.first() else {
        return Err("there are no results to merge".into());
    };
    for (other_file, other) in &reports {
        for (what, one, other) in [
            ("the version of gguf-assay", &first.version, &other.version),
            ("the profile", &first.profile, &other.profile),
            ("the hash of the cases", &first.corpus.sha256, &other.corpus.sha256),
        ] {
            if one != other {
                return Err(format!(
                    "{what} is {one} in {file}, and {other} in {other_file}: run one of them again \
                     as the other was, or report each by itself"
                ));
            }
        }
    }
    let known = reports.iter().filter(|(_, report)| !report.ggml.is_empty());
    let ggmls: BTreeSet<&str> = known.map(|(_, report)| report.ggml.as_str()).collect();
    if ggmls.len() > 1 {
        let ggmls: Vec<&str> = ggmls.into_iter().collect();
        return Err(format!("the results were made beside several ggmls: {}", ggmls.join(", ")));
    }

    let places: HashMap<&str, usize> = corpus.all().map(|case| case.id()).zip(0..).collect();
    let is_known = first.corpus == CorpusId::of(corpus);
    let mut subjects: BTreeMap<&str, Parts<'_>> = BTreeMap::new();
    let mut contradictions = Vec::new();
    for (file, report) in &reports {
        for subject in &report.subjects {
            let parts = subjects.entry(&subject.name).or_default();
            parts.skipped = least(parts.skipped, subject.skipped.as_deref());
            parts.error = least(parts.error, subject.error.as_deref());
            let Some(run) = &subject.run else { continue };
            if let Err(contradiction) = parts.add(run, file) {
                contradictions.push(format!("{}: {contradiction}", subject.name));
                continue;
            }
            parts.stale.extend(run.stale.iter().map(String::as_str));
            for result in &run.results {
                if is_known && !places.contains_key(result.case.as_str()) {
                    contradictions.push(format!(
                        "{}: {}: in {file}, but no case of its corpus: run it again",
                        subject.name, result.case
                    ));
                } else if let Err(contradiction) = parts.add_result(result, file) {
                    contradictions.push(format!("{}: {contradiction}", subject.name));
                }
            }
        }
    }
    if !contradictions.is_empty() {
        let more = contradictions.len().saturating_sub(NAMED);
        contradictions.truncate(NAMED);
        if more > 0 {
            contradictions.push(format!("and {more} more"));
        }
        return Err(contradictions.join("\n"));
    }

    let place = |case: &str| places.get(case).copied().unwrap_or(usize::MAX);
    let cases: BTreeSet<&str> = subjects.values().flat_map(|parts| parts.cases()).collect();
    let cases = cases.len();
    let ggml = ggmls.into_iter().next().unwrap_or_default().to_owned();
    let subjects = subjects.into_iter().map(|(name, parts)| parts.report(name, &place)).collect();
    Ok(Report { ggml, cases, subjects, ..first.clone() })
}

/// What several reports have of one subject.
#[derive(Default)]
struct Parts<'a> {
    skipped: Option<&'a str>,
    error: Option<&'a str>,
    about: Option<(&'a About, &'a str)>,
    stale: BTreeSet<&'a str>,
    /// By case, with the file of each.
    results: BTreeMap<&'a str, (&'a CaseResult, &'a str)>,
}

impl<'a> Parts<'a> {
    fn cases(&self) -> impl Iterator<Item = &'a str> {
        self.results.keys().copied()
    }

    fn add(&mut self, run: &'a Run, file: &'a str) -> Result<(), String> {
        let (about, known_file) = *self.about.get_or_insert((&run.about, file));
        let differs = |what: &str, one: &str, other: &str| {
            format!(
                "{what} is {one} in {known_file}, and {other} in {file}: run one of them again, or \
                 report each by itself"
            )
        };
        if about.version != run.about.version {
            return Err(differs("the version", &about.version, &run.about.version));
        }
        if about != &run.about {
            return Err(differs(
                "what it says of itself",
                &format!("{about:?}"),
                &format!("{:?}", run.about),
            ));
        }
        Ok(())
    }

    fn add_result(&mut self, result: &'a CaseResult, file: &'a str) -> Result<(), String> {
        let mut entry = match self.results.entry(&result.case) {
            Entry::Vacant(entry) => {
                entry.insert((result, file));
                return Ok(());
            }
            Entry::Occupied(entry) => entry,
        };
        let (known, known_file) = *entry.get();
        let is_better = match (was_asked(known), was_asked(result)) {
            (true, false) => false,
            (false, true) => true,
            _ if (known.outcome, known.verdict) != (result.outcome, result.verdict) => {
                return Err(format!(
                    "{}: {} in {known_file}, and {} in {file}: leave out the one that is out of date; \
                     if neither is, the subject's answers differ from run to run",
                    result.case,
                    answer(known),
                    answer(result)
                ));
            }
            _ => order(result, known).is_lt(),
        };
        if is_better {
            entry.insert((result, file));
        }
        Ok(())
    }

    fn report(self, name: &str, place: &impl Fn(&str) -> usize) -> SubjectReport {
        let error = self.error.map(str::to_owned);
        let Some((about, _)) = self.about else {
            let skipped = self.skipped.map(str::to_owned);
            return SubjectReport { skipped, error, ..SubjectReport::skipped(name, "") };
        };
        let mut results: Vec<CaseResult> =
            self.results.into_values().map(|(result, _)| result.clone()).collect();
        // They come by id, which is what decides among cases that the corpus does not have.
        results.sort_by_key(|result| place(&result.case));
        let stale = self.stale.into_iter().map(str::to_owned).collect();
        let run = Run { about: about.clone(), results, stale };
        SubjectReport { error, ..SubjectReport::of(name, run) }
    }
}

/// Not skipped before the subject saw the case.
fn was_asked(result: &CaseResult) -> bool {
    result.outcome.is_some() || result.verdict != Verdict::Skipped
}

fn answer(result: &CaseResult) -> String {
    match result.outcome {
        Some(outcome) => format!("{} ({outcome})", result.verdict),
        None => result.verdict.to_string(),
    }
}

/// Which of two equal answers is kept.
fn order(one: &CaseResult, other: &CaseResult) -> Ordering {
    let key = |result: &CaseResult| (result.reason.clone(), result.detail.clone(), result.millis);
    key(one).cmp(&key(other))
}

/// The lesser of two texts, of which either may be absent.
fn least<'a>(one: Option<&'a str>, other: Option<&'a str>) -> Option<&'a str> {
    one.into_iter().chain(other).min()
}
