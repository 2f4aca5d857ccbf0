//! The reference names the rule that a case is about: what a person reads is the right reason.

use gguf_assay_cases::{Corpus, Verdict, rules};
use gguf_assay_format::{Profile, RULES, Requirement, Rule, diagnose, read};

/// Rules that no authority enforces are never the reason for a refusal, only seen beside it.
fn binds(rule: &Rule) -> bool {
    [rule.spec, rule.ggml].iter().any(|by| matches!(by, Requirement::Must(_)))
}

#[test]
fn a_rejected_case_breaks_its_rule_first() {
    let mut wrong = Vec::new();
    for case in Corpus::embedded().cases.iter().filter(|case| !case.is_large()) {
        let bytes = case.build().unwrap().to_bytes();
        let rejecting: Vec<Profile> = Profile::ALL
            .into_iter()
            .filter(|&profile| *case.verdict(profile) == Verdict::Reject)
            .collect();
        let named: Vec<&str> = rejecting
            .iter()
            .filter_map(|&profile| read(&bytes, profile).err())
            .map(|violation| violation.rule().id)
            .collect();
        if binds(case.rule) && !rejecting.is_empty() && !named.contains(&case.rule.id) {
            wrong.push(format!("{}: {}, but {named:?}", case.id, case.rule));
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn diagnosis_and_strict_reading_agree() {
    for case in Corpus::embedded().cases.iter().filter(|case| !case.is_large()) {
        let bytes = case.build().unwrap().to_bytes();
        let diagnosis = diagnose(&bytes);
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
            let strict = read(&bytes, profile).err();
            let first = diagnosis.violations.iter().find(|v| v.binds(profile));
            assert_eq!(strict.as_ref(), first, "{} under {profile}", case.id);
            assert_eq!(diagnosis.accepted_by(profile), strict.is_none(), "{}", case.id);
        }
    }
}

/// The profiles part only where a rule says so.
#[test]
fn verdicts_differ_where_the_rule_does() {
    for case in &Corpus::embedded().cases {
        let [spec, ggml] = Profile::ALL.map(|profile| case.verdict(profile).clone());
        let differ = matches!(
            (&spec, &ggml),
            (Verdict::Accept, Verdict::Reject) | (Verdict::Reject, Verdict::Accept)
        );
        if differ {
            let [spec, ggml] = Profile::ALL.map(|profile| case.rule.binds(profile));
            assert_ne!(spec, ggml, "{}: {} does not tell the profiles apart", case.id, case.rule);
        }
    }
}

/// Somebody's clause stands behind the rule of every case, and what is cut off is told from what is
/// no GGUF file: the cases of a sweep are the beginnings of one.
#[test]
fn clauses_and_truncations() {
    for case in Corpus::embedded().cases.iter().filter(|case| !case.is_large()) {
        assert_eq!(RULES.iter().filter(|rule| **rule == case.rule).count(), 1, "{}", case.id);
        let Rule { spec, ggml, policy, .. } = case.rule;
        assert!([spec, ggml, policy].iter().any(|by| by.clause().is_some()), "{}", case.id);
        let is_cut_off = match (case.area(), case.rule.id) {
            ("truncation", "FILE-002") => true,
            ("download", "HDR-001") => false,
            _ => continue,
        };
        let bytes = case.build().unwrap().to_bytes();
        if let Err(violation) = read(&bytes, Profile::Spec) {
            assert_eq!(violation.is_truncation(), is_cut_off, "{}: {violation}", case.id);
        }
    }
}

/// An id is of one rule, in all crates that have rules.
#[test]
fn ids_are_of_one_rule() {
    let mut seen = std::collections::HashSet::new();
    for rule in rules() {
        assert!(seen.insert(rule.id), "{} is the id of two rules", rule.id);
    }
}
