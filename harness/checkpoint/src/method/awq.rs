//! AWQ, as autoawq and auto-round write it.

use super::{BIAS, FLOATS, Field, GROUPS, Kind, Layout, Method, OUT, Presence, TensorRule};
use super::{Dim, IN, Term, transformers, vllm};
use crate::config::Fields;
use crate::dtype::Dtype;
use crate::finding::Finding;
use crate::packing::PackedLayout;
use crate::rule;
use crate::scheme::{Declaration, Entry, Group, Pattern, Scheme};

pub(super) static METHOD: Method = Method {
    name: "awq",
    title: "AWQ: integers of 4 bits packed along the output",
    source: "autoawq 0.2.9 awq/modules/linear and awq/models/_config.py; vllm 0.33.0 auto_awq.py; \
             transformers 5.24.0 AwqConfig",
    fields: &[
        Field::new("bits", Kind::OneOf(&[4]), "the width of a code").or(&["w_bit"]).required(),
        Field::new("group_size", Kind::GroupSize, "codes that share a scale; -1: the whole input")
            .or(&["q_group_size"])
            .required(),
        Field::new("zero_point", Kind::Bool, "whether there are zero points"),
        Field::new("version", Kind::Word(VERSIONS), "how codes are packed"),
        Field::new("modules_to_not_convert", Kind::Texts, "modules that are not quantized"),
        Field::new("sym", Kind::Bool, "whether all zero points are the same"),
        Field::new("backend", Kind::Any, "of a kernel"),
        Field::new("format", Kind::Any, "the version, in transformers 5"),
        Field::new("do_fuse", Kind::Any, "of a kernel"),
        Field::new("fuse_max_seq_len", Kind::Any, "of a kernel"),
        Field::new("modules_to_fuse", Kind::Any, "of a kernel"),
        Field::new("exllama_config", Kind::Any, "of a kernel"),
        Field::new("desc_act", Kind::Any, "has no meaning here"),
        Field::new("lm_head", Kind::Bool, "whether the output layer is quantized"),
    ],
    layouts: &[&GEMM, &GEMV, &GEMV_FAST, &MARLIN],
    declare,
};

const VERSIONS: &[&str] = &["gemm", "gemv", "gemv_fast", "marlin", "llm-awq", "exllama", "ipex"];

/// Zero points, as codes less none.
const ZERO_POINT: &str = "stored as it is";
const VALUE: &str = "scales[i / group, o] * (code[i, o] - zero[i / group, o])";
const PACKED_OUT: Dim = Dim::ceil(&[Term::Out, Term::Bits], &[Term::Num(32)]);
const PACKED_IN: Dim = Dim::ceil(&[Term::In, Term::Bits], &[Term::Num(32)]);
const ZEROS: Dim = Dim::of(&[Term::ZerosWidth]);
const SCALES: Dim = Dim::of(&[Term::ZerosWidth, Term::Num(8)]);

pub(super) static GEMM: Layout = Layout {
    name: "awq-gemm",
    packed: PackedLayout::AwqGemm,
    tensors: &[
        TensorRule::new(
            ".qweight",
            &[Dtype::I32],
            &[IN, PACKED_OUT],
            "codes, packed along the output",
        ),
        TensorRule::new(
            ".qzeros",
            &[Dtype::I32],
            &[GROUPS, PACKED_OUT],
            "zero points, packed likewise",
        )
        .when(Presence::Asymmetric),
        TensorRule::new(".scales", FLOATS, &[GROUPS, OUT], "scales"),
        BIAS,
    ],
    packing: "nibble i of a word is of the column 8c + [0, 2, 4, 6, 1, 3, 5, 7][i]",
    zero_point: ZERO_POINT,
    value: VALUE,
    bits: &[4],
    groups: &[],
};

static GEMV: Layout = Layout {
    name: "awq-gemv",
    packed: PackedLayout::AwqGemv,
    tensors: &[
        TensorRule::new(
            ".qweight",
            &[Dtype::I32],
            &[OUT, PACKED_IN],
            "codes, packed along the input",
        ),
        TensorRule::new(
            ".qzeros",
            &[Dtype::I32],
            &[OUT, ZEROS],
            "zero points, packed along groups",
        ),
        TensorRule::new(
            ".scales",
            FLOATS,
            &[OUT, SCALES],
            "scales, of groups that are not there, too",
        ),
        BIAS,
    ],
    packing: "nibbles in order; zeros_width is ceil(groups / 8), a multiple of 2 for groups of 64, of 4 \
              for groups of 32",
    zero_point: ZERO_POINT,
    value: VALUE,
    bits: &[4],
    groups: &[],
};

static GEMV_FAST: Layout = Layout {
    name: "awq-gemv-fast",
    packed: PackedLayout::AwqGemvFast,
    tensors: &[
        TensorRule::new(
            ".qweight",
            &[Dtype::I16],
            &[Dim::ceil(&[Term::Out], &[Term::Num(4)]), IN],
            "codes of four rows, interleaved",
        ),
        TensorRule::new(".qzeros", FLOATS, &[SCALES, OUT], "zero points times scales, negative"),
        TensorRule::new(
            ".scales",
            FLOATS,
            &[SCALES, OUT],
            "scales, of groups that are not there, too",
        ),
        BIAS,
    ],
    packing: "four rows interleaved, with a stride of 64",
    zero_point: "stored as -scale * zero, a float",
    value: "code[o, i] * scales[i / group, o] + qzeros[i / group, o]",
    bits: &[4],
    groups: &[],
};

static MARLIN: Layout = Layout {
    name: "awq-marlin",
    packed: PackedLayout::AwqMarlin,
    tensors: &[
        TensorRule::new(
            ".qweight",
            &[Dtype::I32],
            &[Dim::ceil(&[Term::In], &[Term::Num(16)]), Dim::of(&[Term::Out, Term::Num(2)])],
            "codes in the tiles of the Marlin kernel",
        ),
        TensorRule::new(".scales", FLOATS, &[GROUPS, OUT], "scales, permuted"),
        BIAS,
    ],
    packing: "tiles of 16 by 64, permuted",
    zero_point: "none: 8",
    value: VALUE,
    bits: &[4],
    groups: &[],
};

fn declare(fields: &mut Fields<'_>) -> Declaration {
    let version = fields.word("version").unwrap_or_else(|| "gemm".into());
    let layout = match version.as_str() {
        "gemv" => Some(&GEMV),
        "gemv_fast" => Some(&GEMV_FAST),
        "marlin" => Some(&MARLIN),
        "llm-awq" | "ipex" => None,
        _ => Some(&GEMM),
    };
    let mut scheme = Scheme::of(layout.unwrap_or(&GEMM));
    if layout.is_none() {
        scheme.layouts.clear();
        let finding = Finding::new(
            &rule::METHOD_029,
            version.clone(),
            "gemm, gemv, gemv_fast or marlin, to look at the tensors",
        );
        fields.report("version", finding);
    }
    if version != "gemm" {
        let finding = Finding::new(&rule::METHOD_031, version.clone(), "gemm")
            .refused_by(&[vllm("reads the gemm layout only, whatever the version says")]);
        fields.report("version", finding);
    }
    if ["marlin", "exllama", "ipex"].contains(&version.as_str()) {
        let finding = Finding::new(&rule::METHOD_031, version, "gemm, gemv, gemv_fast or llm-awq")
            .refused_by(&[transformers("Invalid format '…'")]);
        fields.report("version", finding);
    }
    scheme.bits = fields.positive("bits").unwrap_or(4);
    scheme.group = fields.positive("group_size").map_or(Group::Row, Group::Size);
    scheme.symmetric = fields.bool("zero_point").map(|zero_point| !zero_point);
    let mut entries = Vec::new();
    for (place, text) in fields.texts("modules_to_not_convert").into_iter().enumerate() {
        entries.push(Entry {
            field: format!("modules_to_not_convert[{place}]"),
            text: text.into(),
            pattern: Pattern::Text(text.into()),
            scheme: None,
        });
    }
    if fields.bool("lm_head") != Some(true) {
        entries.push(Entry::plain_output_layer());
    }
    Declaration { entries, scheme: Some(scheme), is_complete: false }
}
