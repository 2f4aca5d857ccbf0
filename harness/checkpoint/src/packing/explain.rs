//! By which rule tensors give the numbers that they were made of.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::awq::GEMM_ORDER;
use super::{NotUnpacked, PackedLayout, Packing, Tensor, float8, unpack};
use crate::dtype::Dtype;

/// The mean of |a - b| over the mean of |b|. 0 if both are empty or all is 0; a NaN in either makes
/// it one, and so do lengths that differ.
pub fn relative_error(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::NAN;
    }
    let difference = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).abs();
    let differences: f64 = a.iter().zip(b).map(difference).sum();
    let size: f64 = b.iter().map(|b| f64::from(*b).abs()).sum();
    match differences / size {
        _ if differences == 0.0 => 0.0,
        error if error.is_nan() => f64::NAN, // without a sign, so that it is sorted last
        error => error,
    }
}

/// A rule and how far its numbers are from the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What it does otherwise than declared; `as declared` if nothing.
    pub rule: &'static str,
    /// [`relative_error`].
    pub error: f64,
}

type Altered<'a> = BTreeMap<&'a str, Tensor<'a>>;

/// A known mistake: what it is, and the tensors by which the right code makes it; false if it is none
/// of this layout's.
type Mistake = (&'static str, fn(&mut Packing, &mut Altered<'_>) -> bool);

/// The numbers by the declared rule and by the known wrong ones, the nearest to `source` first.
///
/// `source` is the weight before, [out, in] row by row.
///
/// # Errors
///
/// Those of [`unpack`] by the declared rule; a source of another length. Rules by which nothing can be
/// unpacked, or the very same numbers, are left out.
pub fn explain(
    packing: &Packing,
    out_features: u64,
    in_features: u64,
    tensors: &BTreeMap<&str, Tensor<'_>>,
    source: &[f32],
) -> Result<Vec<Candidate>, NotUnpacked> {
    let numbers = unpack(packing, out_features, in_features, tensors)?;
    if numbers.len() != source.len() {
        let expected = format!("{} of the source", source.len());
        return Err(NotUnpacked::new(format!("{} numbers", numbers.len()), expected));
    }
    let mut candidates = Vec::new();
    let mut add = |rule, numbers: &[f32]| {
        candidates.push(Candidate { rule, error: relative_error(numbers, source) });
    };
    add("as declared", &numbers);
    for (rule, alter) in MISTAKES {
        let mut packing = *packing;
        let mut altered: Altered<'_> = tensors
            .iter()
            .map(|(name, tensor)| {
                let Tensor { dtype, shape, bytes } = tensor;
                let bytes = Cow::Borrowed(bytes.as_ref());
                (*name, Tensor { dtype: *dtype, shape: shape.clone(), bytes })
            })
            .collect();
        if alter(&mut packing, &mut altered)
            && let Ok(other) = unpack(&packing, out_features, in_features, &altered)
            && other != numbers
        {
            add(rule, &other);
        }
    }
    if out_features == in_features
        && let Ok(size) = usize::try_from(in_features)
    {
        let at =
            |row: usize, col: usize| numbers.get(row * size + col).copied().unwrap_or_default();
        let transposed: Vec<f32> =
            (0..size).flat_map(|row| (0..size).map(move |col| at(col, row))).collect();
        add("transposed", &transposed);
    }
    candidates.sort_by(|a, b| a.error.total_cmp(&b.error));
    Ok(candidates)
}

const MISTAKES: &[Mistake] = &[
    ("zero points as stored, as in v2", |packing, _| {
        let v1 = packing.layout == PackedLayout::Gptq { v2: false };
        packing.layout = PackedLayout::Gptq { v2: true };
        v1
    }),
    ("zero points less one, as in v1", |packing, _| {
        let v2 = packing.layout == PackedLayout::Gptq { v2: true };
        packing.layout = PackedLayout::Gptq { v2: false };
        v2
    }),
    ("zero points less one in whole words, with carries", |packing, tensors| {
        let v1 = packing.layout == PackedLayout::Gptq { v2: false };
        packing.layout = PackedLayout::Gptq { v2: true };
        let ones = match packing.bits {
            2 => 0x5555_5555,
            4 => 0x1111_1111,
            8 => 0x0101_0101,
            _ => return false,
        };
        v1 && change_words(tensors, "qzeros", |word| word.wrapping_add(ones))
    }),
    ("all zero points the middle", |packing, tensors| match packing.layout {
        PackedLayout::Gptq { .. } => {
            packing.layout = PackedLayout::Gptq { v2: true };
            let middle = match packing.bits {
                2 => 0xAAAA_AAAA,
                4 => 0x8888_8888,
                8 => 0x8080_8080,
                _ => return false,
            };
            change_words(tensors, "qzeros", |_| middle)
        }
        PackedLayout::AwqGemm
        | PackedLayout::AwqGemv
        | PackedLayout::CompressedPack
        | PackedLayout::CompressedInt => !std::mem::replace(&mut packing.symmetric, true),
        _ => false,
    }),
    ("zero points one more", |packing, tensors| {
        let awq = matches!(packing.layout, PackedLayout::AwqGemm | PackedLayout::AwqGemv);
        awq && !packing.symmetric && change_words(tensors, "qzeros", add_one_to_nibbles)
            || packing.layout == PackedLayout::CompressedPack
                && packing.bits == 4
                && !packing.symmetric
                && change_words(tensors, "weight_zero_point", add_one_to_nibbles)
    }),
    ("all zero points 0", |packing, tensors| match packing.layout {
        PackedLayout::Gptq { .. } => {
            packing.layout = PackedLayout::Gptq { v2: true };
            change_words(tensors, "qzeros", |_| 0)
        }
        PackedLayout::AwqGemm => change_words(tensors, "qzeros", |_| 0),
        _ => false,
    }),
    ("codes as two's complement, without an offset", |packing, tensors| {
        // The sign bit the other way around is half of the codes more or less.
        packing.layout == PackedLayout::CompressedPack
            && packing.bits == 4
            && change_words(tensors, "weight_packed", |word| word ^ 0x8888_8888)
    }),
    ("the nibbles of a word in order", |packing, tensors| {
        packing.layout == PackedLayout::AwqGemm
            && change_words(tensors, "qweight", awq_order)
            && (packing.symmetric || change_words(tensors, "qzeros", awq_order))
    }),
    ("the nibbles of a word in AWQ's order", |packing, tensors| {
        matches!(packing.layout, PackedLayout::Gptq { .. } | PackedLayout::AwqGemv)
            && packing.bits == 4
            && change_words(tensors, "qweight", |word| nibble_order(word, &GEMM_ORDER))
    }),
    ("groups in order, without g_idx", |packing, tensors| {
        matches!(packing.layout, PackedLayout::Gptq { .. }) && tensors.remove("g_idx").is_some()
            || packing.layout == PackedLayout::CompressedPack
                && tensors.remove("weight_g_idx").is_some()
    }),
    ("the nibbles of a byte the other way around", |packing, tensors| {
        let name = match packing.layout {
            PackedLayout::Gptq { .. } | PackedLayout::AwqGemm | PackedLayout::AwqGemv
                if packing.bits == 4 =>
            {
                "qweight"
            }
            PackedLayout::CompressedPack if packing.bits == 4 => "weight_packed",
            PackedLayout::Nvfp4 { divide } => super::fp4::nvfp4_name(divide),
            PackedLayout::Mxfp4 => super::fp4::MXFP4_NAME,
            PackedLayout::Bnb4 => "weight",
            PackedLayout::GptOss => "blocks",
            _ => return false,
        };
        change_bytes(tensors, name, |bytes| bytes.iter_mut().for_each(|b| *b = b.rotate_left(4)))
    }),
    ("low nibbles the first half of a block, as in GGUF", |packing, tensors| {
        let name = match packing.layout {
            PackedLayout::Mxfp4 => super::fp4::MXFP4_NAME,
            PackedLayout::GptOss => "blocks",
            _ => return false,
        };
        change_bytes(tensors, name, |bytes| {
            for block in bytes.chunks_exact_mut(16) {
                let low = block.iter().map(|byte| byte & 0xF);
                let codes: Vec<u8> = low.chain(block.iter().map(|byte| byte >> 4)).collect();
                block.copy_from_slice(&super::fp4::join_nibbles(&codes));
            }
        })
    }),
    ("divided by the scale", |packing, tensors| {
        packing.layout == PackedLayout::Float8
            && float8::SCALES.iter().any(|name| change_numbers(tensors, name, |n| 1.0 / n))
    }),
    ("scales transposed", |packing, tensors| {
        let name = float8::SCALES.into_iter().find(|name| tensors.contains_key(name));
        let Some(tensor) = name.and_then(|name| tensors.get_mut(name)) else { return false };
        let [down, across] = *tensor.shape else { return false };
        if packing.layout != PackedLayout::Float8 || down != across || down < 2 {
            return false;
        }
        let numbers = tensor.numbers();
        let Ok(across) = usize::try_from(across) else { return false };
        let numbers = super::tensor::Grid::of(across, numbers).transposed().items;
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        *tensor = Tensor::new(Dtype::F32, &tensor.shape, bytes);
        true
    }),
    ("without scales", |packing, tensors| {
        packing.layout == PackedLayout::Float8
            && float8::SCALES.iter().any(|name| change_numbers(tensors, name, |_| 1.0))
    }),
    ("the other 8-bit floating point", |packing, tensors| {
        let Some(weight) = tensors.get_mut("weight") else { return false };
        weight.dtype = match weight.dtype {
            Dtype::F8_E4M3 => Dtype::F8_E5M2,
            _ => Dtype::F8_E4M3,
        };
        packing.layout == PackedLayout::Float8
    }),
    ("multiplied by the factor, as modelopt", |packing, tensors| {
        invert_factor(packing, tensors, true, "weight_global_scale")
    }),
    ("divided by the factor, as compressed-tensors", |packing, tensors| {
        invert_factor(packing, tensors, false, "weight_scale_2")
    }),
    ("integers times the largest number", |packing, tensors| {
        packing.layout == PackedLayout::BnbInt8
            && change_numbers(tensors, "SCB", |number| number * 127.0)
    }),
];

fn invert_factor(packing: &Packing, tensors: &mut Altered<'_>, divide: bool, factor: &str) -> bool {
    packing.layout == PackedLayout::Nvfp4 { divide }
        && change_numbers(tensors, factor, |number| 1.0 / number)
}

fn change_bytes(tensors: &mut Altered<'_>, name: &str, change: impl Fn(&mut [u8])) -> bool {
    let Some(tensor) = tensors.get_mut(name) else { return false };
    change(tensor.bytes.to_mut());
    true
}

fn change_words(tensors: &mut Altered<'_>, name: &str, change: impl Fn(u32) -> u32) -> bool {
    change_bytes(tensors, name, |bytes| {
        for chunk in bytes.as_chunks_mut::<4>().0 {
            *chunk = change(u32::from_le_bytes(*chunk)).to_le_bytes();
        }
    })
}

/// Numbers changed, as `f32`.
fn change_numbers(tensors: &mut Altered<'_>, name: &str, change: impl Fn(f32) -> f32) -> bool {
    let Some(tensor) = tensors.get_mut(name) else { return false };
    let numbers = tensor.numbers().into_iter();
    let bytes: Vec<u8> = numbers.flat_map(|number| change(number).to_le_bytes()).collect();
    *tensor = Tensor::new(Dtype::F32, &tensor.shape, bytes);
    true
}

fn add_one_to_nibbles(word: u32) -> u32 {
    (0..8).fold(0, |sum, place| {
        let nibble = (word >> (4 * place)).wrapping_add(1) & 0xF;
        sum | nibble << (4 * place)
    })
}

/// A word whose nibble at `order[i]` is that at i of another.
fn nibble_order(word: u32, order: &[usize; 8]) -> u32 {
    let places = order.iter().enumerate();
    places.fold(0, |sum, (from, to)| sum | (word >> (4 * from) & 0xF) << (4 * to))
}

/// A word of AWQ's that is read as one whose nibbles are in order.
fn awq_order(word: u32) -> u32 {
    let places = GEMM_ORDER.iter().enumerate();
    places.fold(0, |sum, (to, from)| sum | (word >> (4 * from) & 0xF) << (4 * to))
}
