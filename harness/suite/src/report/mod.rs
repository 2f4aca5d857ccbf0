//! Reports of a run: text for people, JSON for programs, Markdown for READMEs. Several runs, or parts
//! of one, merge into one report.

mod merge;
mod parse;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use gguf_assay_cases::{Corpus, sha256};
use serde::{Deserialize, Serialize};

pub use merge::merge;

use crate::{CaseResult, Outcome, Run, Verdict};

/// The name and version of the JSON schema of a [`Report`].
pub const SCHEMA: &str = "gguf-assay/results/2";

/// A run of several subjects. Its JSON is stable: fields are added, not changed, within a version
/// of the [`SCHEMA`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of gguf-assay.
    pub version: String,
    /// The version and source of the ggml that the profile `ggml` stands for; empty where the run
    /// does not know it, as in a test target.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ggml: String,
    /// The profile.
    pub profile: String,
    /// The cases that there are.
    pub corpus: CorpusId,
    /// How many cases were chosen.
    pub cases: usize,
    /// The subjects, in the order of the run.
    pub subjects: Vec<SubjectReport>,
}

/// Which cases a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusId {
    /// How many there are, chosen or not.
    pub cases: usize,
    /// [`Corpus::digest`].
    pub sha256: String,
}

impl CorpusId {
    /// That of a corpus.
    pub fn of(corpus: &Corpus) -> CorpusId {
        CorpusId { cases: corpus.all().count(), sha256: corpus.digest() }
    }
}

/// One subject of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "parse::Subject")]
pub struct SubjectReport {
    /// The name under which it was asked for.
    pub name: String,
    /// Why it was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Why it could not be run, though it is there: this fails the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often each verdict occurs.
    pub counts: BTreeMap<String, usize>,
    /// What came of it.
    #[serde(flatten)]
    pub run: Option<Run>,
}

impl SubjectReport {
    /// A subject that was run.
    pub fn of(name: &str, run: Run) -> SubjectReport {
        let counts = Verdict::ALL.map(|verdict| (verdict.name().to_owned(), run.count(verdict)));
        SubjectReport {
            name: name.into(),
            skipped: None,
            error: None,
            counts: counts.into_iter().collect(),
            run: Some(run),
        }
    }

    /// A subject that was not.
    pub fn skipped(name: &str, why: &str) -> SubjectReport {
        let (name, skipped) = (name.into(), Some(why.into()));
        SubjectReport { name, skipped, error: None, counts: BTreeMap::new(), run: None }
    }

    /// A subject that is there but could not be run.
    pub fn broken(name: &str, error: &str) -> SubjectReport {
        let (name, error) = (name.into(), Some(error.into()));
        SubjectReport { name, skipped: None, error, counts: BTreeMap::new(), run: None }
    }

    /// The name and version.
    fn title(&self) -> String {
        match &self.run {
            Some(run) if run.about.version.is_empty() => self.name.clone(),
            Some(run) => format!("{} {}", self.name, run.about.version),
            None => self.name.clone(),
        }
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.counts.get(verdict.name()).copied().unwrap_or(0)
    }
}

impl Report {
    /// A report of these subjects, who were asked this many cases of the corpus.
    pub fn new(
        ggml: &str,
        profile: &str,
        corpus: CorpusId,
        cases: usize,
        subjects: Vec<SubjectReport>,
    ) -> Report {
        Report {
            schema: SCHEMA.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ggml: ggml.into(),
            profile: profile.into(),
            corpus,
            cases,
            subjects,
        }
    }

    /// The subjects that were run, and how many cases of the corpus each has no result for, where
    /// that is any.
    pub fn missing(&self) -> impl Iterator<Item = (&SubjectReport, usize)> {
        self.subjects.iter().filter_map(|subject| {
            let missing = self.corpus.cases.saturating_sub(subject.run.as_ref()?.results.len());
            (missing > 0).then_some((subject, missing))
        })
    }

    /// Whether something was judged and nothing is wrong. A subject that has no answer to any of the
    /// cases, as one that only dequantizes to files, is not wrong where another was judged.
    pub fn is_as_expected(&self) -> bool {
        let runs = || self.subjects.iter().filter_map(|subject| subject.run.as_ref());
        runs().any(Run::is_judged)
            && runs().all(Run::is_sound)
            && self.subjects.iter().all(|subject| subject.error.is_none())
    }

    /// As JSON, in one line.
    pub fn to_json(&self) -> String {
        // The report is plain data with string keys: nothing in it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Writes the JSON into a folder, beside what other processes write there: whole or not at all,
    /// under a name made of its hash. Returns where it is.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn write_into(&self, folder: &Path) -> io::Result<PathBuf> {
        let json = self.to_json() + "\n";
        let name = &sha256(json.as_bytes())[..32];
        let path = folder.join(format!("{name}.json"));
        let unfinished = folder.join(format!("{name}.{}", std::process::id()));
        fs::create_dir_all(folder)?;
        fs::write(&unfinished, json)?;
        fs::rename(&unfinished, &path)?;
        Ok(path)
    }

    /// For a terminal: the matrix, then what is wrong, then how each subject fails as known.
    pub fn to_text(&self, corpus: &Corpus, verbose: bool) -> String {
        let mut text = String::new();
        let rows = self.matrix();
        let widths: Vec<usize> = (0..rows[0].len())
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(line, "{cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for subject in &self.subjects {
            let Some(run) = &subject.run else { continue };
            self.failures(&mut text, corpus, subject, run);
            if verbose {
                known(&mut text, subject, run);
            }
        }
        for subject in &self.subjects {
            if let Some(why) = &subject.skipped {
                let _ = writeln!(text, "\n{}: skipped: {why}", subject.name);
            }
            if let Some(error) = &subject.error {
                let _ = writeln!(text, "\n{}: could not be run: {error}", subject.name);
            }
        }
        for line in self.incomplete() {
            let _ = writeln!(text, "\n{line}");
        }
        let runs = self.subjects.iter().filter_map(|subject| subject.run.as_ref());
        let judged = runs.clone().filter(|run| run.is_judged());
        let failed = runs
            .clone()
            .map(|run| run.results.iter().filter(|r| r.verdict.is_failure()).count())
            .sum::<usize>();
        let _ = writeln!(
            text,
            "\n{}, profile {}{}: {} judged, {}",
            self.extent(),
            self.profile,
            self.ggml(),
            match judged.clone().count() {
                1 => "1 subject".to_owned(),
                count => format!("{count} subjects"),
            },
            match (failed, judged.count(), self.is_as_expected()) {
                (_, 0, _) => "nothing was judged".into(),
                (0, _, true) => "all as expected".into(),
                (0, ..) if runs.clone().all(Run::is_sound) => "not all could be judged".into(),
                (0, ..) => "the expectations are not in order".into(),
                (failed, ..) => format!("{failed} not as expected"),
            }
        );
        text
    }

    /// The counts of every subject and outcome that is not a plain one, with a row for the heads.
    fn matrix(&self) -> Vec<Vec<String>> {
        let outcomes = [
            Outcome::AcceptedWrongValue,
            Outcome::RejectedUnclear,
            Outcome::Panicked,
            Outcome::Crashed,
            Outcome::TimedOut,
            Outcome::OutOfMemory,
        ];
        let heads = ["subject", "pass", "known failures", "new failures", "skipped"];
        let mut heads: Vec<String> = heads.map(String::from).into();
        heads
            .extend(["wrong value", "unclear", "panic", "crash", "hang", "memory"].map(Into::into));
        let mut rows = vec![heads];
        for subject in &self.subjects {
            let Some(run) = &subject.run else {
                let mut row = vec![subject.title(), "not run".into()];
                row.resize(rows[0].len(), String::new());
                rows.push(row);
                continue;
            };
            let mut row = vec![subject.title(), subject.count(Verdict::Pass).to_string()];
            let new = subject.count(Verdict::Fail) + subject.count(Verdict::UnexpectedPass);
            for count in
                [subject.count(Verdict::ExpectedFail), new, subject.count(Verdict::Skipped)]
            {
                row.push(dash(count));
            }
            for outcome in outcomes {
                let hits = run.results.iter().filter(|result| result.outcome == Some(outcome));
                row.push(dash(hits.count()));
            }
            rows.push(row);
        }
        rows
    }

    fn failures(&self, text: &mut String, corpus: &Corpus, subject: &SubjectReport, run: &Run) {
        for complaint in &run.stale {
            let _ = writeln!(text, "\n{}: expectations: {complaint}", subject.name);
        }
        for result in run.results.iter().filter(|result| result.verdict.is_failure()) {
            let outcome = result.outcome.map_or("not run", |outcome| outcome.name());
            let _ = writeln!(
                text,
                "\n{}: {}: {}: {outcome}\n    {}",
                subject.name, result.verdict, result.case, result.detail
            );
            if let Some(case) = corpus.find(&result.case) {
                let _ = writeln!(text, "    {}; source: {}", case.summary(), case.source());
            }
        }
    }

    /// The matrix as a Markdown table.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        for (index, row) in self.matrix().iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if index == 0 {
                let rule: Vec<&str> =
                    (0..row.len()).map(|i| if i == 0 { "---" } else { "---:" }).collect();
                let _ = writeln!(text, "| {} |", rule.join(" | "));
            }
        }
        let _ = writeln!(text, "\n{}, profile `{}`{}.", self.extent(), self.profile, self.ggml());
        for line in self.incomplete() {
            let _ = writeln!(text, "\n{line}.");
        }
        text
    }

    /// How many cases there are results for, and of how many.
    fn extent(&self) -> String {
        match self.corpus.cases {
            all if all > self.cases => format!("{} of {all} cases", self.cases),
            all => format!("{all} cases"),
        }
    }

    /// A line for each subject that has results for fewer cases than others.
    fn incomplete(&self) -> impl Iterator<Item = String> {
        self.missing().filter_map(|(subject, missing)| {
            let has = self.corpus.cases - missing;
            let title = subject.title();
            (has < self.cases).then(|| format!("{title}: {has} of {} cases", self.corpus.cases))
        })
    }

    fn ggml(&self) -> String {
        if self.ggml.is_empty() { String::new() } else { format!(", ggml {}", self.ggml) }
    }
}

fn dash(count: usize) -> String {
    if count == 0 { "-".into() } else { count.to_string() }
}

/// The known failures of a subject, by reason.
fn known(text: &mut String, subject: &SubjectReport, run: &Run) {
    let mut groups: Vec<(&str, Vec<&CaseResult>)> = Vec::new();
    for result in run.results.iter().filter(|r| r.verdict == Verdict::ExpectedFail) {
        let reason = result.reason.as_deref().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, results)) => results.push(result),
            None => groups.push((reason, vec![result])),
        }
    }
    if !groups.is_empty() {
        let _ = writeln!(text, "\n{}: known failures", subject.title());
    }
    for (reason, results) in groups {
        let _ = writeln!(text, "  {reason}");
        for result in results {
            let outcome = result.outcome.map_or("", |outcome| outcome.name());
            let _ = writeln!(text, "    {}: {outcome}", result.case);
        }
    }
}
