//! Quark: recognised, not examined.

use super::{Field, Kind, Method};
use crate::finding::Finding;
use crate::rule;
use crate::scheme::Declaration;

pub(super) static METHOD: Method = Method {
    name: "quark",
    title: "AMD Quark",
    source: "vllm 0.33.0 quark",
    fields: &[
        Field::new("export", Kind::Object, "how it was written; none before version 1.0"),
        Field::new("global_quant_config", Kind::Any, "of weights and inputs"),
        Field::new("layer_quant_config", Kind::Any, "other fields for some modules"),
        Field::new("layer_type_quant_config", Kind::Any, "other fields for some classes"),
        Field::new("exclude", Kind::Texts, "modules that are not quantized"),
        Field::new("algo_config", Kind::Any, "of the quantizer"),
        Field::new("custom_mode", Kind::Any, "awq or fp8, from before version 1.0"),
        Field::new("quant_mode", Kind::Any, "of the quantizer"),
        Field::new("version", Kind::Any, "of the tool"),
    ],
    layouts: &[],
    declare: |fields| {
        fields.report(
            "quant_method",
            Finding::new(
                &rule::METHOD_029,
                "quark",
                "GPTQ, AWQ, compressed-tensors, FP8, bitsandbytes or MXFP4, to look at the tensors",
            ),
        );
        Declaration::default()
    },
};
