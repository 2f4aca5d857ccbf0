//! Weights that the real tools packed, against the numbers that they unpack: `packing/vectors.json`,
//! made by `packing/make.py`, which names the tools.

use std::collections::BTreeMap;
use std::fmt::Write;

use gguf_assay_checkpoint::Dtype;
use gguf_assay_checkpoint::packing::{
    PackedLayout, Packing, Tensor, codes, explain, pack, pack_codes, quantized, unpack,
};
use half::bf16;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Clone, Deserialize)]
struct Vector {
    name: String,
    tool: String,
    packing: PackingFields,
    /// Out and in.
    shape: [u64; 2],
    tensors: BTreeMap<String, TensorFields>,
    numbers: Numbers,
}

#[derive(Clone, Deserialize)]
struct PackingFields {
    layout: String,
    bits: u32,
    group_size: Option<u64>,
    symmetric: bool,
    block: Option<[u64; 2]>,
}

#[derive(Clone, Deserialize)]
struct TensorFields {
    dtype: String,
    shape: Vec<u64>,
    bytes: String,
}

#[derive(Clone, Deserialize)]
struct Numbers {
    dtype: String,
    first_row: String,
    sha256: String,
    /// The rule by which alone the tool's own reader gets them.
    rule: Option<String>,
}

fn main() {
    let arguments = Arguments::from_args();
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("packing/vectors.json")).unwrap();
    let trials = vectors.into_iter().flat_map(|vector| {
        let again = vector.clone();
        let name = |what| format!("{}::{what}", vector.name);
        [
            Trial::test(name("numbers"), move || numbers(&again)),
            Trial::test(name("packed again"), move || packed_again(&vector)),
        ]
    });
    let trials = trials.collect();
    libtest_mimic::run(&arguments, trials).exit();
}

impl Vector {
    fn packing(&self) -> Packing {
        let PackingFields { layout, bits, group_size, symmetric, block } = &self.packing;
        let layouts = [
            PackedLayout::Gptq { v2: false },
            PackedLayout::Gptq { v2: true },
            PackedLayout::AwqGemm,
            PackedLayout::AwqGemv,
            PackedLayout::AwqGemvFast,
            PackedLayout::AwqMarlin,
            PackedLayout::CompressedPack,
            PackedLayout::CompressedInt,
            PackedLayout::Float8,
            PackedLayout::Nvfp4 { divide: true },
            PackedLayout::Mxfp4,
            PackedLayout::Bnb4,
            PackedLayout::BnbInt8,
            PackedLayout::GptOss,
        ];
        Packing {
            layout: layouts.into_iter().find(|known| known.name() == layout).unwrap(),
            bits: *bits,
            group_size: *group_size,
            symmetric: *symmetric,
            block: *block,
        }
    }

    fn tensors(&self) -> BTreeMap<&str, Tensor<'static>> {
        let tensor = |fields: &TensorFields| {
            let TensorFields { dtype, shape, bytes } = fields;
            Tensor::new(Dtype::find(dtype).unwrap(), shape, from_hex(bytes))
        };
        self.tensors.iter().map(|(name, fields)| (name.as_str(), tensor(fields))).collect()
    }
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Numbers in the type that the tool gives.
fn rounded(numbers: &[f32], dtype: &str) -> Vec<u8> {
    let numbers = numbers.iter().map(|n| if n.is_nan() { f32::NAN } else { *n });
    match dtype {
        "F32" => numbers.flat_map(f32::to_le_bytes).collect(),
        "BF16" => numbers.flat_map(|number| bf16::from_f32(number).to_le_bytes()).collect(),
        _ => panic!("{dtype}"),
    }
}

fn numbers(vector: &Vector) -> Result<(), Failed> {
    let Numbers { dtype, first_row, sha256, rule } = &vector.numbers;
    let (packing, [output, input], tensors) = (vector.packing(), vector.shape, vector.tensors());
    let numbers = unpack(&packing, output, input, &tensors)?;
    let agrees = to_hex(&Sha256::digest(rounded(&numbers, dtype))) == *sha256;
    if let Some(rule) = rule {
        assert!(!agrees, "{}: read by the declared rule after all", vector.tool);
        // The numbers that were packed, as the same tool has them in version 2.
        let mut v2 = tensors.clone();
        let words = v2["qzeros"].bytes.chunks(4).flat_map(|word| {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            word.wrapping_add(0x1111_1111).to_le_bytes()
        });
        let words: Vec<u8> = words.collect();
        v2.insert("qzeros", Tensor::new(Dtype::I32, &tensors["qzeros"].shape, words));
        let packing = Packing { layout: PackedLayout::Gptq { v2: true }, ..packing };
        let source = unpack(&packing, output, input, &v2)?;
        assert_eq!(to_hex(&Sha256::digest(rounded(&source, dtype))), *sha256);
        let candidates = explain(&vector.packing(), output, input, &tensors, &source)?;
        assert_eq!((candidates[0].rule, candidates[0].error), (rule.as_str(), 0.0));
        return Ok(());
    }
    let row = numbers.get(..usize::try_from(input)?).unwrap();
    assert_eq!(to_hex(&rounded(row, dtype)), *first_row, "{}: the first row", vector.tool);
    assert!(agrees, "{}: rows after the first", vector.tool);
    Ok(())
}

fn packed_again(vector: &Vector) -> Result<(), Failed> {
    let (packing, [output, input], tensors) = (vector.packing(), vector.shape, vector.tensors());
    let again = match quantized(&packing, output, input, &tensors) {
        Ok(quantized) => pack(&packing, &quantized)?,
        Err(_) => {
            let codes = codes(&packing, output, input, &tensors)?;
            let dtype = tensors.get("weight").map_or(Dtype::U8, |weight| weight.dtype);
            BTreeMap::from([pack_codes(&packing, dtype, output, input, &codes)?])
        }
    };
    for (name, tensor) in &again {
        let expected = &tensors[name];
        // One scale of all is written as one of each row.
        if expected.shape != [1] {
            assert_eq!(tensor.shape, expected.shape, "{name}");
            assert_eq!(to_hex(&tensor.bytes), to_hex(&expected.bytes), "{name}");
        }
    }
    Ok(())
}
