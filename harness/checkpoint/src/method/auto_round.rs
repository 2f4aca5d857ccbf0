//! auto-round's own format: the tensors of GPTQ or of AWQ.

use super::awq::GEMM;
use super::gptq::GPTQ;
use super::{Field, Kind, Method};
use crate::finding::Finding;
use crate::rule;
use crate::scheme::{Declaration, Entry, Group, Pattern, Scheme};

pub(super) static METHOD: Method = Method {
    name: "auto-round",
    title: "auto-round: the tensors of GPTQ, without g_idx, or of AWQ",
    source: "auto-round 0.16.1; transformers 5.24.0 AutoRoundConfig",
    fields: &[
        Field::new("bits", Kind::Integer(2, 8), "the width of a code").required(),
        Field::new("group_size", Kind::GroupSize, "codes that share a scale; -1: the whole input")
            .required(),
        Field::new("sym", Kind::Bool, "whether all zero points are the same"),
        Field::new("packing_format", Kind::Text, "auto_round:auto_gptq, auto_round:auto_awq …"),
        Field::new("backend", Kind::Any, "of a kernel"),
        Field::new("data_type", Kind::Text, "what a code is"),
        Field::new("autoround_version", Kind::Text, "of the tool"),
        Field::new("block_name_to_quantize", Kind::Any, "where the layers are"),
        Field::new("to_quant_block_names", Kind::Any, "where the layers are"),
        Field::new("extra_config", Kind::Object, "other fields for some modules"),
        Field::new("enable_quanted_input", Kind::Any, "of the quantizer"),
        Field::new("iters", Kind::Any, "of the quantizer"),
        Field::new("lr", Kind::Any, "of the quantizer"),
        Field::new("nsamples", Kind::Any, "of the quantizer"),
        Field::new("seqlen", Kind::Any, "of the quantizer"),
        Field::new("provider", Kind::Any, "of the tool"),
    ],
    layouts: &[&GPTQ, &GEMM],
    declare: |fields| {
        let packing =
            fields.word("packing_format").unwrap_or_else(|| "auto_round:auto_gptq".into());
        let layout = if packing.contains("awq") {
            Some(&GEMM)
        } else if packing.contains("gptq") || packing == "auto_round" {
            Some(&GPTQ)
        } else {
            None
        };
        let mut scheme = Scheme::of(layout.unwrap_or(&GPTQ));
        if layout.is_none() {
            scheme.layouts.clear();
            let finding = Finding::new(
                &rule::METHOD_029,
                packing,
                "auto_round:auto_gptq or auto_round:auto_awq, to look at the tensors",
            );
            fields.report("packing_format", finding);
        }
        scheme.bits = fields.positive("bits").unwrap_or(4);
        scheme.group = fields.positive("group_size").map_or(Group::Row, Group::Size);
        scheme.symmetric = fields.bool("sym");
        let mut entries = Vec::new();
        for (name, value) in fields.object("extra_config").into_iter().flatten() {
            let Some(extra) = value.as_object() else { continue };
            let number = |field: &str| extra.get(field).and_then(serde_json::Value::as_u64);
            let mut own = scheme.clone();
            own.bits = number("bits").unwrap_or(own.bits);
            own.group = match extra.get("group_size").and_then(serde_json::Value::as_i64) {
                Some(-1) => Group::Row,
                _ => number("group_size").filter(|s| *s > 0).map_or(own.group, Group::Size),
            };
            own.symmetric = extra.get("sym").and_then(serde_json::Value::as_bool).or(own.symmetric);
            let is_quantized = own.bits < 16;
            entries.push(Entry {
                field: format!("extra_config.{name}"),
                text: name.clone(),
                pattern: Pattern::Name(name.clone()),
                scheme: is_quantized.then_some(own),
            });
        }
        Declaration { entries, scheme: Some(scheme), is_complete: false }
    },
};
