//! Files of blocks: their numbers are those of the reference dequantizer, moved as the views say.
//! (The reference is held to ggml by its own tests, and a real file to ggml by `real` of the
//! command.)

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gguf_assay_format::{
    ByteOrder, Data, Description, OwnedValue, TensorDescription, TensorType, diagnose, lay_out,
};
use gguf_assay_names::{Architecture, CheckpointMap, CheckpointTensor, Finding, Map, NotRead};
use safetensors::{Dtype, SafeTensors};
use serde_json::json;

/// Sizes with which rows are whole blocks, of a pair's file.
const SIZES: &[(&str, &[(&str, u32)])] = &[
    (
        "llama",
        &[
            ("llama.embedding_length", 64),
            ("llama.feed_forward_length", 96),
            ("llama.attention.key_length", 24),
            ("llama.attention.value_length", 24),
            ("llama.rope.dimension_count", 24),
        ],
    ),
    (
        "qwen3moe",
        &[
            ("qwen3moe.embedding_length", 64),
            ("qwen3moe.expert_feed_forward_length", 32),
            ("qwen3moe.attention.key_length", 24),
            ("qwen3moe.attention.value_length", 24),
        ],
    ),
    (
        "gpt-oss",
        &[
            ("gpt-oss.embedding_length", 64),
            ("gpt-oss.expert_feed_forward_length", 32),
            ("gpt-oss.attention.key_length", 8),
            ("gpt-oss.attention.value_length", 8),
        ],
    ),
    (
        "deepseek2-v2",
        &[
            ("deepseek2.embedding_length", 64),
            ("deepseek2.feed_forward_length", 96),
            ("deepseek2.expert_feed_forward_length", 32),
            ("deepseek2.attention.kv_lora_rank", 32),
        ],
    ),
];

/// The file of a pair, of larger sizes where there are any, its tensors of `tensor_type` with
/// made-up numbers in `byte_order`.
fn description(
    pair: &str,
    byte_order: ByteOrder,
    mut tensor_type: impl FnMut(&str, &[u64]) -> &'static str,
) -> Description {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs").join(pair);
    let bytes = fs::read(path.join("model.gguf")).unwrap();
    let mut file = diagnose(&bytes).gguf.unwrap().describe().unwrap();
    let sizes = SIZES.iter().find(|(name, _)| *name == pair);
    for (key, size) in sizes.into_iter().flat_map(|(_, sizes)| *sizes) {
        let (_, value) =
            file.metadata.iter_mut().find(|(other, _)| *other == key.as_bytes()).unwrap();
        *value = OwnedValue::U32(*size);
    }
    // The map says which shapes these sizes come to.
    let bytes = lay_out(&file).to_bytes();
    let map = Map::of(&diagnose(&bytes).gguf.unwrap()).unwrap();
    for finding in map.findings {
        let Finding::Shape { name, expected, .. } = finding else { panic!("{finding}") };
        let tensor = file.tensors.iter_mut().find(|tensor| tensor.name == name.as_bytes());
        tensor.unwrap().dims = expected;
    }
    file.byte_order = byte_order;
    let mut state = 1u32;
    for tensor in &mut file.tensors {
        let name = String::from_utf8(tensor.name.clone()).unwrap();
        let t = TensorType::by_name(tensor_type(&name, &tensor.dims)).unwrap();
        let mut new = TensorDescription::zeros(&name, t, &tensor.dims);
        let noise = (0..new.data.len()).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // No number is NaN or infinite, in whichever order: no exponent is all ones.
            state.to_be_bytes()[0] & 0x3b
        });
        new.data = Data::Bytes(noise.collect());
        *tensor = new;
    }
    file
}

/// The same file with all tensors as F32, little-endian.
fn dequantized(description: &Description) -> Description {
    let mut plain = description.clone();
    plain.byte_order = ByteOrder::Little;
    for tensor in &mut plain.tensors {
        let t = TensorType::by_id(tensor.type_id).unwrap();
        let Data::Bytes(bytes) = &tensor.data else { panic!("bytes") };
        let mut numbers = vec![0.0; tensor.dims.iter().product::<u64>() as usize];
        gguf_assay_quant::dequantize(t, bytes, description.byte_order, &mut numbers).unwrap();
        tensor.type_id = TensorType::by_name("F32").unwrap().id;
        tensor.data = Data::Bytes(numbers.iter().flat_map(|n| n.to_le_bytes()).collect());
    }
    plain
}

/// Types by turns, so that parameters of several tensors have several.
fn by_turns() -> impl FnMut(&str, &[u64]) -> &'static str {
    let types = ["Q4_1", "F16", "Q8_0", "MXFP4", "F32", "Q4_0", "BF16", "Q5_1"];
    let mut turn = 0;
    move |_, dims| {
        if dims.len() < 2 {
            return "F32";
        }
        turn += 1;
        let chosen = types[turn % types.len()];
        let whole =
            dims[0].is_multiple_of(u64::from(TensorType::by_name(chosen).unwrap().block_len));
        if whole { chosen } else { "F16" }
    }
}

#[test]
fn numbers_of_blocks_are_moved_like_others() {
    // Permuted rows; experts in a tensor; experts in a parameter, transposed, of two tensors; a
    // parameter of two tensors by parts of rows.
    for pair in ["llama", "qwen3moe", "gpt-oss", "deepseek2-v2"] {
        for byte_order in [ByteOrder::Little, ByteOrder::Big] {
            let file = description(pair, byte_order, by_turns());
            let [bytes, plain] = [&file, &dequantized(&file)].map(|file| lay_out(file).to_bytes());
            let [gguf, plain] = [&bytes, &plain].map(|bytes| diagnose(bytes).gguf.unwrap());
            let [map, plain_map] = [&gguf, &plain].map(|gguf| Map::of(gguf).unwrap());
            assert!(map.is_complete(), "{pair}: {:?}", map.findings);
            let mut types = BTreeMap::new();
            for (parameter, plain_parameter) in map.parameters.iter().zip(&plain_map.parameters) {
                for expert in 0..parameter.experts.unwrap_or(1) {
                    let mut found = map.read(&gguf, parameter, expert).unwrap();
                    let expected = plain_map.read(&plain, plain_parameter, expert).unwrap();
                    *types.entry(format!("{:?}", found.dtype)).or_insert(0) += 1;
                    // What is not of blocks keeps its type.
                    if let Dtype::F16 | Dtype::BF16 = found.dtype {
                        let t = TensorType::by_name(&format!("{:?}", found.dtype)).unwrap();
                        let mut numbers = vec![0.0; found.bytes.len() / 2];
                        let little = ByteOrder::Little;
                        gguf_assay_quant::dequantize(t, &found.bytes, little, &mut numbers)
                            .unwrap();
                        found.bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                        found.dtype = Dtype::F32;
                    }
                    assert_eq!(found, expected, "{pair}: {} {expert}", parameter.name);
                }
            }
            assert_eq!(types.len(), 3, "{pair}: {types:?}");
        }
    }
}

#[test]
fn the_exported_file_says_what_was_dequantized() {
    let file = description("qwen3moe", ByteOrder::Little, |name, _| match name {
        name if name.contains("exps") => "Q4_1",
        "token_embd.weight" => "Q8_0",
        "output.weight" => "BF16",
        _ => "F32",
    });
    let bytes = lay_out(&file).to_bytes();
    let gguf = diagnose(&bytes).gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let told = Cell::new((0, 0));
    let exported = map
        .export(&gguf, &path, &|done, total| {
            assert!(done > told.get().0 && done <= total);
            told.set((done, total));
        })
        .unwrap();
    assert_eq!(exported.parameters, map.parameter_count());
    // Three tensors of experts in two layers.
    assert_eq!(exported.dequantized, BTreeMap::from([("Q4_1", 6), ("Q8_0", 1)]));
    let written = fs::read(&path).unwrap();
    let tensors = SafeTensors::deserialize(&written).unwrap();
    let data: usize = tensors.iter().map(|(_, view)| view.data().len()).sum();
    assert_eq!(told.get(), (data as u64, data as u64));
    assert_eq!(tensors.tensor("lm_head.weight").unwrap().dtype(), Dtype::BF16);
    assert_eq!(tensors.tensor("model.embed_tokens.weight").unwrap().dtype(), Dtype::F32);
}

/// I64 is no part of a parameter of F32, and F64 does not change as one.
#[test]
fn what_f32_does_not_hold() {
    for (pair, tensor, t) in
        [("gpt-oss", "blk.0.ffn_up_exps.weight", "F64"), ("gemma", "blk.0.attn_norm.weight", "I64")]
    {
        let file =
            description(pair, ByteOrder::Little, |name, _| if name == tensor { t } else { "F32" });
        let bytes = lay_out(&file).to_bytes();
        let gguf = diagnose(&bytes).gguf.unwrap();
        let map = Map::of(&gguf).unwrap();
        let path = Path::new("nothing-is-written.safetensors");
        let error = map.export(&gguf, path, &|_, _| panic!("nothing is made")).unwrap_err();
        assert_eq!(error.to_string(), NotRead::Wide(tensor.into(), t).to_string());
        assert!(!path.exists());
    }
}

/// F16 whose numbers change: they are F32 then.
#[test]
fn f16_that_changes_becomes_f32() {
    let file = description("gemma", ByteOrder::Little, |name, _| {
        if name == "output_norm.weight" { "F16" } else { "F32" }
    });
    let bytes = lay_out(&file).to_bytes();
    let gguf = diagnose(&bytes).gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let norm = map.parameters.iter().find(|each| each.name == "model.norm.weight").unwrap();
    let values = map.read(&gguf, norm, 0).unwrap();
    assert_eq!(values.dtype, Dtype::F32);
    let data = gguf.tensor_bytes(gguf.tensor("output_norm.weight").unwrap()).unwrap();
    let mut stored = vec![0.0; data.len() / 2];
    let f16 = TensorType::by_name("F16").unwrap();
    gguf_assay_quant::dequantize(f16, data, ByteOrder::Little, &mut stored).unwrap();
    let expected: Vec<u8> = stored.iter().flat_map(|x| (x - 1.0).to_le_bytes()).collect();
    assert_eq!(values.bytes, expected);
}

/// A factor of the architecture is taken out again: by hand, the root of 8 (the width) over 10 (the
/// rank), as F32. F16 is F32 then.
#[test]
fn f16_with_a_factor_becomes_f32() {
    let file = description("dots3note", ByteOrder::Little, |name, _| {
        if name == "blk.0.attn_kv_a_norm.weight" { "F16" } else { "F32" }
    });
    let bytes = lay_out(&file).to_bytes();
    let gguf = diagnose(&bytes).gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let name = "model.layers.0.self_attn.kv_a_layernorm.weight";
    let norm = map.parameters.iter().find(|each| each.name == name).unwrap();
    assert_eq!(norm.sources[0].factor, Some(0.894_427_2));
    let values = map.read(&gguf, norm, 0).unwrap();
    assert_eq!(values.dtype, Dtype::F32);
    let data = gguf.tensor_bytes(gguf.tensor("blk.0.attn_kv_a_norm.weight").unwrap()).unwrap();
    let mut stored = vec![0.0; data.len() / 2];
    let f16 = TensorType::by_name("F16").unwrap();
    gguf_assay_quant::dequantize(f16, data, ByteOrder::Little, &mut stored).unwrap();
    let expected: Vec<u8> = stored.iter().flat_map(|x| (x / 0.894_427_2).to_le_bytes()).collect();
    assert_eq!(values.bytes, expected);
}

fn shaped(name: &str, shape: &[u64]) -> CheckpointTensor {
    CheckpointTensor { name: name.into(), shape: shape.into() }
}

/// A layer of openai/gpt-oss-20b as published: names and shapes of its first layer.
fn gpt_oss_20b() -> (Vec<CheckpointTensor>, serde_json::Value) {
    let layer = |name: &str, shape: &[u64]| shaped(&format!("model.layers.0.{name}"), shape);
    let tensors = vec![
        shaped("model.embed_tokens.weight", &[201_088, 2880]),
        shaped("model.norm.weight", &[2880]),
        shaped("lm_head.weight", &[201_088, 2880]),
        layer("input_layernorm.weight", &[2880]),
        layer("post_attention_layernorm.weight", &[2880]),
        layer("self_attn.q_proj.weight", &[4096, 2880]),
        layer("self_attn.q_proj.bias", &[4096]),
        layer("self_attn.k_proj.weight", &[512, 2880]),
        layer("self_attn.k_proj.bias", &[512]),
        layer("self_attn.v_proj.weight", &[512, 2880]),
        layer("self_attn.v_proj.bias", &[512]),
        layer("self_attn.o_proj.weight", &[2880, 4096]),
        layer("self_attn.o_proj.bias", &[2880]),
        layer("self_attn.sinks", &[64]),
        layer("mlp.router.weight", &[32, 2880]),
        layer("mlp.router.bias", &[32]),
        layer("mlp.experts.gate_up_proj_blocks", &[32, 5760, 90, 16]),
        layer("mlp.experts.gate_up_proj_scales", &[32, 5760, 90]),
        layer("mlp.experts.gate_up_proj_bias", &[32, 5760]),
        layer("mlp.experts.down_proj_blocks", &[32, 2880, 90, 16]),
        layer("mlp.experts.down_proj_scales", &[32, 2880, 90]),
        layer("mlp.experts.down_proj_bias", &[32, 2880]),
    ];
    let config = json!({
        "model_type": "gpt_oss", "num_hidden_layers": 1, "hidden_size": 2880, "head_dim": 64,
        "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 2880,
        "num_local_experts": 32, "vocab_size": 201_088,
        "quantization_config": { "quant_method": "mxfp4" },
    });
    (tensors, config)
}

#[test]
fn published_gpt_oss_comes_to_mxfp4() {
    let (checkpoint, config) = gpt_oss_20b();
    let architecture = Architecture::find("gpt-oss").unwrap();
    let map = CheckpointMap::of(architecture, &checkpoint, &config);
    assert!(map.is_complete(), "{:?}", map.findings);
    assert!(map.dropped.is_empty());
    let mxfp4: BTreeMap<&str, &[u64]> = map
        .tensors
        .iter()
        .filter(|tensor| tensor.blocks == TensorType::by_name("MXFP4"))
        .map(|tensor| (tensor.name.as_str(), tensor.dims.as_slice()))
        .collect();
    // As the published GGUF files have them.
    let dims: &[u64] = &[2880, 2880, 32];
    let expected =
        ["down", "gate", "up"].map(|kind| (format!("blk.0.ffn_{kind}_exps.weight"), dims));
    let expected: BTreeMap<&str, &[u64]> =
        expected.iter().map(|(name, dims)| (name.as_str(), *dims)).collect();
    assert_eq!(mxfp4, expected);
}

#[test]
fn checkpoints_of_blocks_with_a_fault() {
    let architecture = Architecture::find("gpt-oss").unwrap();
    let findings = |spoil: &dyn Fn(&mut Vec<CheckpointTensor>, &mut serde_json::Value)| {
        let (mut checkpoint, mut config) = gpt_oss_20b();
        spoil(&mut checkpoint, &mut config);
        let map = CheckpointMap::of(architecture, &checkpoint, &config);
        map.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let scales = "model.layers.0.mlp.experts.down_proj_scales";
    assert_eq!(
        findings(&|checkpoint, _| checkpoint.retain(|tensor| tensor.name != scales)),
        [format!("missing: 1 tensors\n  blk.0.ffn_down_exps.weight: {scales}")]
    );
    let both = findings(&|checkpoint, _| {
        checkpoint.push(shaped("model.layers.0.mlp.experts.down_proj", &[32, 2880, 2880]));
    });
    assert_eq!(
        both,
        ["duplicated: model.layers.0.mlp.experts.down_proj_blocks: \
          model.layers.0.mlp.experts.down_proj stands for the same tensor, blk.0.ffn_down_exps.weight"]
    );
    let odd = findings(&|_, config| config["intermediate_size"] = json!(2881));
    assert!(
        odd.contains(
            &"no shape: blk.0.ffn_down_exps.weight: [n_ff_exp = 2881, n_embd = 2880, \
              n_expert = 32] has rows that are no whole blocks"
                .to_owned()
        ),
        "{odd:?}"
    );
}

/// Experts fused as transformers 5 has them in memory: the gates' rows, then those of up.
#[test]
fn fused_experts_of_transformers_5() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs/llama-mixtral");
    let bytes = fs::read(path.join("model.gguf")).unwrap();
    let gguf = diagnose(&bytes).gguf.unwrap();
    let map = Map::of(&gguf).unwrap();
    let config = serde_json::from_slice(&fs::read(path.join("config.json")).unwrap()).unwrap();
    let read = |kind: &str, expert| {
        let name = format!("model.layers.1.block_sparse_moe.experts.E.{kind}.weight");
        let parameter = map.parameters.iter().find(|parameter| parameter.name == name).unwrap();
        map.read(&gguf, parameter, expert).unwrap().bytes
    };
    let gate_up: Vec<u8> =
        (0..3).flat_map(|expert| [read("w1", expert), read("w3", expert)].concat()).collect();
    let down: Vec<u8> = (0..3).flat_map(|expert| read("w2", expert)).collect();
    // Three experts, twice 24 rows of 16.
    let checkpoint = [
        shaped("model.layers.1.mlp.experts.gate_up_proj", &[3, 48, 16]),
        shaped("model.layers.1.mlp.experts.down_proj", &[3, 16, 24]),
    ];
    let parameters = [gate_up, down];
    let back = CheckpointMap::of(map.architecture, &checkpoint, &config);
    assert_eq!(back.tensors.len(), 3);
    for tensor in &back.tensors {
        let found = tensor.bytes(4, |at| parameters.get(at).map(Vec::as_slice)).unwrap();
        let expected = gguf.tensor_bytes(gguf.tensor(&tensor.name).unwrap()).unwrap();
        assert_eq!(found, expected, "{}", tensor.name);
    }
}
