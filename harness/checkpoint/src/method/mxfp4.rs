//! MXFP4 of gpt-oss: packed, fused experts.

use super::fp8::skipped;
use super::{Dim, EXPERTS, Field, Kind, Layout, Method, OUT, Presence, TensorRule, Term};
use crate::dtype::Dtype;
use crate::packing::PackedLayout;
use crate::scheme::{Declaration, Scheme};

pub(super) static METHOD: Method = Method {
    name: "mxfp4",
    title: "MXFP4 of gpt-oss: floats of 4 bits, a power of two for 32 of them, all experts in one",
    source: "transformers 5.24.0 integrations/mxfp4.py; vllm 0.33.0 mxfp4.py and models/gpt_oss.py",
    fields: &[
        Field::new("modules_to_not_convert", Kind::Texts, "modules that are not quantized"),
        Field::new("dequantize", Kind::Bool, "whether a loader makes BF16 of it"),
    ],
    layouts: &[&GPT_OSS],
    declare: |fields| Declaration {
        entries: skipped(fields, "modules_to_not_convert"),
        scheme: Some(Scheme::of(&GPT_OSS)),
        is_complete: false,
    },
};

pub(super) static GPT_OSS: Layout = Layout {
    name: "gpt-oss-mxfp4",
    packed: PackedLayout::GptOss,
    tensors: &[
        TensorRule::new(
            "_blocks",
            &[Dtype::U8],
            &[EXPERTS, OUT, Dim::ceil(&[Term::In], &[Term::Num(32)]), Dim::of(&[Term::Num(16)])],
            "codes of 32 numbers in 16 bytes",
        ),
        TensorRule::new(
            "_scales",
            &[Dtype::U8],
            &[EXPERTS, OUT, Dim::ceil(&[Term::In], &[Term::Num(32)])],
            "exponents, with a bias of 127",
        ),
        TensorRule::new(
            "_bias",
            &[Dtype::BF16, Dtype::F16, Dtype::F32],
            &[EXPERTS, OUT],
            "the bias of each expert",
        )
        .when(Presence::Optional),
    ],
    packing: "two codes in a byte, the even one in the low nibble; rows of gate_up_proj are gate and up \
              in turn",
    zero_point: "none",
    value: "e2m1(code) * 2^(scale - 127)",
    bits: &[4],
    groups: &[32],
};
