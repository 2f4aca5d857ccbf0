//! FP8: per tensor, in blocks, and as fbgemm has it.

use super::{
    ANY, BIAS, Dim, Field, IN, Kind, Layout, Method, ONE, OUT, Presence, TensorRule, Term,
};
use crate::config::Fields;
use crate::dtype::Dtype;
use crate::finding::Finding;
use crate::packing::PackedLayout;
use crate::rule;
use crate::scheme::{Declaration, Entry, Pattern, Scheme};

use super::vllm;

pub(super) static METHOD: Method = Method {
    name: "fp8",
    title: "FP8: floats of 8 bits, a scale for each tensor or block",
    source: "vllm 0.33.0 fp8.py; transformers 5.24.0 integrations/finegrained_fp8.py",
    fields: &[
        Field::new(
            "activation_scheme",
            Kind::Word(&["dynamic", "static"]),
            "when inputs are scaled",
        ),
        Field::new("weight_block_size", Kind::Block, "rows and columns that share a scale"),
        Field::new("fmt", Kind::Word(&["e4m3", "e5m2", "float8_e4m3fn"]), "the format of a number"),
        Field::new("scale_fmt", Kind::Word(&["float", "ue8m0"]), "the format of a scale"),
        Field::new("expert_dtype", Kind::Word(&["fp8", "fp4"]), "the format of experts"),
        Field::new("modules_to_not_convert", Kind::Texts, "modules that are not quantized")
            .or(&["ignored_layers"]),
        Field::new("dequantize", Kind::Bool, "whether a loader makes BF16 of it"),
        Field::new("kv_cache_scheme", Kind::Any, "of the cache"),
        Field::new("modules_to_convert", Kind::Texts, "modules that are quantized"),
        Field::new("weight_per_tensor", Kind::Any, "of the quantizer"),
        Field::new("act_per_tensor", Kind::Any, "of the quantizer"),
    ],
    layouts: &[&BLOCK, &TENSOR, &TENSOR_INV],
    declare,
};

pub(super) static FBGEMM: Method = Method {
    name: "fbgemm_fp8",
    title: "FP8 as fbgemm has it: a scale for each row",
    source: "vllm 0.33.0 fbgemm_fp8.py; transformers 5.24.0 FbgemmFp8Config",
    fields: &[
        Field::new("activation_scale_ub", Kind::Number(0.0, f64::MAX), "the largest input"),
        Field::new("modules_to_not_convert", Kind::Texts, "modules that are not quantized"),
    ],
    layouts: &[&ROW],
    declare: |fields| {
        let entries = skipped(fields, "modules_to_not_convert");
        Declaration { entries, scheme: Some(Scheme::of(&ROW)), is_complete: false }
    },
};

/// The types of the weight itself.
const FP8: &[Dtype] = &[Dtype::F8_E4M3, Dtype::F8_E5M2];
const WEIGHT: TensorRule = TensorRule::new(".weight", FP8, &[OUT, IN], "numbers");
const SCALE: &[Dtype] = &[Dtype::F32, Dtype::BF16, Dtype::F16];
const PACKING: &str = "a byte for each number, row by row";
const NO_ZERO: &str = "none";

pub(super) static BLOCK: Layout = Layout {
    name: "fp8-block",
    packed: PackedLayout::Float8,
    tensors: &[
        WEIGHT,
        TensorRule::new(
            ".weight_scale_inv",
            &[Dtype::F32, Dtype::BF16, Dtype::F16, Dtype::F8_E8M0],
            &[Dim::ceil(&[Term::Out], &[Term::Rows]), Dim::ceil(&[Term::In], &[Term::Cols])],
            "scales, multiplied whatever the name says; blocks at the edges are partial",
        ),
        BIAS,
    ],
    packing: PACKING,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale_inv[o / rows, i / cols]",
    bits: &[8],
    groups: &[],
};

/// Scales of inputs, if they are static, under both names.
const INPUT_SCALE: TensorRule =
    TensorRule::new(".input_scale", SCALE, &[ANY], "that of inputs, if static")
        .when(Presence::Optional);
const ACTIVATION_SCALE: TensorRule =
    TensorRule::new(".activation_scale", SCALE, &[ANY], "that of inputs, if static")
        .when(Presence::Optional);

pub(super) static TENSOR: Layout = Layout {
    name: "fp8-tensor",
    packed: PackedLayout::Float8,
    tensors: &[
        WEIGHT,
        TensorRule::new(".weight_scale", SCALE, &[ONE], "the scale"),
        INPUT_SCALE,
        BIAS,
    ],
    packing: PACKING,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale",
    bits: &[8],
    groups: &[],
};

/// The same under the names of transformers.
static TENSOR_INV: Layout = Layout {
    name: "fp8-tensor-inv",
    packed: PackedLayout::Float8,
    tensors: &[
        WEIGHT,
        TensorRule::new(
            ".weight_scale_inv",
            SCALE,
            &[ONE],
            "the scale, multiplied whatever the name says",
        ),
        ACTIVATION_SCALE,
        BIAS,
    ],
    packing: PACKING,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale_inv",
    bits: &[8],
    groups: &[],
};

static ROW: Layout = Layout {
    name: "fp8-row",
    packed: PackedLayout::Float8,
    tensors: &[
        WEIGHT,
        TensorRule::new(".weight_scale", SCALE, &[OUT, ONE], "scales"),
        TensorRule::new(".input_scale_ub", SCALE, &[ANY], "the largest input")
            .when(Presence::Optional),
        BIAS,
    ],
    packing: PACKING,
    zero_point: NO_ZERO,
    value: "weight[o, i] * weight_scale[o]",
    bits: &[8],
    groups: &[],
};

/// Entries for modules that a list leaves out.
pub(super) fn skipped(fields: &Fields<'_>, name: &str) -> Vec<Entry> {
    let texts = fields.texts(name).into_iter().enumerate();
    texts
        .map(|(place, text)| Entry {
            field: format!("{name}[{place}]"),
            text: text.into(),
            pattern: Pattern::skipped(text),
            scheme: None,
        })
        .collect()
}

fn declare(fields: &mut Fields<'_>) -> Declaration {
    let block = fields.block("weight_block_size");
    let mut scheme = Scheme::of(if block.is_some() { &BLOCK } else { &TENSOR });
    if block.is_none() {
        scheme.layouts.push(&TENSOR_INV);
    }
    scheme.block = block;
    // Without the field, transformers takes blocks, and vLLM takes tensors.
    if fields.is_absent("weight_block_size") {
        scheme.layouts.push(&BLOCK);
        scheme.block = Some((128, 128));
    }
    if block.is_some() && fields.word("activation_scheme").as_deref() == Some("static") {
        let finding = Finding::new(&rule::METHOD_006, "static, with blocks", "dynamic").refused_by(
            &[vllm("The block-wise quantization only supports dynamic activation scheme")],
        );
        fields.report("activation_scheme", finding);
    }
    let entries = skipped(fields, "modules_to_not_convert");
    Declaration { entries, scheme: Some(scheme), is_complete: false }
}
