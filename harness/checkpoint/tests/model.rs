//! Whole models: layouts of experts, fused parts, output layers, layers, ranks. The checkpoints are
//! made here of names and shapes; expected values are by hand, from the formulas of each layout.

mod support;

use std::path::{Path, PathBuf};

use gguf_assay_checkpoint::{Checkpoint, ExpertLayout, Finding, Judgement, Options, judge};
use serde_json::{Value as Json, json};

use support::{Made, Model, zeros};

fn judged(model: &Model) -> Judgement {
    judge(&Checkpoint::open(model.files()).unwrap(), &Options::default())
}

fn judged_for(model: &Model, tp: u64) -> Judgement {
    let options = Options { tp: Some(tp), ..Options::default() };
    judge(&Checkpoint::open(model.files()).unwrap(), &options)
}

/// The rules that are broken, and those of notes behind them, each once.
fn rules(judgement: &Judgement) -> (Vec<&'static str>, Vec<&'static str>) {
    let ids = |faults: bool| {
        let findings = judgement.findings.iter().filter(|finding| finding.is_fault() == faults);
        let mut ids: Vec<&str> = findings.map(|finding| finding.rule.id).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    (ids(true), ids(false))
}

fn texts(judgement: &Judgement) -> String {
    judgement.findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[track_caller]
fn check(judgement: &Judgement, faults: &[&str], notes: &[&str]) {
    let found = rules(judgement);
    assert_eq!((found.0.as_slice(), found.1.as_slice()), (faults, notes), "{}", texts(judgement));
}

/// The same, of a model that has nothing but experts: that the rest is missing is left out.
#[track_caller]
fn check_experts(judgement: &Judgement, faults: &[&str], notes: &[&str]) {
    let of_rest = ["MODEL-001", "MODEL-002", "MODEL-004"];
    let (mut of_faults, mut of_notes) = rules(judgement);
    of_faults.retain(|id| !of_rest.contains(id));
    of_notes.retain(|id| !of_rest.contains(id));
    let found = (of_faults.as_slice(), of_notes.as_slice());
    assert_eq!(found, (faults, notes), "{}", texts(judgement));
}

#[track_caller]
fn one<'j>(judgement: &'j Judgement, rule: &str) -> &'j Finding {
    let mut findings = judgement.findings.iter().filter(|finding| finding.rule.id == rule);
    let first = findings.next().unwrap_or_else(|| panic!("no {rule}: {}", texts(judgement)));
    assert!(findings.next().is_none(), "{}", texts(judgement));
    first
}

/// A weight of BF16.
fn plain(name: impl Into<String>, shape: &[u64]) -> Made {
    zeros(name, "BF16", shape)
}

/// The tensors of GPTQ with 4 bits, without `g_idx`.
fn gptq(name: &str, out: u64, inputs: u64, group: u64) -> Vec<Made> {
    let groups = inputs.div_ceil(group);
    let mut zero_points = zeros(format!("{name}.qzeros"), "I32", &[groups, out / 8]);
    zero_points.bytes.fill(0x77);
    vec![
        zeros(format!("{name}.qweight"), "I32", &[inputs / 8, out]),
        zero_points,
        zeros(format!("{name}.scales"), "F16", &[groups, out]),
    ]
}

fn gptq_config(group: u64) -> Json {
    json!({
        "quant_method": "gptq", "bits": 4, "group_size": group, "sym": true, "desc_act": false,
    })
}

/// Sizes of a small model of one layer.
const HIDDEN: u64 = 64;
const INNER: u64 = 96;

/// A config of no architecture that there are names of, so that only what is said here counts.
fn config(more: Json) -> Json {
    let mut config = json!({
        "architectures": ["NobodysForCausalLM"], "model_type": "nobodys", "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 128, "tie_word_embeddings": true,
    });
    let object = config.as_object_mut().unwrap();
    object.extend(more.as_object().unwrap().clone());
    config
}

/// One layer of attention and a dense network in GPTQ.
fn dense() -> Model {
    let mut tensors = vec![plain("model.embed_tokens.weight", &[128, HIDDEN])];
    for (name, out, inputs) in [
        ("self_attn.q_proj", 64, HIDDEN),
        ("self_attn.k_proj", 32, HIDDEN),
        ("self_attn.v_proj", 32, HIDDEN),
        ("self_attn.o_proj", HIDDEN, 64),
        ("mlp.gate_proj", INNER, HIDDEN),
        ("mlp.up_proj", INNER, HIDDEN),
        ("mlp.down_proj", HIDDEN, INNER),
    ] {
        tensors.extend(gptq(&format!("model.layers.0.{name}"), out, inputs, 32));
    }
    Model { config: config(json!({ "quantization_config": gptq_config(32) })), tensors }
}

fn put(model: &mut Model, name: &str, made: Vec<Made>) {
    model.tensors.retain(|tensor| !tensor.name.starts_with(&format!("{name}.")));
    model.tensors.extend(made);
}

/// A layer with a router and these tensors below `mlp.experts`.
fn mixture(more: Json, experts: Vec<Made>) -> Model {
    let mut tensors = vec![
        plain("model.embed_tokens.weight", &[128, HIDDEN]),
        plain("model.layers.0.mlp.gate.weight", &[4, HIDDEN]),
    ];
    tensors.extend(experts);
    let mut fields = json!({ "num_experts": 4, "moe_intermediate_size": INNER });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Model { config: config(fields), tensors }
}

/// Four experts, each with its matrices.
fn each(layer: u64, [gate, up, down]: [&str; 3]) -> Vec<Made> {
    let name = |expert, part| format!("model.layers.{layer}.mlp.experts.{expert}.{part}.weight");
    let tensors = (0..4).flat_map(|expert| {
        [
            plain(name(expert, gate), &[INNER, HIDDEN]),
            plain(name(expert, up), &[INNER, HIDDEN]),
            plain(name(expert, down), &[HIDDEN, INNER]),
        ]
    });
    tensors.collect()
}

const PROJ: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

fn fused(gate_up: [u64; 3], down: [u64; 3]) -> Vec<Made> {
    vec![
        plain("model.layers.0.mlp.experts.gate_up_proj", &gate_up),
        plain("model.layers.0.mlp.experts.down_proj", &down),
    ]
}

fn bias(width: u64) -> Vec<Made> {
    vec![
        plain("model.layers.0.mlp.experts.gate_up_proj_bias", &[4, width]),
        plain("model.layers.0.mlp.experts.down_proj_bias", &[4, HIDDEN]),
    ]
}

fn packed() -> Vec<Made> {
    let name = |part| format!("model.layers.0.mlp.experts.{part}");
    vec![
        zeros(name("gate_up_proj_blocks"), "U8", &[4, 2 * INNER, HIDDEN / 32, 16]),
        zeros(name("gate_up_proj_scales"), "U8", &[4, 2 * INNER, HIDDEN / 32]),
        zeros(name("down_proj_blocks"), "U8", &[4, HIDDEN, INNER / 32, 16]),
        zeros(name("down_proj_scales"), "U8", &[4, HIDDEN, INNER / 32]),
    ]
}

#[track_caller]
fn layout(model: &Model, expected: ExpertLayout) -> Judgement {
    let judgement = judged(model);
    let experts = judgement.experts.clone().unwrap();
    assert_eq!(experts.layout, expected, "{experts:?}");
    assert_eq!((experts.count, experts.layers), (4, 1), "{experts:?}");
    judgement
}

#[test]
fn layouts_are_told_by_names_and_shapes() {
    // The shapes are those of transformers 5.24.0: modeling_qwen3_moe.py, modeling_llama4.py,
    // modeling_gpt_oss.py; the names of single experts those of its conversion_mapping.py.
    let (rows, columns) = ([4, 2 * INNER, HIDDEN], [4, HIDDEN, 2 * INNER]);
    let (down, down_turned) = ([4, HIDDEN, INNER], [4, INNER, HIDDEN]);
    for (more, experts, expected) in [
        (json!({}), each(0, PROJ), ExpertLayout::PerExpert),
        (json!({}), each(0, ["w1", "w3", "w2"]), ExpertLayout::PerExpertW1W2W3),
        (json!({}), fused(rows, down), ExpertLayout::FusedQwen),
        (json!({}), fused(columns, down_turned), ExpertLayout::FusedLlama4),
        (
            json!({ "model_type": "gpt_oss" }),
            fused(columns, down_turned),
            ExpertLayout::FusedGptOss,
        ),
    ] {
        check_experts(&layout(&mixture(more, experts), expected), &[], &[]);
    }
    let with_bias = [fused(columns, down_turned), bias(2 * INNER)].concat();
    let gpt_oss = mixture(json!({ "model_type": "gpt_oss" }), with_bias.clone());
    check_experts(&layout(&gpt_oss, ExpertLayout::FusedGptOss), &[], &[]);
    // A bias tells gpt-oss's as well; then it is not the model that is named.
    check(&layout(&mixture(json!({}), with_bias), ExpertLayout::FusedGptOss), &["MODEL-025"], &[]);
}

#[test]
fn both_fused_tensors_tell_the_axis_even_of_squares() {
    // Hidden 192 and width 96: gate_up_proj is [4, 192, 192] either way, down_proj is not.
    let more = json!({ "hidden_size": 192 });
    for (down, expected) in
        [([4, 192, 96], ExpertLayout::FusedQwen), ([4, 96, 192], ExpertLayout::FusedLlama4)]
    {
        let judgement = layout(&mixture(more.clone(), fused([4, 192, 192], down)), expected);
        check(&judgement, &[], &[]);
        let evidence = judgement.experts.unwrap().evidence.join("\n");
        assert!(evidence.contains("down_proj gives 192"), "{evidence}");
    }
}

#[test]
fn gate_and_up_alone_are_ambiguous_if_square() {
    let alone = |more| mixture(more, fused([4, 192, 192], [4, 192, 96])[..1].to_vec());
    let judgement = layout(&alone(json!({ "hidden_size": 192 })), ExpertLayout::Ambiguous);
    check(&judgement, &["MODEL-021"], &[]);
    let evidence = judgement.experts.unwrap().evidence.join("\n");
    let settled =
        "either axis may be the input: down_proj beside it, or a model_type that is known";
    assert!(evidence.contains(settled), "{evidence}");
    // The model's type settles it, and the evidence says so.
    for (model_type, expected) in
        [("qwen3_moe", ExpertLayout::FusedQwen), ("llama4_text", ExpertLayout::FusedLlama4)]
    {
        let more = json!({ "hidden_size": 192, "model_type": model_type });
        let evidence = judged(&alone(more)).experts.unwrap();
        assert_eq!(evidence.layout, expected);
        let evidence = evidence.evidence.join("\n");
        assert!(evidence.contains(&format!("settled by model_type {model_type}")), "{evidence}");
    }
    // A hidden size that is one axis settles it as well.
    let rows = fused([4, 2 * INNER, HIDDEN], [0; 3])[..1].to_vec();
    let judgement = layout(&mixture(json!({}), rows), ExpertLayout::FusedQwen);
    let evidence = judgement.experts.unwrap().evidence.join("\n");
    assert!(evidence.contains("hidden_size 64 is the last axis"), "{evidence}");
}

#[test]
fn packed_experts_belong_to_gpt_oss() {
    let quantization = json!({ "quant_method": "mxfp4" });
    let of = |model_type: &str, quantization: &Json| {
        let config = json!({ "model_type": model_type, "quantization_config": quantization });
        mixture(config, packed())
    };
    let judgement = layout(&of("gpt_oss", &quantization), ExpertLayout::PackedGptOss);
    check_experts(&judgement, &[], &[]);
    assert_eq!(judgement.experts.unwrap().quantized, Some("gpt-oss-mxfp4"));
    let judgement = layout(&of("nobodys", &quantization), ExpertLayout::PackedGptOss);
    check_experts(&judgement, &["MODEL-025"], &[]);
    assert_eq!(
        one(&judgement, "MODEL-025").found,
        "experts laid down as packed-gpt-oss, in a model of type nobodys"
    );
    // Declared as the blocks of DeepSeek's FP8, or not at all.
    let fp8 = json!({
        "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
    });
    let judgement = layout(&of("gpt_oss", &fp8), ExpertLayout::PackedGptOss);
    check_experts(&judgement, &["METHOD-012"], &[]);
    assert!(one(&judgement, "METHOD-012").expected.starts_with("gpt-oss-mxfp4"));
    let judgement = layout(&of("gpt_oss", &Json::Null), ExpertLayout::PackedGptOss);
    check_experts(&judgement, &["METHOD-024"], &[]);
}

#[test]
fn nodes_of_ktransformers() {
    let tensors = (0..4).flat_map(|expert| {
        ["gate", "up", "down"].into_iter().flat_map(move |part| {
            (0..2).flat_map(move |node| {
                let name = format!("blk.0.ffn_{part}_exps.{expert}.numa.{node}");
                [
                    zeros(format!("{name}.weight"), "I8", &[INNER, HIDDEN]),
                    zeros(format!("{name}.scale"), "F32", &[INNER]),
                ]
            })
        })
    });
    let mut model = mixture(json!({ "num_hidden_layers": 1 }), tensors.collect());
    model.tensors.push(plain("model.layers.0.input_layernorm.weight", &[HIDDEN]));
    let experts = judged(&model).experts.unwrap();
    assert_eq!((experts.layout, experts.count), (ExpertLayout::Numa, 4), "{experts:?}");
}

#[test]
fn experts_that_do_not_go_together() {
    let (rows, down) = ([4, 2 * INNER, HIDDEN], [4, HIDDEN, INNER]);
    // The config counts others.
    let judgement = judged(&mixture(json!({ "num_experts": 8 }), each(0, PROJ)));
    check(&judgement, &["MODEL-019"], &[]);
    let finding = one(&judgement, "MODEL-019");
    assert_eq!((finding.found.as_str(), finding.field.as_deref()), ("8", Some("num_experts")));
    assert_eq!(finding.expected, "4, as many as the layers have");
    // Expert 2 is missing in the second layer.
    let mut two = mixture(json!({ "num_hidden_layers": 2 }), each(0, PROJ));
    two.tensors.extend(each(1, PROJ));
    check(&judged(&two), &[], &[]);
    let mut missing = two.clone();
    missing.tensors.retain(|tensor| !tensor.name.contains("layers.1.mlp.experts.2."));
    let judgement = judged(&missing);
    check(&judgement, &["MODEL-020"], &[]);
    let finding = one(&judgement, "MODEL-020");
    assert_eq!(finding.found, "3 experts, without 2");
    assert_eq!(finding.module.as_deref(), Some("model.layers.1.mlp.experts"));
    // One matrix is missing.
    let mut missing = two.clone();
    missing.tensors.retain(|tensor| !tensor.name.contains("layers.1.mlp.experts.2.up_proj"));
    let judgement = judged(&missing);
    check(&judgement, &["MODEL-021"], &[]);
    assert_eq!(one(&judgement, "MODEL-021").found, "no up");
    // No gate at all is another kind of network (Nemotron-H).
    let mut without = two.clone();
    without.tensors.retain(|tensor| !tensor.name.contains("gate_proj"));
    check(&judged(&without), &[], &[]);
    // Another layout in the second layer.
    let mut both = mixture(json!({ "num_hidden_layers": 2 }), each(0, PROJ));
    both.tensors.extend(each(1, ["w1", "w3", "w2"]));
    let judgement = judged(&both);
    check(&judgement, &["MODEL-022"], &[]);
    assert_eq!(one(&judgement, "MODEL-022").found, "per-expert-w1w2w3");
    // A matrix of another model.
    let judgement = judged(&mixture(json!({}), fused(rows, [4, HIDDEN, INNER + 32])));
    check(&judgement, &["MODEL-023"], &[]);
    let judgement = judged(&mixture(json!({}), fused(rows, down)[1..].to_vec()));
    check(&judgement, &["MODEL-021"], &[]);
    // Rows first in a model of gpt-oss.
    let judgement = judged(&mixture(json!({ "model_type": "gpt_oss" }), fused(rows, down)));
    check_experts(&judgement, &["MODEL-025"], &[]);
}

#[test]
fn shared_experts_are_counted_apart() {
    let mut model = mixture(json!({}), each(0, PROJ));
    for part in PROJ {
        let shape = if part == "down_proj" { [HIDDEN, INNER] } else { [INNER, HIDDEN] };
        let name = format!("model.layers.0.mlp.shared_experts.{part}.weight");
        model.tensors.push(plain(name, &shape));
    }
    let judgement = layout(&model, ExpertLayout::PerExpert);
    check(&judgement, &[], &[]);
    let experts = judgement.experts.unwrap();
    assert_eq!((experts.shared_layers, experts.router), (1, Some("mlp.gate")));
}

/// Four experts and attention in GPTQ.
fn quantized_mixture() -> Model {
    let mut model = mixture(json!({ "quantization_config": gptq_config(32) }), Vec::new());
    for expert in 0..4 {
        for (part, out, inputs) in
            [("gate_proj", INNER, HIDDEN), ("up_proj", INNER, HIDDEN), ("down_proj", HIDDEN, INNER)]
        {
            let name = format!("model.layers.0.mlp.experts.{expert}.{part}");
            model.tensors.extend(gptq(&name, out, inputs, 32));
        }
    }
    model
}

#[test]
fn routers_and_experts_that_are_quantized() {
    let model = quantized_mixture();
    let judgement = layout(&model, ExpertLayout::PerExpert);
    check(&judgement, &[], &[]);
    assert_eq!(judgement.experts.unwrap().quantized, Some("gptq"));
    // vllm issue 25029: the module is named.
    let mut router = model.clone();
    put(&mut router, "model.layers.0.mlp.gate", gptq("model.layers.0.mlp.gate", 8, HIDDEN, 32));
    let judgement = judged(&router);
    check(&judgement, &[], &["MODEL-026"]);
    let finding = one(&judgement, "MODEL-026");
    assert_eq!(finding.module.as_deref(), Some("model.layers.0.mlp.gate"));
    // One expert is left out.
    let mut forgotten = model.clone();
    for (part, shape) in [("gate_proj", [INNER, HIDDEN]), ("up_proj", [INNER, HIDDEN])] {
        let name = format!("model.layers.0.mlp.experts.3.{part}");
        put(&mut forgotten, &name, vec![plain(format!("{name}.weight"), &shape)]);
    }
    let judgement = judged(&forgotten);
    check(&judgement, &["MODEL-008"], &["METHOD-022"]);
    let finding = one(&judgement, "MODEL-008");
    assert_eq!(finding.module.as_deref(), Some("model.layers.0.mlp.experts"));
    assert!(finding.found.ends_with("experts.3.gate_proj, experts.3.up_proj plain"), "{finding}");
}

#[test]
fn fused_parts_are_quantized_together_and_alike() {
    check(&judged(&dense()), &[], &[]);
    // compressed-tensors issue of vLLM 11354: one of three is left out.
    let name = "model.layers.0.self_attn.q_proj";
    let mut left_out = dense();
    put(&mut left_out, name, vec![plain(format!("{name}.weight"), &[64, HIDDEN])]);
    left_out.config["quantization_config"]["modules_in_block_to_quantize"] = Json::Null;
    let judgement = judged(&left_out);
    check(&judgement, &["MODEL-008"], &[]);
    let finding = one(&judgement, "MODEL-008");
    assert_eq!(finding.found, "k_proj, v_proj quantized, q_proj plain");
    assert_eq!(finding.module.as_deref(), Some("model.layers.0.self_attn.qkv_proj"));
    assert!(finding.refused_by[0].says.starts_with("Detected some but not all shards"));
    // All three are left out.
    for (part, out) in [("k_proj", 32), ("v_proj", 32)] {
        let name = format!("model.layers.0.self_attn.{part}");
        put(&mut left_out, &name, vec![plain(format!("{name}.weight"), &[out, HIDDEN])]);
    }
    check(&judged(&left_out), &[], &[]);
    // Another group size in one of two, which the config declares.
    let name = "model.layers.0.mlp.up_proj";
    let mut other = dense();
    put(&mut other, name, gptq(name, INNER, HIDDEN, 64));
    other.config["quantization_config"]["dynamic"] =
        json!({ "+:.*up_proj.*": { "group_size": 64 } });
    let judgement = judged(&other);
    check(&judgement, &["MODEL-009"], &[]);
    assert_eq!(
        one(&judgement, "MODEL-009").found,
        "gate_proj: gptq of 4 bits, group 32; up_proj: gptq of 4 bits, group 64"
    );
}

#[test]
fn output_layers() {
    let head = |tied: Option<bool>, made: Vec<Made>| {
        let mut model = dense();
        model.config["tie_word_embeddings"] = tied.map_or(Json::Null, Json::Bool);
        model.tensors.extend(made);
        model
    };
    let weight = |byte| {
        let mut made = plain("lm_head.weight", &[128, HIDDEN]);
        made.bytes.fill(byte);
        vec![made]
    };
    check(&judged(&head(Some(false), weight(1))), &[], &[]);
    check(&judged(&head(Some(true), weight(0))), &[], &[]);
    check(&judged(&head(Some(true), weight(1))), &[], &["MODEL-013"]);
    check(&judged(&head(None, Vec::new())), &[], &[]);
    // QC-32 of Qwen3-VL-Embedding 89.
    let judgement = judged(&head(Some(false), Vec::new()));
    check(&judgement, &["MODEL-012"], &[]);
    assert_eq!(one(&judgement, "MODEL-012").field.as_deref(), Some("tie_word_embeddings"));
    // A quantized one, declared.
    let quantized = |tied| {
        let mut model = head(Some(tied), gptq("lm_head", 128, HIDDEN, 32));
        model.config["quantization_config"]["lm_head"] = true.into();
        model
    };
    check(&judged(&quantized(false)), &[], &["MODEL-010"]);
    check(&judged(&quantized(true)), &["MODEL-011"], &[]);
    // vllm issue 12170: 32001 is no multiple of 64; the next is 32064. Here 136 of 192.
    let mut odd = head(Some(false), gptq("lm_head", 136, HIDDEN, 32));
    odd.config["quantization_config"]["lm_head"] = true.into();
    let judgement = judged(&odd);
    check(&judgement, &[], &["MODEL-010", "MODEL-014"]);
    assert_eq!(one(&judgement, "MODEL-014").expected, "a multiple of 64: 192");
}

#[test]
fn float16_and_mxfp4() {
    let mut config = json!({
        "model_type": "gpt_oss", "quantization_config": { "quant_method": "mxfp4" },
        "torch_dtype": "bfloat16",
    });
    check_experts(&judged(&mixture(config.clone(), packed())), &[], &[]);
    config["torch_dtype"] = "float16".into();
    check_experts(&judged(&mixture(config, packed())), &[], &["MODEL-015"]);
}

#[test]
fn scales_of_the_cache() {
    let with = |names: &[&str]| {
        let mut model = dense();
        let name = |name| format!("model.layers.0.self_attn.{name}");
        model.tensors.extend(names.iter().map(|each| zeros(name(*each), "F32", &[1])));
        model
    };
    // The names of sglang issue 1559 and vllm issue 6761.
    for names in [
        ["k_scale", "v_scale"],
        ["attn.k_scale", "attn.v_scale"],
        ["k_proj.k_scale", "v_proj.v_scale"],
        ["k_proj.output_scale", "v_proj.output_scale"],
    ] {
        check(&judged(&with(&names)), &[], &[]);
        let judgement = judged(&with(&names[..1]));
        check(&judgement, &["MODEL-016"], &[]);
        assert_eq!(one(&judgement, "MODEL-016").found, "k_scale and no v_scale");
    }
    check(&judged(&with(&["kv_scale"])), &[], &["MODEL-017"]);
    // In one layer of two.
    let mut two = with(&["k_scale", "v_scale"]);
    let again = dense().tensors.into_iter().filter(|tensor| tensor.name.contains(".layers."));
    let again = again.map(|tensor| Made { name: tensor.name.replace(".0.", ".1."), ..tensor });
    two.tensors.extend(again.collect::<Vec<_>>());
    two.config["num_hidden_layers"] = 2.into();
    let judgement = judged(&two);
    check(&judgement, &["MODEL-016"], &[]);
    let finding = one(&judgement, "MODEL-016");
    assert_eq!(finding.module.as_deref(), Some("model.layers.1.self_attn"));
}

#[test]
fn layers_are_counted() {
    let of = |layers: u64, more: Json| {
        let mut model = dense();
        model.config["num_hidden_layers"] = layers.into();
        model.config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        model
    };
    let judgement = judged(&of(3, json!({})));
    check(&judgement, &["MODEL-006"], &[]);
    let finding = one(&judgement, "MODEL-006");
    assert_eq!(finding.found, "3 layers, of which 1 are there");
    assert_eq!(finding.expected, "tensors of model.layers.1, model.layers.2");
    check(&judged(&of(0, json!({}))), &[], &["MODEL-007"]);
    check(&judged(&of(0, json!({ "num_nextn_predict_layers": 1 }))), &[], &[]);
    // A claim takes no time.
    let judgement = judged(&of(1 << 60, json!({})));
    check(&judgement, &["MODEL-006"], &[]);
    assert!(one(&judgement, "MODEL-006").expected.ends_with("and 1152921504606846967 more"));
}

#[test]
fn ranks() {
    // vllm issue 2419: 13696 / 2 = 6848 = 53.5 * 128; with one rank 13696 = 107 * 128.
    let mut model = dense();
    model.config["intermediate_size"] = 13696.into();
    model.config["quantization_config"] = gptq_config(128);
    model.tensors.clear();
    let name = "model.layers.0.mlp.down_proj";
    put(&mut model, name, gptq(name, HIDDEN, 13696, 128));
    for ranks in [1, 107] {
        let judgement = judged_for(&model, ranks);
        let expected: &[&str] = if ranks == 1 { &[] } else { &["MODEL-027"] };
        check(&judgement, expected, &[]);
    }
    let judgement = judged_for(&model, 2);
    check(&judgement, &["MODEL-029"], &[]);
    let finding = one(&judgement, "MODEL-029");
    assert_eq!(finding.found, "in_features 13696 / tp 2 = 6848, in groups of 128: 53.5");
    assert_eq!(finding.module.as_deref(), Some(name));
    // 13696 / 3 is no whole number, and 4 heads are not divided by 3.
    let judgement = judged_for(&model, 3);
    check(&judgement, &["MODEL-027", "MODEL-028"], &[]);
    assert_eq!(one(&judgement, "MODEL-028").found, "in_features 13696 / tp 3 = 4565.333");
}

/// The tensors of FP8 in blocks of 128.
fn fp8(name: &str, out: u64, inputs: u64) -> Vec<Made> {
    vec![
        zeros(format!("{name}.weight"), "F8_E4M3", &[out, inputs]),
        zeros(
            format!("{name}.weight_scale_inv"),
            "F32",
            &[out.div_ceil(128), inputs.div_ceil(128)],
        ),
    ]
}

#[test]
fn ranks_and_blocks() {
    // vllm issue 54178: 320 rows / 4 = 80 of 128; with one rank the last block of 3 is partial.
    let mut model = dense();
    model.config["quantization_config"] = json!({
        "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
    });
    model.tensors.clear();
    let name = "model.layers.0.mlp.gate_proj";
    put(&mut model, name, fp8(name, 320, 256));
    check(&judged_for(&model, 1), &[], &[]);
    let judgement = judged_for(&model, 4);
    check(&judgement, &["MODEL-030"], &[]);
    assert_eq!(
        one(&judgement, "MODEL-030").found,
        "out_features 320 / tp 4 = 80, in blocks of 128: 0.625"
    );
}

#[test]
fn ranks_and_words_and_heads() {
    // Two heads of keys are copied over four ranks: 32 / 2 = 16 rows of 4 bits are two words; a
    // third of 96 columns is one group; 96 / 4 = 24 rows of 4 bits are three words.
    let judgement = judged_for(&dense(), 4);
    check(&judgement, &["MODEL-029"], &[]);
    let found: Vec<&str> =
        judgement.findings.iter().map(|finding| finding.found.as_str()).collect();
    assert_eq!(
        found,
        [
            "in_features 96 / tp 4 = 24, in groups of 32: 0.75",
            "in_features 64 / tp 4 = 16, in groups of 32: 0.5",
        ]
    );
    // 96 rows / 8 = 12 of 4 bits are a word and a half.
    let mut model = dense();
    model.tensors.retain(|tensor| tensor.name.contains("gate_proj"));
    model.config["num_attention_heads"] = 8.into();
    let judgement = judged_for(&model, 8);
    check(&judgement, &["MODEL-031"], &[]);
    assert_eq!(
        one(&judgement, "MODEL-031").found,
        "out_features 96 / tp 8 = 12, of 4 bits in words of 32: 1.5"
    );
    let judgement = judged_for(&model, 3);
    check(&judgement, &["MODEL-027"], &[]);
}

#[test]
fn architectures_that_are_known() {
    let name = "qwen3-gptq-w4g32-autoround";
    let qwen = Model::of_data(name);
    check(&judged(&qwen), &[], &["METHOD-004"]);
    // The config of another size: intermediate_size 512 is 640.
    let mut other = qwen.clone();
    other.config["intermediate_size"] = 640.into();
    let judgement = judged(&other);
    check(&judgement, &["MODEL-003"], &["METHOD-004"]);
    let shapes: Vec<(&str, usize)> = judgement
        .findings
        .iter()
        .filter(|finding| finding.rule.id == "MODEL-003")
        .map(|finding| (finding.found.as_str(), finding.others.len() + 1))
        .collect();
    // Two layers: down, and gate and up alike.
    assert_eq!(shapes, [("weight [512, 256]", 4), ("weight [256, 512]", 2)]);
    // A config that does not even count layers is none of a model: nothing is to be missing.
    let mut fragment = qwen.clone();
    fragment.config.as_object_mut().unwrap().remove("num_hidden_layers");
    fragment.tensors.retain(|tensor| tensor.name.contains("layers.0.mlp.down_proj"));
    check(&judged(&fragment), &[], &["METHOD-004", "MODEL-004"]);
    // A norm is missing, another has a strange name.
    let mut missing = qwen.clone();
    missing.tensor("layers.1.input_layernorm.weight").name =
        "model.layers.1.input_layernrom.weight".into();
    let judgement = judged(&missing);
    check(&judgement, &["MODEL-001"], &["METHOD-004", "MODEL-002"]);
    assert_eq!(one(&judgement, "MODEL-001").found, "no model.layers.1.input_layernorm.weight");
    let finding = one(&judgement, "MODEL-002");
    assert_eq!(finding.module.as_deref(), Some("model.layers.1.input_layernrom"));
    // A whole layer is missing: that is said once.
    let mut missing = qwen.clone();
    missing.tensors.retain(|tensor| !tensor.name.contains(".layers.1."));
    check(&judged(&missing), &["MODEL-006"], &["METHOD-004"]);
    // So is one that is too many.
    let mut more = qwen.clone();
    more.config["num_hidden_layers"] = 1.into();
    check(&judged(&more), &[], &["METHOD-004", "MODEL-007"]);
    // A whole module is missing.
    let mut missing = qwen;
    missing.tensors.retain(|tensor| !tensor.name.contains(".layers.1.mlp.down_proj."));
    let judgement = judged(&missing);
    check(&judgement, &["MODEL-001"], &["METHOD-004"]);
    assert_eq!(one(&judgement, "MODEL-001").found, "no model.layers.1.mlp.down_proj.weight");
}

#[test]
fn experts_of_real_checkpoints() {
    for (name, quantized) in
        [("tiny-qwen3moe-bf16", None), ("qwen3moe-gptq-w4g32-autoround", Some("gptq"))]
    {
        let model = Model::of_data(name);
        let experts = judged(&model).experts.unwrap();
        assert_eq!((experts.layout.name(), experts.count, experts.layers), ("per-expert", 4, 2));
        assert_eq!((experts.quantized, experts.router), (quantized, Some("mlp.gate")));
        // One is missing in a layer: said once, and not by the names of the architecture again.
        let mut missing = model;
        missing.tensors.retain(|tensor| !tensor.name.contains("layers.1.mlp.experts.3."));
        assert_eq!(rules(&judged(&missing)).0, ["MODEL-020"], "{name}");
    }
}

/// Tiny models of every class, as transformers 5.24.0 saved them (`source.json`), and as it has them
/// in memory (`memory.json`): all are in order.
#[test]
fn models_of_transformers_are_accepted() {
    let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs");
    let read = |path: PathBuf| -> Option<Json> {
        Some(serde_json::from_slice(&std::fs::read(path).ok()?).unwrap())
    };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for entry in std::fs::read_dir(pairs).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let Some(config) = read(folder.join("config.json")) else { continue };
        for file in ["source.json", "memory.json"] {
            let Some(tensors) = read(folder.join(file)) else { continue };
            let tensors = tensors.as_object().unwrap().iter().map(|(name, tensor)| {
                let shape = tensor.get("shape").unwrap_or(tensor).as_array().unwrap();
                let shape: Vec<u64> = shape.iter().map(|dim| dim.as_u64().unwrap()).collect();
                zeros(name, tensor["dtype"].as_str().unwrap_or("F32"), &shape)
            });
            let model = Model { config: config.clone(), tensors: tensors.collect() };
            let judgement = judged(&model);
            count += 1;
            if !judgement.findings.is_empty() {
                wrong.push(format!("{name} {file}\n{}", texts(&judgement)));
            }
        }
    }
    assert!(count > 140, "{count} models");
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n"));
}
