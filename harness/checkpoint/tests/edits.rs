//! Real checkpoints are accepted, and named rightly; with one edit each they are refused by the right
//! rule.

mod support;

use gguf_assay_checkpoint::{Checkpoint, Judgement, Options, judge};
use serde_json::{Value as Json, json};

use support::Model;

fn judged(files: gguf_assay_checkpoint::MemoryFiles) -> Judgement {
    judge(&Checkpoint::open(files).unwrap(), &Options::default())
}

/// What is wrong, as a set of rule ids.
fn faults(judgement: &Judgement) -> Vec<&'static str> {
    let faults = judgement.findings.iter().filter(|finding| finding.is_fault());
    let mut ids: Vec<&str> = faults.map(|finding| finding.rule.id).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn texts(judgement: &Judgement) -> String {
    let findings = judgement.findings.iter().filter(|finding| finding.is_fault());
    findings.map(|finding| format!("{finding}\n")).collect()
}

/// Method, bits, group size and count of quantized modules, by the names of the folders and the
/// model's two layers of seven linear layers, or four experts of three and four.
#[test]
fn real_checkpoints_are_what_their_names_say() {
    for (name, method, layout, bits, group, modules) in [
        ("qwen3-awq-w4g32-autoround", "awq", "awq-gemm", 4, "32", 14),
        ("qwen3-bnb-nf4", "bitsandbytes", "bnb-nf4", 4, "64", 14),
        ("qwen3-ct-fp8-dynamic", "compressed-tensors", "float-quantized-channel", 8, "-1", 14),
        ("qwen3-ct-mxfp4a16", "compressed-tensors", "mxfp4-pack-quantized", 4, "32", 14),
        ("qwen3-ct-w4a16-asym-g32", "compressed-tensors", "pack-quantized", 4, "32", 14),
        ("qwen3-fp8block-autoround", "fp8", "fp8-block", 8, "-1", 14),
        ("qwen3-gptq-w2g32-autoround", "gptq", "gptq", 2, "32", 14),
        ("qwen3-gptq-w4g32-autoround", "gptq", "gptq", 4, "32", 14),
        ("qwen3moe-gptq-w4g32-autoround", "gptq", "gptq", 4, "32", 32),
    ] {
        let judgement = judged(Model::of_data(name).files());
        assert_eq!(faults(&judgement), Vec::<&str>::new(), "{name}: {}", texts(&judgement));
        assert_eq!(judgement.method.map(|method| method.name), Some(method), "{name}");
        assert_eq!(judgement.modules.len(), modules, "{name}");
        for module in &judgement.modules {
            let sizes = (module.layout.name, module.bits, module.group.to_string());
            assert_eq!(sizes, (layout, bits, group.to_owned()), "{name} {}", module.name);
        }
        let down = judgement.modules.iter().find(|module| module.name.ends_with("down_proj"));
        let inner = if name.starts_with("qwen3moe") { 256 } else { 512 };
        let shape = down.map(|down| (down.out_features, down.in_features));
        assert_eq!(shape, Some((Some(256), Some(inner))), "{name}");
    }
    for name in ["tiny-qwen3-bf16", "tiny-qwen3moe-bf16"] {
        let judgement = judged(Model::of_data(name).files());
        assert_eq!(faults(&judgement), Vec::<&str>::new(), "{name}: {}", texts(&judgement));
        assert_eq!((judgement.method.is_none(), judgement.modules.len()), (true, 0), "{name}");
    }
}

#[test]
fn shards_change_nothing() {
    for name in Model::names() {
        let judgement = judged(Model::of_data(&name).shards());
        assert_eq!(faults(&judgement), Vec::<&str>::new(), "{name}: {}", texts(&judgement));
    }
}

/// An edit, the checkpoints that it is for, and the rules that have to be broken, and no other.
struct Edit {
    name: &'static str,
    of: &'static [&'static str],
    edit: fn(&mut Model),
    rules: &'static [&'static str],
}

fn quantization(model: &mut Model) -> &mut Json {
    &mut model.config["quantization_config"]
}

fn weights(model: &mut Model) -> &mut Json {
    &mut quantization(model)["config_groups"]["group_0"]["weights"]
}

const GPTQ4: &[&str] = &["qwen3-gptq-w4g32-autoround", "qwen3moe-gptq-w4g32-autoround"];
const GPTQ: &[&str] =
    &["qwen3-gptq-w2g32-autoround", "qwen3-gptq-w4g32-autoround", "qwen3moe-gptq-w4g32-autoround"];
const AWQ: &[&str] = &["qwen3-awq-w4g32-autoround"];
const PACK: &[&str] = &["qwen3-ct-w4a16-asym-g32"];
const MXFP4: &[&str] = &["qwen3-ct-mxfp4a16"];
const CHANNEL: &[&str] = &["qwen3-ct-fp8-dynamic"];
const BLOCK: &[&str] = &["qwen3-fp8block-autoround"];
const BNB: &[&str] = &["qwen3-bnb-nf4"];

fn transpose(model: &mut Model, end: &str) {
    let tensor = model.tensor(end);
    assert!(tensor.shape.len() == 2 && tensor.shape[0] != tensor.shape[1]);
    tensor.shape.reverse();
}

fn remove(model: &mut Model, end: &str) {
    let before = model.tensors.len();
    model.tensors.retain(|tensor| !tensor.name.ends_with(&format!("layers.1.{end}")));
    assert_eq!(model.tensors.len() + 1, before, "{end}");
}

#[rustfmt::skip]
const EDITS: &[Edit] = &[
    Edit { name: "bits 8", of: GPTQ, edit: |m| quantization(m)["bits"] = 8.into(), rules: &["METHOD-010"] },
    Edit { name: "bits 8", of: AWQ, edit: |m| quantization(m)["bits"] = 8.into(), rules: &["METHOD-003", "METHOD-010"] },
    Edit { name: "bits 8", of: PACK, edit: |m| weights(m)["num_bits"] = 8.into(), rules: &["METHOD-010"] },
    Edit { name: "bits 8", of: MXFP4, edit: |m| weights(m)["num_bits"] = 8.into(), rules: &["METHOD-006"] },
    Edit { name: "bits 4", of: CHANNEL, edit: |m| weights(m)["num_bits"] = 4.into(), rules: &["METHOD-006"] },
    Edit { name: "8 bits", of: BNB, edit: |m| {
        for (field, value) in [("load_in_4bit", false), ("load_in_8bit", true)] {
            quantization(m)[field] = value.into();
            quantization(m)[format!("_{field}")] = value.into();
        }
    }, rules: &["METHOD-012"] },
    Edit { name: "group 64", of: GPTQ, edit: |m| quantization(m)["group_size"] = 64.into(), rules: &["METHOD-011"] },
    Edit { name: "group 64", of: AWQ, edit: |m| quantization(m)["group_size"] = 64.into(), rules: &["METHOD-011"] },
    Edit { name: "group 64", of: PACK, edit: |m| weights(m)["group_size"] = 64.into(), rules: &["METHOD-011"] },
    Edit { name: "group 64", of: MXFP4, edit: |m| weights(m)["group_size"] = 64.into(), rules: &["METHOD-006", "METHOD-011"] },
    Edit { name: "blocks of 64", of: BLOCK, edit: |m| quantization(m)["weight_block_size"] = json!([64, 64]), rules: &["METHOD-011"] },
    Edit { name: "awq", of: GPTQ4, edit: |m| quantization(m)["quant_method"] = "awq".into(), rules: &["METHOD-012"] },
    Edit { name: "gptq", of: AWQ, edit: |m| quantization(m)["quant_method"] = "gptq".into(), rules: &["METHOD-012"] },
    Edit { name: "gemv", of: AWQ, edit: |m| quantization(m)["version"] = "gemv".into(), rules: &["METHOD-012"] },
    Edit { name: "fp4", of: BNB, edit: |m| quantization(m)["bnb_4bit_quant_type"] = "fp4".into(), rules: &["METHOD-012"] },
    Edit { name: "transposed codes", of: GPTQ, edit: |m| transpose(m, "layers.1.self_attn.k_proj.qweight"), rules: &["METHOD-013"] },
    Edit { name: "transposed codes", of: AWQ, edit: |m| transpose(m, "layers.1.self_attn.k_proj.qweight"), rules: &["METHOD-013"] },
    Edit { name: "transposed codes", of: PACK, edit: |m| transpose(m, "layers.1.self_attn.k_proj.weight_packed"), rules: &["METHOD-013"] },
    Edit { name: "transposed zero points", of: PACK, edit: |m| transpose(m, "layers.1.self_attn.k_proj.weight_zero_point"), rules: &["METHOD-013"] },
    Edit { name: "transposed scales", of: MXFP4, edit: |m| transpose(m, "layers.1.self_attn.k_proj.weight_scale"), rules: &["METHOD-013"] },
    Edit { name: "transposed weight", of: CHANNEL, edit: |m| transpose(m, "layers.1.self_attn.k_proj.weight"), rules: &["METHOD-013"] },
    Edit { name: "transposed scales", of: BLOCK, edit: |m| transpose(m, "layers.1.self_attn.k_proj.weight_scale_inv"), rules: &["METHOD-013"] },
    Edit { name: "transposed codes", of: BNB, edit: |m| transpose(m, "layers.1.self_attn.k_proj.weight"), rules: &["METHOD-013"] },
    Edit { name: "scales missing", of: GPTQ, edit: |m| remove(m, "self_attn.k_proj.scales"), rules: &["METHOD-007"] },
    Edit { name: "scales missing", of: AWQ, edit: |m| remove(m, "self_attn.k_proj.scales"), rules: &["METHOD-007"] },
    Edit { name: "scales missing", of: PACK, edit: |m| remove(m, "self_attn.k_proj.weight_scale"), rules: &["METHOD-007"] },
    Edit { name: "zero points missing", of: PACK, edit: |m| remove(m, "self_attn.k_proj.weight_zero_point"), rules: &["METHOD-007"] },
    Edit { name: "scales missing", of: MXFP4, edit: |m| remove(m, "self_attn.k_proj.weight_scale"), rules: &["METHOD-007"] },
    Edit { name: "scales missing", of: CHANNEL, edit: |m| remove(m, "self_attn.k_proj.weight_scale"), rules: &["METHOD-007"] },
    Edit { name: "scales missing", of: BLOCK, edit: |m| remove(m, "self_attn.k_proj.weight_scale_inv"), rules: &["METHOD-007"] },
    Edit { name: "scales missing", of: BNB, edit: |m| remove(m, "self_attn.k_proj.weight.absmax"), rules: &["METHOD-007"] },
    Edit { name: "skip list misspelt", of: AWQ, edit: |m| quantization(m)["modules_to_not_convert"] = json!(["lm_haed"]), rules: &["METHOD-021"] },
    Edit { name: "skip list misspelt", of: PACK, edit: |m| quantization(m)["ignore"] = json!(["lm_haed"]), rules: &["METHOD-020", "METHOD-021"] },
    Edit { name: "skip list misspelt", of: MXFP4, edit: |m| quantization(m)["ignore"] = json!(["lm_haed"]), rules: &["METHOD-020", "METHOD-021"] },
    Edit { name: "skip list misspelt", of: CHANNEL, edit: |m| quantization(m)["ignore"] = json!(["lm_haed"]), rules: &["METHOD-020", "METHOD-021"] },
    Edit { name: "skip list misspelt", of: &["qwen3moe-gptq-w4g32-autoround"], edit: |m| {
        quantization(m)["dynamic"] = json!({ "-:.*layers\\.1\\.mlp\\.gaet": {} });
    }, rules: &["METHOD-021"] },
    Edit { name: "version g_idx", of: AWQ, edit: |m| quantization(m)["version"] = "g_idx".into(), rules: &["METHOD-003"] },
    Edit { name: "zero points of v2", of: GPTQ4, edit: |m| quantization(m)["checkpoint_format"] = "gptq_v2".into(), rules: &["METHOD-016"] },
    Edit { name: "unknown method", of: GPTQ, edit: |m| quantization(m)["quant_method"] = "zzz".into(), rules: &["METHOD-001"] },
    Edit { name: "no declaration", of: GPTQ, edit: |m| { m.config.as_object_mut().unwrap().remove("quantization_config"); }, rules: &["METHOD-024"] },
    Edit { name: "codes of another type", of: GPTQ, edit: |m| m.tensor("layers.1.self_attn.k_proj.qweight").dtype = "F32".into(), rules: &["METHOD-008"] },
    Edit { name: "group beyond scales", of: GPTQ, edit: |m| m.tensor("k_proj.g_idx").bytes[..4].copy_from_slice(&8u32.to_le_bytes()), rules: &["METHOD-017"] },
    Edit { name: "groups out of order", of: GPTQ, edit: |m| m.tensor("k_proj.g_idx").bytes[..4].copy_from_slice(&1u32.to_le_bytes()), rules: &["METHOD-017"] },
    Edit { name: "infinite scale", of: GPTQ, edit: |m| m.tensor("k_proj.scales").bytes[2..4].copy_from_slice(&0x7c00u16.to_le_bytes()), rules: &["METHOD-025"] },
    Edit { name: "stated shape", of: PACK, edit: |m| m.tensor("k_proj.weight_shape").bytes[..8].copy_from_slice(&64u64.to_le_bytes()), rules: &["METHOD-018"] },
    Edit { name: "left out, and quantized", of: PACK, edit: |m| quantization(m)["ignore"] = json!(["lm_head", "model.layers.1.mlp.up_proj"]), rules: &["METHOD-019"] },
];

#[test]
fn one_edit_breaks_the_right_rule() {
    let mut wrong = Vec::new();
    for edit in EDITS {
        for name in edit.of {
            let mut model = Model::of_data(name);
            (edit.edit)(&mut model);
            let judgement = judged(model.files());
            if faults(&judgement) != edit.rules {
                let (name, found) = (edit.name, faults(&judgement));
                wrong.push(format!(
                    "{name} of {:?}: {found:?} for {:?}\n{}",
                    edit.of,
                    edit.rules,
                    texts(&judgement)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// One of two shards is missing, its tensors with it.
#[test]
fn a_missing_shard_is_named() {
    for name in Model::names() {
        let mut files = Model::of_data(&name).shards();
        files.0.remove("model-00002-of-00002.safetensors").unwrap();
        let judgement = judged(files);
        let missing = judgement.findings.iter().find(|finding| finding.rule.id == "CKPT-011");
        let missing = missing.unwrap_or_else(|| panic!("{name}: {}", texts(&judgement)));
        assert!(missing.to_string().contains("model-00002-of-00002.safetensors"), "{missing}");
    }
}
