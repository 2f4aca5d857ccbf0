//! The ways in which files name the tensors of experts, and why a name has no place.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::architecture::{Architecture, SourceTable};
use crate::pattern::{Pattern, key_of};

/// A way of naming the tensors of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpertStyle {
    /// `blk.N.ffn_gate_exps.weight`: all experts in one tensor; llama.cpp since April 2024.
    Merged,
    /// `blk.N.ffn_gate_up_exps.weight`: gate and up in one as well, the gate's rows first.
    Fused,
    /// `blk.N.ffn_gate.E.weight`: llama.cpp from December 2023 to March 2024.
    PerExpert,
    /// `blk.N.ffn_gate_exps.E.numa.K.weight`: safetensors of KTransformers.
    Numa,
    /// `blk.N.ffn_gate_exps.E.weight`: never written by anything but blog posts.
    Numbered,
    /// `model.layers.N.mlp.experts.E.gate_proj.weight`: transformers' names.
    Transformers,
}

impl ExpertStyle {
    /// All of them.
    pub const ALL: [ExpertStyle; 6] = [
        ExpertStyle::Merged,
        ExpertStyle::Fused,
        ExpertStyle::PerExpert,
        ExpertStyle::Numa,
        ExpertStyle::Numbered,
        ExpertStyle::Transformers,
    ];

    /// The style of a tensor's name, if it is one of an expert.
    pub fn of(name: &str) -> Option<ExpertStyle> {
        let segments: Vec<&str> = name.split('.').collect();
        let number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let merged = |text: &str| ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"].contains(&text);
        match segments.as_slice() {
            [_, _, kind, "weight" | "bias" | "scale"] if merged(kind) => Some(ExpertStyle::Merged),
            [_, _, "ffn_gate_up_exps", "weight" | "bias" | "scale"] => Some(ExpertStyle::Fused),
            [_, _, "ffn_gate" | "ffn_up" | "ffn_down", expert, "weight" | "bias"]
                if number(expert) =>
            {
                Some(ExpertStyle::PerExpert)
            }
            [_, _, kind, expert, "numa", ..] if kind.ends_with("_exps") && number(expert) => {
                Some(ExpertStyle::Numa)
            }
            [_, _, kind, expert, ..] if kind.ends_with("_exps") && number(expert) => {
                Some(ExpertStyle::Numbered)
            }
            ["model", "layers", ..] if segments.contains(&"experts") => {
                Some(ExpertStyle::Transformers)
            }
            _ => None,
        }
    }

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            ExpertStyle::Merged => "merged",
            ExpertStyle::Fused => "fused",
            ExpertStyle::PerExpert => "per-expert",
            ExpertStyle::Numa => "numa",
            ExpertStyle::Numbered => "numbered",
            ExpertStyle::Transformers => "transformers",
        }
    }

    /// What it is, who writes it and who reads it.
    pub fn explanation(self) -> &'static str {
        match self {
            ExpertStyle::Merged => {
                "all experts in one tensor (blk.N.ffn_gate_exps.weight), as llama.cpp writes since \
                 April 2024 (its PR 6387)"
            }
            ExpertStyle::Fused => {
                "gate and up of all experts in one tensor (blk.N.ffn_gate_up_exps.weight), the \
                 gate's rows first; llama.cpp reads it in some architectures"
            }
            ExpertStyle::PerExpert => {
                "a tensor for each expert (blk.N.ffn_gate.E.weight), as llama.cpp wrote from \
                 December 2023 to March 2024; it still has the names and no longer reads them"
            }
            ExpertStyle::Numa => {
                "KTransformers' safetensors for NUMA nodes (blk.N.ffn_gate_exps.E.numa.K.weight); \
                 no GGUF file has them: they belong into a safetensors folder"
            }
            ExpertStyle::Numbered => {
                "an expert's number behind ffn_*_exps (blk.N.ffn_gate_exps.E.weight), which no \
                 version of llama.cpp or gguf-py writes or reads: merged files have no number, old \
                 ones have blk.N.ffn_gate.E.weight"
            }
            ExpertStyle::Transformers => {
                "transformers' names, which a safetensors checkpoint has and a GGUF file does not"
            }
        }
    }
}

/// The tensors that llama.cpp declares, by the keys of their patterns.
static DECLARED: LazyLock<HashMap<String, Vec<Pattern>>> = LazyLock::new(|| {
    let mut declared: HashMap<String, Vec<Pattern>> = HashMap::new();
    for pattern in SourceTable::recorded().tensors.iter().map(|text| Pattern::new(text)) {
        declared.entry(pattern.key()).or_default().push(pattern);
    }
    declared
});

/// Why a name has no place in an architecture.
pub(crate) fn explain(architecture: &Architecture, name: &str) -> String {
    for place in architecture.rows_of_parameter(name) {
        let Some(row) = architecture.rows.get(*place) else { continue };
        let numbers = row
            .forms()
            .flat_map(|(pieces, _)| pieces)
            .find_map(|piece| piece.parameter.matches(name));
        if let Some(numbers) = numbers {
            return format!(
                "a name of transformers: in a GGUF file it is in {}",
                row.tensor.name(numbers)
            );
        }
    }
    if let Some(style) = ExpertStyle::of(name) {
        return match style {
            ExpertStyle::Merged | ExpertStyle::Fused => {
                format!("{} has no such experts", architecture.name())
            }
            style => style.explanation().to_owned(),
        };
    }
    if name.starts_with("model.") || name.starts_with("transformer.") {
        return "it looks like a name of transformers, which a GGUF file does not have".into();
    }
    let stem = ["weight", "bias"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix).and_then(|name| name.strip_suffix('.')));
    let stem = stem.unwrap_or(name);
    let alike = DECLARED.get(&key_of(stem)).map_or(&[][..], Vec::as_slice);
    if alike.iter().any(|pattern| pattern.matches(stem).is_some()) {
        format!("llama.cpp has tensors of this name, but not in {}", architecture.name())
    } else {
        "llama.cpp has no tensor of this name".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as files and the blog have them.
    #[test]
    fn styles() {
        for (name, style) in [
            ("blk.3.ffn_gate_exps.weight", Some(ExpertStyle::Merged)),
            ("blk.3.ffn_down_exps.bias", Some(ExpertStyle::Merged)),
            ("blk.3.ffn_gate_up_exps.weight", Some(ExpertStyle::Fused)),
            ("blk.3.ffn_gate.7.weight", Some(ExpertStyle::PerExpert)),
            ("blk.3.ffn_gate_exps.7.numa.0.weight", Some(ExpertStyle::Numa)),
            ("blk.3.ffn_gate_exps.7.numa.0.scale", Some(ExpertStyle::Numa)),
            ("blk.3.ffn_gate_exps.7.weight", Some(ExpertStyle::Numbered)),
            ("model.layers.3.mlp.experts.7.up_proj.weight", Some(ExpertStyle::Transformers)),
            ("blk.3.ffn_gate.weight", None),
            ("blk.3.ffn_gate_shexp.weight", None),
            ("", None),
        ] {
            assert_eq!(ExpertStyle::of(name), style, "{name}");
        }
    }
}
