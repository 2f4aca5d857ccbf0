//! GPTQ, as AutoGPTQ, gptqmodel and auto-round write it.

use serde_json::Value as Json;

use super::{BIAS, FLOATS, Field, GROUPS, IN, Kind, Layout, Method, OUT, Presence, TensorRule};
use super::{Dim, Term, vllm};
use crate::config::{Fields, quote};
use crate::dtype::Dtype;
use crate::finding::Finding;
use crate::packing::PackedLayout;
use crate::rule;
use crate::scheme::{Declaration, Entry, Group, Pattern, Scheme};

const FORMATS: &[&str] = &["gptq", "gptq_v2", "marlin", "bitblas", "gptq_p"];

pub(super) static METHOD: Method = Method {
    name: "gptq",
    title: "GPTQ: integers packed along the input, a scale and a zero point for each group",
    source: "gptqmodel 7.7.0 quantization/config.py and utils/model.py; vllm 0.33.0 auto_gptq.py; \
             transformers 5.24.0 GPTQConfig",
    fields: &[
        Field::new("bits", Kind::OneOf(&[2, 3, 4, 8]), "the width of a code").required(),
        Field::new("group_size", Kind::GroupSize, "codes that share a scale; -1: the whole input")
            .required(),
        Field::new("desc_act", Kind::Bool, "whether groups are of columns in order of activation"),
        Field::new("sym", Kind::Bool, "whether all zero points are the middle of the codes"),
        Field::new("format", Kind::Word(FORMATS), "how zero points are stored; gptq is v1")
            .or(&["checkpoint_format"]),
        Field::new("lm_head", Kind::Bool, "whether the output layer is quantized"),
        Field::new("dynamic", Kind::Object, "other fields for modules that an expression matches"),
        Field::new("modules_in_block_to_quantize", Kind::Any, "the modules of a layer that are"),
        Field::new("pack_dtype", Kind::Word(&["int32"]), "what codes are packed into"),
        Field::new("damp_percent", Kind::Number(0.0, 1.0), "of the quantizer"),
        Field::new("damp_auto_increment", Kind::Any, "of the quantizer"),
        Field::new("true_sequential", Kind::Bool, "of the quantizer"),
        Field::new("act_group_aware", Kind::Bool, "of the quantizer"),
        Field::new("static_groups", Kind::Bool, "of the quantizer"),
        Field::new("mse", Kind::Any, "of the quantizer"),
        Field::new("meta", Kind::Object, "who quantized, and how"),
        Field::new("model_seqlen", Kind::Any, "of the quantizer"),
        Field::new("max_input_length", Kind::Any, "of a kernel"),
        Field::new("block_name_to_quantize", Kind::Any, "where the layers are"),
        Field::new("cache_block_outputs", Kind::Any, "of the quantizer"),
        Field::new("batch_size", Kind::Any, "of the quantizer"),
        Field::new("dataset", Kind::Any, "of the quantizer"),
        Field::new("tokenizer", Kind::Any, "of the quantizer"),
        Field::new("pad_token_id", Kind::Any, "of the quantizer"),
        Field::new("backend", Kind::Any, "of a kernel"),
        Field::new("use_cuda_fp16", Kind::Any, "of a kernel"),
        Field::new("use_exllama", Kind::Any, "of a kernel"),
        Field::new("disable_exllama", Kind::Any, "of a kernel"),
        Field::new("exllama_config", Kind::Any, "of a kernel"),
        Field::new("module_name_preceding_first_block", Kind::Any, "of the quantizer"),
        Field::new("is_marlin_format", Kind::Any, "of a kernel"),
    ],
    layouts: &[&GPTQ],
    declare,
};

pub(super) static GPTQ: Layout = Layout {
    name: "gptq",
    packed: PackedLayout::Gptq { v2: false },
    tensors: &[
        TensorRule::new(
            ".qweight",
            &[Dtype::I32],
            &[Dim::ceil(&[Term::In, Term::Bits], &[Term::Num(32)]), OUT],
            "codes, packed along the input",
        ),
        TensorRule::new(
            ".qzeros",
            &[Dtype::I32],
            &[GROUPS, Dim::ceil(&[Term::Out, Term::Bits], &[Term::Num(32)])],
            "zero points, packed along the output",
        ),
        TensorRule::new(".scales", FLOATS, &[GROUPS, OUT], "scales"),
        TensorRule::new(".g_idx", &[Dtype::I32], &[IN], "the group of each input")
            .when(Presence::Optional),
        BIAS,
    ],
    packing: "32-bit words, little end first, a dense stream of codes along the input; with 3 bits, \
              codes 10 and 21 of 32 straddle words",
    zero_point: "v1 (gptq) stores the zero point less one, modulo 2^bits; v2 (gptq_v2) as it is",
    value: "scales[g_idx[i], o] * (code[i, o] - zero[g_idx[i], o])",
    bits: &[4, 8, 2, 3],
    groups: &[],
};

/// What the fields of a config or of a dynamic rule say.
fn scheme(fields: &Fields<'_>, base: Option<&Scheme>) -> Scheme {
    let mut scheme = base.cloned().unwrap_or_else(|| Scheme::of(&GPTQ));
    if let Some(bits) = fields.positive("bits") {
        scheme.bits = bits;
    }
    match fields.integer("group_size") {
        Some(-1) => scheme.group = Group::Row,
        Some(_) => {
            if let Some(size) = fields.positive("group_size") {
                scheme.group = Group::Size(size);
            }
        }
        None => {}
    }
    scheme.symmetric = fields.bool("sym").or(scheme.symmetric);
    if let Some(format) = fields.word("format") {
        scheme.zero_is_plain = format == "gptq_v2";
    }
    scheme.act_order = fields.bool("desc_act").or(scheme.act_order);
    scheme
}

/// What loaders are known to refuse.
fn refusals(fields: &mut Fields<'_>, scheme: &Scheme) {
    if scheme.act_order == Some(true) && scheme.group != Group::Row {
        let finding =
            Finding::new(&rule::METHOD_031, "true with groups", "false, or group_size -1")
                .refused_by(&[vllm(
                    "GPTQ group activation ordering (desc_act=True) is no longer supported",
                )]);
        fields.report("desc_act", finding);
    }
    let usual = [4, 8].contains(&scheme.bits) && scheme.symmetric.unwrap_or(true);
    if !usual {
        let symmetric = if scheme.symmetric == Some(false) { "asymmetric" } else { "symmetric" };
        let finding = Finding::new(
            &rule::METHOD_031,
            format!("{} bits, {symmetric}", scheme.bits),
            "4 or 8 bits, symmetric",
        )
        .refused_by(&[vllm("Unsupported quantization config: bits=…, sym=…")]);
        fields.report("bits", finding);
    }
    if let Group::Size(size) = scheme.group
        && ![32, 64, 128].contains(&size)
    {
        let finding = Finding::new(&rule::METHOD_031, size.to_string(), "-1, 32, 64 or 128")
            .refused_by(&[vllm("Marlin kernels have group sizes -1, 32, 64 and 128")]);
        fields.report("group_size", finding);
    }
}

fn declare(fields: &mut Fields<'_>) -> Declaration {
    let mut base = scheme(fields, None);
    refusals(fields, &base);
    let mut entries = Vec::new();
    for (key, value) in fields.object("dynamic").into_iter().flatten() {
        let field = format!("dynamic[{}]", quote(&Json::from(key.as_str())));
        let (negative, text) = match key.strip_prefix("-:") {
            Some(text) => (true, text),
            None => (false, key.strip_prefix("+:").unwrap_or(key)),
        };
        let Some(overrides) = value.as_object() else {
            fields.report(&field, Finding::new(&rule::METHOD_003, quote(value), "an object"));
            continue;
        };
        let pattern = match Pattern::expression(text) {
            Ok(pattern) => pattern,
            Err(error) => {
                let finding = Finding::new(&rule::METHOD_026, error, "a regular expression");
                fields.report(&field, finding);
                continue;
            }
        };
        let scheme = (!negative).then(|| {
            let mut nested = fields.nested(field.clone(), overrides, OVERRIDES);
            let scheme = scheme(&nested, Some(&base));
            refusals(&mut nested, &scheme);
            scheme
        });
        entries.push(Entry { field, text: key.clone(), pattern, scheme });
    }
    if fields.bool("lm_head") != Some(true) {
        entries.push(Entry::plain_output_layer());
    }
    let format = fields.word("format").unwrap_or_default();
    if ["gptq_p", "marlin", "bitblas"].contains(&format.as_str()) {
        base.layouts.clear();
        for scheme in entries.iter_mut().filter_map(|entry| entry.scheme.as_mut()) {
            scheme.layouts.clear();
        }
        let finding = Finding::new(
            &rule::METHOD_029,
            format!("{format}, whose codes lie in another order"),
            "gptq or gptq_v2, to look at the tensors",
        );
        fields.report("format", finding);
    }
    Declaration { entries, scheme: Some(base), is_complete: false }
}

/// What a dynamic rule may change.
const OVERRIDES: &[Field] = &[
    Field::new("bits", Kind::OneOf(&[2, 3, 4, 8]), "the width of a code"),
    Field::new("group_size", Kind::GroupSize, "codes that share a scale"),
    Field::new("desc_act", Kind::Bool, "whether groups are in order of activation"),
    Field::new("sym", Kind::Bool, "whether all zero points are the same"),
    Field::new("mse", Kind::Any, "of the quantizer"),
    Field::new("adapter", Kind::Any, "of the quantizer"),
    Field::new("damp_percent", Kind::Any, "of the quantizer"),
    Field::new("static_groups", Kind::Any, "of the quantizer"),
    Field::new("true_sequential", Kind::Any, "of the quantizer"),
    Field::new("pack_dtype", Kind::Any, "what codes are packed into"),
];
