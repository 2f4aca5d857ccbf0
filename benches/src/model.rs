//! A file with a large header.

use gguf_assay_format::{
    Description, OwnedArray, OwnedValue, Segment, TensorDescription, TensorType, ValueType, lay_out,
};

/// What [`qwen_like`] holds.
pub const KEYS: usize = 40;
/// What [`qwen_like`] holds: 48 blocks of 12, and 3.
pub const TENSORS: usize = 579;
/// What [`qwen_like`] holds.
pub const TOKENS: usize = 151_936;
/// What [`qwen_like`] holds.
pub const MERGES: usize = 151_387;

/// A file in memory.
pub struct Model {
    /// The whole file. Its tensor data are zeros that nobody has touched: they take no memory.
    pub bytes: Vec<u8>,
    /// What comes before the tensor data.
    pub header_len: usize,
}

/// A file like those of Qwen2.5: its counts of keys, tokens, merges and tensors, the names and
/// shapes of its tensors, and made-up strings of the lengths that its vocabulary has.
pub fn qwen_like() -> Model {
    let layout = lay_out(&Description {
        metadata: metadata(),
        tensors: tensors(),
        ..Description::default()
    });
    // Memory that comes zeroed, into which only the header is written.
    let mut bytes = vec![0; layout.len() as usize];
    let mut position = 0;
    for segment in layout.segments.as_slice() {
        if let Segment::Bytes(part) = segment {
            bytes[position..][..part.len()].copy_from_slice(part);
        }
        position += segment.len() as usize;
    }
    Model { bytes, header_len: layout.data_offset as usize }
}

fn metadata() -> Vec<(Vec<u8>, OwnedValue)> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let tokens = (0..TOKENS).map(|_| OwnedValue::String(random.token().into())).collect();
    let types = (0..TOKENS).map(|i| OwnedValue::I32(if i < 151_643 { 1 } else { 3 })).collect();
    let merges = (0..MERGES).map(|_| OwnedValue::String(random.merge().into())).collect();
    let array = |element_type, elements| OwnedValue::Array(OwnedArray::new(element_type, elements));
    let texts = |texts: &[&str]| {
        array(ValueType::String, texts.iter().map(|&text| OwnedValue::from(text)).collect())
    };
    let template = "{%- for message in messages %}{{- '<|im_start|>' + message.role }}".repeat(30);

    let entries: [(&str, OwnedValue); KEYS] = [
        ("general.architecture", "qwen2".into()),
        ("general.type", "model".into()),
        ("general.name", "Qwen2.5 Like".into()),
        ("general.finetune", "Instruct".into()),
        ("general.basename", "Qwen2.5".into()),
        ("general.size_label", "3B".into()),
        ("general.license", "apache-2.0".into()),
        ("general.license.link", "https://example.org/LICENSE".into()),
        ("general.base_model.count", 1.into()),
        ("general.base_model.0.name", "Qwen2.5".into()),
        ("general.base_model.0.organization", "Qwen".into()),
        ("general.base_model.0.repo_url", "https://example.org/Qwen2.5".into()),
        ("general.tags", texts(&["chat", "text-generation"])),
        ("general.languages", texts(&["en", "zh"])),
        ("general.alignment", 32.into()),
        ("general.quantization_version", 2.into()),
        ("general.file_type", 15.into()),
        ("qwen2.block_count", 48.into()),
        ("qwen2.context_length", 32_768.into()),
        ("qwen2.embedding_length", 1536.into()),
        ("qwen2.feed_forward_length", 8960.into()),
        ("qwen2.attention.head_count", 12.into()),
        ("qwen2.attention.head_count_kv", 2.into()),
        ("qwen2.attention.layer_norm_rms_epsilon", OwnedValue::F32(1e-6)),
        ("qwen2.rope.freq_base", OwnedValue::F32(1e6)),
        ("tokenizer.ggml.model", "gpt2".into()),
        ("tokenizer.ggml.pre", "qwen2".into()),
        ("tokenizer.ggml.tokens", array(ValueType::String, tokens)),
        ("tokenizer.ggml.token_type", array(ValueType::I32, types)),
        ("tokenizer.ggml.merges", array(ValueType::String, merges)),
        ("tokenizer.ggml.eos_token_id", 151_645.into()),
        ("tokenizer.ggml.padding_token_id", 151_643.into()),
        ("tokenizer.ggml.bos_token_id", 151_643.into()),
        ("tokenizer.ggml.add_bos_token", OwnedValue::Bool(false)),
        ("tokenizer.chat_template", template.as_str().into()),
        ("quantize.imatrix.file", "qwen2.5.imatrix".into()),
        ("quantize.imatrix.dataset", "calibration.txt".into()),
        ("quantize.imatrix.entries_count", OwnedValue::I32(336)),
        ("quantize.imatrix.chunks_count", OwnedValue::I32(128)),
        ("general.sampling.temp", OwnedValue::F32(0.7)),
    ];
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

/// The shapes of the model of 1.5 billion parameters, in as many blocks as that of 14 billion has.
fn tensors() -> Vec<TensorDescription> {
    const MODEL: u64 = 1536;
    const KV: u64 = 256;
    const FEED_FORWARD: u64 = 8960;
    let tensor = |name: &str, type_name, dims: &[u64]| {
        let tensor_type = TensorType::by_name(type_name).expect("a type of the table");
        TensorDescription::zeros(name, tensor_type, dims)
    };
    let vocabulary = TOKENS as u64;
    let mut tensors = vec![
        tensor("output.weight", "Q6_K", &[MODEL, vocabulary]),
        tensor("output_norm.weight", "F32", &[MODEL]),
        tensor("token_embd.weight", "Q4_K", &[MODEL, vocabulary]),
    ];
    for block in 0..48 {
        let parts: [(&str, &str, &[u64]); 12] = [
            ("attn_k.bias", "F32", &[KV]),
            ("attn_k.weight", "Q4_K", &[MODEL, KV]),
            ("attn_norm.weight", "F32", &[MODEL]),
            ("attn_output.weight", "Q4_K", &[MODEL, MODEL]),
            ("attn_q.bias", "F32", &[MODEL]),
            ("attn_q.weight", "Q4_K", &[MODEL, MODEL]),
            ("attn_v.bias", "F32", &[KV]),
            ("attn_v.weight", "Q6_K", &[MODEL, KV]),
            ("ffn_down.weight", "Q6_K", &[FEED_FORWARD, MODEL]),
            ("ffn_gate.weight", "Q4_K", &[MODEL, FEED_FORWARD]),
            ("ffn_norm.weight", "F32", &[MODEL]),
            ("ffn_up.weight", "Q4_K", &[MODEL, FEED_FORWARD]),
        ];
        for (part, type_name, dims) in parts {
            tensors.push(tensor(&format!("blk.{block}.{part}"), type_name, dims));
        }
    }
    tensors
}

/// xorshift64: the same file in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// A piece of a byte-level BPE vocabulary: a space is `Ġ`, bytes beyond ASCII are letters of
    /// two bytes each.
    fn piece(&mut self, longest: u64) -> String {
        let mut text = String::new();
        if self.below(10) < 4 {
            text.push('Ġ');
        }
        let len = 1 + self.below(longest);
        match self.below(100) {
            0..8 => (0..=len / 3).for_each(|_| text.push_str("ä½ł")),
            _ => (0..len).for_each(|_| text.push((b'a' + self.below(26) as u8).into())),
        }
        text
    }

    fn token(&mut self) -> String {
        match self.below(5000) {
            // Runs of spaces and of dashes, as every such vocabulary has.
            0 => "Ġ".repeat(16 << self.below(3)),
            1 => "-".repeat(16 << self.below(4)),
            _ => self.piece(10),
        }
    }

    fn merge(&mut self) -> String {
        let (left, right) = (self.piece(6), self.piece(6));
        format!("{left} {right}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_of_the_size_that_it_imitates() {
        let mut random = Random(1);
        let mean = |texts: Vec<String>| {
            texts.iter().map(String::len).sum::<usize>() as f64 / texts.len() as f64
        };
        let tokens = mean((0..TOKENS).map(|_| random.token()).collect());
        assert!((6.5..7.5).contains(&tokens), "{tokens} bytes a token");
        let merges = mean((0..MERGES).map(|_| random.merge()).collect());
        assert!((9.0..11.0).contains(&merges), "{merges} bytes a merge");
        assert_eq!(tensors().len(), TENSORS);
    }
}
