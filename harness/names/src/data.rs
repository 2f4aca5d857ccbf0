//! The data files as they are written: `architectures/*.toml` and what they include of `shared/`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A file of either folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DataFile {
    /// `general.architecture`; architectures only.
    pub(crate) name: Option<String>,
    /// Who says so: public sources, with versions.
    pub(crate) source: String,
    /// The transformers classes, in the order in which they are tried; architectures only.
    pub(crate) classes: Vec<ClassRow>,
    /// Where a checkpoint has this model within a larger one; architectures only.
    pub(crate) within: Option<Within>,
    pub(crate) include: Vec<Include>,
    pub(crate) tensors: Vec<TensorRow>,
    pub(crate) keyed: Vec<KeyedRow>,
    pub(crate) dropped: Vec<DroppedRow>,
    pub(crate) config: Vec<ConfigRow>,
    pub(crate) absent: Vec<AbsentRow>,
    /// Keys that the converter writes and llama.cpp does not have: for the linter.
    pub(crate) undeclared: Vec<String>,
    /// Of each, where it comes from (one of what `Origin::parse` knows), and a `default`.
    pub(crate) hyperparameters: BTreeMap<String, BTreeMap<String, String>>,
    /// Metadata of a tiny model: what the linter and the snapshots expand.
    pub(crate) example: BTreeMap<String, toml::Value>,
    /// Other tiny models: what the example has no tensor of.
    pub(crate) variants: Vec<VariantRow>,
}

/// The place of a text model within a checkpoint that sees as well.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Within {
    /// What parameters begin with in place of `model.`, if it is something else.
    #[serde(default = "plain_start")]
    pub(crate) parameters: String,
    /// The field of the config that has the others within it.
    pub(crate) config: String,
}

fn plain_start() -> String {
    "model.".into()
}

/// The example with some of it otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VariantRow {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) set: BTreeMap<String, toml::Value>,
    /// Tensors that it has not.
    #[serde(default)]
    pub(crate) without: Vec<String>,
}

/// A class of transformers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassRow {
    pub(crate) class: String,
    pub(crate) model_type: String,
    /// When a file is one of it.
    pub(crate) when: Option<String>,
    /// When a checkpoint of it becomes this architecture, over the config's fields, if there are
    /// several.
    pub(crate) chosen_when: Option<String>,
}

/// A file of `shared/`, all of it or under a condition.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Include {
    Whole(String),
    Some(SomeOf),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SomeOf {
    pub(crate) part: String,
    /// Its tensors are there only when this holds.
    pub(crate) when: Option<String>,
    /// None of its tensors has to be there.
    #[serde(default)]
    pub(crate) optional: bool,
    /// What the names of its parameters begin with, and what they begin with here.
    #[serde(default)]
    pub(crate) rename: BTreeMap<String, String>,
}

/// A GGUF tensor and what it stands for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TensorRow {
    pub(crate) gguf: String,
    /// In ggml's order, the contiguous dimension first.
    pub(crate) dims: String,
    /// None for what the converter computes.
    #[serde(default)]
    pub(crate) transformers: OneOrMany,
    /// One for each parameter, or several for the one.
    #[serde(default)]
    pub(crate) view: OneOrMany,
    #[serde(default)]
    pub(crate) value: Change,
    /// Factors over the config's fields, with commas between them, by which each number is
    /// multiplied one after the other: one for each view, or for all. A file does not tell them,
    /// and has a model that is the same without.
    #[serde(default)]
    pub(crate) scale: OneOrMany,
    /// What each number is multiplied by on the way into a file, over the hyperparameters, and
    /// divided by on the way back.
    pub(crate) factor: Option<String>,
    pub(crate) when: Option<String>,
    /// The layer from which the parameters count theirs, over the hyperparameters.
    pub(crate) from_layer: Option<String>,
    #[serde(default)]
    pub(crate) optional: bool,
    /// The layer whose parameter it is, if it is of no layer itself.
    pub(crate) layer: Option<String>,
    /// What `E` counts, if not experts.
    pub(crate) count: Option<String>,
    /// Patterns of the tensors that are not needed where this one is.
    #[serde(default)]
    pub(crate) instead_of: Vec<String>,
    /// Other parameters that checkpoints have in their place.
    #[serde(default)]
    pub(crate) alternatives: Vec<AlternativeRow>,
    pub(crate) note: Option<String>,
}

/// Parameters in place of those that a tensor stands for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlternativeRow {
    /// The type whose blocks they hold, as bytes: the views are of bytes then.
    #[serde(rename = "type")]
    pub(crate) blocks: Option<String>,
    pub(crate) transformers: OneOrMany,
    #[serde(default)]
    pub(crate) view: OneOrMany,
    /// What is done to the numbers, or bytes, of each.
    #[serde(default)]
    pub(crate) value: Vec<Change>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            OneOrMany::None => &[],
            OneOrMany::One(one) => std::slice::from_ref(one),
            OneOrMany::Many(many) => many,
        }
    }
}

/// What is done to each number on its way into a GGUF file.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    #[default]
    #[serde(rename = "x")]
    None,
    /// Norms that multiply by `1 + w` in transformers and by the stored number in ggml.
    #[serde(rename = "x + 1")]
    PlusOne,
    /// `A_log` of state space models.
    #[serde(rename = "-exp(x)")]
    NegativeExp,
    /// The bytes of a block of 32 elements of four bits: of elements 2i and 2i + 1 in a checkpoint,
    /// of i and i + 16 in ggml.
    #[serde(rename = "nibbles 2i, 2i+1 -> i, i+16")]
    Nibbles,
    /// BitNet's weights: the nearest of -1, 0 and 1 times the mean of all numbers without their
    /// signs. What was rounded does not come back.
    #[serde(rename = "ternary(x)")]
    Ternary,
}

impl Change {
    /// As the data files have it, from transformers to GGUF.
    pub fn text(self) -> &'static str {
        match self {
            Change::None => "x",
            Change::PlusOne => "x + 1",
            Change::NegativeExp => "-exp(x)",
            Change::Nibbles => "nibbles 2i, 2i+1 -> i, i+16",
            Change::Ternary => "ternary(x)",
        }
    }

    /// Its inverse, from GGUF to transformers.
    pub fn inverse_text(self) -> &'static str {
        match self {
            Change::None => "x",
            Change::PlusOne => "x - 1",
            Change::NegativeExp => "ln(-x)",
            Change::Nibbles => "nibbles i, i+16 -> 2i, 2i+1",
            Change::Ternary => "x, rounded",
        }
    }
}

/// A parameter or buffer of one number, which a GGUF file has in a metadata key that is an array of
/// all layers' numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyedRow {
    pub(crate) key: String,
    pub(crate) transformers: String,
    /// In torch's order: of one element.
    pub(crate) shape: Vec<u64>,
}

/// A parameter or buffer that a GGUF file does not hold; all that begin alike, with `*` for the
/// rest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DroppedRow {
    pub(crate) transformers: String,
    pub(crate) note: String,
}

/// A metadata key and a field of the config.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigRow {
    /// Behind the architecture's name and a dot, or a key of `general` or `tokenizer`.
    pub(crate) key: Option<String>,
    /// The key's type.
    #[serde(rename = "type")]
    pub(crate) key_type: Option<KeyType>,
    /// The field, with dots for what lies within another.
    pub(crate) field: Option<String>,
    /// The field is not within that of the text model.
    #[serde(default)]
    pub(crate) top: bool,
    /// The field's value over the hyperparameters, if it is not the key's.
    pub(crate) value: Option<String>,
    /// The key's value over the config's fields, if it is not the field's.
    pub(crate) from: Option<String>,
    /// The field's value where the key is missing; `null` is one.
    pub(crate) default: Option<String>,
    /// The texts of the config for numbers of the key.
    #[serde(default)]
    pub(crate) names: BTreeMap<String, i64>,
    /// A value for each layer, on both sides. In `value` and `from`, `layer` is the layer's number;
    /// in `from`, a field that is a list stands for its element, and behind its end for nothing.
    #[serde(default)]
    pub(crate) each: bool,
    /// The field has values for the blocks behind the last layer, too.
    #[serde(default)]
    pub(crate) behind: bool,
    /// How many values the key has, over the config's fields, if not as many as the lists have.
    pub(crate) blocks: Option<String>,
    /// The field lists the layers for which `value` holds by their numbers, the first being this
    /// one; in `from`, `listed` says whether it has the layer.
    pub(crate) listed: Option<u64>,
    /// Both sides are lists; this is added to each element of the key.
    pub(crate) shift: Option<i64>,
    /// How many elements the field has, and how many the key: those behind are 0.
    pub(crate) list: Option<[usize; 2]>,
    /// The key counts the first layers in which this holds, over the config's fields as `from` is
    /// where there is a value for each layer. Without such a list it is `from`.
    pub(crate) leading: Option<String>,
    /// When the field is there, over the hyperparameters.
    pub(crate) when: Option<String>,
    /// When the key is written, over the config's fields.
    pub(crate) written_when: Option<String>,
}

/// The type of a key that is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyType {
    U32,
    I32,
    F32,
    Bool,
    String,
}

/// A field of the config that a file does not tell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbsentRow {
    pub(crate) field: String,
    pub(crate) note: String,
}
