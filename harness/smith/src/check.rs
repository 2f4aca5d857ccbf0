//! What holds of a planted fault.

use gguf_assay_format::{Profile, Requirement, Rule, diagnose, lay_out, read};

use crate::Planted;

/// Whether a fault is what it is named after: without it both profiles accept the file; with it,
/// the reference finds the rule broken, and no other but for those that go with it, and `ggml`,
/// which says whether ggml accepts a file, does what the rule's entry in the table says.
///
/// # Errors
///
/// What does not hold.
pub fn check(planted: &Planted, ggml: impl FnOnce(&[u8]) -> bool) -> Result<(), String> {
    let rule = planted.rule;
    if planted.fault.is_some() {
        let sound = lay_out(&planted.description).to_bytes();
        for profile in Profile::ALL {
            let read = read(&sound, profile);
            read.map_err(|violation| format!("{rule}: without its fault: {violation}"))?;
        }
    }
    let bytes = planted.lay_out().to_bytes();
    let diagnosis = diagnose(&bytes);
    let found: Vec<&str> = diagnosis.violations.iter().map(|v| v.rule().id).collect();
    let fail = |what: &str| Err(format!("{rule}, {:?}: {what}; found {found:?}", planted.fault));
    let beside = companions(rule);
    if !found.contains(&rule.id) {
        return fail("not found");
    }
    // TENSOR-012 is a note on types that are newer than the text: valid files may have them.
    let is_expected = |id: &&str| *id == rule.id || *id == "TENSOR-012" || beside.contains(id);
    if !found.iter().all(is_expected) {
        return fail("found more");
    }
    for profile in Profile::ALL.into_iter().filter(|profile| rule.binds(*profile)) {
        match read(&bytes, profile) {
            Ok(_) => return fail("read"),
            Err(violation) if violation.rule() == rule => {}
            Err(violation) if beside.contains(&violation.rule().id) => {}
            Err(violation) => return fail(&format!("{profile} says {violation}")),
        }
    }
    let accepted = ggml(&bytes);
    if accepted && matches!(rule.ggml, Requirement::Must(_)) {
        return fail("ggml accepts it");
    }
    if accepted != diagnosis.accepted_by(Profile::Ggml) {
        return fail(if accepted { "ggml accepts it" } else { "ggml refuses it" });
    }
    Ok(())
}

/// What is broken wherever the rule is.
fn companions(rule: &Rule) -> &'static [&'static str] {
    match rule.id {
        // An array of arrays, to begin with.
        "META-010" => &["META-009"],
        // The tensor is not where its predecessor ends.
        "DATA-001" | "DATA-003" => &["DATA-002"],
        // A tensor of that size is in no file.
        "TENSOR-007" | "DATA-006" => &["DATA-004"],
        _ => &[],
    }
}
