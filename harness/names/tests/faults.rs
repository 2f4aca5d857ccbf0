//! Files with one fault: each is named exactly. And files that claim much, or that are noise.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gguf_assay_format::{
    ByteOrder, Data, Description, OwnedArray, OwnedValue, TensorDescription, TensorType, ValueType,
    diagnose, lay_out,
};
use gguf_assay_names::{
    Architecture, CheckpointMap, CheckpointTensor, ExpertStyle, Finding, Map, NotMapped,
};
use serde_json::json;

/// The file of a pair, as a description that can be spoilt. Its data are zeros.
fn description(pair: &str) -> Description {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs").join(pair);
    let bytes = fs::read(path.join("model.gguf")).unwrap();
    let gguf = diagnose(&bytes).gguf.unwrap();
    Description {
        metadata: gguf
            .metadata
            .iter()
            .map(|entry| (entry.key.0.into(), OwnedValue::from(entry.value)))
            .collect(),
        tensors: gguf
            .tensors
            .iter()
            .map(|tensor| f32_tensor(tensor.name.as_str().unwrap(), tensor.dims.iter().collect()))
            .collect(),
        ..Description::default()
    }
}

/// The config and the tensors of a pair's checkpoint.
fn checkpoint(pair: &str) -> (serde_json::Value, Vec<CheckpointTensor>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs").join(pair);
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(path.join(name)).unwrap()).unwrap()
    };
    let source = read("source.json");
    let tensors = source.as_object().unwrap().iter().map(|(name, entry)| CheckpointTensor {
        name: name.clone(),
        shape: serde_json::from_value(entry["shape"].clone()).unwrap(),
    });
    (read("config.json"), tensors.collect())
}

fn f32_tensor(name: &str, dims: Vec<u64>) -> TensorDescription {
    TensorDescription::zeros(name, TensorType::by_name("F32").unwrap(), &dims)
}

fn findings(description: &Description) -> Vec<String> {
    let bytes = lay_out(description).to_bytes();
    let diagnosis = diagnose(&bytes);
    let map = Map::of(&diagnosis.gguf.unwrap()).unwrap();
    map.findings.iter().map(ToString::to_string).collect()
}

fn tensor<'a>(description: &'a mut Description, name: &str) -> &'a mut TensorDescription {
    let tensor = description.tensors.iter_mut().find(|tensor| tensor.name == name.as_bytes());
    tensor.unwrap()
}

fn set(description: &mut Description, key: &str, value: OwnedValue) {
    match description.metadata.iter_mut().find(|(other, _)| *other == key.as_bytes()) {
        Some((_, old)) => *old = value,
        None => description.metadata.push((key.into(), value)),
    }
}

#[test]
fn a_pair_has_no_fault() {
    assert_eq!(findings(&description("glm4moe")), [""; 0]);
}

#[test]
fn a_renamed_tensor() {
    let mut file = description("glm4moe");
    tensor(&mut file, "blk.1.ffn_gate_inp.weight").name = "blk.1.ffn_gate_in.weight".into();
    assert_eq!(
        findings(&file),
        [
            "unmapped: blk.1.ffn_gate_in.weight: llama.cpp has no tensor of this name",
            "missing: 1 tensors\n  blk.1.ffn_gate_inp.weight: model.layers.1.mlp.gate.weight",
        ]
    );
}

#[test]
fn a_missing_tensor() {
    let mut file = description("gpt-oss");
    file.tensors.retain(|tensor| tensor.name != b"blk.0.ffn_up_exps.weight");
    assert_eq!(
        findings(&file),
        [
            "missing: 1 tensors\n  blk.0.ffn_up_exps.weight: model.layers.0.mlp.experts.gate_up_proj",
            "incomplete: model.layers.0.mlp.experts.gate_up_proj has 1152 of 2304 elements",
        ]
    );
}

#[test]
fn one_expert_short() {
    let mut file = description("llama-mixtral");
    tensor(&mut file, "blk.1.ffn_up_exps.weight").dims = vec![16, 24, 2];
    assert_eq!(
        findings(&file),
        ["shape: blk.1.ffn_up_exps.weight is [16, 24, 2], expected [16, 24, 3]: \
          n_embd = 16, n_ff = 24, n_expert = 3"]
    );
}

/// The form of December 2023: whole, one expert short, and beside the merged form.
#[test]
fn a_tensor_for_each_expert() {
    let mut file = description("llama-mixtral");
    let mut tensors = Vec::new();
    for tensor in file.tensors.drain(..) {
        let name = String::from_utf8(tensor.name.clone()).unwrap();
        match name.strip_suffix("_exps.weight") {
            Some(stem) => {
                for expert in 0..3 {
                    tensors.push(f32_tensor(
                        &format!("{stem}.{expert}.weight"),
                        tensor.dims[..2].to_vec(),
                    ));
                }
            }
            None => tensors.push(tensor),
        }
    }
    file.tensors = tensors;
    assert_eq!(findings(&file), [""; 0]);

    let mut short = file.clone();
    short.tensors.retain(|tensor| tensor.name != b"blk.0.ffn_down.1.weight");
    assert_eq!(
        findings(&short),
        ["missing: 1 tensors\n  blk.0.ffn_down.1.weight: \
          model.layers.0.block_sparse_moe.experts.1.w2.weight"]
    );

    let mut fourth = file.clone();
    tensor(&mut fourth, "blk.0.ffn_down.2.weight").name = "blk.0.ffn_down.3.weight".into();
    assert_eq!(
        findings(&fourth)[0],
        "unmapped: blk.0.ffn_down.3.weight: there are 3 experts, counted from 0"
    );

    file.tensors.push(f32_tensor("blk.0.ffn_gate_exps.weight", vec![16, 24, 3]));
    assert!(
        findings(&file)[0].starts_with("duplicated: blk.0.ffn_gate_exps.weight: blk.0.ffn_gate.")
    );
}

/// With the sizes of heads in the file, and without.
#[test]
fn a_wrong_head_count() {
    let mut file = description("qwen3");
    set(&mut file, "qwen3.attention.head_count", OwnedValue::U32(8));
    let found = findings(&file);
    assert_eq!(
        found[0],
        "shape: blk.0.attn_output.weight is [24, 16], expected [48, 16]: \
         n_head * head_v = 48, n_embd = 16"
    );
    assert_eq!(found.len(), 4); // query and output of two layers

    let mut file = description("qwen2");
    set(&mut file, "qwen2.attention.head_count_kv", OwnedValue::U32(4));
    assert!(findings(&file).iter().any(|finding| {
        finding
            == "shape: blk.0.attn_k.weight is [16, 8], expected [16, 16]: \
                    n_embd = 16, n_head_kv * head_dim = 16"
    }));
}

#[test]
fn a_missing_key() {
    let mut file = description("mamba");
    file.metadata.retain(|(key, _)| *key != "mamba.ssm.state_size".as_bytes());
    assert_eq!(
        findings(&file),
        ["missing key: mamba.ssm.state_size, without which d_state is not known"]
    );
}

/// GLM-4.5 has sigmoid gates only.
#[test]
fn a_key_of_another_class() {
    let mut file = description("glm4moe");
    set(&mut file, "glm4moe.expert_gating_func", OwnedValue::U32(1));
    assert_eq!(
        findings(&file),
        ["key: glm4moe.expert_gating_func is 1, and such a checkpoint gives 2"]
    );
}

/// Older files do not list the layers of linear attention: every n-th is of another kind.
#[test]
fn layers_by_their_interval() {
    let mut file = description("qwen3next");
    file.metadata.retain(|(key, _)| key != b"qwen3next.attention.recurrent_layers");
    set(&mut file, "qwen3next.full_attention_interval", OwnedValue::U32(2));
    assert_eq!(findings(&file), [""; 0]);
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    assert_eq!(map.config["layer_types"], json!(["linear_attention", "full_attention"]));
    set(&mut file, "qwen3next.full_attention_interval", OwnedValue::U32(3));
    let found = findings(&file);
    assert_eq!(
        found[0],
        "unmapped: blk.1.attn_k_norm.weight: it belongs there only where (layer < n_layer) and \
         (not recurrent)"
    );
}

/// The block behind the layers may be left out, but not in part.
#[test]
fn a_block_behind_the_layers() {
    let mut file = description("nemotron_h_moe-nextn");
    tensor(&mut file, "blk.3.attn_norm.weight").dims = vec![13];
    assert_eq!(
        findings(&file),
        ["shape: blk.3.attn_norm.weight is [13], expected [12]: n_embd = 12"]
    );
    file.tensors.retain(|tensor| !tensor.name.starts_with(b"blk.3."));
    assert_eq!(findings(&file), [""; 0]);
}

/// A layer is one of experts where it has a router.
#[test]
fn a_layer_without_its_router() {
    let mut file = description("jamba");
    file.tensors.retain(|tensor| tensor.name != b"blk.3.ffn_gate_inp.weight");
    let found = findings(&file);
    assert_eq!(
        found[0],
        "unmapped: blk.3.ffn_down_exps.weight: it belongs there only where has_experts"
    );
    assert!(found.last().unwrap().starts_with("missing: 3 tensors\n  blk.3.ffn_gate.weight"));
    // With one layer of experts left, of four, no period is told: one that comes to no second.
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    assert_eq!(map.config["expert_layer_offset"], json!(0));
    assert_eq!(map.config["expert_layer_period"], json!(5));
    assert_eq!(map.config["attn_layer_period"], json!(2));
}

/// Factors come from the config, and what would be multiplied is not made without.
#[test]
fn a_factor_that_the_config_has_not() {
    let (mut config, tensors) = checkpoint("falcon-h1");
    config.as_object_mut().unwrap().remove("lm_head_multiplier");
    let map = CheckpointMap::of(Architecture::find("falcon-h1").unwrap(), &tensors, &config);
    let found: Vec<String> = map.findings.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["no shape: output.weight: the config does not give lm_head_multiplier"]);
}

/// A factor that is no number: by hand, the root of 8 over 0.
#[test]
fn a_factor_that_is_no_number() {
    let mut file = description("dots3note");
    set(&mut file, "dots3note.attention.q_lora_rank", OwnedValue::U32(0));
    let found = findings(&file);
    let senseless = "no shape: blk.0.attn_q_a_norm.weight: sqrt(1.0 * n_embd / q_rank) = inf";
    assert!(found.iter().any(|finding| finding == senseless), "{found:#?}");

    let (mut config, tensors) = checkpoint("dots3note");
    config["q_lora_rank"] = json!(0);
    let map = CheckpointMap::of(Architecture::find("dots3note").unwrap(), &tensors, &config);
    let found: Vec<String> = map.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|finding| finding == senseless), "{found:#?}");
}

/// A table cut in parts: as many as the checkpoint has, one behind the other.
#[test]
fn parts_of_a_table() {
    let (config, mut tensors) = checkpoint("qwen4exp");
    let architecture = Architecture::find("qwen4exp").unwrap();
    let table = "model.layers.0.ple.ple_embedding.ngram_embedding.shard_";
    tensors.retain(|tensor| !tensor.name.starts_with(table));
    let part = |number: u64, rows| CheckpointTensor {
        name: format!("{table}{number}.weight"),
        shape: vec![rows, 3],
    };
    tensors.extend((0..3).map(|number| part(number, 12)));
    let map = CheckpointMap::of(architecture, &tensors, &config);
    assert!(map.is_complete(), "{:?}", map.findings);
    let made = map.tensors.iter().find(|made| made.name == "per_layer_token_embd.weight").unwrap();
    assert_eq!((made.dims.as_slice(), made.sources.len()), ([3, 36].as_slice(), 3));
    // The second row of the last part is the 26th of the table.
    let numbers: Vec<u8> = (0..36).flat_map(|n: u8| f32::from(n).to_le_bytes()).collect();
    let last = tensors.len() - 1;
    let zeros = vec![0; 4 * 36];
    let read = |place| Some(if place == last { numbers.as_slice() } else { zeros.as_slice() });
    let bytes = made.bytes(4, read).unwrap();
    assert_eq!(bytes[4 * 25 * 3..][..4], 3f32.to_le_bytes());

    // A part that is missing shifts the others' rows; one of another size does not fit.
    tensors.pop();
    tensors.push(part(2, 13));
    let map = CheckpointMap::of(architecture, &tensors, &config);
    assert!(!map.is_complete());
    // Parts of another layer have no place.
    tensors.pop();
    tensors.push(CheckpointTensor {
        name: format!("{table}2.weight").replace("layers.0", "layers.1"),
        shape: vec![12, 3],
    });
    let map = CheckpointMap::of(architecture, &tensors, &config);
    let found: Vec<String> = map.findings.iter().map(ToString::to_string).collect();
    assert!(found[0].starts_with("unmapped: model.layers.1.ple.ple_embedding"), "{found:?}");
}

/// Of one class, the config says what becomes of it.
#[test]
fn one_class_for_several_architectures() {
    let chosen =
        |config: serde_json::Value| Architecture::of_config(&config).map(Architecture::name);
    let granite = |layers: [&str; 2], experts: u64| {
        chosen(json!({
            "model_type": "granitemoehybrid", "layer_types": layers, "num_experts_per_tok": experts,
        }))
    };
    assert_eq!(granite(["mamba", "attention"], 0), Some("granitehybrid"));
    assert_eq!(granite(["full_attention", "linear_attention"], 2), Some("granitehybrid"));
    assert_eq!(granite(["attention", "attention"], 2), Some("granitemoe"));
    assert_eq!(granite(["attention", "full_attention"], 0), Some("granite"));
    assert_eq!(chosen(json!({ "model_type": "nemotron_h" })), Some("nemotron_h"));
    let config = json!({ "model_type": "nemotron_h", "num_experts_per_tok": 2 });
    assert_eq!(chosen(config), Some("nemotron_h_moe"));
    assert_eq!(chosen(json!({ "model_type": "nothing" })), None);
}

/// Configs that claim many layers: no list is longer than the checkpoint's tensors and a few more.
#[test]
fn configs_that_claim_many_layers() {
    let (mut config, tensors) = checkpoint("granitehybrid-bamba");
    config["num_hidden_layers"] = json!(u64::MAX);
    let map = CheckpointMap::of(Architecture::find("granitehybrid").unwrap(), &tensors, &config);
    assert!(!map.metadata.iter().any(|(key, _)| key.ends_with("head_count_kv")));
    let (mut config, tensors) = checkpoint("jamba");
    config["num_hidden_layers"] = json!(1u64 << 40);
    let map = CheckpointMap::of(Architecture::find("jamba").unwrap(), &tensors, &config);
    assert!(!map.is_complete());
    // And files.
    let mut file = description("jamba");
    set(&mut file, "jamba.block_count", OwnedValue::U64(1 << 60));
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    assert!(map.config.get("attn_layer_offset").is_some());
    assert!(!map.is_complete());
}

#[test]
fn a_tensor_in_a_layer_that_has_none() {
    let mut file = description("glm4moe");
    tensor(&mut file, "blk.1.exp_probs_b.bias").name = "blk.0.exp_probs_b.bias".into();
    let found = findings(&file);
    assert_eq!(
        found[0],
        "unmapped: blk.0.exp_probs_b.bias: it belongs there only where layer >= n_dense"
    );
    let mut file = description("qwen2");
    tensor(&mut file, "blk.1.attn_q.bias").name = "blk.7.attn_q.bias".into();
    assert_eq!(
        findings(&file)[0],
        "unmapped: blk.7.attn_q.bias: there are 2 blocks, counted from 0"
    );
}

#[test]
fn names_of_others_are_explained() {
    let mut file = description("qwen3moe");
    for (old, new) in [
        ("blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"),
        ("blk.0.ffn_up_exps.weight", "blk.0.ffn_up_exps.3.weight"),
        ("blk.1.ffn_up_exps.weight", "blk.1.ffn_up_exps.3.numa.0.weight"),
        ("blk.1.attn_q.weight", "blk.1.ssm_in.weight"),
        ("blk.1.attn_k.weight", "blk.1.attn_k\x1b[2J.weight"),
    ] {
        tensor(&mut file, old).name = new.into();
    }
    let found = findings(&file);
    for part in [
        "a name of transformers: in a GGUF file it is in blk.0.attn_q.weight",
        "no version of llama.cpp or gguf-py writes or reads",
        "blk.1.attn_k\\u{1b}[2J.weight: llama.cpp has no tensor of this name",
        "KTransformers",
        "llama.cpp has tensors of this name, but not in qwen3moe",
    ] {
        assert!(found.iter().any(|finding| finding.contains(part)), "{part}: {found:?}");
    }
    assert!(!found.iter().any(|finding| finding.contains('\x1b')));
}

/// Gate and up in one tensor, as llama.cpp also reads them for deepseek2.
#[test]
fn fused_experts() {
    let mut file = description("deepseek2-v2");
    tensor(&mut file, "blk.1.ffn_gate_exps.weight").name = "blk.1.ffn_gate_up_exps.weight".into();
    tensor(&mut file, "blk.1.ffn_gate_up_exps.weight").dims = vec![16, 16, 4];
    file.tensors.retain(|tensor| tensor.name != b"blk.1.ffn_up_exps.weight");
    let bytes = lay_out(&file).to_bytes();
    let diagnosis = diagnose(&bytes);
    let map = Map::of(diagnosis.gguf.as_ref().unwrap()).unwrap();
    assert!(map.is_complete(), "{:?}", map.findings);
    assert_eq!(map.styles[&ExpertStyle::Fused], 1);
    let names: Vec<&str> = map.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert!(names.contains(&"model.layers.1.mlp.experts.E.up_proj.weight"));
}

/// No output: it is the embedding (bugs of loaders that asked for one: vLLM 30405).
#[test]
fn tied_embeddings() {
    let mut file = description("llama");
    file.tensors.retain(|tensor| tensor.name != b"output.weight");
    let bytes = lay_out(&file).to_bytes();
    let diagnosis = diagnose(&bytes);
    let map = Map::of(diagnosis.gguf.as_ref().unwrap()).unwrap();
    assert!(map.is_complete(), "{:?}", map.findings);
    assert_eq!(map.config["tie_word_embeddings"], json!(true));
}

/// Rows numbered by their place: with two key heads of four rows, transformers has 0, 2, 1, 3, 4,
/// 6, 5, 7 (transformers PR 31788; a mapper that takes the four query heads leaves 0 to 7).
#[test]
fn keys_are_permuted_by_their_own_heads() {
    let mut file = description("llama");
    for (key, value) in [
        ("embedding_length", 16),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("attention.key_length", 4),
        ("attention.value_length", 4),
    ] {
        set(&mut file, &format!("llama.{key}"), OwnedValue::U32(value));
    }
    let rows: Vec<u8> = (0u8..8).flat_map(|row| f32::from(row).to_le_bytes().repeat(16)).collect();
    let keys = tensor(&mut file, "blk.0.attn_k.weight");
    keys.dims = vec![16, 8];
    keys.data = Data::Bytes(rows);
    let bytes = lay_out(&file).to_bytes();
    let diagnosis = diagnose(&bytes);
    let gguf = diagnosis.gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let parameter = map
        .parameters
        .iter()
        .find(|parameter| parameter.name == "model.layers.0.self_attn.k_proj.weight")
        .unwrap();
    let values = map.read(&gguf, parameter, 0).unwrap();
    let firsts: Vec<f32> = values
        .bytes
        .chunks(64)
        .map(|row| f32::from_le_bytes(row[..4].try_into().unwrap()))
        .collect();
    assert_eq!(firsts, [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]);
}

/// Heads whose size is not hidden_size / heads (transformers 33526).
#[test]
fn the_size_of_a_head_is_the_files() {
    let mut file = description("qwen3");
    for (key, value) in
        [("embedding_length", 2560), ("attention.head_count", 32), ("attention.key_length", 128)]
    {
        set(&mut file, &format!("qwen3.{key}"), OwnedValue::U32(value));
    }
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    assert_eq!(map.config["head_dim"], json!(128));
}

/// A text of the file in the config cannot harm a terminal.
#[test]
fn texts_in_the_config_are_escaped() {
    let mut file = description("llama");
    set(&mut file, "llama.rope.scaling.type", "ya\u{202e}\x1b[2Jrn".into());
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    assert_eq!(map.config["rope_parameters"]["rope_type"], json!("ya\\u{202e}\\u{1b}[2Jrn"));
}

#[test]
fn unknown_architectures() {
    let mut file = description("llama");
    for (name, known) in
        [("hyvid", false), ("wan", false), ("qwen3_moe", false), ("chameleon", true)]
    {
        set(&mut file, "general.architecture", name.into());
        let bytes = lay_out(&file).to_bytes();
        let error = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap_err();
        let NotMapped::Unknown(error) = error else { panic!("{error}") };
        assert_eq!((error.name.as_str(), error.known), (name, known));
    }
    set(&mut file, "general.architecture", OwnedValue::U32(3));
    let bytes = lay_out(&file).to_bytes();
    assert_eq!(Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap_err(), NotMapped::NoArchitecture);
}

/// Counts that claim what no file has: the answer is short, and comes at once.
#[test]
fn counts_are_not_believed() {
    for blocks in [OwnedValue::U64(1 << 32), OwnedValue::U64(u64::MAX), OwnedValue::I64(-1)] {
        let mut file = description("llama");
        set(&mut file, "llama.block_count", blocks);
        let bytes = lay_out(&file).to_bytes();
        let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
        assert!(!map.is_complete());
        assert!(map.findings.len() < 40, "{}", map.findings.len());
    }
    let mut file = description("llama");
    set(&mut file, "llama.block_count", OwnedValue::U64(1 << 32));
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    // 21 tensors: 29 blocks are looked at, two of them are there, and 9 tensors make a block.
    let Finding::Missing { first, count, empty_blocks } = &map.findings[0] else { panic!() };
    assert_eq!((first.len(), *count, *empty_blocks), (16, 27 * 9, (1 << 32) - 29));

    for experts in [OwnedValue::U32(u32::MAX), OwnedValue::U64(u64::MAX), OwnedValue::U64(1 << 62)]
    {
        let mut file = description("llama-mixtral");
        set(&mut file, "llama.expert_count", experts.clone());
        for tensor in &mut file.tensors {
            if let OwnedValue::U64(count) = experts
                && tensor.dims.len() == 3
            {
                tensor.dims = vec![64, 0, count];
            }
        }
        let bytes = lay_out(&file).to_bytes();
        let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
        assert!(!map.is_complete());
    }
}

/// Every pair, by name.
fn pairs() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs");
    let entries = fs::read_dir(folder).unwrap().flatten();
    let folders = entries.filter(|entry| entry.path().join("model.gguf").is_file());
    folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Each number of each pair's metadata and config claims as much as it can, one at a time: what
/// comes of it stays as small as the file.
#[test]
fn any_number_may_claim_anything() {
    // Each place of a number, as the path to it.
    fn numbers(json: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        match json {
            serde_json::Value::Number(_) => found.push(path.to_owned()),
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, each)| {
                    numbers(each, &format!("{path}/{name}"), found);
                });
            }
            serde_json::Value::Array(list) => {
                list.iter().enumerate().for_each(|(place, each)| {
                    numbers(each, &format!("{path}/{place}"), found);
                });
            }
            _ => {}
        }
    }
    let mut tried = 0;
    for pair in pairs() {
        let whole = description(&pair);
        let OwnedValue::String(name) = &whole.metadata[0].1 else { panic!("{pair}: no name") };
        let architecture = Architecture::find(std::str::from_utf8(name).unwrap()).unwrap();
        for place in 1..whole.metadata.len() {
            let value = match whole.metadata[place].1 {
                OwnedValue::U32(_) => OwnedValue::U64(u64::MAX),
                OwnedValue::I32(_) => OwnedValue::I64(i64::MIN),
                _ => continue,
            };
            for value in [value, OwnedValue::U32(u32::MAX)] {
                let mut file = whole.clone();
                file.metadata[place].1 = value;
                let bytes = lay_out(&file).to_bytes();
                let start = Instant::now();
                let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
                assert!(start.elapsed() < Duration::from_secs(2), "{pair}: {:?}", start.elapsed());
                assert!(map.findings.len() <= 2 * file.tensors.len(), "{pair}: {:?}", map.findings);
                assert!(map.config.to_string().len() < 1 << 16, "{pair}: {}", map.config);
                tried += 1;
            }
        }
        let (config, tensors) = checkpoint(&pair);
        let mut paths = Vec::new();
        numbers(&config, "", &mut paths);
        for path in paths {
            for number in [json!(u32::MAX), json!(u64::MAX), json!(-1)] {
                let mut config = config.clone();
                *config.pointer_mut(&path).unwrap() = number;
                let start = Instant::now();
                let map = CheckpointMap::of(architecture, &tensors, &config);
                assert!(start.elapsed() < Duration::from_secs(2), "{pair}: {:?}", start.elapsed());
                assert!(map.findings.len() <= 2 * tensors.len(), "{pair}: {:?}", map.findings);
                tried += 1;
            }
        }
    }
    assert!(tried > 5000, "{tried}");
}

/// A part of a table whose number no table has, and rows that exceed 64 bits.
#[test]
fn parts_that_no_table_has() {
    let (config, tensors) = checkpoint("qwen4exp");
    let architecture = Architecture::find("qwen4exp").unwrap();
    let table = "model.layers.0.ple.ple_embedding.ngram_embedding.shard_";
    let place = tensors.iter().position(|tensor| tensor.name.starts_with(table)).unwrap();
    let mut far = tensors.clone();
    far[place].name = format!("{table}{}.weight", u64::MAX);
    let map = CheckpointMap::of(architecture, &far, &config);
    let found = map.findings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(found[0].starts_with("unmapped: "), "{found:?}");
    assert!(found[0].contains("experts, counted from 0"), "{found:?}");
    let mut long = tensors.clone();
    long[place].shape[0] = u64::MAX;
    long.push(CheckpointTensor { name: format!("{table}7.weight"), shape: vec![u64::MAX, 3] });
    assert!(!CheckpointMap::of(architecture, &long, &config).is_complete());
}

/// Experts of no elements have no data behind them, so that any number of them takes no bytes.
#[test]
fn experts_of_no_elements() {
    let count = 1u64 << 40;
    let mut file = description("llama-mixtral");
    set(&mut file, "llama.expert_count", OwnedValue::U64(count));
    set(&mut file, "llama.feed_forward_length", OwnedValue::U32(0));
    for tensor in &mut file.tensors {
        let name = String::from_utf8(tensor.name.clone()).unwrap();
        match name.rsplit_once("ffn_") {
            Some((_, "gate_inp.weight")) => tensor.dims = vec![16, count],
            Some((_, "gate_exps.weight" | "up_exps.weight")) => tensor.dims = vec![16, 0, count],
            Some((_, "down_exps.weight")) => tensor.dims = vec![0, 16, count],
            _ => {}
        }
        tensor.data = Data::Zeros(0);
    }
    let bytes = lay_out(&file).to_bytes();
    let gguf = diagnose(&bytes).gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let found = map.findings.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found.iter().all(|each| each.contains("1099511627776 experts of no elements")));
    for parameter in &map.parameters {
        assert!(parameter.experts.is_none(), "{}", parameter.name);
    }

    let (mut config, tensors) = checkpoint("llama-mixtral");
    config["num_local_experts"] = json!(u32::MAX);
    config["intermediate_size"] = json!(0);
    let map = CheckpointMap::of(Architecture::find("llama").unwrap(), &tensors, &config);
    assert!(!map.is_complete());
    assert!(map.findings.len() < 40, "{:?}", map.findings);
}

/// Thousands of layers, with arrays and lists for each: the time is that of the records, not of
/// layers times layers. It was 18 s for the file and 2 s for the checkpoint.
#[test]
fn many_layers_take_no_time_of_their_square() {
    let layers = 3000;
    let mut file = description("granitehybrid-bamba");
    set(&mut file, "granitehybrid.block_count", OwnedValue::U32(layers));
    for (_, value) in &mut file.metadata {
        if let OwnedValue::Array(array) = value
            && matches!(array.iter().next(), Some(OwnedValue::I32(_)))
        {
            let elements = vec![OwnedValue::I32(2); 30_000];
            *value = OwnedValue::Array(OwnedArray::new(ValueType::I32, elements));
        }
    }
    let first = file.tensors.iter().filter(|tensor| tensor.name.starts_with(b"blk.0."));
    let first: Vec<TensorDescription> = first.cloned().collect();
    for layer in 4..layers {
        file.tensors.extend(first.iter().map(|tensor| {
            let name = String::from_utf8(tensor.name.clone()).unwrap();
            let name = name.replacen(".0.", &format!(".{layer}."), 1).into();
            TensorDescription { name, data: Data::Zeros(0), ..tensor.clone() }
        }));
    }
    let bytes = lay_out(&file).to_bytes();
    let gguf = diagnose(&bytes).gguf.unwrap();
    let start = Instant::now();
    assert!(!Map::of(&gguf).unwrap().is_complete());
    let (mut config, mut tensors) = checkpoint("granitehybrid-bamba");
    config["num_hidden_layers"] = json!(layers);
    config["attn_layer_indices"] = json!((0..30_000).collect::<Vec<u32>>());
    for layer in 4..layers {
        let name = format!("model.layers.{layer}.input_layernorm.weight");
        tensors.push(CheckpointTensor { name, shape: vec![16] });
    }
    CheckpointMap::of(Architecture::find("granitehybrid").unwrap(), &tensors, &config);
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

/// The other way, with the same faults.
#[test]
fn checkpoints_with_a_fault() {
    let (config, whole) = checkpoint("glm4moe");
    let architecture = Architecture::find("glm4moe").unwrap();
    let findings = |checkpoint: &[CheckpointTensor], config: &serde_json::Value| -> Vec<String> {
        let map = CheckpointMap::of(architecture, checkpoint, config);
        map.findings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(findings(&whole, &config), [""; 0]);

    let expert = "model.layers.1.mlp.experts.2.up_proj.weight";
    let mut short = whole.clone();
    short.retain(|tensor| tensor.name != expert);
    assert_eq!(
        findings(&short, &config),
        [format!("missing: 1 tensors\n  blk.1.ffn_up_exps.weight: {expert}")]
    );

    let mut renamed = whole.clone();
    for tensor in &mut renamed {
        if tensor.name == "model.norm.weight" {
            tensor.name = "model.norm.scale".into();
        }
    }
    assert_eq!(
        findings(&renamed, &config),
        [
            "unmapped: model.norm.scale: Glm4MoeForCausalLM has no parameter of this name",
            "missing: 1 tensors\n  output_norm.weight: model.norm.weight",
        ]
    );

    let mut wide = whole.clone();
    wide.iter_mut().find(|tensor| tensor.name == expert).unwrap().shape = vec![8, 17];
    assert_eq!(
        findings(&wide, &config),
        [format!(
            "shape: {expert} is [8, 17], expected [8, 16]: blk.1.ffn_up_exps.weight is \
             [n_embd = 16, n_ff_exp = 8, n_expert = 4]"
        )]
    );

    let mut deep = config.clone();
    deep["num_hidden_layers"] = json!(1u64 << 31);
    let map = CheckpointMap::of(architecture, &whole, &deep);
    assert!(
        matches!(map.findings.last(), Some(Finding::Missing { empty_blocks, .. }) if *empty_blocks > 1 << 30)
    );
}

/// A configuration of before transformers 5.
#[test]
fn rope_theta_and_rope_scaling_of_older_configs() {
    let architecture = Architecture::find("qwen2").unwrap();
    let config = json!({
        "num_hidden_layers": 1, "rope_theta": 1000000.0,
        "rope_scaling": { "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768 },
    });
    let map = CheckpointMap::of(architecture, &[], &config);
    for (key, value) in [
        ("qwen2.rope.freq_base", OwnedValue::F32(1e6)),
        ("qwen2.rope.scaling.type", "yarn".into()),
        ("qwen2.rope.scaling.factor", OwnedValue::F32(4.0)),
        ("qwen2.rope.scaling.original_context_length", OwnedValue::U32(32768)),
    ] {
        assert!(map.metadata.contains(&(key.to_owned(), value)), "{key}");
    }
}

/// Bytes of real files changed one at a time: an answer, and no panic.
#[test]
fn noise() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut mapped = 0;
    for pair in [
        "glm4moe",
        "deepseek2-v2",
        "falcon",
        "mamba",
        "llama-mixtral",
        "gpt-oss",
        "gpt-oss-mxfp4",
        "gemma4",
        "qwen3vl",
        "step35",
        "qwen35moe",
        "nemotron_h_moe-nextn",
        "jamba",
    ] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs").join(pair);
        let whole = fs::read(path.join("model.gguf")).unwrap();
        let header = usize::try_from(diagnose(&whole).gguf.unwrap().data_offset).unwrap();
        for _ in 0..400 {
            let mut bytes = whole[..whole.len().min(header + 4096)].to_vec();
            for _ in 0..1 + random() % 4 {
                let place = usize::try_from(random()).unwrap() % header;
                bytes[place] = (random() >> 9).to_le_bytes()[0];
            }
            let Some(gguf) = diagnose(&bytes).gguf else { continue };
            let (Ok(map), Ok(kept)) = (Map::of(&gguf), Map::with_blocks(&gguf)) else { continue };
            mapped += 1;
            for parameter in &kept.parameters {
                let _ = kept.read(&gguf, parameter, 0);
            }
            for finding in &map.findings {
                assert!(!finding.to_string().contains('\x1b'));
            }
            for parameter in &map.parameters {
                let _ = map.read(&gguf, parameter, 0);
            }
        }
    }
    assert!(mapped > 2000, "{mapped}");
}

/// The exported file has every number, under the names of transformers.
#[test]
fn an_exported_file_is_the_checkpoint() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs/glm4moe");
    let bytes = fs::read(path.join("model.gguf")).unwrap();
    let diagnosis = diagnose(&bytes);
    let gguf = diagnosis.gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("model.safetensors");
    let exported = map.export(&gguf, &out, &|_, _| {}).unwrap();
    assert_eq!(exported.parameters, map.parameter_count());
    assert!(exported.dequantized.is_empty());
    let written = fs::read(&out).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&written).unwrap();
    let source: serde_json::Value =
        serde_json::from_slice(&fs::read(path.join("source.json")).unwrap()).unwrap();
    let source = source.as_object().unwrap();
    assert_eq!(tensors.len(), source.len());
    for (name, view) in tensors.iter() {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(view.data());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(source[name]["sha256"], json!(hex), "{name}");
        assert_eq!(source[name]["shape"], json!(view.shape()), "{name}");
    }
}

/// A file in the other byte order has the same numbers. In the second and third, parameters are put
/// together of several tensors; in the last, numbers change.
#[test]
fn big_endian_files_have_the_same_numbers() {
    for pair in ["llama", "gpt-oss", "llama4", "gemma2"] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs").join(pair);
        let bytes = fs::read(path.join("model.gguf")).unwrap();
        let little = diagnose(&bytes).gguf.unwrap();
        let mut description = little.describe().unwrap();
        description.byte_order = ByteOrder::Big;
        for (tensor, was) in description.tensors.iter_mut().zip(&little.tensors) {
            assert_eq!(was.tensor_type.unwrap().name, "F32", "{pair}");
            let Data::Bytes(bytes) = &mut tensor.data else { panic!("{pair}: bytes") };
            bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        }
        let bytes = lay_out(&description).to_bytes();
        let big = diagnose(&bytes).gguf.unwrap();
        assert_eq!(big.byte_order, ByteOrder::Big);
        let (map, expected) = (Map::of(&big).unwrap(), Map::of(&little).unwrap());
        assert_eq!(map.findings, expected.findings, "{pair}");
        for (parameter, expected_parameter) in map.parameters.iter().zip(&expected.parameters) {
            for expert in 0..parameter.experts.unwrap_or(1) {
                let found = map.read(&big, parameter, expert).unwrap();
                let expected = expected.read(&little, expected_parameter, expert).unwrap();
                assert_eq!(found, expected, "{pair}: {}", parameter.name);
            }
        }
    }
}

/// ggml takes a dimension that is not there for 1; older files have the gate as a vector.
#[test]
fn a_last_dimension_of_one_makes_no_difference() {
    let mut file = description("qwen2moe");
    tensor(&mut file, "blk.0.ffn_gate_inp_shexp.weight").dims = vec![16];
    assert_eq!(findings(&file), [""; 0]);
}

/// Apertus' activations are metadata.
#[test]
fn a_number_that_is_in_a_key() {
    let missing = "missing key: xielu.beta, without which \
                   model.layers.N.mlp.act_fn.beta is not known";
    let mut short = description("apertus");
    let one = OwnedValue::Array(OwnedArray::new(ValueType::F32, vec![OwnedValue::F32(0.5)]));
    set(&mut short, "xielu.beta", one);
    assert_eq!(findings(&short), [missing]);
    short.metadata.retain(|(key, _)| *key != b"xielu.beta");
    assert_eq!(findings(&short), [missing]);

    let (config, mut checkpoint) = checkpoint("apertus");
    checkpoint.retain(|tensor| tensor.name != "model.layers.1.mlp.act_fn.eps");
    checkpoint[0].name = "model.layers.2.mlp.act_fn.beta".into();
    checkpoint[0].shape = vec![];
    let map = CheckpointMap::of(Architecture::find("apertus").unwrap(), &checkpoint, &config);
    let found: Vec<String> = map.findings.iter().map(ToString::to_string).collect();
    assert!(
        found
            .contains(&"missing: 1 tensors\n  xielu.eps: model.layers.1.mlp.act_fn.eps".to_owned()),
        "{found:?}"
    );
    assert!(
        found.contains(
            &"unmapped: model.layers.2.mlp.act_fn.beta: there are 2 layers, counted from 0"
                .to_owned()
        ),
        "{found:?}"
    );
}

/// A layer of Hunyuan 3 has experts if it has what chooses them.
#[test]
fn a_layer_that_is_told_by_a_tensor() {
    let mut file = description("hy_v3");
    file.tensors.retain(|tensor| tensor.name != b"blk.1.ffn_gate_inp.weight");
    let found = findings(&file);
    assert_eq!(found[0], "unmapped: blk.1.exp_probs_b: it belongs there only where has_experts");
    assert!(found.last().unwrap().contains("blk.1.ffn_gate.weight"), "{found:?}");
}

/// Behind the last layer, K-EXAONE counts anew.
#[test]
fn layers_that_are_counted_from_another() {
    let (config, mut checkpoint) = checkpoint("exaone-moe");
    let second = checkpoint.iter().find(|tensor| tensor.name.starts_with("mtp.layers.0.mlp.up"));
    let mut second = second.unwrap().clone();
    second.name = "mtp.layers.1.mlp.up_proj.weight".into();
    checkpoint.push(second);
    let map = CheckpointMap::of(Architecture::find("exaone-moe").unwrap(), &checkpoint, &config);
    let found: Vec<String> = map.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["unmapped: mtp.layers.1.mlp.up_proj.weight: there are 3 blocks, counted from 0"]
    );
}

/// What lists of a config come to; the numbers by hand.
#[test]
fn lists_of_a_config() {
    let metadata = |name: &str, config: serde_json::Value| {
        CheckpointMap::of(Architecture::find(name).unwrap(), &[], &config).metadata
    };
    let get = |metadata: &[(String, OwnedValue)], key: &str| {
        metadata.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone())
    };
    let kinds = json!({ "mlp_layer_types": ["dense", "dense", "sparse", "dense"] });
    let key = "cohere2moe.leading_dense_block_count";
    assert_eq!(get(&metadata("cohere2moe", kinds), key), Some(OwnedValue::U32(2)));
    let none = json!({ "first_k_dense_replace": 3 });
    assert_eq!(get(&metadata("cohere2moe", none), key), Some(OwnedValue::U32(3)));

    let key = "hunyuan-moe.expert_used_count";
    let same = json!({ "moe_topk": [8, 8, 8] });
    assert_eq!(get(&metadata("hunyuan-moe", same), key), Some(OwnedValue::U32(8)));
    let other = json!({ "moe_topk": [8, 8, 4] });
    assert_eq!(get(&metadata("hunyuan-moe", other), key), None);

    // A claim of more layers than there can be takes no memory.
    let key = "mimo2.attention.sliding_window_pattern";
    let many = json!({ "num_hidden_layers": 1u64 << 31, "hybrid_layer_pattern": [0, 1] });
    assert_eq!(get(&metadata("mimo2", many), key), None);
}
