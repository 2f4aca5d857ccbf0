//! Checkpoints beside the one that they were made of: what is declared wrongly shows in the numbers.
//!
//! The tensors are those of `packing/slices`: one module each of real checkpoints, and of their source.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gguf_assay_checkpoint::{Checkpoint, Compared, Finding, MemoryFiles, Options, compare, judge};
use serde_json::{Value as Json, json};

use support::Model;

/// The slice of a checkpoint with a config.
fn slice(name: &str, config: &Json) -> Checkpoint<MemoryFiles> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packing/slices");
    let bytes = fs::read(folder.join(format!("{name}.safetensors"))).unwrap();
    let files = BTreeMap::from([
        ("config.json".to_owned(), config.to_string().into_bytes()),
        ("model.safetensors".to_owned(), bytes),
    ]);
    Checkpoint::open(MemoryFiles(files)).unwrap()
}

/// Compares a slice, whose declaration is edited, with its source.
fn compared(name: &str, edit: impl Fn(&mut Json)) -> (Vec<Compared>, Vec<Finding>) {
    let mut quantization = Model::of_data(name).config["quantization_config"].clone();
    edit(&mut quantization);
    // One module is not a model, so that the config names none.
    let packed = slice(name, &json!({ "quantization_config": quantization }));
    let source =
        if name.starts_with("qwen3moe") { "tiny-qwen3moe-bf16" } else { "tiny-qwen3-bf16" };
    let judgement = judge(&packed, &Options::default());
    assert_eq!(judgement.modules.len(), 1, "{name}: {:?}", judgement.findings);
    let mut findings = Vec::new();
    let source = slice(source, &json!({}));
    let compared = compare(&packed, &judgement, &source, &mut findings, &mut |_| {}).unwrap();
    (compared, findings)
}

const ALL: [&str; 9] = [
    "qwen3-awq-w4g32-autoround",
    "qwen3-bnb-nf4",
    "qwen3-ct-fp8-dynamic",
    "qwen3-ct-mxfp4a16",
    "qwen3-ct-w4a16-asym-g32",
    "qwen3-fp8block-autoround",
    "qwen3-gptq-w2g32-autoround",
    "qwen3-gptq-w4g32-autoround",
    "qwen3moe-gptq-w4g32-autoround",
];

#[test]
fn what_is_declared_rightly_is_near() {
    for name in ALL {
        let (compared, findings) = compared(name, |_| {});
        assert_eq!(findings, [], "{name}");
        let error = compared[0].error().unwrap();
        assert!(error > 0.0, "{name}: {error}");
        assert_eq!(compared[0].candidates[0].rule, "as declared", "{name}");
    }
}

#[test]
fn the_version_of_zero_points_shows() {
    for name in ["qwen3-gptq-w2g32-autoround", "qwen3-gptq-w4g32-autoround"] {
        let (_, findings) = compared(name, |config| config["checkpoint_format"] = "gptq_v2".into());
        let [finding] = findings.as_slice() else { panic!("{name}: {findings:?}") };
        assert_eq!(finding.rule.id, "METHOD-032", "{name}");
        assert!(finding.found.contains("zero points less one, as in v1"), "{finding}");
    }
}

#[test]
fn zero_points_that_are_not_looked_at_show() {
    let (_, findings) = compared("qwen3-awq-w4g32-autoround", |config| {
        config["zero_point"] = false.into();
    });
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.rule.id, "METHOD-032", "{finding}");
}
