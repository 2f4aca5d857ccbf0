//! Valid files.

use std::collections::HashSet;

use arbitrary::Unstructured;
use gguf_assay_format::{
    ByteOrder, Data, Description, OwnedArray, OwnedValue, Status, TENSOR_TYPES, TensorDescription,
    TensorType, ValueType,
};

use crate::choices::{Choices, bytes_of};

/// By whose rules a file is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The specification's: versions 1 to 3, both byte orders, arrays of arrays.
    Spec,
    /// ggml's: no array of arrays, but keys of any characters, strings of any bytes, and no key
    /// that has to be there. The smallest such file has 24 bytes.
    Ggml,
    /// Both.
    Both,
}

/// What a file is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any keys and tensors, every type among them.
    Any,
    /// A model of llama's architecture, as converters write it.
    Llama,
    /// The same with experts, merged in tensors of three dimensions.
    Experts,
    /// A tokenizer without tensors.
    Vocabulary,
    /// Any keys, and tensors of gigabytes, all zeros: most of the file is a hole.
    Huge,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::Any, Kind::Llama, Kind::Experts, Kind::Vocabulary, Kind::Huge];
}

/// Makes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Smith {
    /// By whose rules they are valid.
    pub reach: Reach,
    /// What they are like.
    pub kind: Kind,
}

impl Smith {
    /// A smith of files of [`Kind::Any`].
    pub const fn new(reach: Reach) -> Smith {
        Smith { reach, kind: Kind::Any }
    }

    /// A smith of files like this.
    pub const fn kind(self, kind: Kind) -> Smith {
        Smith { kind, ..self }
    }

    /// The file that these bytes stand for: any bytes do, and none are the smallest file.
    pub fn forge(&self, bytes: &mut Unstructured<'_>) -> Description {
        Forge { reach: self.reach, choices: Choices(bytes) }.description(self.kind)
    }

    /// The file that this seed stands for.
    pub fn forge_seed(&self, seed: u64) -> Description {
        self.forge(&mut Unstructured::new(&bytes_of(seed)))
    }
}

const KEY_CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_";
const NAME_CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_.";
const ALIGNMENTS: &[u32] = &[8, 16, 32, 64, 128, 256, 4096];

struct Forge<'a, 'b> {
    reach: Reach,
    choices: Choices<'a, 'b>,
}

impl Forge<'_, '_> {
    fn description(&mut self, kind: Kind) -> Description {
        let mut description = match kind {
            Kind::Any => self.anything(),
            Kind::Llama => self.llama(0),
            Kind::Experts => {
                let experts = self.choices.between(2, 8);
                self.llama(experts)
            }
            Kind::Vocabulary => {
                let mut metadata = vec![];
                self.tokenizer(&mut metadata);
                Description { metadata, ..Description::default() }
            }
            Kind::Huge => self.huge(),
        };
        self.header(&mut description);
        self.required_keys(&mut description);
        description
    }

    fn header(&mut self, description: &mut Description) {
        description.version = match self.choices.below(8) {
            6 if self.reach == Reach::Spec => 1,
            7 => 2,
            _ => 3,
        };
        // Since version 3.
        if self.reach == Reach::Spec && description.version == 3 && self.choices.one_in(8) {
            description.byte_order = ByteOrder::Big;
        }
    }

    /// Adds what the text asks for, each at any place.
    fn required_keys(&mut self, description: &mut Description) {
        let quantized = description
            .tensors
            .iter()
            .filter_map(|tensor| TensorType::by_id(tensor.type_id))
            .any(TensorType::is_quantized);
        let mut keys = vec![];
        let lacks = |key: &[u8]| description.metadata.iter().all(|(other, _)| other != key);
        let is_lax = self.reach == Reach::Ggml;
        if lacks(b"general.architecture") && !(is_lax && self.choices.one_in(2)) {
            let name = self.choices.word(b"abcdefghijklmnopqrstuvwxyz0123456789", 1, 12);
            keys.push(("general.architecture", OwnedValue::String(name)));
        }
        if lacks(b"general.quantization_version")
            && if quantized { !is_lax } else { self.choices.one_in(4) }
        {
            keys.push(("general.quantization_version", 2.into()));
        }
        if lacks(b"general.alignment") && self.choices.one_in(3) {
            // The text allows any multiple of 8, ggml any power of two.
            let alignment = match self.reach {
                Reach::Spec if self.choices.one_in(4) => 8 * self.choices.between(1, 40) as u32,
                Reach::Ggml if self.choices.one_in(4) => self.choices.pick(&[1, 2, 4]),
                _ => self.choices.pick(ALIGNMENTS),
            };
            keys.push(("general.alignment", alignment.into()));
        }
        for (key, value) in keys {
            let place = self.choices.index(description.metadata.len() + 1);
            description.metadata.insert(place, (key.into(), value));
        }
    }

    fn anything(&mut self) -> Description {
        let mut metadata = vec![];
        let mut keys = HashSet::new();
        for _ in 0..self.choices.below(6) {
            let (key, value) = (self.key(), self.value());
            if !is_special(&key) && keys.insert(key.clone()) {
                metadata.push((key, value));
            }
        }
        let mut tensors = vec![];
        let mut names = HashSet::new();
        for _ in 0..self.choices.below(6) {
            let tensor = self.tensor();
            if names.insert(tensor.name.clone()) {
                tensors.push(tensor);
            }
        }
        Description { metadata, tensors, ..Description::default() }
    }

    fn key(&mut self) -> Vec<u8> {
        if self.reach == Reach::Ggml && self.choices.one_in(4) {
            // ggml ends a key at its first NUL.
            return self.choices.bytes(12).into_iter().map(|byte| byte.max(1)).collect();
        }
        let segments = self.choices.between(1, 3);
        let segments: Vec<_> =
            (0..segments).map(|_| self.choices.word(KEY_CHARACTERS, 1, 8)).collect();
        segments.join(&b'.')
    }

    fn value(&mut self) -> OwnedValue {
        let levels = if self.reach == Reach::Spec { 4 } else { 1 };
        self.value_within(levels)
    }

    /// A value with at most so many levels of arrays.
    fn value_within(&mut self, levels: u64) -> OwnedValue {
        let value_type = self.choices.pick(&ValueType::ALL);
        if value_type == ValueType::Array {
            OwnedValue::Array(self.array(levels))
        } else {
            self.scalar(value_type)
        }
    }

    fn array(&mut self, levels: u64) -> OwnedArray {
        let element_type = self.choices.pick(&ValueType::ALL);
        let count = match self.choices.below(16) {
            // More numbers than get a field each.
            15 => self.choices.between(250, 260),
            _ => self.choices.below(6),
        };
        let nested = element_type == ValueType::Array;
        if nested && levels <= 1 {
            return OwnedArray::new(ValueType::U32, vec![]);
        }
        let elements = (0..count).map(|_| match nested {
            true => OwnedValue::Array(self.array(levels - 1)),
            false => self.scalar(element_type),
        });
        OwnedArray::new(element_type, elements.collect())
    }

    /// A number, bool or string; every bit pattern.
    fn scalar(&mut self, value_type: ValueType) -> OwnedValue {
        let bits = match value_type {
            ValueType::String | ValueType::Array => 0,
            _ => self.choices.bits(),
        };
        match value_type {
            ValueType::U8 => OwnedValue::U8(bits as u8),
            ValueType::I8 => OwnedValue::I8(bits as i8),
            ValueType::U16 => OwnedValue::U16(bits as u16),
            ValueType::I16 => OwnedValue::I16(bits as i16),
            ValueType::U32 => OwnedValue::U32(bits as u32),
            ValueType::I32 => OwnedValue::I32(bits as i32),
            ValueType::F32 => OwnedValue::F32(f32::from_bits(bits as u32)),
            ValueType::Bool => OwnedValue::Bool(bits & 1 == 1),
            ValueType::U64 => OwnedValue::U64(bits),
            ValueType::I64 => OwnedValue::I64(bits as i64),
            ValueType::F64 => OwnedValue::F64(f64::from_bits(bits)),
            ValueType::String | ValueType::Array => OwnedValue::String(self.text()),
        }
    }

    fn text(&mut self) -> Vec<u8> {
        // Also lengths around those that have a high bit in one of their bytes.
        let len = match self.choices.below(12) {
            10 => self.choices.between(126, 130),
            11 => self.choices.between(254, 257),
            _ => self.choices.below(12),
        };
        let bytes = self.choices.bytes(len as usize);
        if self.reach == Reach::Ggml && self.choices.one_in(4) {
            return bytes;
        }
        match String::from_utf8(bytes) {
            Ok(text) => text.into_bytes(),
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes(),
        }
    }

    fn tensor(&mut self) -> TensorDescription {
        let name = match self.choices.below(8) {
            6 => self.choices.word(NAME_CHARACTERS, 60, 63),
            7 => cut_to(self.text(), 63),
            _ => {
                let block = self.choices.below(4);
                let part = self.choices.word(NAME_CHARACTERS, 1, 10);
                [format!("blk.{block}.").into_bytes(), part].concat()
            }
        };
        let types: Vec<&TensorType> =
            TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed).collect();
        let tensor_type = self.choices.pick(&types);
        let mut dims = vec![self.choices.below(3) * u64::from(tensor_type.block_len)];
        for _ in 0..self.choices.below(4) {
            dims.push(self.choices.below(4));
        }
        if !tensor_type.is_quantized() && self.choices.one_in(8) {
            dims.clear();
        }
        let mut tensor = TensorDescription::zeros("", tensor_type, &dims);
        tensor.name = name;
        if self.choices.one_in(2) {
            let first = self.choices.bits() as u8;
            let bytes = (0..tensor.data.len()).map(|i| first.wrapping_add(i as u8));
            tensor.data = Data::Bytes(bytes.collect());
        }
        tensor
    }

    fn huge(&mut self) -> Description {
        let mut description = self.anything();
        let types: Vec<&TensorType> =
            TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed).collect();
        for index in 0..self.choices.between(1, 4) {
            let tensor_type = self.choices.pick(&types);
            let rows = self.choices.between(1, 1 << 20);
            let row = self.choices.between(1, 16) * 256;
            let name = format!("huge.{index}.weight");
            description.tensors.push(TensorDescription::zeros(&name, tensor_type, &[row, rows]));
        }
        description
    }

    /// The keys and tensors that llama.cpp's converter writes, of a model of any small size; with
    /// experts, if there are any.
    fn llama(&mut self, experts: u64) -> Description {
        let blocks = self.choices.between(1, 4);
        let heads = self.choices.between(1, 4);
        let kv_heads = self.choices.pick(&[1, heads]);
        let head_len = self.choices.pick(&[64, 128]);
        let [model, kv] = [heads, kv_heads].map(|heads| heads * head_len);
        let feed_forward = 256 * self.choices.between(1, 3);

        let mut metadata = vec![];
        let mut add = |key: &str, value: OwnedValue| metadata.push((key.into(), value));
        add("general.architecture", "llama".into());
        add("general.type", "model".into());
        add("general.file_type", 7.into());
        add("general.quantization_version", 2.into());
        add("llama.block_count", (blocks as u32).into());
        add("llama.context_length", 2048.into());
        add("llama.embedding_length", (model as u32).into());
        add("llama.feed_forward_length", (feed_forward as u32).into());
        add("llama.attention.head_count", (heads as u32).into());
        add("llama.attention.head_count_kv", (kv_heads as u32).into());
        add("llama.attention.layer_norm_rms_epsilon", OwnedValue::F32(1e-5));
        add("llama.rope.dimension_count", (head_len as u32).into());
        add("llama.rope.freq_base", OwnedValue::F32(1e4));
        if experts > 0 {
            add("llama.expert_count", (experts as u32).into());
            add("llama.expert_used_count", 2.into());
        }
        let vocabulary = self.tokenizer(&mut metadata);

        let f32 = TensorType::by_name("F32").expect("a type of the table");
        let names = ["F16", "BF16", "Q4_0", "Q8_0", "Q4_K", "Q6_K", "MXFP4"];
        let weights = self.choices.pick(&names);
        let mut weights = TensorType::by_name(weights).expect("a type of the table");
        // As a quantizer does with rows that are no whole number of blocks.
        if [model, feed_forward].iter().any(|row| !row.is_multiple_of(weights.block_len.into())) {
            weights = TensorType::by_name("Q8_0").expect("a type of the table");
        }
        let mut tensors = vec![];
        let mut add = |name: String, tensor_type, dims: &[u64]| {
            tensors.push(TensorDescription::zeros(&name, tensor_type, dims));
        };
        add("token_embd.weight".into(), weights, &[model, vocabulary]);
        for block in 0..blocks {
            let name = |part: &str| format!("blk.{block}.{part}.weight");
            add(name("attn_norm"), f32, &[model]);
            add(name("attn_q"), weights, &[model, model]);
            add(name("attn_k"), weights, &[model, kv]);
            add(name("attn_v"), weights, &[model, kv]);
            add(name("attn_output"), weights, &[model, model]);
            add(name("ffn_norm"), f32, &[model]);
            let parts = [("gate", model, feed_forward), ("down", feed_forward, model)];
            let parts = parts.into_iter().chain([("up", model, feed_forward)]);
            if experts > 0 {
                add(name("ffn_gate_inp"), f32, &[model, experts]);
            }
            for (part, from, to) in parts {
                match experts {
                    0 => add(name(&format!("ffn_{part}")), weights, &[from, to]),
                    _ => add(name(&format!("ffn_{part}_exps")), weights, &[from, to, experts]),
                }
            }
        }
        add("output_norm.weight".into(), f32, &[model]);
        if self.choices.one_in(2) {
            add("output.weight".into(), weights, &[model, vocabulary]);
        }
        Description { metadata, tensors, ..Description::default() }
    }

    /// Adds a tokenizer; how many tokens it has.
    fn tokenizer(&mut self, metadata: &mut Vec<(Vec<u8>, OwnedValue)>) -> u64 {
        let count = self.choices.between(3, 64);
        let mut tokens: Vec<Vec<u8>> =
            ["<unk>", "<s>", "</s>"].map(|token| token.as_bytes().to_vec()).into();
        tokens.extend((3..count).map(|i| format!("▁{i}").into_bytes()));
        let texts = |texts: Vec<Vec<u8>>| {
            let texts = texts.into_iter().map(OwnedValue::String).collect();
            OwnedValue::Array(OwnedArray::new(ValueType::String, texts))
        };
        let scores = (0..count).map(|i| OwnedValue::F32(-(i as f32))).collect();
        let types = (0..count).map(|i| OwnedValue::I32(if i < 3 { 3 } else { 1 })).collect();
        let entries: [(&str, OwnedValue); 6] = [
            ("tokenizer.ggml.model", "llama".into()),
            ("tokenizer.ggml.tokens", texts(tokens)),
            ("tokenizer.ggml.scores", OwnedValue::Array(OwnedArray::new(ValueType::F32, scores))),
            (
                "tokenizer.ggml.token_type",
                OwnedValue::Array(OwnedArray::new(ValueType::I32, types)),
            ),
            ("tokenizer.ggml.bos_token_id", 1.into()),
            ("tokenizer.ggml.eos_token_id", 2.into()),
        ];
        metadata.extend(entries.map(|(key, value)| (key.into(), value)));
        count
    }
}

/// Whether rules look at what a file has under this key.
pub(crate) fn is_special(key: &[u8]) -> bool {
    const KEYS: [&[u8]; 5] = [
        b"general.architecture",
        b"general.alignment",
        b"general.quantization_version",
        b"general.file_type",
        b"tokenizer.ggml.separator_token_id",
    ];
    KEYS.contains(&key) || key.starts_with(b"split.")
}

/// The start of a text, of so many bytes at most; whole characters, if it has whole characters.
fn cut_to(mut text: Vec<u8>, most: usize) -> Vec<u8> {
    let mut end = most.min(text.len());
    while end < text.len() && end > 0 && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    text.truncate(end);
    text
}
