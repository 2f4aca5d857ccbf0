//! `gguf-assay checkpoint` on folders, from headers to numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gguf_assay_format::{ByteOrder, Profile, read};
use gguf_assay_quant::dequantize;
use safetensors::SafeTensors;
use serde_json::Value as Json;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gguf-assay")).args(args).output().unwrap()
}

/// The standard output of a call, which has to end with this status.
fn said(args: &[&str], status: i32) -> String {
    let output = assay(args);
    let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (out, err) = (out.unwrap(), err.unwrap());
    assert_eq!(output.status.code(), Some(status), "{args:?}\n{out}{err}");
    out
}

/// The numbers of a safetensors file.
fn numbers(path: &Path) -> BTreeMap<String, Vec<f32>> {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let numbers = file.iter().map(|(name, tensor)| {
        let (chunks, _) = tensor.data().as_chunks::<4>();
        (name.to_owned(), chunks.iter().map(|n| f32::from_le_bytes(*n)).collect())
    });
    numbers.collect()
}

/// A gpt-oss checkpoint as it is published, made of a file that llama.cpp's converter made of one: what
/// its packed experts come to is what the file's MXFP4 tensors dequantize to.
#[test]
fn gpt_oss() {
    let folder = tempfile::tempdir().unwrap();
    let pair = root().join("corpus/names/pairs/gpt-oss-mxfp4");
    let file = pair.join("model.gguf");
    let model = folder.path().join("model.safetensors");
    let (file, model) = (file.to_str().unwrap(), model.to_str().unwrap());
    said(&["names", file, "--export", model, "--keep-mxfp4"], 0);
    fs::copy(pair.join("config.json"), folder.path().join("config.json")).unwrap();
    let path = folder.path().to_str().unwrap();
    let text = said(&["checkpoint", path], 0);
    assert!(text.contains("2 of gpt-oss-mxfp4, 4 bits, group 32"), "{text}");

    let out = folder.path().join("unpacked");
    said(&["checkpoint", path, "--unpack", "*", "--out", out.to_str().unwrap()], 0);
    let unpacked = numbers(&out);
    // Three experts of three projections each.
    assert_eq!(unpacked.len(), 9);

    let bytes = fs::read(file).unwrap();
    let gguf = read(&bytes, Profile::Ggml).unwrap();
    for projection in ["gate", "up", "down"] {
        let name = format!("blk.0.ffn_{projection}_exps.weight");
        let tensor = gguf.tensors.iter().find(|t| t.name.0 == name.as_bytes()).unwrap();
        let elements = usize::try_from(tensor.dims.elements().unwrap()).unwrap();
        let mut expected = vec![0.0; elements];
        let tensor_type = tensor.tensor_type.unwrap();
        assert_eq!(tensor_type.name, "MXFP4");
        let data = gguf.tensor_bytes(tensor).unwrap();
        dequantize(tensor_type, data, ByteOrder::Little, &mut expected).unwrap();
        for (expert, expected) in expected.chunks(elements / 3).enumerate() {
            let name = format!("model.layers.0.mlp.experts.{expert}.{projection}_proj.weight");
            assert_eq!(unpacked[&name], expected, "{name}");
            assert!(expected.iter().any(|number| *number != 0.0), "{name}");
        }
    }
}

/// The config says DeepSeek's FP8 of packed experts, which is what happened to gpt-oss.
#[test]
fn packed_experts_that_are_declared_as_another_method() {
    let folder = tempfile::tempdir().unwrap();
    let pair = root().join("corpus/names/pairs/gpt-oss-mxfp4");
    let file = pair.join("model.gguf");
    let model = folder.path().join("model.safetensors");
    said(
        &["names", file.to_str().unwrap(), "--export", model.to_str().unwrap(), "--keep-mxfp4"],
        0,
    );
    let mut config: Json =
        serde_json::from_slice(&fs::read(pair.join("config.json")).unwrap()).unwrap();
    config["quantization_config"] = serde_json::json!({
        "quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic",
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let text = said(&["checkpoint", folder.path().to_str().unwrap(), "--format", "json"], 1);
    let json: Json = serde_json::from_str(&text).unwrap();
    let findings = json["findings"].as_array().unwrap().iter();
    let rules: Vec<&str> =
        findings.filter(|f| f["fault"] == true).map(|f| f["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"METHOD-012"), "{rules:?}");
    assert!(text.contains("gpt-oss-mxfp4, with which all tensors fit"), "{text}");
}

/// One module of a real checkpoint (auto-round 0.16.1, version gemm) and of its source, as it is
/// declared and with one field otherwise.
#[test]
fn answers() {
    let folder = tempfile::tempdir().unwrap();
    let slices = root().join("harness/checkpoint/tests/packing/slices");
    for (name, slice, zero_point, group_size) in [
        ("Tiny-AWQ", "qwen3-awq-w4g32-autoround", true, 32),
        ("wrong-group", "qwen3-awq-w4g32-autoround", true, 64),
        ("no-zeros", "qwen3-awq-w4g32-autoround", false, 32),
        ("Tiny", "tiny-qwen3-bf16", true, 0),
    ] {
        let made = folder.path().join(name);
        fs::create_dir(&made).unwrap();
        let slice = slices.join(format!("{slice}.safetensors"));
        fs::copy(slice, made.join("model.safetensors")).unwrap();
        let mut config = serde_json::json!({});
        if group_size > 0 {
            config["quantization_config"] = serde_json::json!({
                "quant_method": "awq", "bits": 4, "group_size": group_size, "version": "gemm",
                "zero_point": zero_point,
            });
        }
        fs::write(made.join("config.json"), config.to_string()).unwrap();
    }
    let mut text = String::new();
    for args in [
        &["Tiny-AWQ"][..],
        &["Tiny-AWQ", "--source", "Tiny"],
        &["Tiny-AWQ", "--tp", "4"],
        &["wrong-group"],
        &["wrong-group", "--format", "json"],
        &["wrong-group", "--format", "sarif"],
        &["no-zeros", "--source", "Tiny"],
        &["Tiny"],
        &["Tiny-AWQ", "--unpack", "lm_head", "--out", "out.safetensors"],
        &["Tiny-AWQ", "--unpack", "*.down_proj", "--out", "out.safetensors"],
        &["--help"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_gguf-assay"))
            .arg("checkpoint")
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
        text.push_str(&format!("$ gguf-assay checkpoint {}\n", args.join(" ")));
        text.push_str(&out.unwrap());
        text.push_str(&err.unwrap());
        text.push_str(&format!("-- exit status {}\n\n", output.status.code().unwrap()));
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root().join("golden/cli"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    settings.bind(|| insta::assert_snapshot!("checkpoint", text));
}

#[test]
fn sarif_names_rule_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let config = r#"{"quantization_config": {"quant_method": "zzz"}}"#;
    fs::write(folder.path().join("config.json"), config).unwrap();
    let text = said(&["checkpoint", folder.path().to_str().unwrap(), "--format", "sarif"], 1);
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(json["version"], "2.1.0");
    let results = json["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|result| result["ruleId"] == "METHOD-001").unwrap();
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0];
    assert_eq!(
        place["logicalLocations"][0]["fullyQualifiedName"],
        "quantization_config.quant_method"
    );
    let uri = place["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
    assert!(uri.ends_with("/config.json"), "{uri}");
    let rules = json["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let index = result["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(rules[index]["id"], "METHOD-001");
}

#[test]
fn wrong_calls() {
    for (args, complaint) in [
        (&["checkpoint", "there/is/none"][..], "is not a folder"),
        (&["checkpoint", "corpus", "--unpack", "a"], "--out"),
    ] {
        let output = assay(args);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(complaint), "{err}");
    }
}
