//! What a little of the values tells: zero points, groups, scales, stated shapes.

use serde_json::Value as Json;

use crate::checkpoint::Checkpoint;
use crate::dtype::Dtype;
use crate::files::Files;
use crate::finding::Finding;
use crate::fit::Weight;
use crate::judge::QuantizedModule;
use crate::module::Module;
use crate::rule;
use crate::scheme::{Group, Scheme};

/// As much of a tensor as is looked at.
const LOOKED_AT: u64 = 1 << 16;

/// The tensors that hold scales.
const SCALES: [&str; 9] = [
    ".scales",
    ".weight_scale",
    ".weight_scale_inv",
    ".weight_scale_2",
    ".weight_global_scale",
    ".SCB",
    ".weight.absmax",
    ".weight.nested_absmax",
    "_scales",
];

/// What a file states of a module: `weight_shape` of compressed-tensors, `quant_state` of bitsandbytes.
#[derive(Debug, Default)]
pub(crate) struct Stated {
    /// The weight's shape.
    pub(crate) weight: Weight,
    /// How many numbers share a scale.
    pub(crate) block_size: Option<u64>,
    /// The tensor that says so.
    pub(crate) tensor: Option<String>,
    /// It cannot be read.
    pub(crate) fault: Option<String>,
}

impl Stated {
    /// Whether a shape is stated that is another.
    pub(crate) fn disagrees(&self, weight: Weight) -> bool {
        let of = |weight: Weight| weight.out_features.zip(weight.in_features);
        of(self.weight).zip(of(weight)).is_some_and(|(stated, weight)| stated != weight)
    }
}

/// Reads what a file states.
pub(crate) fn stated<F: Files>(checkpoint: &Checkpoint<F>, module: &Module<'_>) -> Stated {
    let mut stated = Stated::default();
    let suffixes = [
        ".weight_shape",
        ".weight.quant_state.bitsandbytes__nf4",
        ".weight.quant_state.bitsandbytes__fp4",
    ];
    let Some(tensor) = suffixes.iter().find_map(|suffix| module.tensor(suffix)) else {
        return stated;
    };
    stated.tensor = Some(tensor.name.clone());
    let Ok(bytes) = checkpoint.read_part(&tensor.name, 0, LOOKED_AT) else { return stated };
    let shape: Option<Vec<u64>> = if tensor.name.ends_with(".weight_shape") {
        let numbers = integers(tensor.dtype, &bytes).into_iter();
        numbers.map(|number| u64::try_from(number).ok()).collect()
    } else {
        match serde_json::from_slice::<Json>(&bytes) {
            Ok(state) => {
                stated.block_size = state.get("blocksize").and_then(Json::as_u64);
                let shape = state.get("shape").and_then(Json::as_array);
                shape.and_then(|shape| shape.iter().map(Json::as_u64).collect())
            }
            Err(error) => {
                stated.fault = Some(error.to_string());
                return stated;
            }
        }
    };
    match shape.as_deref() {
        Some([out_features, in_features]) => {
            stated.weight.out_features = Some(*out_features);
            stated.weight.in_features = Some(*in_features);
        }
        _ => stated.fault = Some("no shape of two dimensions".into()),
    }
    stated
}

/// Little-endian integers of a type; none if it has none.
fn integers(dtype: Dtype, bytes: &[u8]) -> Vec<i64> {
    match dtype.name {
        "I64" => bytes.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect(),
        "I32" => bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect(),
        _ => Vec::new(),
    }
}

/// The 32-bit words of a tensor's beginning.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
}

/// Judges the values of a module whose shapes are right.
pub(crate) fn judge<F: Files>(
    checkpoint: &Checkpoint<F>,
    module: &QuantizedModule,
    scheme: &Scheme,
    push: &mut dyn FnMut(Finding),
) {
    let read = |suffix: &str| {
        let name = module.tensor(suffix)?;
        Some((name, checkpoint.read_part(name, 0, LOOKED_AT).ok()?))
    };
    if module.layout.name == "gptq" {
        if let Some((name, bytes)) = read(".qzeros") {
            zero_points(module, scheme, name, &bytes, push);
        }
        if let Some((name, bytes)) = read(".g_idx") {
            groups(module, scheme, name, &bytes, push);
        }
    }
    for suffix in SCALES {
        let Some((name, bytes)) = read(suffix) else { continue };
        let dtype = checkpoint.tensor(name).map(|tensor| tensor.dtype);
        // Bytes of exponents, but for bitsandbytes, where they are codes of scales.
        let dtype = match dtype {
            Some(Dtype::U8) if suffix != ".weight.absmax" => Some(Dtype::F8_E8M0),
            other => other,
        };
        if let Some(place) = dtype.and_then(|dtype| not_finite(dtype, &bytes)) {
            let finding = Finding::new(
                &rule::METHOD_025,
                format!("a number that is not finite, at element {place}"),
                "finite numbers",
            );
            push(finding.of_module(module.name.clone()).of_tensor(name));
        }
    }
}

/// The first number that is NaN or infinite.
fn not_finite(dtype: Dtype, bytes: &[u8]) -> Option<usize> {
    let words = bytes.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word));
    match dtype.name {
        "F16" => words.into_iter().position(|word| word & 0x7c00 == 0x7c00),
        "BF16" => words.into_iter().position(|word| word & 0x7f80 == 0x7f80),
        "F32" => self::words(bytes).position(|word| word & 0x7f80_0000 == 0x7f80_0000),
        // e4m3fn has no infinity, and NaN in all ones.
        "F8_E4M3" => bytes.iter().position(|byte| byte & 0x7f == 0x7f),
        "F8_E8M0" => bytes.iter().position(|byte| *byte == 0xff),
        _ => None,
    }
}

/// Whether symmetric zero points are those of the declared version.
fn zero_points(
    module: &QuantizedModule,
    scheme: &Scheme,
    name: &str,
    bytes: &[u8],
    push: &mut dyn FnMut(Finding),
) {
    // The middle of the codes less one, and the middle, in each field of words that repeat.
    let (less, middle): (&[u32], &[u32]) = match module.bits {
        2 => (&[0x5555_5555], &[0xaaaa_aaaa]),
        3 => (&[0xdb6d_b6db, 0xb6db_6db6, 0x6db6_db6d], &[0x2492_4924, 0x4924_9249, 0x9249_2492]),
        4 => (&[0x7777_7777], &[0x8888_8888]),
        8 => (&[0x7f7f_7f7f], &[0x8080_8080]),
        _ => return,
    };
    if scheme.symmetric != Some(true) {
        return;
    }
    let (declared, expected, other, version) = match scheme.zero_is_plain {
        true => ("gptq_v2", middle, less, "gptq (v1)"),
        false => ("gptq (v1)", less, middle, "gptq_v2"),
    };
    let mut places = words(bytes).zip(expected.iter().zip(other).cycle());
    let Some((word, (expected, other))) = places.find(|(word, (expected, _))| word != *expected)
    else {
        return;
    };
    let what = if word == *other {
        format!("{word:#010x}, which is how {version} stores the middle")
    } else {
        format!("{word:#010x}, which is not the middle in each field")
    };
    let finding = Finding::new(
        &rule::METHOD_016,
        what,
        format!("{expected:#010x}: symmetric codes of {} bits in {declared}", module.bits),
    );
    push(
        finding
            .of_module(module.name.clone())
            .of_field("quantization_config.checkpoint_format")
            .of_tensor(name),
    );
}

/// Whether `g_idx` names groups that there are, in order unless declared otherwise.
fn groups(
    module: &QuantizedModule,
    scheme: &Scheme,
    name: &str,
    bytes: &[u8],
    push: &mut dyn FnMut(Finding),
) {
    let Some(in_features) = module.in_features else { return };
    let size = match module.group {
        Group::Size(size) => size,
        Group::Row => in_features,
    };
    if size == 0 {
        return;
    }
    let count = in_features.div_ceil(size);
    let mut out_of_order = None;
    for (place, group) in (0u64..).zip(bytes.as_chunks::<4>().0) {
        let group = i64::from(i32::from_le_bytes(*group));
        let known = u64::try_from(group).ok().filter(|group| *group < count);
        let Some(group) = known else {
            let finding = Finding::new(
                &rule::METHOD_017,
                format!("group {group} of input {place}"),
                format!("one of {count} groups"),
            );
            push(finding.of_module(module.name.clone()).of_tensor(name));
            return;
        };
        if Some(group) != place.checked_div(size) && out_of_order.is_none() {
            out_of_order = Some((place, group));
        }
    }
    if let Some((place, group)) = out_of_order
        && scheme.act_order == Some(false)
    {
        let finding = Finding::new(
            &rule::METHOD_017,
            format!("group {group} of input {place}, with desc_act false"),
            format!("group {}, or desc_act true", place.checked_div(size).unwrap_or_default()),
        );
        push(finding.of_module(module.name.clone()).of_tensor(name));
    }
}
