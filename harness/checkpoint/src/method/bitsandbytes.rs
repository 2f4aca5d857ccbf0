//! bitsandbytes: nf4, fp4 and int8.

use super::fp8::skipped;
use super::{
    ANY, Dim, FLOATS, Field, IN, Kind, Layout, Method, ONE, OUT, Presence, TensorRule, Term,
};
use crate::config::Fields;
use crate::dtype::Dtype;
use crate::finding::Finding;
use crate::packing::PackedLayout;
use crate::rule;
use crate::scheme::{Declaration, Group, Scheme};

pub(super) static METHOD: Method = Method {
    name: "bitsandbytes",
    title: "bitsandbytes: 4-bit codes into a table, or integers of 8 bits",
    source: "bitsandbytes 0.50.2; transformers 5.24.0 BitsAndBytesConfig",
    fields: &[
        Field::new("load_in_4bit", Kind::Bool, "codes of 4 bits").or(&["_load_in_4bit"]),
        Field::new("load_in_8bit", Kind::Bool, "integers of 8 bits").or(&["_load_in_8bit"]),
        Field::new("_load_in_4bit", Kind::Bool, "the same again"),
        Field::new("_load_in_8bit", Kind::Bool, "the same again"),
        Field::new("bnb_4bit_quant_type", Kind::Word(&["nf4", "fp4"]), "the table"),
        Field::new("bnb_4bit_use_double_quant", Kind::Bool, "whether scales are quantized, too"),
        Field::new(
            "bnb_4bit_quant_storage",
            Kind::Word(&["uint8", "int8", "float16", "bfloat16", "float32", "float64"]),
            "what codes are packed into",
        ),
        Field::new("bnb_4bit_compute_dtype", Kind::Text, "what is computed in"),
        Field::new("llm_int8_threshold", Kind::Number(0.0, f64::MAX), "of the kernel"),
        Field::new("llm_int8_skip_modules", Kind::Texts, "modules that are not quantized"),
        Field::new("llm_int8_enable_fp32_cpu_offload", Kind::Bool, "of the loader"),
        Field::new("llm_int8_has_fp16_weight", Kind::Bool, "of the kernel"),
    ],
    layouts: &[&NF4, &FP4, &INT8],
    declare,
};

/// What the tensors of both tables have in common.
macro_rules! four_bits {
    ($name:literal, $state:literal, $value:literal) => {
        Layout {
            name: $name,
            packed: PackedLayout::Bnb4,
            tensors: &[
                TensorRule::new(
                    ".weight",
                    &[Dtype::U8],
                    &[Dim::ceil(&[Term::Elements], &[Term::Num(2)]), ONE],
                    "codes, the weight flattened",
                ),
                TensorRule::new(
                    ".weight.absmax",
                    &[Dtype::F32, Dtype::U8],
                    &[Dim::ceil(&[Term::Elements], &[Term::Group])],
                    "the largest number of each block; U8 if quantized itself",
                ),
                TensorRule::new(
                    ".weight.quant_map",
                    &[Dtype::F32],
                    &[Dim::of(&[Term::Num(16)])],
                    "the table",
                ),
                TensorRule::new(
                    $state,
                    &[Dtype::U8],
                    &[ANY],
                    "JSON: type, block size, dtype, shape",
                ),
                TensorRule::new(
                    ".weight.nested_absmax",
                    &[Dtype::F32],
                    &[Dim::ceil(&[Term::Elements], &[Term::Group, Term::Num(256)])],
                    "the largest of 256 scales",
                )
                .when(Presence::Optional),
                TensorRule::new(
                    ".weight.nested_quant_map",
                    &[Dtype::F32],
                    &[Dim::of(&[Term::Num(256)])],
                    "the table of scales",
                )
                .when(Presence::Optional),
                super::BIAS,
            ],
            packing: "two codes in a byte, the first in the high nibble",
            zero_point: "none",
            value: $value,
            bits: &[4],
            groups: &[64],
        }
    };
}

static NF4: Layout = four_bits!(
    "bnb-nf4",
    ".weight.quant_state.bitsandbytes__nf4",
    "quant_map[code] * absmax[place / blocksize]"
);
static FP4: Layout = four_bits!(
    "bnb-fp4",
    ".weight.quant_state.bitsandbytes__fp4",
    "quant_map[code] * absmax[place / blocksize]"
);

static INT8: Layout = Layout {
    name: "bnb-int8",
    packed: PackedLayout::BnbInt8,
    tensors: &[
        TensorRule::new(".weight", &[Dtype::I8], &[OUT, IN], "integers"),
        TensorRule::new(".SCB", &[Dtype::F32], &[OUT], "the largest number of each row"),
        TensorRule::new(".weight_format", &[Dtype::U8], &[], "how a kernel wants it")
            .when(Presence::Optional),
        TensorRule::new(".bias", FLOATS, &[OUT], "the bias").when(Presence::Optional),
    ],
    packing: "a byte for each number, row by row",
    zero_point: "none",
    value: "weight[o, i] * SCB[o] / 127",
    bits: &[8],
    groups: &[],
};

fn declare(fields: &mut Fields<'_>) -> Declaration {
    let four = fields.bool("load_in_4bit").unwrap_or(false);
    let eight = fields.bool("load_in_8bit").unwrap_or(false);
    if four == eight {
        let found = if four { "both 4 and 8 bits" } else { "neither 4 nor 8 bits" };
        fields.report(
            "load_in_4bit",
            Finding::new(&rule::METHOD_006, found, "one of load_in_4bit and load_in_8bit"),
        );
    }
    let layout = match fields.word("bnb_4bit_quant_type").as_deref() {
        _ if !four => &INT8,
        Some("nf4") => &NF4,
        _ => &FP4,
    };
    let mut scheme = Scheme::of(layout);
    if !four {
        scheme.group = Group::Row;
    }
    let entries = skipped(fields, "llm_int8_skip_modules");
    Declaration { entries, scheme: Some(scheme), is_complete: false }
}
