//! The rules of names: what has to hold between a file's tensors, its architecture and the
//! checkpoint that it was made of.
//!
//! The specification names tensors as a convention only. What llama.cpp refuses is named by
//! function (llama.cpp of llama-cpp-sys-4 0.11.0); the rest is asked of any mapper, which otherwise
//! drops weights or makes some up.

use gguf_assay_format::{Requirement, Rule};

use Requirement::{Must, Silent};

macro_rules! rules {
    ($($name:ident = $id:literal $title:literal, $ggml:expr, $policy:expr, $effect:literal, $advice:literal;)+) => {
        $(
            #[doc = concat!("The rule `", $id, "`: ", $title, ".")]
            pub static $name: Rule = Rule {
                id: $id,
                title: $title,
                spec: Silent,
                ggml: $ggml,
                policy: $policy,
                effect: $effect,
                advice: $advice,
                cves: &[],
            };
        )+

        /// Every rule.
        pub static RULES: &[&Rule] = &[$(&$name),+];
    };
}

rules! {
    NAMES_001 = "NAMES-001" "general.architecture names an architecture that the mapper has",
        Must("llama-model-loader.cpp: llm_arch_from_string, unknown model architecture"), Silent,
        "the weights are loaded into a model of another class, in silence",
        "gguf-assay list architectures has the names; another spelling is another architecture";
    NAMES_002 = "NAMES-002" "every tensor has a place in its architecture",
        Must("llama-model-loader.cpp: done_getting_tensors, wrong number of tensors"), Silent,
        "weights are dropped in silence",
        "a newer converter may write names that the mapper does not have yet; else the file is of \
         another architecture, or from a tool with names of its own";
    NAMES_003 = "NAMES-003" "every tensor that the architecture needs is there",
        Must("llama-model-loader.cpp: check_tensor_dims, missing tensor"), Silent,
        "weights are made up: the model loads and talks nonsense",
        "look whether a shard is missing, or convert again";
    NAMES_004 = "NAMES-004" "each place is taken by one tensor",
        Silent, Must("two forms of one weight leave open which one counts"),
        "one of two weights is dropped, and readers differ in which",
        "keep one form: merged experts, or a tensor for each";
    NAMES_005 = "NAMES-005" "each tensor has the dimensions that the hyperparameters give",
        Must("llama-model-loader.cpp: check_tensor_dims, wrong shape"), Silent,
        "a reader goes beyond a tensor, or takes heads and experts for one another",
        "the counts in the metadata are wrong, or the tensor is: the message has both";
    NAMES_006 = "NAMES-006" "every parameter comes whole",
        Silent, Must("a part of a parameter that nothing gives has no value"),
        "part of a weight is made up",
        "look whether a shard is missing, or convert again";
    NAMES_007 = "NAMES-007" "the metadata have every key that a shape depends on",
        Must("llama-model-loader.cpp: get_key, key not found in model"), Silent,
        "a default of the reader's own takes the place of the size",
        "convert again with a converter that knows the architecture";
    NAMES_008 = "NAMES-008" "the metadata have the values that every checkpoint of the class gives",
        Silent, Must("a model of another class has the same tensor names"),
        "the weights are loaded into a class that computes something else",
        "the file is of a variant that the class does not have";
    NAMES_009 = "NAMES-009" "a file stands for the checkpoint that it was made of: names, shapes, numbers and config",
        Silent, Must("llama.cpp's converter: conversion/*.py"),
        "heads are permuted, norms are off by one, experts are swapped, a default takes a field's place",
        "no file is at fault: take a mapper that undoes what the converter does";
}
