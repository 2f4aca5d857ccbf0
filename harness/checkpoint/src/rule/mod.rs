//! The rules of checkpoints: of safetensors files, of a folder, of quantization, and of what models
//! need.
//!
//! What is asked of a safetensors file is named by the format's own text (README of safetensors,
//! "Format") or by function of safetensors 0.8. What loaders refuse is named by file of the package:
//! vllm 0.33.0, transformers 5.24.0, compressed-tensors 0.20.1, autoawq 0.2.9, gptqmodel 7.7.0. The
//! rest is asked of any careful loader.

use gguf_assay_format::Rule;

/// A table of rules: constant, id, title, what the format's text asks, what this project asks,
/// effect, advice.
macro_rules! rules {
    ($($name:ident = $id:literal $title:literal, $spec:expr, $policy:expr, $effect:literal, $advice:literal;)+) => {
        $(
            #[doc = concat!("The rule `", $id, "`: ", $title, ".")]
            pub static $name: Rule = Rule {
                id: $id,
                title: $title,
                spec: $spec,
                ggml: gguf_assay_format::Requirement::Silent,
                policy: $policy,
                effect: $effect,
                advice: $advice,
                cves: &[],
            };
        )+

        /// The rules of this table.
        pub(super) static TABLE: &[&Rule] = &[$(&$name),+];
    };
}

mod container;
mod model;
mod quantization;

pub use container::*;
pub use model::*;
pub use quantization::*;

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let tables = [container::TABLE, quantization::TABLE, model::TABLE];
    tables.into_iter().flatten().copied()
}
