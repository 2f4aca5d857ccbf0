//! modelopt: NVIDIA's FP8 and NVFP4.

use super::fp8::TENSOR;
use super::{ANY, BIAS, Dim, FLOATS, Field, GROUPS, Kind, Layout, Method, OUT, Presence, Term};
use super::{TensorRule, vllm};
use crate::config::Fields;
use crate::dtype::Dtype;
use crate::finding::Finding;
use crate::packing::PackedLayout;
use crate::rule;
use crate::scheme::{Declaration, Entry, Pattern, Scheme};

pub(super) static METHOD: Method = Method {
    name: "modelopt",
    title: "modelopt: FP8, or floats of 4 bits with scales of FP8",
    source: "vllm 0.33.0 modelopt.py",
    fields: &[
        Field::new("quant_algo", Kind::Word(ALGORITHMS), "how weights are stored").required(),
        Field::new("kv_cache_quant_algo", Kind::Any, "of the cache"),
        Field::new("kv_cache_scheme", Kind::Any, "of the cache"),
        Field::new("group_size", Kind::Integer(1, 1 << 20), "codes that share a scale"),
        Field::new("exclude_modules", Kind::Texts, "modules that are not quantized, with *")
            .or(&["ignore"]),
        Field::new("quantized_layers", Kind::Object, "of MIXED_PRECISION"),
        Field::new("config_groups", Kind::Any, "the same, as compressed-tensors has it"),
        Field::new("producer", Kind::Any, "of the tool"),
        Field::new("has_zero_point", Kind::Any, "of the tool"),
        Field::new("pre_quant_scale", Kind::Any, "of the tool"),
        Field::new("quant_algorithm", Kind::Any, "of the tool"),
    ],
    layouts: &[&NVFP4, &TENSOR],
    declare,
};

const ALGORITHMS: &[&str] = &[
    "FP8",
    "FP8_PER_CHANNEL_PER_TOKEN",
    "FP8_PB_WO",
    "FP8_BLOCK_SCALES",
    "NVFP4",
    "W4A16_NVFP4",
    "MXFP8",
    "MIXED_PRECISION",
];

static NVFP4: Layout = Layout {
    name: "modelopt-nvfp4",
    packed: PackedLayout::Nvfp4 { divide: false },
    tensors: &[
        TensorRule::new(
            ".weight",
            &[Dtype::U8],
            &[OUT, Dim::ceil(&[Term::In], &[Term::Num(2)])],
            "codes",
        ),
        TensorRule::new(".weight_scale", &[Dtype::F8_E4M3], &[OUT, GROUPS], "scales"),
        TensorRule::new(".weight_scale_2", &[Dtype::F32], &[], "what scales are multiplied by"),
        TensorRule::new(".input_scale", FLOATS, &[ANY], "that of inputs").when(Presence::Optional),
        BIAS,
    ],
    packing: "two codes in a byte, the even one in the low nibble",
    zero_point: "none",
    value: "e2m1(code) * weight_scale[o, i / 16] * weight_scale_2",
    bits: &[4],
    groups: &[16],
};

/// The scheme of an algorithm; without layouts if it is not looked into.
fn scheme(algorithm: &str) -> Option<Scheme> {
    match algorithm {
        "fp8" => Some(Scheme::of(&TENSOR)),
        "nvfp4" | "w4a16_nvfp4" => Some(Scheme::of(&NVFP4)),
        other if ALGORITHMS.iter().any(|each| each.eq_ignore_ascii_case(other)) => {
            Some(Scheme { layouts: Vec::new(), ..Scheme::of(&TENSOR) })
        }
        _ => None,
    }
}

fn declare(fields: &mut Fields<'_>) -> Declaration {
    let algorithm = fields.word("quant_algo").unwrap_or_default();
    let excluded = fields.texts("exclude_modules").into_iter().enumerate();
    let mut entries: Vec<Entry> = excluded
        .map(|(place, text)| Entry {
            field: format!("exclude_modules[{place}]"),
            text: text.into(),
            pattern: Pattern::Wildcard(text.into()),
            scheme: None,
        })
        .collect();
    if let Some(algorithm) = fields.get("kv_cache_quant_algo")
        && !algorithm.is_string()
    {
        let finding = Finding::new(&rule::METHOD_003, crate::config::quote(algorithm), "text")
            .refused_by(&[vllm("kv_cache_quant_algo must be a string")]);
        fields.report("kv_cache_quant_algo", finding);
    }
    let mut own = None;
    if algorithm == "mixed_precision" {
        for (name, layer) in fields.object("quantized_layers").into_iter().flatten() {
            let algorithm = layer.get("quant_algo").and_then(serde_json::Value::as_str);
            let algorithm = algorithm.unwrap_or_default().to_ascii_lowercase();
            entries.push(Entry {
                field: format!("quantized_layers.{name}"),
                text: name.clone(),
                pattern: Pattern::Wildcard(name.clone()),
                scheme: scheme(&algorithm),
            });
        }
        if fields.object("quantized_layers").is_none() {
            let finding = Finding::new(&rule::METHOD_006, "MIXED_PRECISION", "quantized_layers");
            fields.report("quantized_layers", finding);
        }
    } else {
        own = scheme(&algorithm);
        if own.as_ref().is_some_and(|scheme| scheme.layouts.is_empty()) {
            let finding = Finding::new(
                &rule::METHOD_029,
                algorithm,
                "FP8, NVFP4 or W4A16_NVFP4, to look at the tensors",
            );
            fields.report("quant_algo", finding);
        }
    }
    Declaration { entries, scheme: own, is_complete: false }
}
