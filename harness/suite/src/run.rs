//! Runs cases against one subject.

use std::time::Instant;

use gguf_assay_cases::{AnyCase, BlockCase, Case, CheckpointCase, NamesCase, Verdict as Wanted};
use gguf_assay_format::{ByteOrder, Profile, printable};
use serde::{Deserialize, Serialize};

use crate::checkpoint::wrong_checkpoint;
use crate::judge::{is_right, outcome, wanted};
use crate::names::wrong_names;
use crate::numbers::wrong_numbers;
use crate::{
    About, Answer, CaseFiles, CaseResult, Channel, CheckpointQuestion, DequantizeRequest,
    Expectations, NamesRequest, Outcome, ReadRequest, Unclear, Verdict,
};

/// How to run and judge.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose rules count.
    pub profile: Profile,
    /// Whether cases with large files are run.
    pub large: bool,
    /// The subject's known failures.
    pub expectations: Expectations,
    /// Which of its refusals are unclear.
    pub unclear: Unclear,
}

impl Options {
    /// No known failures, no large files.
    pub fn new(profile: Profile) -> Options {
        Options {
            profile,
            large: false,
            expectations: Expectations::default(),
            unclear: Unclear::default(),
        }
    }
}

/// The characters that are kept of a subject's message, or of what is wrong with its value.
pub(crate) const DETAIL: usize = 900;

/// What came of running a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What the subject says it is.
    pub about: About,
    /// One result for each case, in the order of the cases.
    pub results: Vec<CaseResult>,
    /// What is wrong with the expectations: each fails the run.
    pub stale: Vec<String>,
}

impl Run {
    /// How many results have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.results.iter().filter(|result| result.verdict == verdict).count()
    }

    /// Whether anything was judged, and nothing is wrong.
    pub fn is_as_expected(&self) -> bool {
        self.is_judged() && self.is_sound()
    }

    /// Whether anything was judged.
    pub(crate) fn is_judged(&self) -> bool {
        self.results.iter().any(|result| result.verdict != Verdict::Skipped)
    }

    /// Whether nothing is wrong, if only since nothing was judged.
    pub(crate) fn is_sound(&self) -> bool {
        self.stale.is_empty() && !self.results.iter().any(|result| result.verdict.is_failure())
    }
}

/// Puts each case to the subject, and judges what it does. `progress` is called after each case.
pub fn run(
    channel: &mut dyn Channel,
    cases: &[AnyCase<'_>],
    files: &CaseFiles,
    options: &Options,
    mut progress: impl FnMut(&CaseResult),
) -> Run {
    let mut results = Vec::new();
    for &case in cases {
        let result = run_case(channel, case, files, options);
        progress(&result);
        results.push(result);
    }
    Run { about: channel.about().clone(), results, stale: Vec::new() }
}

/// A case that the subject is not asked, and why.
pub(crate) fn skipped(case: AnyCase<'_>, why: &str) -> CaseResult {
    CaseResult {
        case: case.id().into(),
        outcome: None,
        verdict: Verdict::Skipped,
        detail: why.into(),
        reason: None,
        millis: 0,
    }
}

pub(crate) fn run_case(
    channel: &mut dyn Channel,
    case: AnyCase<'_>,
    files: &CaseFiles,
    options: &Options,
) -> CaseResult {
    let skipped = |detail: &str| skipped(case, detail);
    if case.is_large() && !options.large {
        return skipped("its file is large; run with --large");
    }
    if case.is_large() && *case.verdict(options.profile) != Wanted::Reject {
        return skipped("its value is too large to pass on; only refusals of it are judged");
    }
    let about = channel.about();
    if !about.ops.iter().any(|op| op == case.operation()) {
        return skipped(&format!("the subject does not {}", case.operation()));
    }
    if let AnyCase::Dequantize(block) = case
        && !about.types.is_empty()
        && !about.types.iter().any(|name| name == block.tensor_type.name)
    {
        return skipped(&format!("the subject does not have {}", block.tensor_type));
    }
    if let AnyCase::Dequantize(block) = case
        && block.byte_order == ByteOrder::Big
        && !about.big_endian
    {
        return skipped("the subject does not take big-endian blocks");
    }
    let start = Instant::now();
    let put = match case {
        AnyCase::Read(case) => put_file(channel, case, files, options),
        AnyCase::Dequantize(case) => Ok(put_blocks(channel, case, options)),
        AnyCase::MapNames(case) => put_names(channel, case, files, options),
        AnyCase::Checkpoint(case) => put_checkpoint(channel, case, files, options),
    };
    let millis = start.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
    let (outcome, detail) = match put {
        Ok(done) => done,
        Err(error) => return CaseResult { verdict: Verdict::Fail, ..skipped(&error) },
    };

    let wanted_verdict = case.verdict(options.profile);
    let entry = options.expectations.entry(case.id(), options.profile);
    let (verdict, note) = match (is_right(wanted_verdict, outcome), entry) {
        (Some(true), None) => (Verdict::Pass, None),
        (Some(true), Some(_)) => (
            Verdict::UnexpectedPass,
            Some("the expectations list it as failing: take it out of there".to_owned()),
        ),
        (Some(false), Some(entry)) if entry.allows(outcome) => (Verdict::ExpectedFail, None),
        (Some(false), _) => (Verdict::Fail, Some(wanted(case.rule(), wanted_verdict))),
        (None, _) => (Verdict::Skipped, Some("not implemented".to_owned())),
    };
    let stderr = channel.take_stderr();
    let mut detail = printable(&detail, DETAIL);
    for more in [note, Some(stderr)].into_iter().flatten().filter(|more| !more.is_empty()) {
        if !detail.is_empty() {
            detail.push_str("; ");
        }
        detail.push_str(&more);
    }
    let reason = match verdict {
        Verdict::ExpectedFail => entry.map(|entry| entry.reason.clone()),
        _ => None,
    };
    let case = case.id().into();
    CaseResult { case, outcome: Some(outcome), verdict, detail, reason, millis }
}

/// Has the file of a case read.
fn put_file(
    channel: &mut dyn Channel,
    case: &Case,
    files: &CaseFiles,
    options: &Options,
) -> Result<(Outcome, String), String> {
    let path = files.path(case)?;
    let expected = case.expected().map_err(|e| e.to_string())?;
    let request = ReadRequest { path, profile: options.profile, large: case.is_large() };
    let answer = channel.read(&request);
    Ok(outcome(&answer, expected.as_ref(), &options.unclear))
}

/// Has the names of a case mapped.
fn put_names(
    channel: &mut dyn Channel,
    case: &NamesCase,
    files: &CaseFiles,
    options: &Options,
) -> Result<(Outcome, String), String> {
    let request = NamesRequest::of(case, files)?;
    let expected = case.expected().map_err(|e| e.to_string())?;
    let answer = channel.map_names(&request);
    if let Answer::Names(value) = &answer
        && let Some(complaint) = wrong_names(&expected, value)
    {
        return Ok((Outcome::AcceptedWrongValue, complaint));
    }
    Ok(naming(&case.says, outcome(&answer, None, &options.unclear)))
}

/// Has the checkpoint of a case judged, or a module of it unpacked.
fn put_checkpoint(
    channel: &mut dyn Channel,
    case: &CheckpointCase,
    files: &CaseFiles,
    options: &Options,
) -> Result<(Outcome, String), String> {
    let question = CheckpointQuestion::of(case, files)?;
    let expected = case.expected().map_err(|e| e.to_string())?;
    let answer = channel.checkpoint(&question);
    if let Some(complaint) = wrong_checkpoint(&expected, &answer) {
        return Ok((Outcome::AcceptedWrongValue, complaint));
    }
    Ok(naming(&case.says, outcome(&answer, None, &options.unclear)))
}

/// The same outcome, but that a refusal which names none of what it ought to name is unclear.
fn naming(says: &[String], (outcome, detail): (Outcome, String)) -> (Outcome, String) {
    let said = says.iter().any(|part| detail.contains(part.as_str()));
    if outcome == Outcome::Rejected && !said && !says.is_empty() {
        let parts = says.join(" or ");
        return (Outcome::RejectedUnclear, format!("{detail}; it does not name {parts}"));
    }
    (outcome, detail)
}

/// Has the blocks of a case dequantized.
fn put_blocks(channel: &mut dyn Channel, case: &BlockCase, options: &Options) -> (Outcome, String) {
    let request = DequantizeRequest {
        tensor_type: case.tensor_type,
        bytes: case.bytes.clone(),
        byte_order: case.byte_order,
    };
    let answer = channel.dequantize(&request);
    if let Answer::Numbers(numbers) = &answer
        && let Some(complaint) = wrong_numbers(case, numbers)
    {
        return (Outcome::AcceptedWrongValue, complaint);
    }
    outcome(&answer, None, &options.unclear)
}
