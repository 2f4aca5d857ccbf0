//! HQQ: the fields alone, since how its tensors look depends on more of them.

use super::{Field, Kind, Method};
use crate::finding::Finding;
use crate::rule;
use crate::scheme::{Declaration, Entry, Pattern};

pub(super) static METHOD: Method = Method {
    name: "hqq",
    title: "HQQ: integers with float zero points",
    source: "hqq 0.2.8.post1; transformers 5.24.0 HqqConfig",
    fields: &[
        Field::new("quant_config", Kind::Object, "of the weights").required(),
        Field::new("skip_modules", Kind::Texts, "modules that are not quantized"),
        Field::new("dynamic_config", Kind::Any, "other fields for some modules"),
        Field::new("show_progress", Kind::Any, "of the quantizer"),
    ],
    layouts: &[],
    declare: |fields| {
        if let Some(config) = fields.object("quant_config") {
            match config.get("weight_quant_params").and_then(serde_json::Value::as_object) {
                Some(params) => {
                    fields.nested("quant_config.weight_quant_params".into(), params, PARAMS);
                }
                None => fields.report(
                    "quant_config.weight_quant_params",
                    Finding::new(&rule::METHOD_002, "not there", "nbits, group_size and axis"),
                ),
            }
        }
        fields.report(
            "quant_config",
            Finding::new(
                &rule::METHOD_029,
                "HQQ",
                "GPTQ, AWQ, compressed-tensors, FP8, bitsandbytes or MXFP4, to look at the tensors",
            ),
        );
        let skipped = fields.texts("skip_modules").into_iter().enumerate();
        let entries = skipped.map(|(place, text)| Entry {
            field: format!("skip_modules[{place}]"),
            text: text.into(),
            pattern: Pattern::Parts(text.into()),
            scheme: None,
        });
        Declaration { entries: entries.collect(), scheme: None, is_complete: false }
    },
};

const PARAMS: &[Field] = &[
    Field::new("nbits", Kind::OneOf(&[8, 4, 3, 2, 1]), "the width of a code").required(),
    Field::new("group_size", Kind::GroupSize, "codes that share a scale"),
    Field::new("axis", Kind::OneOf(&[0, 1]), "along which groups are"),
    Field::new("channel_wise", Kind::Bool, "a scale for each row"),
    Field::new("optimize", Kind::Bool, "of the quantizer"),
    Field::new("round_zero", Kind::Bool, "of the quantizer"),
    Field::new("view_as_float", Kind::Bool, "what codes are stored as"),
];
