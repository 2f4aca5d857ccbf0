//! Modules: tensors whose names differ in nothing but a suffix.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::checkpoint::Checkpoint;
use crate::dtype::{Dtype, FLOATS};
use crate::files::Files;
use crate::header::TensorRecord;
use crate::method::Layout;

/// The suffixes of all layouts, and those of plain weights; longer ones first.
static SUFFIXES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let of_layouts = Layout::all().flat_map(|layout| layout.tensors).map(|tensor| tensor.suffix);
    let others = [".W_q", ".scale", ".zero"];
    let mut all: Vec<&'static str> = of_layouts.chain(others).collect();
    all.sort_by_key(|suffix| (std::cmp::Reverse(suffix.len()), *suffix));
    all.dedup();
    all
});

/// A layer, or a parameter of its own.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    /// Its name: what comes before the suffix.
    pub name: &'a str,
    /// Its tensors, by suffix (`.qweight`); the empty one is of a parameter of its own.
    pub tensors: BTreeMap<&'static str, &'a TensorRecord>,
}

impl<'a> Module<'a> {
    /// The tensor with this suffix.
    pub fn tensor(&self, suffix: &str) -> Option<&'a TensorRecord> {
        self.tensors.get(suffix).copied()
    }

    /// Whether it has a tensor that only quantized ones have.
    pub fn is_quantized(&self) -> bool {
        self.tensors.iter().any(|(suffix, tensor)| match *suffix {
            ".weight" => !FLOATS.contains(&tensor.dtype) && tensor.dtype != Dtype::F64,
            "" | ".bias" | "_bias" | ".scale" | ".zero" => false,
            // Scales beside a plain weight may be those of inputs.
            ".input_scale" | ".input_zero_point" | ".input_global_scale" => false,
            _ => true,
        })
    }

    /// Whether it looks like a linear layer: a plain weight of two dimensions that is no embedding.
    pub fn is_linear(&self) -> bool {
        let two = self.tensor(".weight").is_some_and(|weight| weight.shape.len() == 2);
        two && !self.name.contains("embed")
    }
}

/// A module's name without its numbers: `model.layers.N.mlp.down_proj`.
pub(crate) fn kind(name: &str) -> String {
    let parts = name.split('.').map(|part| match part.parse::<u64>() {
        Ok(_) => "N",
        Err(_) => part,
    });
    parts.collect::<Vec<_>>().join(".")
}

/// The modules of a checkpoint, by name.
pub(crate) fn modules<F: Files>(checkpoint: &Checkpoint<F>) -> Vec<Module<'_>> {
    let mut modules: BTreeMap<&str, Module<'_>> = BTreeMap::new();
    for tensor in checkpoint.tensors() {
        let (name, suffix) = split(&tensor.name);
        let module =
            modules.entry(name).or_insert_with(|| Module { name, tensors: BTreeMap::new() });
        module.tensors.insert(suffix, tensor);
    }
    modules.into_values().collect()
}

/// A tensor's module and suffix.
fn split(name: &str) -> (&str, &'static str) {
    let found = SUFFIXES
        .iter()
        .find_map(|suffix| Some((name.strip_suffix(suffix)?, *suffix)))
        .filter(|(module, _)| !module.is_empty());
    found.unwrap_or((name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_suffix_counts() {
        // Names as in checkpoints of auto-round, bitsandbytes and gpt-oss.
        for (name, module, suffix) in [
            ("a.down_proj.qweight", "a.down_proj", ".qweight"),
            ("a.down_proj.weight_scale_inv", "a.down_proj", ".weight_scale_inv"),
            (
                "a.weight.quant_state.bitsandbytes__nf4",
                "a",
                ".weight.quant_state.bitsandbytes__nf4",
            ),
            ("a.weight.absmax", "a", ".weight.absmax"),
            ("experts.gate_up_proj_blocks", "experts.gate_up_proj", "_blocks"),
            ("self_attn.sinks", "self_attn.sinks", ""),
            (".weight", ".weight", ""),
        ] {
            assert_eq!(split(name), (module, suffix));
        }
    }
}
