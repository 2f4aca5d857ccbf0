//! The linter: what must hold of every case and of the corpus as a whole.

use std::collections::HashSet;

use gguf_assay_checkpoint::{Checkpoint, Finding, MemoryFiles, Options, judge};
use gguf_assay_format::{
    ByteOrder, Description, Profile, Requirement, Rule, TENSOR_TYPES, diagnose, read,
};

use Requirement::Silent;

use crate::{
    AnyCase, BlockCase, BuiltFolder, Case, CaseError, CheckpointCase, Corpus, NamesCase, Verdict,
    rules,
};

/// Everything that is wrong with the cases, as far as their text goes; the committed files are
/// compared by [`files::compare`](crate::files::compare). `whole` adds what only holds of the whole
/// corpus: that every rule is covered.
pub fn lint(corpus: &Corpus, whole: bool) -> Vec<CaseError> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for case in corpus.all() {
        let (id, summary) = (case.id(), case.summary());
        let mut say = |message: String| {
            errors.push(CaseError { place: id.into(), message });
        };
        if !seen.insert(id) {
            say("the id is used twice".into());
        }
        if corpus.withdrawn.contains_key(id) {
            say("the id was withdrawn and is not to be used again".into());
        }
        check_id(corpus, case, &mut say);
        if summary.is_empty() || summary.ends_with('.') || summary.contains('\n') {
            say("the summary is one line without a full stop".into());
        }
        if case.source().is_empty() {
            say("no source: say where anyone can look it up".into());
        }
        for profile in Profile::ALL {
            if matches!(case.verdict(profile), Verdict::Either(reason) if reason.is_empty()) {
                say(format!("the either-verdict of {profile} has no reason"));
            }
        }
        match case {
            AnyCase::Read(case) if !case.is_large() => check_description(case, &mut say),
            AnyCase::Read(_) => {}
            AnyCase::Dequantize(case) => check_blocks(case, &mut say),
            AnyCase::MapNames(case) => check_names(case, &mut say),
            AnyCase::Checkpoint(case) => check_checkpoint(case, &mut say),
        }
    }
    if whole {
        check_coverage(corpus, &mut errors);
    }
    errors
}

fn check_id(corpus: &Corpus, case: AnyCase<'_>, say: &mut impl FnMut(String)) {
    let parts: Vec<&str> = case.id().split('/').collect();
    let well_formed = parts.len() == 3
        && parts.first() == Some(&case.folder())
        && parts.iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        });
    if !well_formed {
        say("an id is operation/area/slug of a-z, 0-9 and hyphens".into());
    } else if let Some(file) = corpus.files.get(case.id())
        && *file != format!("{}/{}.toml", parts[0], parts[1])
    {
        say(format!("the case stands in {file}, which is for another area"));
    }
}

/// Whole blocks, a number for each element, and a second answer only where both are right.
fn check_blocks(case: &BlockCase, say: &mut impl FnMut(String)) {
    let t = case.tensor_type;
    let (bytes, block) = (case.bytes.len() as u64, u64::from(t.block_bytes));
    if bytes == 0 || block == 0 || !bytes.is_multiple_of(block) {
        return say(format!("{bytes} bytes are no whole number of blocks of {t}"));
    }
    let elements = bytes / block * u64::from(t.block_len);
    for values in std::iter::once(&case.values).chain(&case.or) {
        if values.len() as u64 != elements {
            say(format!("{} values for {elements} elements", values.len()));
        }
    }
    let either = Profile::ALL.into_iter().any(|p| matches!(case.verdict(p), Verdict::Either(_)));
    if case.or.is_some() && !either {
        say("a second answer needs an either-verdict that says why".into());
    }
    if case.rule.id != format!("QUANT-{:03}", t.id) {
        say(format!("the rule of {t} is QUANT-{:03}", t.id));
    }
}

/// The changes change something, what is expected is there, and a refusal has something to name.
fn check_names(case: &NamesCase, say: &mut impl FnMut(String)) {
    for error in [case.input().err(), case.expected().err()].into_iter().flatten() {
        say(error.message);
    }
    let refused = *case.verdict() == Verdict::Reject;
    if refused && !case.is_edited() {
        say("nothing is changed, and it is to be refused".into());
    }
    if refused == case.says.is_empty() {
        say("`says` has what a refusal has to name, in a case that is to be refused".into());
    }
    if !case.rule.id.starts_with("NAMES-") {
        say("its rule is one of names".into());
    }
}

/// The fault changes something, and what is expected fits what is asked.
fn check_checkpoint(case: &CheckpointCase, say: &mut impl FnMut(String)) {
    let (built, without) = match (case.build(), case.build_without_fault(), case.expected()) {
        (Ok(built), Ok(without), Ok(_)) => (built, without),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return say(error.message),
    };
    if case.has_fault() && built == without {
        say("the fault changes nothing".into());
    }
    let refused = *case.verdict() == Verdict::Reject;
    if refused && !case.has_fault() && case.tp.is_none() && case.module.is_none() {
        say("there is no fault, and it is to be refused".into());
    }
    if refused == case.says.is_empty() {
        say("`says` has what a refusal has to name, in a case that is to be refused".into());
    }
    let accepted = *case.verdict() == Verdict::Accept;
    if (refused && case.has_expectation()) || (accepted && !case.has_expectation()) {
        say("`expect` has what is compared, in a case that is to be accepted".into());
    }
    if !of_checkpoints(case.rule) {
        say("its rule is one of checkpoints".into());
    }
    for finding in judge_files(&without, None).iter().filter(|finding| finding.is_fault()) {
        say(format!("without its fault, it is not in order: {finding}"));
    }
    if case.module.is_some() {
        return;
    }
    let findings = judge_files(&built, case.tp);
    let faults: Vec<&Finding> = findings.iter().filter(|finding| finding.is_fault()).collect();
    let list = |findings: &mut dyn Iterator<Item = &Finding>| {
        findings.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    match case.verdict() {
        Verdict::Reject if faults.is_empty() => say("nothing is found to be wrong with it".into()),
        Verdict::Reject => {
            let found = list(&mut faults.iter().copied());
            if !faults.iter().any(|finding| finding.rule == case.rule) {
                say(format!("it does not break {}, but {found}", case.rule));
            }
            if !case.says.iter().any(|part| found.contains(part.as_str())) {
                say(format!("`says` is not in what is found: {found}"));
            }
        }
        Verdict::Accept if !faults.is_empty() => {
            say(format!("it is not in order: {}", list(&mut faults.iter().copied())));
        }
        Verdict::Accept if is_note(case.rule) && case.has_fault() => {
            if !findings.iter().any(|finding| finding.rule == case.rule) {
                say(format!("{} is not noted, but {}", case.rule, list(&mut findings.iter())));
            }
        }
        Verdict::Accept | Verdict::Either(_) => {}
    }
}

/// What this project's own judge finds. It only confirms what the case says.
fn judge_files(files: &BuiltFolder, tp: Option<u32>) -> Vec<Finding> {
    let options = Options { tp: tp.map(u64::from), ..Options::default() };
    match Checkpoint::open(MemoryFiles(files.0.clone())) {
        Ok(checkpoint) => judge(&checkpoint, &options).findings,
        // Files in memory can be read.
        Err(_) => Vec::new(),
    }
}

fn of_checkpoints(rule: &Rule) -> bool {
    gguf_assay_checkpoint::rule::rules().any(|other| other == rule)
}

/// Whether nobody has to refuse what breaks the rule.
fn is_note(rule: &Rule) -> bool {
    [rule.spec, rule.ggml, rule.policy].iter().all(|by| !matches!(by, Requirement::Must(_)))
}

/// The description without the fault is valid, and the fault really changes something.
fn check_description(case: &Case, say: &mut impl FnMut(String)) {
    let description = match case.description() {
        Ok(description) => description,
        Err(error) => return say(error.message),
    };
    let built = match (case.build(), case.build_without_fault(), case.expected()) {
        (Ok(built), Ok(without), Ok(_)) => {
            if case.has_fault() && built == without {
                say("the fault changes nothing".into());
            }
            without
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return say(error.message),
    };
    // What one profile refuses for what it is, not for a fault.
    let foreign = description.version == 1 || description.byte_order == ByteOrder::Big;
    let bytes = built.to_bytes();
    for profile in Profile::ALL {
        match read(&bytes, profile) {
            Err(_) if foreign && profile == Profile::Ggml => {}
            Err(violation) => say(format!("without its fault, {profile} refuses it: {violation}")),
            Ok(_) => {}
        }
        if !case.has_fault()
            && *case.verdict(profile) != Verdict::Accept
            && !(foreign || is_beyond_the_text(&description))
        {
            say(format!("there is no fault, but {profile} does not have to accept it"));
        }
    }
}

/// Whether the text neither allows nor forbids what is described: an old version, a type that is
/// newer than the text.
fn is_beyond_the_text(description: &Description) -> bool {
    description.version != 3 || description.tensors.iter().any(|tensor| tensor.type_id > 39)
}

/// Rules of checkpoints that wait for cases, by the beginning of their ids; each group goes from here
/// when its last rule has one.
const AWAITED: [&str; 3] = ["CKPT-", "MODEL-", "ST-"];

/// Rules that no case can break: files that cannot be read, a header of more than 100 MB, a config of
/// more than 64 MiB, numbers of
/// another checkpoint.
const BEYOND_CASES: [&str; 4] = ["CKPT-001", "CKPT-004", "METHOD-032", "ST-002"];

fn check_coverage(corpus: &Corpus, errors: &mut Vec<CaseError>) {
    let mut awaited = HashSet::new();
    for rule in rules().filter(|rule| !BEYOND_CASES.contains(&rule.id)) {
        let cases = || corpus.all().filter(|case| case.rule() == rule);
        let some = |wanted: fn(&Verdict) -> bool| {
            cases().any(|case| Profile::ALL.into_iter().any(|p| wanted(case.verdict(p))))
        };
        let mut say =
            |message: &str| match AWAITED.iter().find(|group| rule.id.starts_with(**group)) {
                Some(group) => drop(awaited.insert(*group)),
                None => errors.push(CaseError { place: rule.id.into(), message: message.into() }),
            };
        let of_names = rule.id.starts_with("NAMES");
        let of_checkpoints = of_checkpoints(rule);
        // What is accepted there is whole, and keeps all of its rules at once.
        let whole = (of_names && rule.id != "NAMES-009") || (of_checkpoints && !is_note(rule));
        if !whole && !some(|verdict| *verdict == Verdict::Accept) {
            say("no case of this rule is accepted");
        }
        let policy = if of_names || of_checkpoints { rule.policy } else { Silent };
        let authorities = [rule.spec, rule.ggml, policy];
        let binds = authorities.iter().any(|r| matches!(r, Requirement::Must(_)));
        // Any bytes are blocks: there is nothing to reject in them, nor in a whole pair.
        let nothing = rule.id.starts_with("QUANT") || rule.id == "NAMES-009";
        if binds && !nothing && !some(|verdict| *verdict == Verdict::Reject) {
            say("no case of this rule is rejected");
        }
    }
    for group in AWAITED.iter().filter(|group| !awaited.contains(**group)) {
        let message = "every rule has cases: take the group out of AWAITED".into();
        errors.push(CaseError { place: (*group).into(), message });
    }
    let used: HashSet<u32> =
        corpus.cases.iter().filter(|case| !case.is_large()).flat_map(tensor_types).collect();
    for tensor_type in TENSOR_TYPES.iter().filter(|t| !used.contains(&t.id)) {
        let message = "no case has a tensor of this type".into();
        errors.push(CaseError { place: tensor_type.name.into(), message });
    }
}

/// The ids of the types in a case's tensor table, as far as it can be read.
fn tensor_types(case: &Case) -> Vec<u32> {
    let bytes = case.build().map(|file| file.to_bytes()).unwrap_or_default();
    let gguf = diagnose(&bytes).gguf;
    gguf.map(|gguf| gguf.tensors.iter().map(|tensor| tensor.type_id).collect()).unwrap_or_default()
}
