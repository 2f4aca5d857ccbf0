//! `gguf-assay list kernels`, and the variable that forces an engine on the command.

use std::path::PathBuf;
use std::process::{Command, Output};

use gguf_assay_format::{Data, Description, Status, TENSOR_TYPES, TensorDescription, lay_out};
use gguf_assay_quant::kernel::{Engine, VARIABLE};
use serde_json::Value;

/// Runs the command with this engine forced on it, or none.
fn assay(engine: Option<&str>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf-assay"));
    command.args(args).env("NO_COLOR", "1").env_remove(VARIABLE);
    command.envs(engine.map(|engine| (VARIABLE, engine))).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn kernels(engine: Option<&str>) -> Vec<Value> {
    let output = assay(engine, &["list", "kernels", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_type_has_a_kernel_and_every_engine_a_word() {
    let kernels = kernels(None);
    assert_eq!(kernels.len(), 36);
    for kernel in kernels {
        let available = kernel["available"].as_array().unwrap();
        assert!(available.contains(&kernel["chosen"]), "{kernel}");
        let unavailable = kernel["unavailable"].as_object().unwrap();
        assert_eq!(available.len() + unavailable.len(), Engine::ALL.len(), "{kernel}");
        for engine in Engine::ALL {
            let why = unavailable.get(engine.name()).and_then(Value::as_str);
            for missing in engine.missing() {
                assert!(why.is_some_and(|why| why.contains(missing)), "{kernel}: {missing}");
            }
        }
    }
}

#[test]
fn an_engine_can_be_forced() {
    for kernel in kernels(Some("scalar")) {
        assert_eq!(kernel["chosen"], "scalar");
        assert_eq!(kernel["forced"], true);
    }
}

/// Files with a tensor of each type: what `check --deep` finds, and what `dequantize` prints.
#[test]
fn every_engine_gives_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    for t in TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed) {
        // A bit more than a thread takes at a time. Some of the numbers are not finite.
        let len = (1 << 16) + 256;
        let bytes = (0..t.byte_len(len).unwrap()).map(|place| (place * 37 % 251) as u8).collect();
        let tensor = TensorDescription {
            name: "t".into(),
            dims: vec![len],
            type_id: t.id,
            offset: None,
            data: Data::Bytes(bytes),
        };
        let description = Description { tensors: vec![tensor], ..Description::default() };
        let path = dir.path().join("model.gguf");
        std::fs::write(&path, lay_out(&description).to_bytes()).unwrap();
        let path = path.to_str().unwrap();
        let answers = |engine: Engine| {
            let first = (len - 8).to_string();
            [&["check", "--deep", path][..], &["dequantize", path, "t", "--first", &first]]
                .map(|args| text(assay(Some(engine.name()), args).stdout))
        };
        let expected = answers(Engine::Scalar);
        assert!(expected.iter().all(|answer| answer.len() > 100), "{t}: {expected:?}");
        for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
            assert!(answers(engine) == expected, "{engine}/{t}");
        }
    }
}

#[test]
fn what_is_no_engine_or_is_not_there_is_a_wrong_call() {
    let absent = Engine::ALL.into_iter().filter(|engine| !engine.is_available());
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus/read/tensors/every-scalar-type.gguf");
    let file = file.to_str().unwrap();
    for name in absent.map(Engine::name).chain(["avx3", "AVX2", ""]) {
        for args in
            [&["list", "kernels"][..], &["check", "--deep", file], &["dequantize", file, "t"]]
        {
            let output = assay(Some(name), args);
            let stderr = text(output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name}, {args:?}: {stderr}");
            assert!(stderr.contains(name) && stderr.contains(VARIABLE), "{name}: {stderr}");
        }
    }
}
