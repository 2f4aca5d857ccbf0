//! Hyperparameters: what a file's metadata, or a checkpoint's config, say of the shapes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use gguf_assay_format::{ByteOrder, Gguf, Tensor, Value as FileValue};

use crate::architecture::{Architecture, Example, LAYER, OfArray, OfTensor, Origin, Piece, Row};
use crate::expression::{Expression, Failure, Value};
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
    /// What is asked for of tensors, by the tensor's name.
    pub(crate) of_tensors: HashMap<(OfTensor, String), Value>,
    /// As many layers as can be looked at: the file's tensors and a few more.
    pub(crate) most_layers: u64,
}

impl Metadata {
    /// What the file says. Of an array, as many elements are taken as the file has tensors and a
    /// few more: no more layers can be looked at.
    pub(crate) fn of(architecture: &Architecture, gguf: &Gguf<'_>) -> Metadata {
        let most = gguf.tensors.len().saturating_add(64);
        let mut metadata =
            Metadata { most_layers: most.try_into().unwrap_or(u64::MAX), ..Metadata::default() };
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
            let Origin::OfTensor(of, name) = &each.origin else { continue };
            let value = gguf.tensor(name).and_then(|tensor| match of {
                OfTensor::Largest => largest_in(gguf, tensor).map(Value::Float),
                OfTensor::Rows => tensor.dims.iter().last().map(|rows| Value::Int(rows.into())),
                OfTensor::Parts => None,
            });
            metadata.of_tensors.extend(value.map(|value| ((*of, name.clone()), value)));
        }
        metadata
    }

    /// Something of the array of a key, or its only value.
    fn of_array(&self, of: OfArray, key: &str) -> Option<Value> {
        if of == OfArray::Count {
            return self.counts.get(key).map(|count| Value::Int((*count).into()));
        }
        let Held::Each(values) = self.held.get(key)? else { return self.get(key, None) };
        let than = match of {
            OfArray::First => return values.first().cloned(),
            OfArray::Last => return values.last().cloned(),
            OfArray::Smallest => Ordering::Less,
            OfArray::Largest | OfArray::Count => Ordering::Greater,
        };
        let mut numbers = values.iter().filter_map(|value| Some((value, value.as_f64()?)));
        let first = numbers.next()?;
        let found = numbers.fold(first, |best, each| {
            if each.1.partial_cmp(&best.1) == Some(than) { each } else { best }
        });
        Some(found.0.clone())
    }

    /// The value of a key: of an array, that of the layer.
    pub(crate) fn get(&self, key: &str, layer: Option<u64>) -> Option<Value> {
        match self.held.get(key)? {
            Held::One(value) => Some(value.clone()),
            Held::Each(values) => values.get(usize::try_from(layer?).ok()?).cloned(),
        }
    }
}

/// The largest number of a tensor of F32, if it is finite.
fn largest_in(gguf: &Gguf<'_>, tensor: &Tensor<'_>) -> Option<f64> {
    tensor.tensor_type.filter(|t| t.name == "F32")?;
    let (data, _) = gguf.tensor_bytes(tensor)?.as_chunks::<4>();
    let numbers = data.iter().map(|bytes| match gguf.byte_order {
        ByteOrder::Little => f32::from_le_bytes(*bytes),
        ByteOrder::Big => f32::from_be_bytes(*bytes),
    });
    let largest = numbers.fold(f32::NEG_INFINITY, f32::max);
    if largest.is_finite() { decimal(largest) } else { None }
}

/// The shortest decimal number that is this `f32`: what the config it was made from said.
fn decimal(number: f32) -> Option<f64> {
    number.to_string().parse().ok()
}

/// A value that is no array.
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
    /// The tensors, or patterns, that are asked for and there.
    present: HashSet<&'static str>,
    /// Names and layers.
    present_each: HashSet<(&'static str, u64)>,
    /// The first layers for which something holds, by the hyperparameter's name.
    first_layers: HashMap<&'static str, u64>,
    /// Those that are the same in all layers.
    global: HashMap<&'static str, Value>,
    /// Whether some are different in each layer.
    layered: bool,
}

impl Hyperparameters {
    /// `is_present` says whether there is a GGUF tensor of a name, or of a pattern in any layer.
    pub(crate) fn new(
        architecture: &'static Architecture,
        metadata: Metadata,
        is_present: &dyn Fn(&str) -> bool,
    ) -> Hyperparameters {
        let asked = architecture.hyperparameters.iter().filter_map(|each| match &each.origin {
            Origin::Present(tensor) => Some(tensor.as_str()),
            _ => None,
        });
        let present = asked.filter(|tensor| is_present(tensor)).collect();
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
                    let found = (0..layers).filter(|layer| is_present(&name(*layer)));
                    this.present_each.extend(found.map(|layer| (each.name.as_str(), layer)));
                }
                Origin::First(holds) => {
                    let first = (0..layers).find(|layer| {
                        let names = this.at(Some(*layer));
                        holds.value(&|name| names.get(name)) == Ok(Value::Bool(true))
                    });
                    if let Some(first) = first {
                        this.first_layers.insert(&each.name, first);
                        this.global = this.compute(None);
                    }
                }
                _ => {}
            }
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

    /// All that have a value in a layer, or outside all.
    fn compute(&self, layer: Option<u64>) -> HashMap<&'static str, Value> {
        let mut values: HashMap<&'static str, Value> = HashMap::new();
        if let Some(layer) = layer {
            values.insert(LAYER, Value::Int(layer.into()));
        }
        for each in &self.architecture.hyperparameters {
            let value = match &each.origin {
                Origin::Key(key) => self.metadata.get(key, layer),
                Origin::Is(is) => is.value(&|name| values.get(name).cloned()).ok(),
                Origin::PresentEach(_) => layer.map(|layer| {
                    Value::Bool(self.present_each.contains(&(each.name.as_str(), layer)))
                }),
                // The others are the same in all layers.
                _ if layer.is_some() => self.global.get(each.name.as_str()).cloned(),
                Origin::OfArray(of, key) => self.metadata.of_array(*of, key),
                Origin::OfTensor(of, tensor) => {
                    self.metadata.of_tensors.get(&(*of, tensor.clone())).cloned()
                }
                Origin::Present(tensor) => {
                    Some(Value::Bool(self.present.contains(tensor.as_str())))
                }
                Origin::First(_) => self
                    .first_layers
                    .get(each.name.as_str())
                    .map(|layer| Value::Int((*layer).into())),
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
            let key = each.origin.key().map(|key| self.architecture.full_key(key));
            key.or_else(|| {
                let Origin::Is(is) = &each.origin else { return None };
                let missing = is.names().into_iter().find(|name| !self.global.contains_key(name));
                self.key_of(missing?)
            })
        })
    }

    /// The name of a parameter of the tensor with these numbers.
    pub(crate) fn parameter(&self, row: &Row, piece: &Piece, numbers: Numbers) -> String {
        let layer = self.at(None).layer_of(row, numbers.layer);
        piece.parameter.name(Numbers { layer, ..numbers })
    }

    /// The layer of a row's tensor, where that of its parameter is `layer`: the inverse of
    /// [`Names::layer_of`]. `None` if the row's parameter is of another.
    pub(crate) fn layer_of_tensor(&self, row: &Row, layer: Option<u64>) -> Option<Option<u64>> {
        let names = self.at(None);
        if row.layer.is_some() {
            return (names.layer_of(row, None) == layer).then_some(None);
        }
        if !row.tensor.has_layer() {
            return Some(layer);
        }
        // A parameter without a number is of the block behind the last layer, or of the first of
        // those that count theirs from another.
        Some(match (layer, &row.from_layer) {
            (None, None) => self.count("n_layer"),
            (layer, _) => Some(layer.unwrap_or(0).saturating_add(names.first_layer(row))),
        })
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
    pub(crate) fn holds(&self, condition: Option<&Expression>) -> bool {
        match condition.map(|condition| condition.value(&|name| self.get(name))) {
            Some(Ok(Value::Bool(holds))) => holds,
            Some(Err(Failure::Missing(_))) | None => true,
            Some(_) => false,
        }
    }
}
