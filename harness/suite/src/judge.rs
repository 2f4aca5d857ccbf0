//! From an answer to an outcome, and from an outcome to a verdict.

use std::fmt;

use gguf_assay_cases::{FileValue, Verdict as Wanted};
use gguf_assay_format::Rule;
use serde::{Deserialize, Serialize};

use crate::{Answer, Failure, difference};

/// What a subject did with a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Read, with the right value.
    Accepted,
    /// Read, with another value than the file holds.
    AcceptedWrongValue,
    /// Refused with a message.
    Rejected,
    /// Refused by a low-level error that names neither field nor fault.
    RejectedUnclear,
    /// The subject says that it does not do this.
    Unimplemented,
    /// A Rust panic, or its like.
    Panicked,
    /// Ended by a signal, or without an answer.
    Crashed,
    /// No answer within the time limit.
    TimedOut,
    /// The memory limit was reached.
    OutOfMemory,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 9] = [
        Outcome::Accepted,
        Outcome::AcceptedWrongValue,
        Outcome::Rejected,
        Outcome::RejectedUnclear,
        Outcome::Unimplemented,
        Outcome::Panicked,
        Outcome::Crashed,
        Outcome::TimedOut,
        Outcome::OutOfMemory,
    ];

    /// The name in reports and expectation files, such as `timed-out`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::AcceptedWrongValue => "accepted-wrong-value",
            Outcome::Rejected => "rejected",
            Outcome::RejectedUnclear => "rejected-unclear",
            Outcome::Unimplemented => "unimplemented",
            Outcome::Panicked => "panicked",
            Outcome::Crashed => "crashed",
            Outcome::TimedOut => "timed-out",
            Outcome::OutOfMemory => "out-of-memory",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an outcome means, given what was expected of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As the case asks.
    Pass,
    /// Not as the case asks, and not known before.
    Fail,
    /// Not as the case asks, in the way that the expectations say.
    ExpectedFail,
    /// As the case asks, though the expectations say otherwise: they are out of date.
    UnexpectedPass,
    /// Not judged, with a reason.
    Skipped,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Verdict; 5] = [
        Verdict::Pass,
        Verdict::ExpectedFail,
        Verdict::Fail,
        Verdict::UnexpectedPass,
        Verdict::Skipped,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::ExpectedFail => "expected-fail",
            Verdict::UnexpectedPass => "unexpected-pass",
            Verdict::Skipped => "skipped",
        }
    }

    /// Whether the run fails for it.
    pub fn is_failure(self) -> bool {
        matches!(self, Verdict::Fail | Verdict::UnexpectedPass)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The case's id.
    pub case: String,
    /// What the subject did; `None` if it was not asked.
    pub outcome: Option<Outcome>,
    /// What that means.
    pub verdict: Verdict,
    /// The subject's message, the wrong value, how it died, or why the case was skipped.
    pub detail: String,
    /// Why the failure was expected, from the expectation file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long the subject took.
    pub millis: u64,
}

/// Which refusals count as unclear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unclear {
    /// Types of errors (`IndexError`) that say nothing of the file.
    pub kinds: Vec<String>,
    /// Parts of messages that say nothing of the file (`failed to fill whole buffer`).
    pub messages: Vec<String>,
    /// Types of errors that mean that memory ran out (`MemoryError`).
    pub out_of_memory: Vec<String>,
}

impl Unclear {
    /// Whether a refusal of this kind, with this message, is unclear.
    fn covers(&self, kind: &str, message: &str) -> bool {
        self.kinds.iter().any(|k| k == kind)
            || self.messages.iter().any(|part| message.contains(part.as_str()))
            || message.trim().is_empty()
    }
}

/// The outcome of an answer, with its detail.
pub(crate) fn outcome(
    answer: &Answer,
    expected: Option<&FileValue>,
    unclear: &Unclear,
) -> (Outcome, String) {
    match answer {
        Answer::Value(value) => match expected.and_then(|expected| difference(expected, value)) {
            Some(difference) => (Outcome::AcceptedWrongValue, difference),
            None => (Outcome::Accepted, String::new()),
        },
        // Numbers and names are compared where the case's own are known.
        Answer::Numbers(_) | Answer::Names(_) | Answer::Judged(_) | Answer::Weight(_) => {
            (Outcome::Accepted, String::new())
        }
        Answer::Failure(Failure::Unimplemented(what)) => (Outcome::Unimplemented, what.clone()),
        Answer::Failure(Failure::Rejected { message, kind }) => {
            let detail = match kind.as_str() {
                "" => message.clone(),
                kind => format!("{kind}: {message}"),
            };
            if unclear.out_of_memory.iter().any(|k| k == kind) {
                (Outcome::OutOfMemory, detail)
            } else if unclear.covers(kind, message) {
                (Outcome::RejectedUnclear, detail)
            } else {
                (Outcome::Rejected, detail)
            }
        }
        Answer::Panicked(how) => (Outcome::Panicked, how.clone()),
        Answer::Crashed(how) => (Outcome::Crashed, how.clone()),
        Answer::TimedOut(how) => (Outcome::TimedOut, how.clone()),
        Answer::OutOfMemory(how) => (Outcome::OutOfMemory, how.clone()),
    }
}

/// Whether an outcome is what the case asks; `None` if the subject is not to be judged by it.
pub(crate) fn is_right(wanted: &Wanted, outcome: Outcome) -> Option<bool> {
    match (wanted, outcome) {
        (_, Outcome::Unimplemented) => None,
        (Wanted::Accept, outcome) => Some(outcome == Outcome::Accepted),
        (Wanted::Reject, outcome) => Some(outcome == Outcome::Rejected),
        (Wanted::Either(_), outcome) => Some(matches!(
            outcome,
            Outcome::Accepted | Outcome::Rejected | Outcome::RejectedUnclear
        )),
    }
}

/// What the case asks, for a message about a failure.
pub(crate) fn wanted(rule: &Rule, wanted: &Wanted) -> String {
    match wanted {
        Wanted::Accept => "expected: accept, with the right value".into(),
        Wanted::Reject => format!("expected: reject, since {} ({rule})", rule.title),
        Wanted::Either(reason) => {
            format!("expected: accept with the right value, or reject ({reason})")
        }
    }
}
