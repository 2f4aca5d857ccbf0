//! A checkpoint of 400 GB: 200 files, 100,000 tensors. The files are sparse; nothing of them but the
//! headers is there, and nothing else is read. `cargo test -p gguf-assay-checkpoint --test size --
//! --nocapture` prints the time and the memory that it takes.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::time::Instant;

use gguf_assay_checkpoint::{Checkpoint, Folder, Options, judge};
use serde_json::json;

const FILES: u64 = 200;
const TENSORS: u64 = 100_000;
/// 2000 MB a file.
const DATA: u64 = 2_000_000_000;

#[test]
fn headers_of_400_gb() {
    let folder = tempfile::tempdir().unwrap();
    let of_file = TENSORS / FILES;
    let bytes = DATA / of_file;
    let mut weight_map = String::new();
    for file in 1..=FILES {
        let name = format!("model-{file:05}-of-{FILES:05}.safetensors");
        let mut header = String::new();
        for tensor in 0..of_file {
            let key = format!("model.layers.{file}.mlp.experts.{tensor}.down_proj.qweight");
            let (start, end) = (tensor * bytes, (tensor + 1) * bytes);
            let rows = bytes / 4 / 1_000;
            let comma = if tensor == 0 { '{' } else { ',' };
            write!(
                header,
                r#"{comma}"{key}":{{"dtype":"I32","shape":[{rows},1000],"data_offsets":[{start},{end}]}}"#
            )
            .unwrap();
            let comma = if weight_map.is_empty() { "" } else { "," };
            write!(weight_map, r#"{comma}"{key}":"{name}""#).unwrap();
        }
        header.push('}');
        let length = u64::try_from(header.len()).unwrap();
        let mut shard = File::create(folder.path().join(name)).unwrap();
        shard.write_all(&length.to_le_bytes()).unwrap();
        shard.write_all(header.as_bytes()).unwrap();
        shard.set_len(8 + length + DATA).unwrap();
    }
    let total = FILES * DATA;
    let index = format!(r#"{{"metadata":{{"total_size":{total}}},"weight_map":{{{weight_map}}}}}"#);
    fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
    fs::write(folder.path().join("config.json"), "{}").unwrap();
    drop(weight_map);

    let start = Instant::now();
    let checkpoint = Checkpoint::open(Folder::new(folder.path())).unwrap();
    let took = start.elapsed();
    assert_eq!(checkpoint.findings, []);
    assert_eq!(checkpoint.shards.len() as u64, FILES);
    assert_eq!(checkpoint.tensors().count() as u64, TENSORS);
    let sum: u64 = checkpoint.tensors().map(|tensor| tensor.len).sum();
    assert_eq!(sum, total);
    let last = format!("model.layers.{FILES}.mlp.experts.{}.down_proj.qweight", of_file - 1);
    assert_eq!(checkpoint.read_part(&last, bytes - 16, 99).unwrap(), [0; 16]);
    println!("{TENSORS} tensors of {FILES} files, {total} bytes: {} ms", took.as_millis());
    // Where the system says how much this process has had at most.
    if let Ok(status) = fs::read_to_string("/proc/self/status")
        && let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))
    {
        println!("peak memory: {}", peak.trim());
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 1 << 20, "more than 1 GiB");
    }
}

/// A mixture as large as those that are published: 86 layers of 128 experts in GPTQ, 100,537 tensors,
/// of an architecture that there are names of. All of it is judged, values included.
#[test]
fn judgement_of_100_000_tensors() {
    const LAYERS: u64 = 86;
    const EXPERTS: u64 = 128;
    let (hidden, inner, group) = (2048u64, 768u64, 128u64);
    let mut header = String::new();
    let (mut end, mut count) = (0u64, 0u64);
    let mut add = |name: String, dtype: &str, size: u64, shape: &[u64]| {
        let start = end;
        end += shape.iter().product::<u64>() * size;
        count += 1;
        let comma = if header.is_empty() { '{' } else { ',' };
        write!(
            header,
            r#"{comma}"{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}"#
        )
        .unwrap();
    };
    add("model.embed_tokens.weight".into(), "BF16", 2, &[1024, hidden]);
    add("model.norm.weight".into(), "BF16", 2, &[hidden]);
    add("lm_head.weight".into(), "BF16", 2, &[1024, hidden]);
    for layer in 0..LAYERS {
        let name = |rest: &str| format!("model.layers.{layer}.{rest}");
        for norm in ["input_layernorm", "post_attention_layernorm"] {
            add(name(&format!("{norm}.weight")), "BF16", 2, &[hidden]);
        }
        for norm in ["q_norm", "k_norm"] {
            add(name(&format!("self_attn.{norm}.weight")), "BF16", 2, &[128]);
        }
        add(name("mlp.gate.weight"), "BF16", 2, &[EXPERTS, hidden]);
        let attention = [("q", 4096, hidden), ("k", 512, hidden), ("v", 512, hidden)];
        let attention = attention.map(|(part, out, inputs)| (format!("{part}_proj"), out, inputs));
        let output = ("o_proj".to_owned(), hidden, 4096);
        let attention = attention.into_iter().chain([output]);
        let attention =
            attention.map(|(part, out, inputs)| (format!("self_attn.{part}"), out, inputs));
        let experts = (0..EXPERTS).flat_map(|expert| {
            [("gate", inner, hidden), ("up", inner, hidden), ("down", hidden, inner)].map(
                |(part, out, inputs)| (format!("mlp.experts.{expert}.{part}_proj"), out, inputs),
            )
        });
        for (part, out, inputs) in attention.chain(experts) {
            let groups = inputs / group;
            add(name(&format!("{part}.qweight")), "I32", 4, &[inputs / 8, out]);
            add(name(&format!("{part}.qzeros")), "I32", 4, &[groups, out / 8]);
            add(name(&format!("{part}.scales")), "F16", 2, &[groups, out]);
        }
    }
    header.push('}');
    let folder = tempfile::tempdir().unwrap();
    let length = u64::try_from(header.len()).unwrap();
    let mut file = File::create(folder.path().join("model.safetensors")).unwrap();
    file.write_all(&length.to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + length + end).unwrap();
    let config = |inner: u64| {
        json!({
            "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
            "hidden_size": hidden, "intermediate_size": 6144, "moe_intermediate_size": inner,
            "num_hidden_layers": LAYERS, "num_attention_heads": 32, "num_key_value_heads": 4,
            "head_dim": 128, "num_experts": EXPERTS, "num_experts_per_tok": 8,
            "vocab_size": 1024, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
            "max_position_embeddings": 4096, "rope_theta": 10000.0, "dtype": "bfloat16",
            "quantization_config": {
                "quant_method": "gptq", "bits": 4, "group_size": group, "sym": false,
                "desc_act": false,
            },
        })
    };
    // As it is; with the config of another width, so that every expert's shape is wrong.
    for (width, faults) in [(inner, 0), (inner + 128, 2)] {
        fs::write(folder.path().join("config.json"), config(width).to_string()).unwrap();
        let checkpoint = Checkpoint::open(Folder::new(folder.path())).unwrap();
        for values in [false, true] {
            let start = Instant::now();
            let options = Options { values, tp: Some(2) };
            let judgement = judge(&checkpoint, &options);
            println!("{count} tensors judged, values {values}: {} ms", start.elapsed().as_millis());
            let found: Vec<String> = judgement
                .findings
                .iter()
                .filter(|f| f.is_fault())
                .map(ToString::to_string)
                .collect();
            assert_eq!(found.len(), faults, "{found:?}");
            assert_eq!(judgement.modules.len() as u64, LAYERS * (4 + 3 * EXPERTS));
            assert_eq!(judgement.experts.as_ref().unwrap().count, EXPERTS);
        }
    }
}
