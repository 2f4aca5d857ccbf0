//! Hyperparameters: what a file's metadata, or a checkpoint's config, say of the shapes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use gguf_assay_format::{ByteOrder, Gguf, Value as FileValue};

use crate::architecture::{Architecture, Example, LAYER, Origin, Piece, Row};
use crate::expression::{Failure, Value};
use crate::pattern::Numbers;

/// What a key holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Held {
    One(Value),
    /// A value for each layer; as many as there can be layers.
    Each(Vec<Value>),
}

/// The metadata that an architecture asks for, by the key as its data has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) held: HashMap<String, Held>,
    pub(crate) counts: HashMap<String, u64>,
    /// The largest number of each tensor that is asked for.
    pub(crate) largest: HashMap<String, f64>,
    /// The rows of tensors that are asked for, and the parameters that they are made of.
    pub(crate) rows: HashMap<String, u64>,
    pub(crate) parts: HashMap<String, u64>,
    /// As many layers as can be looked at: the file's tensors and a few more.
    pub(crate) most_layers: u64,
}

impl Metadata {
    /// What the file says. Of an array, as many elements are taken as the file has tensors and a few
    /// more: no more layers can be looked at.
    pub(crate) fn of(architecture: &Architecture, gguf: &Gguf<'_>) -> Metadata {
        let most = gguf.tensors.len().saturating_add(64);
        let mut metadata =
            Metadata { most_layers: most.try_into().unwrap_or(u64::MAX), ..Metadata::default() };
        for each in &architecture.hyperparameters {
            if let Origin::RowsOf(name) = &each.origin
                && let Some(rows) = gguf.tensor(name).and_then(|tensor| tensor.dims.iter().last())
            {
                metadata.rows.insert(name.clone(), rows);
            }
        }
        for key in architecture.keys() {
            match gguf.get(&architecture.full_key(key)) {
                Some(FileValue::Array(array)) => {
                    metadata.counts.insert(key.to_owned(), array.len());
                    let values = array.iter().take(most).map_while(|value| scalar(&value));
                    metadata.held.insert(key.to_owned(), Held::Each(values.collect()));
                }
                Some(value) => {
                    if let Some(value) = scalar(value) {
                        metadata.held.insert(key.to_owned(), Held::One(value));
                    }
                }
                None => {}
            }
        }
        for each in &architecture.hyperparameters {
            if let Origin::LargestIn(name) = &each.origin
                && let Some(tensor) = gguf.tensor(name)
                && tensor.tensor_type.is_some_and(|t| t.name == "F32")
                && let Some(data) = gguf.tensor_bytes(tensor)
            {
                let numbers = data.as_chunks::<4>().0.iter().map(|bytes| match gguf.byte_order {
                    ByteOrder::Little => f32::from_le_bytes(*bytes),
                    ByteOrder::Big => f32::from_be_bytes(*bytes),
                });
                let largest = numbers.fold(f32::NEG_INFINITY, f32::max);
                if let Some(largest) = decimal(largest).filter(|_| largest.is_finite()) {
                    metadata.largest.insert(name.clone(), largest);
                }
            }
        }
        metadata
    }

    /// The element of an array that is greater, or less, than all others, or an only value.
    fn extreme(&self, key: &str, than: Ordering) -> Option<Value> {
        let Held::Each(values) = self.held.get(key)? else { return self.get(key, None) };
        let mut numbers = values.iter().filter_map(|value| Some((value, value.as_f64()?)));
        let first = numbers.next()?;
        let found = numbers.fold(first, |best, each| {
            if each.1.partial_cmp(&best.1) == Some(than) { each } else { best }
        });
        Some(found.0.clone())
    }

    pub(crate) fn get(&self, key: &str, layer: Option<u64>) -> Option<Value> {
        match self.held.get(key)? {
            Held::One(value) => Some(value.clone()),
            Held::Each(values) => values.get(usize::try_from(layer?).ok()?).cloned(),
        }
    }
}

/// The shortest decimal number that is this `f32`: what the config it was made from said.
fn decimal(number: f32) -> Option<f64> {
    number.to_string().parse().ok()
}

fn scalar(value: &FileValue<'_>) -> Option<Value> {
    Some(match value {
        FileValue::U8(v) => Value::Int((*v).into()),
        FileValue::I8(v) => Value::Int((*v).into()),
        FileValue::U16(v) => Value::Int((*v).into()),
        FileValue::I16(v) => Value::Int((*v).into()),
        FileValue::U32(v) => Value::Int((*v).into()),
        FileValue::I32(v) => Value::Int((*v).into()),
        FileValue::U64(v) => Value::Int((*v).into()),
        FileValue::I64(v) => Value::Int((*v).into()),
        FileValue::F32(v) => Value::Float(decimal(*v)?),
        FileValue::F64(v) => Value::Float(*v),
        FileValue::Bool(v) => Value::Bool(*v),
        FileValue::String(text) => Value::Text(text.as_str()?.to_owned()),
        FileValue::Array(_) => return None,
    })
}

/// The hyperparameters of one file or checkpoint.
#[derive(Debug)]
pub(crate) struct Hyperparameters {
    pub(crate) architecture: &'static Architecture,
    pub(crate) metadata: Metadata,
    present: HashSet<String>,
    /// Names and layers.
    present_each: HashSet<(&'static str, u64)>,
    /// The first layers for which something holds, by the hyperparameter's name.
    first_layers: HashMap<&'static str, Vec<u64>>,
    global: HashMap<&'static str, Value>,
    /// Whether some are different in each layer.
    layered: bool,
}

impl Hyperparameters {
    /// `present` says whether there is a GGUF tensor of this name.
    pub(crate) fn new(
        architecture: &'static Architecture,
        metadata: Metadata,
        present: &dyn Fn(&str) -> bool,
    ) -> Hyperparameters {
        let present_layer = present;
        let present = architecture
            .hyperparameters
            .iter()
            .filter_map(|each| match &each.origin {
                Origin::Present(tensor) if present(tensor) => Some(tensor.clone()),
                _ => None,
            })
            .collect();
        let mut this = Hyperparameters {
            architecture,
            metadata,
            present,
            present_each: HashSet::new(),
            first_layers: HashMap::new(),
            global: HashMap::new(),
            layered: false,
        };
        this.global = this.compute(None);
        this.layered = architecture.hyperparameters.iter().any(|each| {
            let default = each.default.as_ref().is_some_and(|is| is.names().contains(&LAYER));
            let origin = match &each.origin {
                Origin::Key(key) => matches!(this.metadata.held.get(key), Some(Held::Each(_))),
                Origin::Is(is) => is.names().contains(&LAYER),
                Origin::PresentEach(_) => true,
                _ => false,
            };
            default || origin
        });
        let layers = this.blocks().unwrap_or(0).min(this.metadata.most_layers);
        for each in &architecture.hyperparameters {
            match &each.origin {
                Origin::PresentEach(tensor) => {
                    let name = |layer| tensor.name(Numbers { layer: Some(layer), expert: None });
                    let found = (0..layers).filter(|layer| present_layer(&name(*layer)));
                    this.present_each.extend(found.map(|layer| (each.name.as_str(), layer)));
                }
                Origin::First(holds) | Origin::Step(holds) => {
                    let found = (0..layers).filter(|layer| {
                        let names = this.at(Some(*layer));
                        holds.value(&|name| names.get(name)) == Ok(Value::Bool(true))
                    });
                    let found = found.take(2).collect();
                    this.first_layers.insert(&each.name, found);
                }
                _ => {}
            }
        }
        if !this.first_layers.is_empty() {
            this.global = this.compute(None);
        }
        this
    }

    /// Those of a tiny model of the data files.
    pub(crate) fn of_example(
        architecture: &'static Architecture,
        example: &Example,
    ) -> Hyperparameters {
        let present = |name: &str| !example.without.iter().any(|without| without == name);
        let metadata = Metadata { most_layers: 16, ..example.metadata.clone() };
        Hyperparameters::new(architecture, metadata, &present)
    }

    fn compute(&self, layer: Option<u64>) -> HashMap<&'static str, Value> {
        let mut values: HashMap<&'static str, Value> = HashMap::new();
        if let Some(layer) = layer {
            values.insert(LAYER, Value::Int(layer.into()));
        }
        for each in &self.architecture.hyperparameters {
            let value = match &each.origin {
                Origin::Key(key) => self.metadata.get(key, layer),
                Origin::Is(is) => is.value(&|name| values.get(name).cloned()).ok(),
                Origin::CountOf(key) => {
                    self.metadata.counts.get(key).map(|count| Value::Int((*count).into()))
                }
                Origin::LargestOf(key) => self.metadata.extreme(key, Ordering::Greater),
                Origin::SmallestOf(key) => self.metadata.extreme(key, Ordering::Less),
                Origin::FirstOf(key) | Origin::LastOf(key) => match self.metadata.held.get(key) {
                    Some(Held::Each(values)) => match each.origin {
                        Origin::FirstOf(_) => values.first().cloned(),
                        _ => values.last().cloned(),
                    },
                    _ => self.metadata.get(key, None),
                },
                Origin::Present(tensor) => Some(Value::Bool(self.present.contains(tensor))),
                Origin::LargestIn(tensor) => {
                    self.metadata.largest.get(tensor).map(|number| Value::Float(*number))
                }
                Origin::PresentEach(_) => layer.map(|layer| {
                    Value::Bool(self.present_each.contains(&(each.name.as_str(), layer)))
                }),
                Origin::RowsOf(name) => {
                    self.metadata.rows.get(name).map(|rows| Value::Int((*rows).into()))
                }
                Origin::PartsOf(name) => {
                    self.metadata.parts.get(name).map(|parts| Value::Int((*parts).into()))
                }
                Origin::First(_) => {
                    self.first_where(&each.name, 0).map(|layer| Value::Int(layer.into()))
                }
                Origin::Step(_) => {
                    let pair = self.first_where(&each.name, 0).zip(self.first_where(&each.name, 1));
                    pair.map(|(first, second)| Value::Int(i128::from(second) - i128::from(first)))
                }
            };
            let default = || {
                // A key that is an array has a value for each layer, and no default.
                if let Origin::Key(key) = &each.origin
                    && self.metadata.held.contains_key(key)
                {
                    return None;
                }
                each.default.as_ref()?.value(&|name| values.get(name).cloned()).ok()
            };
            if let Some(value) = value.or_else(default) {
                values.insert(&each.name, value);
            }
        }
        values
    }

    fn first_where(&self, name: &str, place: usize) -> Option<u64> {
        self.first_layers.get(name)?.get(place).copied()
    }

    /// What names stand for, in a layer or outside all.
    pub(crate) fn at(&self, layer: Option<u64>) -> Names<'_> {
        match layer {
            Some(layer) if self.layered => Names {
                values: Some(self.compute(Some(layer))),
                global: &self.global,
                layer: Some(layer),
            },
            layer => Names { values: None, global: &self.global, layer },
        }
    }

    /// A hyperparameter that is the same in all layers, if it is a count.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.global.get(name)?.as_u64()
    }

    /// How many blocks there may be: those of `n_layer`, and what follows them to predict more.
    pub(crate) fn blocks(&self) -> Option<u64> {
        self.count("n_block").or_else(|| self.count("n_layer"))
    }

    /// The key that a hyperparameter comes from, as a file has it.
    pub(crate) fn key_of(&self, name: &str) -> Option<String> {
        self.architecture.hyperparameters.iter().find(|each| each.name == name).and_then(|each| {
            match &each.origin {
                Origin::Key(key)
                | Origin::CountOf(key)
                | Origin::LargestOf(key)
                | Origin::SmallestOf(key)
                | Origin::FirstOf(key)
                | Origin::LastOf(key) => Some(self.architecture.full_key(key)),
                Origin::Is(is) => is
                    .names()
                    .into_iter()
                    .find(|name| !self.global.contains_key(name))
                    .and_then(|name| self.key_of(name)),
                Origin::Present(_)
                | Origin::LargestIn(_)
                | Origin::PresentEach(_)
                | Origin::RowsOf(_)
                | Origin::PartsOf(_)
                | Origin::First(_)
                | Origin::Step(_) => None,
            }
        })
    }

    /// The name of a parameter of the tensor with these numbers.
    pub(crate) fn parameter(&self, row: &Row, piece: &Piece, numbers: Numbers) -> String {
        let layer = self.at(None).layer_of(row, numbers.layer);
        piece.parameter.name(Numbers { layer, ..numbers })
    }

    /// All that are the same in all layers, for reports.
    pub(crate) fn all(&self) -> BTreeMap<&'static str, Value> {
        self.global.iter().map(|(name, value)| (*name, value.clone())).collect()
    }
}

/// What names stand for in one place.
pub(crate) struct Names<'a> {
    values: Option<HashMap<&'static str, Value>>,
    global: &'a HashMap<&'static str, Value>,
    layer: Option<u64>,
}

impl Names<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        if name == LAYER {
            return self.layer.map(|layer| Value::Int(layer.into()));
        }
        match &self.values {
            Some(values) => values.get(name).cloned(),
            None => self.global.get(name).cloned(),
        }
    }

    /// The layer of a row's parameters, where that of its tensor is `layer`.
    pub(crate) fn layer_of(&self, row: &Row, layer: Option<u64>) -> Option<u64> {
        match &row.layer {
            Some(expression) => expression.value(&|name| self.get(name)).ok()?.as_u64(),
            None => Some(layer?.saturating_sub(self.first_layer(row))),
        }
    }

    /// The layer from which the parameters of a row count theirs.
    pub(crate) fn first_layer(&self, row: &Row) -> u64 {
        let first = row.from_layer.as_ref().map(|from| from.value(&|name| self.get(name)));
        first.and_then(|first| first.ok()?.as_u64()).unwrap_or(0)
    }

    /// Whether a condition holds; one that needs what is not known does.
    pub(crate) fn holds(&self, condition: Option<&crate::expression::Expression>) -> bool {
        match condition.map(|condition| condition.value(&|name| self.get(name))) {
            Some(Ok(Value::Bool(holds))) => holds,
            Some(Err(Failure::Missing(_))) | None => true,
            Some(_) => false,
        }
    }
}
