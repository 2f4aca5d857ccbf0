//! From a GGUF file to the parameters and the config that it stands for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use gguf_assay_format::{Gguf, Rule, Tensor, TensorType, escape};
use serde_json::{Value as Json, json};

use crate::architecture::{Architecture, Class, Row, UnknownArchitecture, viewed_dims};
use crate::data::Change;
use crate::expression::{Failure, Value};
use crate::hyperparameters::{Hyperparameters, Metadata, Names};
use crate::pattern::{Numbers, Pattern};
use crate::rule;
use crate::style::{self, ExpertStyle};
use crate::view::{Moves, product};

/// How many of the missing tensors are listed.
pub const MISSING_LISTED: usize = 16;

/// What a GGUF file stands for, and everything that does not fit.
#[derive(Debug)]
pub struct Map {
    /// The architecture that the file names.
    pub architecture: &'static Architecture,
    /// The class of transformers that the checkpoint is of.
    pub class: &'static Class,
    /// Every tensor of the file that has a place, in the order of the file.
    pub tensors: Vec<MappedTensor>,
    /// The parameters that they stand for, in the order in which they are come upon.
    pub parameters: Vec<Parameter>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// The config, as `config.json` of transformers 5 has it.
    pub config: Json,
    /// Fields of the config that the file does not tell, and why.
    pub absent: Vec<(&'static str, &'static str)>,
    /// Metadata keys that say nothing here: neither the container's, nor the tokenizer's, nor
    /// mapped.
    pub unmapped_keys: Vec<String>,
    /// The hyperparameters that are the same in all layers.
    pub hyperparameters: BTreeMap<&'static str, Value>,
    /// How many tensors the file has.
    pub tensor_count: usize,
    /// How many tensors of experts each style has.
    pub styles: BTreeMap<ExpertStyle, usize>,
}

/// A tensor that has a place in its architecture.
#[derive(Debug)]
pub struct MappedTensor {
    /// Its place in the file's table.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its dimensions, in ggml's order.
    pub dims: Vec<u64>,
    pub(crate) row: &'static Row,
}

impl MappedTensor {
    /// The pattern that its name has.
    pub fn pattern(&self) -> &'static Pattern {
        &self.row.tensor
    }

    /// What is done to each number on the way from transformers.
    pub fn change(&self) -> Change {
        self.row.change
    }

    /// What there is to say of it.
    pub fn note(&self) -> Option<&'static str> {
        self.row.note.as_deref()
    }
}

/// A parameter or buffer of transformers, or one for each expert.
#[derive(Debug)]
pub struct Parameter {
    /// Its name; of parameters for each expert, with `E` for the expert's number.
    pub name: String,
    /// How many experts have one, if there is one for each.
    pub experts: Option<u64>,
    /// Its shape, in torch's order. `None` if the tensors do not have the shapes that they should.
    pub shape: Option<Vec<u64>>,
    /// The tensors that it comes from.
    pub sources: Vec<Source>,
    /// The metadata key that has its only number instead, and that number.
    pub key: Option<(String, f32)>,
}

/// Where a parameter, or a part of one, comes from.
#[derive(Debug)]
pub struct Source {
    /// The place in [`Map::tensors`].
    pub tensor: usize,
    /// The view, from the parameter to the tensor; `None` if the elements keep their order.
    pub view: Option<&'static str>,
    /// What is done to each number on the way into the file.
    pub change: Change,
    /// What each number is multiplied by on the way into the file, if the architecture says so.
    pub factor: Option<f32>,
    /// The type whose blocks the parameter holds, if it does: the view is of the tensor's bytes.
    pub blocks: Option<&'static TensorType>,
    pub(crate) moves: Option<Moves>,
}

impl Parameter {
    /// The names: one for each expert, or the only one.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let pattern = Pattern::new(&self.name);
        (0..self.experts.unwrap_or(1)).map(move |expert| match self.experts {
            Some(_) => pattern.name(Numbers { layer: None, expert: Some(expert) }),
            None => self.name.clone(),
        })
    }
}

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The architecture has no tensor of this name, or not there.
    Unmapped {
        /// The tensor, escaped.
        name: String,
        /// Why, as far as can be told.
        reason: String,
    },
    /// Tensors that should be there.
    Missing {
        /// The first of them.
        first: Vec<MissingTensor>,
        /// How many there are in the blocks that were looked at.
        count: u64,
        /// How many more blocks there should be of which the file has nothing.
        empty_blocks: u64,
    },
    /// Two tensors for one place.
    Duplicated {
        /// The tensor or parameter.
        name: String,
        /// The other, or how it comes about.
        reason: String,
    },
    /// A tensor of other dimensions than its architecture's.
    Shape {
        /// The tensor.
        name: String,
        /// What the file has, in ggml's order.
        found: Vec<u64>,
        /// What it should have.
        expected: Vec<u64>,
        /// What that follows from.
        because: String,
    },
    /// A parameter that does not come whole.
    Incomplete {
        /// The parameter.
        name: String,
        /// Its elements.
        elements: u64,
        /// Those that the file has.
        found: u64,
    },
    /// A metadata key without which a shape cannot be told.
    MissingKey {
        /// The key.
        key: String,
        /// The hyperparameter.
        name: String,
    },
    /// A key whose value no checkpoint of the architecture gives: it is of another class.
    Otherwise {
        /// The key.
        key: String,
        /// What the file has.
        found: String,
        /// What every file made of such a checkpoint has.
        expected: String,
    },
    /// A shape that has no value.
    Senseless {
        /// The tensor.
        name: String,
        /// Why.
        reason: String,
    },
}

/// A tensor that should be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTensor {
    /// Its name.
    pub name: String,
    /// The parameters that it stands for.
    pub parameters: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Unmapped { name, reason } => write!(f, "unmapped: {name}: {reason}"),
            Finding::Missing { first, count, empty_blocks } => {
                write!(f, "missing: {count} tensors")?;
                if *empty_blocks > 0 {
                    write!(f, ", and all of {empty_blocks} more blocks")?;
                }
                for each in first {
                    write!(f, "\n  {}", each.name)?;
                    if !each.parameters.is_empty() {
                        write!(f, ": {}", each.parameters.join(", "))?;
                    }
                }
                let more = count.saturating_sub(first.len().try_into().unwrap_or(u64::MAX));
                if more > 0 {
                    write!(f, "\n  … and {more} more")?;
                }
                Ok(())
            }
            Finding::Duplicated { name, reason } => write!(f, "duplicated: {name}: {reason}"),
            Finding::Shape { name, found, expected, because } => {
                write!(f, "shape: {name} is {found:?}, expected {expected:?}: {because}")
            }
            Finding::Incomplete { name, elements, found } => {
                write!(f, "incomplete: {name} has {found} of {elements} elements")
            }
            Finding::MissingKey { key, name } => {
                write!(f, "missing key: {key}, without which {name} is not known")
            }
            Finding::Otherwise { key, found, expected } => {
                write!(f, "key: {key} is {found}, and such a checkpoint gives {expected}")
            }
            Finding::Senseless { name, reason } => write!(f, "no shape: {name}: {reason}"),
        }
    }
}

impl Finding {
    /// One word: `unmapped`, `missing`, `duplicated`, `shape`, `incomplete`, `missing-key`,
    /// `key`, `no-shape`.
    pub fn kind(&self) -> &'static str {
        match self {
            Finding::Unmapped { .. } => "unmapped",
            Finding::Missing { .. } => "missing",
            Finding::Duplicated { .. } => "duplicated",
            Finding::Shape { .. } => "shape",
            Finding::Incomplete { .. } => "incomplete",
            Finding::MissingKey { .. } => "missing-key",
            Finding::Otherwise { .. } => "key",
            Finding::Senseless { .. } => "no-shape",
        }
    }

    /// The rule that is broken.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Finding::Unmapped { .. } => &rule::NAMES_002,
            Finding::Missing { .. } => &rule::NAMES_003,
            Finding::Duplicated { .. } => &rule::NAMES_004,
            Finding::Shape { .. } | Finding::Senseless { .. } => &rule::NAMES_005,
            Finding::Incomplete { .. } => &rule::NAMES_006,
            Finding::MissingKey { .. } => &rule::NAMES_007,
            Finding::Otherwise { .. } => &rule::NAMES_008,
        }
    }
}

/// Why there is no map of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMapped {
    /// The file does not name its architecture, or by something that is not text.
    NoArchitecture,
    /// There is no map of the architecture that it names.
    Unknown(UnknownArchitecture),
}

impl fmt::Display for NotMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotMapped::NoArchitecture => {
                f.write_str("the file has no general.architecture that is text, so nothing says which names it should have")
            }
            NotMapped::Unknown(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotMapped {}

impl From<UnknownArchitecture> for NotMapped {
    fn from(error: UnknownArchitecture) -> NotMapped {
        NotMapped::Unknown(error)
    }
}

impl Map {
    /// The map of a file. Takes time and memory in proportion to the records of the file, whatever
    /// its metadata claim.
    ///
    /// # Errors
    ///
    /// The file names no architecture, or one that there is no map of. Everything else that is
    /// wrong is a [`Finding`].
    pub fn of(gguf: &Gguf<'_>) -> Result<Map, NotMapped> {
        Map::new(gguf, false)
    }

    /// The map of a file whose tensors of blocks stay blocks, where checkpoints have them as well:
    /// of MXFP4 in gpt-oss.
    ///
    /// # Errors
    ///
    /// Those of [`Map::of`].
    pub fn with_blocks(gguf: &Gguf<'_>) -> Result<Map, NotMapped> {
        Map::new(gguf, true)
    }

    fn new(gguf: &Gguf<'_>, with_blocks: bool) -> Result<Map, NotMapped> {
        let name = gguf.get("general.architecture").and_then(|value| value.as_str());
        let architecture = Architecture::find(name.ok_or(NotMapped::NoArchitecture)?)?;
        let names: HashSet<&str> =
            gguf.tensors.iter().filter_map(|tensor| tensor.name.as_str()).collect();
        let hyperparameters =
            Hyperparameters::new(architecture, Metadata::of(architecture, gguf), &|name| {
                is_present(&names, name)
            });
        let class = class_of(&hyperparameters);
        let mut builder = Builder {
            hyperparameters: &hyperparameters,
            with_blocks,
            tensors: Vec::new(),
            parameters: Vec::new(),
            by_name: HashMap::new(),
            findings: Vec::new(),
            missing_keys: BTreeSet::new(),
            styles: BTreeMap::new(),
        };
        for (index, tensor) in gguf.tensors.iter().enumerate() {
            builder.tensor(index, tensor);
        }
        builder.keyed();
        builder.repeated();
        builder.missing(&names);
        builder.whole();
        builder.constants();
        let Builder { tensors, parameters, mut findings, missing_keys, styles, .. } = builder;
        let missing_keys = missing_keys.into_iter();
        findings.extend(missing_keys.map(|(key, name)| Finding::MissingKey { key, name }));
        let mut config = crate::config::of(&hyperparameters, class);
        let mut sources = parameters.iter().flat_map(|parameter| &parameter.sources);
        if let (Some(blocks), Json::Object(config)) =
            (sources.find_map(|source| source.blocks), &mut config)
        {
            // Without it, transformers does not look for blocks.
            let method = json!({ "quant_method": blocks.name.to_lowercase() });
            config.insert("quantization_config".to_owned(), method);
        }
        Ok(Map {
            architecture,
            class,
            config,
            absent: crate::config::absent(architecture),
            unmapped_keys: unmapped_keys(architecture, gguf),
            hyperparameters: hyperparameters.all(),
            tensors,
            parameters,
            findings,
            tensor_count: gguf.tensors.len(),
            styles,
        })
    }

    /// How many parameters the file stands for, each expert's counted.
    pub fn parameter_count(&self) -> u64 {
        let counts = self.parameters.iter().map(|parameter| parameter.experts.unwrap_or(1));
        counts.fold(0, u64::saturating_add)
    }

    /// Whether every tensor has its place and shape, and every parameter comes whole.
    pub fn is_complete(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Whether there is a tensor of a name, or of a pattern in any layer.
fn is_present(names: &HashSet<&str>, name: &str) -> bool {
    let pattern = Pattern::new(name);
    if !pattern.has_layer() {
        return names.contains(name);
    }
    names.iter().any(|name| pattern.matches(name).is_some())
}

pub(crate) fn class_of(hyperparameters: &Hyperparameters) -> &'static Class {
    let names = hyperparameters.at(None);
    let classes = &hyperparameters.architecture.classes;
    let fits = classes.iter().find(|class| match &class.when {
        None => true,
        Some(when) => when.value(&|name| names.get(name)) == Ok(Value::Bool(true)),
    });
    // The data have a class for everything; the last is as good as any.
    #[expect(clippy::expect_used)]
    fits.or(classes.last()).expect("an architecture has a class")
}

/// What the container, the tokenizer and split files have for themselves.
const NOT_CONFIG: [&str; 5] = ["general.", "tokenizer.", "split.", "quantize.", "imatrix."];

fn unmapped_keys(architecture: &Architecture, gguf: &Gguf<'_>) -> Vec<String> {
    let mapped: HashSet<String> =
        architecture.keys().map(|key| architecture.full_key(key)).collect();
    let keys = gguf.metadata.iter().filter(|entry| match entry.key.as_str() {
        Some(key) => {
            !mapped.contains(key) && !NOT_CONFIG.iter().any(|start| key.starts_with(start))
        }
        None => true,
    });
    keys.map(|entry| escape(entry.key.0, 120)).collect()
}

struct Builder<'a> {
    hyperparameters: &'a Hyperparameters,
    with_blocks: bool,
    tensors: Vec<MappedTensor>,
    parameters: Vec<Parameter>,
    by_name: HashMap<String, usize>,
    findings: Vec<Finding>,
    /// Key and hyperparameter.
    missing_keys: BTreeSet<(String, String)>,
    styles: BTreeMap<ExpertStyle, usize>,
}

impl Builder<'_> {
    fn tensor(&mut self, index: usize, tensor: &Tensor<'_>) {
        let Some(name) = tensor.name.as_str() else {
            let name = escape(tensor.name.0, 120);
            self.unmapped(name, "the name is not UTF-8".into());
            return;
        };
        if let Some(style) = ExpertStyle::of(name) {
            let count = self.styles.entry(style).or_default();
            *count = count.saturating_add(1);
        }
        match place(self.hyperparameters, name) {
            Ok(found) => {
                let dims: Vec<u64> = tensor.dims.iter().collect();
                let place = self.tensors.len();
                let tensor_type = tensor.tensor_type.filter(|_| self.with_blocks);
                self.pieces(place, name, &found, &dims, tensor_type);
                let (name, row) = (name.to_owned(), found.row);
                self.tensors.push(MappedTensor { index, name, dims, row });
            }
            Err(reason) => self.unmapped(escape(name.as_bytes(), 120), reason),
        }
    }

    fn unmapped(&mut self, name: String, reason: String) {
        self.findings.push(Finding::Unmapped { name, reason });
    }

    /// Adds a tensor to the parameters that it stands for: those of blocks of the type, if there
    /// are any.
    fn pieces(
        &mut self,
        place: usize,
        name: &str,
        found: &Place<'_>,
        dims: &[u64],
        tensor_type: Option<&'static TensorType>,
    ) {
        let Place { row, numbers, names } = found;
        let expected = match expected_dims(row, names) {
            Ok(expected) if same_dims(&expected, dims) => Some(expected),
            Ok(expected) => {
                self.findings.push(Finding::Shape {
                    name: name.to_owned(),
                    found: dims.to_vec(),
                    because: because(row, &expected),
                    expected,
                });
                None
            }
            Err(failure) => {
                self.failed(name, failure);
                None
            }
        };
        let factor = match expected_factor(row, names) {
            Ok(factor) => factor,
            Err(failure) => {
                self.failed(name, failure);
                return;
            }
        };
        let kept = row.forms().find(|(_, blocks)| blocks.is_some() && *blocks == tensor_type);
        let (pieces, blocks) = kept.unwrap_or((row.pieces.as_slice(), None));
        for piece in pieces {
            let mut moves = None;
            // A tensor of blocks has rows of whole blocks, or no data.
            if let Some(torch) = expected.as_ref().and_then(|dims| viewed_dims(dims, blocks)) {
                match piece.view.moves(&torch, &|name| names.get(name)) {
                    Ok(found) => moves = Some(found),
                    Err(reason) => self.findings.push(Finding::Senseless {
                        name: name.to_owned(),
                        reason: format!("{reason} (`{}`)", piece.view.text()),
                    }),
                }
            }
            let parameter = self.hyperparameters.parameter(row, piece, *numbers);
            let at = *self.by_name.entry(parameter).or_insert_with_key(|name| {
                self.parameters.push(Parameter {
                    name: name.clone(),
                    experts: None,
                    shape: None,
                    sources: Vec::new(),
                    key: None,
                });
                self.parameters.len().saturating_sub(1)
            });
            let Some(parameter) = self.parameters.get_mut(at) else { continue };
            if let Some(moves) = &moves {
                let experts = moves.experts.map(|experts| experts.count);
                let first = parameter.shape.is_none();
                if first {
                    parameter.shape = Some(moves.shape.clone());
                    parameter.experts = experts;
                } else if parameter.shape.as_ref() != Some(&moves.shape)
                    || parameter.experts != experts
                {
                    self.findings.push(Finding::Senseless {
                        name: name.to_owned(),
                        reason: format!("another tensor gives {} another shape", parameter.name),
                    });
                    continue;
                }
            }
            parameter.sources.push(Source {
                tensor: place,
                view: (!piece.view.is_identity()).then_some(piece.view.text()),
                change: piece.change,
                factor,
                blocks,
                moves,
            });
        }
    }

    fn failed(&mut self, tensor: &str, failure: Failure) {
        match failure {
            Failure::Missing(name) => {
                let key = self.hyperparameters.key_of(&name);
                self.missing_keys.insert((key.unwrap_or_else(|| name.clone()), name));
            }
            Failure::Senseless(reason) => {
                self.findings.push(Finding::Senseless { name: tensor.to_owned(), reason });
            }
        }
    }

    /// Parameters whose numbers are in metadata keys.
    fn keyed(&mut self) {
        let metadata = &self.hyperparameters.metadata;
        let layers = self.hyperparameters.count("n_layer").unwrap_or(0).min(metadata.most_layers);
        for keyed in &self.hyperparameters.architecture.keyed {
            let key = self.hyperparameters.architecture.full_key(&keyed.key);
            for layer in 0..layers {
                let number = metadata.get(&keyed.key, Some(layer)).and_then(|value| value.as_f64());
                let Some(number) = number else {
                    self.missing_keys.insert((key, keyed.parameter.text().to_owned()));
                    break;
                };
                // It was an f32 in the file.
                #[expect(clippy::as_conversions)]
                let number = number as f32;
                self.parameters.push(Parameter {
                    name: keyed.parameter.name(Numbers { layer: Some(layer), expert: None }),
                    experts: None,
                    shape: Some(keyed.shape.clone()),
                    sources: Vec::new(),
                    key: Some((key.clone(), number)),
                });
            }
        }
    }

    /// Keys that are the same in every file of the architecture.
    fn constants(&mut self) {
        for field in &self.hyperparameters.architecture.config {
            // What is written under a condition is not in every file.
            let (None, Some(key), Some(from), None) =
                (&field.row.field, &field.row.key, &field.from, &field.written_when)
            else {
                continue;
            };
            if !from.names().is_empty() {
                continue;
            }
            let (Some(found), Ok(expected)) =
                (self.hyperparameters.metadata.get(key, None), from.value(&|_| None))
            else {
                continue;
            };
            if found != expected {
                self.findings.push(Finding::Otherwise {
                    key: self.hyperparameters.architecture.full_key(key),
                    found: found.to_string(),
                    expected: expected.to_string(),
                });
            }
        }
    }

    /// Names that come twice.
    fn repeated(&mut self) {
        let mut seen = HashSet::new();
        for tensor in &self.tensors {
            if !seen.insert(&tensor.name) {
                self.findings.push(Finding::Duplicated {
                    name: tensor.name.clone(),
                    reason: "the file has two tensors of this name".into(),
                });
            }
        }
    }

    /// What should be there and is not, and what is there in two forms.
    fn missing(&mut self, present: &HashSet<&str>) {
        // Tensors whose place another form takes, and that form.
        let mut replaced: HashMap<String, String> = HashMap::new();
        // The experts of each pattern and layer that has a tensor for each expert.
        let mut experts: BTreeMap<(&Pattern, Option<u64>), BTreeSet<u64>> = BTreeMap::new();
        let mut layers: BTreeSet<u64> = BTreeSet::new();
        for tensor in &self.tensors {
            let Some(numbers) = tensor.row.tensor.matches(&tensor.name) else { continue };
            layers.extend(numbers.layer);
            for other in &tensor.row.instead_of {
                replaced.insert(other.name(numbers), tensor.name.clone());
            }
            if let Some(expert) = numbers.expert {
                experts.entry((&tensor.row.tensor, numbers.layer)).or_default().insert(expert);
            }
        }
        let mut both: Vec<_> =
            replaced.iter().filter(|(name, _)| present.contains(name.as_str())).collect();
        both.sort();
        for (name, by) in both {
            self.findings.push(Finding::Duplicated {
                name: name.clone(),
                reason: format!("{by} stands for the same parameters"),
            });
        }

        let architecture = self.hyperparameters.architecture;
        if self.hyperparameters.count("n_layer").is_none()
            && architecture.rows.iter().any(|row| row.tensor.has_layer())
        {
            self.failed("", Failure::Missing("n_layer".into()));
        }
        let is_there = |_, row: &Row, numbers| {
            let name = row.tensor.name(numbers);
            present.contains(name.as_str()) || replaced.contains_key(&name)
        };
        let mut missing =
            MissingList::of(self.hyperparameters, layers, self.tensors.len(), is_there);
        for ((pattern, layer), seen) in experts {
            let Some(count) = self.hyperparameters.count("n_expert") else { continue };
            let Some(row) = architecture.rows.iter().find(|row| row.tensor == *pattern) else {
                continue;
            };
            let seen_of: u64 = seen.range(..count).count().try_into().unwrap_or(u64::MAX);
            // As many are tried as there can be gaps before the last that is listed.
            let tried = seen.len().saturating_add(MISSING_LISTED).try_into().unwrap_or(count);
            let mut left = count.saturating_sub(seen_of);
            for expert in (0..count.min(tried)).filter(|expert| !seen.contains(expert)) {
                let numbers = Numbers { layer, expert: Some(expert) };
                missing.add(self.hyperparameters, row, numbers);
                left = left.saturating_sub(1);
            }
            missing.count = missing.count.saturating_add(left);
        }
        self.findings.extend(missing.finding());
    }

    /// Parameters that come in part, or more than once.
    fn whole(&mut self) {
        for parameter in self.parameters.iter().filter(|parameter| parameter.key.is_none()) {
            let Some(elements) = parameter.shape.as_ref().and_then(|s| product(s.iter().copied()))
            else {
                continue;
            };
            let moves = parameter.sources.iter().filter_map(|source| source.moves.as_ref());
            let found = moves.filter_map(Moves::elements).fold(0, u64::saturating_add);
            // What is missing because of a wrong shape has been said.
            let all = parameter.sources.iter().all(|source| source.moves.is_some());
            if found < elements && all {
                self.findings.push(Finding::Incomplete {
                    name: parameter.name.clone(),
                    elements,
                    found,
                });
            } else if found > elements {
                let names: Vec<&str> = parameter
                    .sources
                    .iter()
                    .filter_map(|source| self.tensors.get(source.tensor))
                    .map(|tensor| tensor.name.as_str())
                    .collect();
                self.findings.push(Finding::Duplicated {
                    name: parameter.name.clone(),
                    reason: format!("it comes from {}", names.join(" and ")),
                });
            }
        }
    }
}

/// Tensors that should be there and are not.
pub(crate) struct MissingList {
    first: Vec<MissingTensor>,
    count: u64,
    empty_blocks: u64,
}

impl MissingList {
    /// Those for which `is_there`, given a row's place, the row and the layer, does not hold.
    /// Blocks are looked at in which something was `seen`, and as many more as `records` could
    /// fill.
    pub(crate) fn of(
        hyperparameters: &Hyperparameters,
        seen: BTreeSet<u64>,
        records: usize,
        is_there: impl Fn(usize, &Row, Numbers) -> bool,
    ) -> MissingList {
        let claimed = hyperparameters.count("n_layer").unwrap_or(0);
        let mut layers = seen;
        layers.extend(0..claimed.min(records.saturating_add(8).try_into().unwrap_or(0)));
        layers.retain(|layer| *layer < claimed);
        let empty_blocks = claimed.saturating_sub(layers.len().try_into().unwrap_or(u64::MAX));
        let mut list = MissingList { first: Vec::new(), count: 0, empty_blocks };
        for layer in std::iter::once(None).chain(layers.into_iter().map(Some)) {
            let names = hyperparameters.at(layer);
            for (place, row) in hyperparameters.architecture.rows.iter().enumerate() {
                let here = row.tensor.has_layer() == layer.is_some() && !row.tensor.has_expert();
                if !here || row.optional || !names.holds(row.when.as_ref()) {
                    continue;
                }
                let numbers = Numbers { layer, expert: None };
                if !is_there(place, row, numbers) {
                    list.add(hyperparameters, row, numbers);
                }
            }
        }
        list
    }

    fn add(&mut self, hyperparameters: &Hyperparameters, row: &Row, numbers: Numbers) {
        if self.first.len() < MISSING_LISTED {
            let pieces = row.pieces.iter();
            let mut parameters: Vec<String> =
                pieces.map(|piece| hyperparameters.parameter(row, piece, numbers)).collect();
            parameters.dedup();
            self.first.push(MissingTensor { name: row.tensor.name(numbers), parameters });
        }
        self.count = self.count.saturating_add(1);
    }

    /// What there is to say of them.
    pub(crate) fn finding(self) -> Option<Finding> {
        let MissingList { first, count, empty_blocks } = self;
        (count > 0 || empty_blocks > 0).then_some(Finding::Missing { first, count, empty_blocks })
    }
}

/// What a tensor's name says: its row, its numbers, and what names stand for in its layer.
struct Place<'a> {
    row: &'static Row,
    numbers: Numbers,
    names: Names<'a>,
}

/// The place that a tensor of this name has; why it has none.
fn place<'a>(hyperparameters: &'a Hyperparameters, name: &str) -> Result<Place<'a>, String> {
    let architecture = hyperparameters.architecture;
    let mut reason = None;
    for place in architecture.rows_of_tensor(name) {
        let Some(row) = architecture.rows.get(*place) else { continue };
        let Some(numbers) = row.tensor.matches(name) else { continue };
        if let (Some(layer), Some(blocks)) = (numbers.layer, hyperparameters.blocks())
            && layer >= blocks
        {
            return Err(format!("there are {blocks} blocks, counted from 0"));
        }
        if let (Some(expert), Some(experts)) = (numbers.expert, hyperparameters.count("n_expert"))
            && expert >= experts
        {
            return Err(format!("there are {experts} experts, counted from 0"));
        }
        let names = hyperparameters.at(numbers.layer);
        if names.holds(row.when.as_ref()) {
            return Ok(Place { row, numbers, names });
        }
        if let Some(when) = &row.when {
            reason.get_or_insert_with(|| format!("it belongs there only where {when}"));
        }
    }
    Err(reason.unwrap_or_else(|| style::explain(architecture, name)))
}

/// Whether dimensions are the same to ggml, which has four and takes those that are not there for
/// 1.
fn same_dims(left: &[u64], right: &[u64]) -> bool {
    let at = |dims: &[u64], place| dims.get(place).copied().unwrap_or(1);
    (0..left.len().max(right.len())).all(|place| at(left, place) == at(right, place))
}

/// The dimensions that a tensor of this row has, in ggml's order.
pub(crate) fn expected_dims(row: &Row, names: &Names<'_>) -> Result<Vec<u64>, Failure> {
    let dims = row.dims.iter().map(|dim| {
        let value = dim.value(&|name| names.get(name))?;
        value.as_u64().ok_or_else(|| Failure::Senseless(format!("{dim} = {value}")))
    });
    dims.collect()
}

/// What a row's numbers are multiplied by, as torch rounds a number of Python to multiply F32.
pub(crate) fn expected_factor(row: &Row, names: &Names<'_>) -> Result<Option<f32>, Failure> {
    let Some(factor) = &row.factor else { return Ok(None) };
    let value = factor.value(&|name| names.get(name))?;
    // The nearest one is what is meant.
    #[expect(clippy::as_conversions)]
    let number = value.as_f64().map(|number| number as f32);
    match number.filter(|number| number.is_normal()) {
        Some(number) => Ok(Some(number)),
        None => Err(Failure::Senseless(format!("{factor} = {value}"))),
    }
}

/// `n_embd = 64, n_head * head_dim = 128`.
pub(crate) fn because(row: &Row, dims: &[u64]) -> String {
    let each = row.dims.iter().zip(dims).map(|(expression, value)| {
        let text = expression.text();
        if text == value.to_string() { text.to_owned() } else { format!("{text} = {value}") }
    });
    each.collect::<Vec<_>>().join(", ")
}
