//! Results that another process wrote.

use gguf_assay_format::{Profile, printable};
use serde::Deserialize;

use super::{Report, SCHEMA, SubjectReport};
use crate::run::DETAIL;
use crate::{About, CaseResult, Run};

/// What is read first: whether the rest is ours to read.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// A [`SubjectReport`] as it stands in JSON. Its counts are counted anew.
#[derive(Deserialize)]
pub(super) struct Subject {
    name: String,
    skipped: Option<String>,
    error: Option<String>,
    about: Option<About>,
    results: Option<Vec<CaseResult>>,
    stale: Option<Vec<String>>,
}

impl TryFrom<Subject> for SubjectReport {
    type Error = String;

    fn try_from(subject: Subject) -> Result<SubjectReport, String> {
        let Subject { name, skipped, error, about, results, stale } = subject;
        let run = match (about, results, stale) {
            (Some(about), Some(results), Some(stale)) => Some(Run { about, results, stale }),
            (None, None, None) if skipped.is_some() || error.is_some() => None,
            _ => {
                return Err(format!(
                    "subject {}: expected `about`, `results` and `stale`, or why it was not run",
                    safe(&name)
                ));
            }
        };
        let report = match run {
            Some(run) => SubjectReport::of(&name, run),
            None => SubjectReport::skipped(&name, ""),
        };
        Ok(SubjectReport { skipped, error, ..report })
    }
}

impl Report {
    /// From JSON, as [`Report::to_json`] writes it. What could harm a terminal is escaped.
    ///
    /// # Errors
    ///
    /// What was found and expected: no JSON, no results, results of another version of the
    /// [`SCHEMA`].
    pub fn parse(json: &str) -> Result<Report, String> {
        let Head { schema } = serde_json::from_str(json).map_err(|e| match e.is_data() {
            true => format!("found JSON that names no schema; expected {SCHEMA}"),
            false => format!("found no JSON ({e}); expected {SCHEMA}"),
        })?;
        if schema != SCHEMA {
            let schema = safe(&schema);
            return Err(format!("found {schema}; expected {SCHEMA}, from this version's `run`"));
        }
        let mut report: Report =
            serde_json::from_str(json).map_err(|e| format!("expected {SCHEMA}: {}", safe(&e)))?;
        report.profile.parse::<Profile>()?;
        report.escape();
        Ok(report)
    }

    fn escape(&mut self) {
        let escape = |text: &mut String| *text = safe(text);
        [&mut self.version, &mut self.ggml, &mut self.corpus.sha256].into_iter().for_each(escape);
        for subject in &mut self.subjects {
            escape(&mut subject.name);
            subject.skipped.iter_mut().chain(&mut subject.error).for_each(escape);
            let Some(Run { about, results, stale }) = &mut subject.run else { continue };
            [&mut about.name, &mut about.version, &mut about.language, &mut about.home]
                .into_iter()
                .for_each(escape);
            about.ops.iter_mut().chain(&mut about.types).chain(stale).for_each(escape);
            for result in results {
                escape(&mut result.case);
                escape(&mut result.detail);
                result.reason.iter_mut().for_each(escape);
            }
        }
    }
}

/// Longer than anything that `run` writes.
fn safe(text: &impl ToString) -> String {
    printable(&text.to_string(), 4 * DETAIL)
}
