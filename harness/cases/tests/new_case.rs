//! What is written down is the same file when it is read again.

use gguf_assay_cases::{BuiltFile, NewCase, Verdict};
use gguf_assay_format::{RULES, TensorType, lay_out};
use gguf_assay_smith::{Kind, Reach, Smith, plant, small_rules};

#[test]
fn written_cases_build_the_same_file() {
    let rules: Vec<_> = small_rules().collect();
    let mut faults = 0;
    for seed in 0..1500 {
        let reach = [Reach::Spec, Reach::Ggml, Reach::Both][seed as usize % 3];
        let kind = if seed % 50 == 0 { Kind::Llama } else { Kind::Any };
        let description = Smith::new(reach).kind(kind).forge_seed(seed);
        let rule = rules[seed as usize % rules.len()];
        let planted = plant(rule, &description, seed);
        let (description, fault) = match &planted {
            Some(planted) => (&planted.description, planted.fault.as_ref()),
            None => (&description, None),
        };
        faults += usize::from(fault.is_some());
        let case = NewCase {
            id: "read/fuzz/case",
            rule,
            summary: "a file",
            source: "a test",
            description,
            fault,
            verdicts: [Verdict::Accept, Verdict::Either("no \"reason\"".into())],
            any_value: Some("it is not read here"),
        };
        let built = case.to_case().and_then(|case| case.build());
        let built = built.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{:?}", case.to_toml()));
        let expected = match fault {
            Some(fault) => fault.lay_out(description).expect("it has a place"),
            None => lay_out(description).segments,
        };
        assert_eq!(built, BuiltFile(expected), "seed {seed}: {:?}", case.to_toml());
    }
    assert!(faults > 300, "{faults} faults");
}

#[test]
fn types_that_are_not_ggmls_cannot_be_said() {
    let mut description = Smith::new(Reach::Both).forge_seed(1);
    let q4_0 = TensorType::by_id(2).expect("a type of the table");
    description.tensors.push(gguf_assay_format::TensorDescription::zeros("t", q4_0, &[32]));
    description.tensors.last_mut().expect("it was pushed").type_id = 4711;
    let case = NewCase {
        id: "read/fuzz/case",
        rule: RULES[0],
        summary: "a file",
        source: "a test",
        description: &description,
        fault: None,
        verdicts: [Verdict::Reject, Verdict::Reject],
        any_value: None,
    };
    assert!(case.to_toml().unwrap_err().to_string().contains("4711"));
}
