//! From a checkpoint of transformers to the GGUF tensors and metadata that it comes to.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use gguf_assay_format::{OwnedValue, TensorType, escape};
use serde_json::Value as Json;

use crate::architecture::{Architecture, Class, OfTensor, Origin, Row, viewed_dims};
use crate::config;
use crate::data::Change;
use crate::expression::{Expression, Failure, Value};
use crate::hyperparameters::{Hyperparameters, Metadata};
use crate::map::{
    Finding, MISSING_LISTED, MissingList, MissingTensor, because, class_of, expected_dims,
    expected_factor,
};
use crate::pattern::Numbers;
use crate::values::{self, Way};
use crate::view::{Moves, product};

/// A parameter or buffer of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointTensor {
    /// Its name.
    pub name: String,
    /// Its shape, in torch's order.
    pub shape: Vec<u64>,
}

/// What a checkpoint comes to in a GGUF file, and everything that does not fit.
#[derive(Debug)]
pub struct CheckpointMap {
    /// The architecture.
    pub architecture: &'static Architecture,
    /// The class of transformers.
    pub class: &'static Class,
    /// The tensors of the GGUF file.
    pub tensors: Vec<GgufTensor>,
    /// Parameters whose only number is one of a metadata key, by their place in the checkpoint, and
    /// the key. [`metadata`](CheckpointMap::metadata) does not have it: the numbers are not looked
    /// at.
    pub keyed: Vec<(usize, String)>,
    /// Parameters that the file does not hold, by their place in the checkpoint, and why.
    pub dropped: Vec<(usize, &'static str)>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// The keys that the config comes to, in the order of the architecture's data. The converter
    /// writes more, of the tokenizer and of the file itself.
    pub metadata: Vec<(String, OwnedValue)>,
}

/// A tensor of the GGUF file.
#[derive(Debug)]
pub struct GgufTensor {
    /// Its name.
    pub name: String,
    /// Its dimensions, in ggml's order.
    pub dims: Vec<u64>,
    /// What is done to each number.
    pub change: Change,
    /// The type that it has, if its parameters are blocks of one.
    pub blocks: Option<&'static TensorType>,
    /// What it is made of.
    pub sources: Vec<GgufSource>,
}

/// A parameter that a GGUF tensor is made of.
#[derive(Debug)]
pub struct GgufSource {
    /// Its place in the checkpoint.
    pub parameter: usize,
    /// The view, if the elements do not keep their order; of bytes, if they are blocks.
    pub view: Option<&'static str>,
    /// What is done to each number or byte.
    pub change: Change,
    /// What each number is multiplied by, if the architecture says so: it is undone on the way back.
    pub factor: Option<f32>,
    moves: Moves,
    expert: u64,
    factors: Vec<f32>,
}

impl GgufSource {
    /// What the config says that each number is multiplied by, one after the other. A file does not
    /// tell it.
    pub fn factors(&self) -> &[f32] {
        &self.factors
    }
}

impl GgufTensor {
    /// The tensor's numbers, little-endian, made of those of its parameters, or its blocks: `read`
    /// gives the bytes of a parameter by its place in the checkpoint, of elements of `size` bytes,
    /// or of blocks. `None` if they do not fit the shapes, or if numbers that are not `f32` would
    /// change.
    pub fn bytes<'a>(
        &self,
        size: usize,
        read: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Option<Vec<u8>> {
        let size = if self.blocks.is_some() { 1 } else { size };
        let changes = self.change != Change::None
            || self.sources.iter().any(|source| {
                source.factors.iter().chain(&source.factor).any(|factor| *factor != 1.0)
            });
        if changes && size != 4 {
            return None;
        }
        // No more is taken than the parameters have.
        let mut total = 0usize;
        for source in &self.sources {
            total = total.checked_add(read(source.parameter)?.len())?;
        }
        let len = product(viewed_dims(&self.dims, self.blocks)?)?;
        let len = usize::try_from(len).ok()?.checked_mul(size)?;
        if len > total {
            return None;
        }
        let mut bytes = vec![0; len];
        for source in &self.sources {
            let parameter = read(source.parameter)?;
            let (moves, expert) = (&source.moves, source.expert);
            let change = |numbers: &mut [u8]| {
                values::scale(numbers, &source.factors);
                values::scale(numbers, source.factor.as_slice());
                values::change(numbers, source.change);
            };
            if !values::copy(moves, expert, size, Way::IntoTensor, parameter, &mut bytes, change) {
                return None;
            }
        }
        Some(bytes)
    }
}

/// The class that a config names.
fn named_class(architecture: &'static Architecture, config: &Json) -> Option<&'static Class> {
    let name = config.get("architectures")?.get(0)?.as_str()?;
    architecture.classes.iter().find(|class| class.name == name)
}

/// The rows and parts of tensors that the architecture asks for.
fn count_rows(
    architecture: &Architecture,
    checkpoint: &[CheckpointTensor],
    plain: &[Cow<'_, str>],
    metadata: &mut Metadata,
) {
    let asked = architecture.hyperparameters.iter().filter_map(|each| match &each.origin {
        Origin::OfTensor(OfTensor::Rows | OfTensor::Parts, tensor) => Some(tensor),
        _ => None,
    });
    for tensor in asked.collect::<BTreeSet<_>>() {
        let rows = architecture.rows_of_tensor(tensor).iter();
        let pieces = rows.filter_map(|place| architecture.rows.get(*place)).flat_map(|r| &r.pieces);
        let pieces: Vec<_> = pieces.collect();
        let is_part = |name: &str| pieces.iter().any(|p| p.parameter.matches(name).is_some());
        let parts = checkpoint.iter().zip(plain).filter(|(_, name)| is_part(name));
        let (mut rows, mut count) = (0u64, 0u64);
        for (part, _) in parts {
            rows = rows.saturating_add(part.shape.first().copied().unwrap_or(0));
            count = count.saturating_add(1);
        }
        if count > 0 {
            for (of, count) in [(OfTensor::Rows, rows), (OfTensor::Parts, count)] {
                metadata.of_tensors.insert((of, tensor.clone()), Value::Int(count.into()));
            }
        }
    }
}

/// A parameter that was found for a tensor.
struct Found {
    /// Which of the row's forms, and which of its pieces.
    form: usize,
    piece: usize,
    /// The first, where there is one for all.
    expert: u64,
    /// Its place in the checkpoint.
    parameter: usize,
}

/// A tensor that is to be made: its layer, and the place of its row.
type Made = (Option<u64>, usize);

/// The tensors that a parameter of this name, at this place in the checkpoint, is for; why there
/// are none, as far as can be told.
fn places(
    hyperparameters: &Hyperparameters,
    name: &str,
    parameter: usize,
) -> Result<Vec<(Made, Found)>, Option<String>> {
    let architecture = hyperparameters.architecture;
    let blocks = hyperparameters.blocks();
    let mut places = Vec::new();
    let mut reason = None;
    for place in architecture.rows_of_parameter(name) {
        let Some(row) = architecture.rows.get(*place) else { continue };
        // Other forms are read, not written.
        if !row.instead_of.is_empty() || row.tensor.has_expert() {
            continue;
        }
        let forms = row.forms().enumerate();
        let pieces = forms.flat_map(|(form, (pieces, _))| {
            pieces.iter().enumerate().map(move |(number, piece)| (form, number, piece))
        });
        for (form, number, piece) in pieces {
            let Some(numbers) = piece.parameter.matches(name) else { continue };
            let Some(layer) = hyperparameters.layer_of_tensor(row, numbers.layer) else { continue };
            if let (Some(layer), Some(blocks)) = (layer, blocks)
                && layer >= blocks
            {
                reason = Some(format!("there are {blocks} blocks, counted from 0"));
                continue;
            }
            if !hyperparameters.at(layer).holds(row.when.as_ref()) {
                let when = row.when.as_ref().map(ToString::to_string).unwrap_or_default();
                reason.get_or_insert_with(|| format!("it belongs there only where {when}"));
                continue;
            }
            let expert = numbers.expert.unwrap_or(0);
            places.push(((layer, *place), Found { form, piece: number, expert, parameter }));
        }
    }
    if places.is_empty() { Err(reason) } else { Ok(places) }
}

impl CheckpointMap {
    /// What a checkpoint comes to. Takes time and memory in proportion to the checkpoint's tensors,
    /// whatever its config claims.
    pub fn of(
        architecture: &'static Architecture,
        checkpoint: &[CheckpointTensor],
        config: &Json,
    ) -> CheckpointMap {
        let plain: Vec<Cow<'_, str>> =
            checkpoint.iter().map(|tensor| architecture.parameter_name(&tensor.name)).collect();
        let names: HashSet<&str> = plain.iter().map(AsRef::as_ref).collect();
        // A tensor will be there if what it is made of is.
        let present = |tensor: &str| {
            architecture.rows_of_tensor(tensor).iter().any(|place| {
                let Some(row) = architecture.rows.get(*place) else { return false };
                if row.tensor.text() == tensor && row.tensor.has_layer() {
                    // In any layer.
                    return row.pieces.iter().any(|piece| {
                        names.iter().any(|name| piece.parameter.matches(name).is_some())
                    });
                }
                let Some(numbers) = row.tensor.matches(tensor) else { return false };
                // Of parameters for each expert, the first tells.
                let numbers = Numbers { expert: Some(0), ..numbers };
                // Where layers are counted from is not known yet.
                row.instead_of.is_empty()
                    && row.from_layer.is_none()
                    && row
                        .pieces
                        .iter()
                        .all(|piece| names.contains(piece.parameter.name(numbers).as_str()))
            })
        };
        let most = checkpoint.len().saturating_add(64).try_into().unwrap_or(u64::MAX);
        let (metadata, written) = config::metadata(architecture, config, most, &present);
        let mut metadata = metadata;
        count_rows(architecture, checkpoint, &plain, &mut metadata);
        let hyperparameters = Hyperparameters::new(architecture, metadata, &present);
        let mut map = CheckpointMap {
            architecture,
            class: named_class(architecture, config).unwrap_or(class_of(&hyperparameters)),
            tensors: Vec::new(),
            keyed: Vec::new(),
            dropped: Vec::new(),
            findings: Vec::new(),
            metadata: written
                .into_iter()
                .map(|each| (architecture.full_key(&each.key), each.value))
                .collect(),
        };
        let made = map.sort(&hyperparameters, checkpoint, &plain);
        map.missing_of_keys(&hyperparameters, checkpoint);
        let mut missing_names = BTreeSet::new();
        for ((layer, place), found) in &made {
            if let Some(row) = architecture.rows.get(*place) {
                let factor = |factor: &Expression| config::number(config, factor);
                let failed = map.make(&hyperparameters, checkpoint, row, *layer, found, &factor);
                missing_names.extend(failed);
            }
        }
        // What the converter computes is made of nothing.
        let is_there = |place, row: &Row, numbers: Numbers| {
            row.pieces.is_empty() || made.contains_key(&(numbers.layer, place))
        };
        let layers = made.keys().filter_map(|(layer, _)| *layer).collect();
        let missing = MissingList::of(&hyperparameters, layers, checkpoint.len(), is_there);
        map.findings.extend(missing.finding());
        let findings = missing_names.into_iter().map(|name| Finding::MissingKey {
            key: hyperparameters.key_of(&name).unwrap_or_else(|| name.clone()),
            name,
        });
        map.findings.extend(findings);
        map
    }

    /// Whether every parameter has its place and shape, and every tensor comes whole.
    pub fn is_complete(&self) -> bool {
        self.findings.is_empty()
    }

    /// Finds the rows of each parameter.
    fn sort(
        &mut self,
        hyperparameters: &Hyperparameters,
        checkpoint: &[CheckpointTensor],
        plain: &[Cow<'_, str>],
    ) -> BTreeMap<Made, Vec<Found>> {
        let mut made: BTreeMap<Made, Vec<Found>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (at, (tensor, name)) in checkpoint.iter().zip(plain).enumerate() {
            if !seen.insert(name) {
                let reason = "the checkpoint has two of this name".into();
                let name = escape(tensor.name.as_bytes(), 120);
                self.findings.push(Finding::Duplicated { name, reason });
                continue;
            }
            match places(hyperparameters, name, at) {
                Ok(places) => {
                    for (key, found) in places {
                        made.entry(key).or_default().push(found);
                    }
                }
                Err(reason) => self.without_place(hyperparameters, at, tensor, name, reason),
            }
        }
        made
    }

    /// A parameter that no tensor is made of: its number is one of a key, the file does not hold
    /// it, or it has no place, for this reason.
    fn without_place(
        &mut self,
        hyperparameters: &Hyperparameters,
        at: usize,
        tensor: &CheckpointTensor,
        name: &str,
        mut reason: Option<String>,
    ) {
        let escaped = || escape(tensor.name.as_bytes(), 120);
        let architecture = self.architecture;
        let keyed = architecture.keyed.iter().find_map(|keyed| {
            let numbers = keyed.parameter.matches(name)?;
            Some((keyed, numbers.layer))
        });
        if let Some((keyed, layer)) = keyed {
            match hyperparameters.count("n_layer") {
                Some(layers) if layer >= Some(layers) => {
                    reason = Some(format!("there are {layers} layers, counted from 0"));
                }
                _ if keyed.shape != tensor.shape => {
                    self.findings.push(Finding::Shape {
                        name: escaped(),
                        found: tensor.shape.clone(),
                        expected: keyed.shape.clone(),
                        because: format!("it is a number of {}", keyed.key),
                    });
                    return;
                }
                _ => {
                    self.keyed.push((at, architecture.full_key(&keyed.key)));
                    return;
                }
            }
        }
        match architecture.dropped.iter().find(|dropped| dropped.matches(name)) {
            Some(dropped) => self.dropped.push((at, &dropped.note)),
            None => self.findings.push(Finding::Unmapped {
                name: escaped(),
                reason: reason.unwrap_or_else(|| {
                    format!("{} has no parameter of this name", self.class.name)
                }),
            }),
        }
    }

    /// What should be in metadata keys and is not.
    fn missing_of_keys(
        &mut self,
        hyperparameters: &Hyperparameters,
        checkpoint: &[CheckpointTensor],
    ) {
        let layers = hyperparameters.count("n_layer").unwrap_or(0);
        for keyed in &self.architecture.keyed {
            let there: BTreeSet<u64> = self
                .keyed
                .iter()
                .filter_map(|(at, _)| keyed.parameter.matches(&checkpoint.get(*at)?.name)?.layer)
                .filter(|layer| *layer < layers)
                .collect();
            let count = layers.saturating_sub(there.len().try_into().unwrap_or(u64::MAX));
            if count == 0 {
                continue;
            }
            let gaps = (0..layers).filter(|layer| !there.contains(layer)).take(MISSING_LISTED);
            let parameters = gaps
                .map(|layer| keyed.parameter.name(Numbers { layer: Some(layer), expert: None }));
            let name = self.architecture.full_key(&keyed.key);
            let first = vec![MissingTensor { name, parameters: parameters.collect() }];
            self.findings.push(Finding::Missing { first, count, empty_blocks: 0 });
        }
    }

    /// Makes a tensor of the parameters that were found for it. Returns the hyperparameter that is
    /// missing for it.
    fn make(
        &mut self,
        hyperparameters: &Hyperparameters,
        checkpoint: &[CheckpointTensor],
        row: &'static Row,
        layer: Option<u64>,
        found: &[Found],
        factor: &dyn Fn(&Expression) -> Option<f32>,
    ) -> Option<String> {
        let names = hyperparameters.at(layer);
        let numbers = Numbers { layer, expert: None };
        let name = row.tensor.name(numbers);
        let dims = match expected_dims(row, &names) {
            Ok(dims) => dims,
            Err(Failure::Missing(missing)) => return Some(missing),
            Err(Failure::Senseless(reason)) => {
                self.findings.push(Finding::Senseless { name, reason });
                return None;
            }
        };
        let factor_of_row = match expected_factor(row, &names) {
            Ok(factor) => factor,
            Err(Failure::Missing(missing)) => return Some(missing),
            Err(Failure::Senseless(reason)) => {
                self.findings.push(Finding::Senseless { name, reason });
                return None;
            }
        };
        let form = found.iter().map(|each| each.form).min().unwrap_or(0);
        let (pieces, blocks) = row.forms().nth(form)?;
        if let Some(other) = found.iter().find(|each| each.form != form)
            && let (Some(tensor), Some(piece)) = (checkpoint.get(other.parameter), pieces.first())
        {
            let other = piece.parameter.name(numbers);
            self.findings.push(Finding::Duplicated {
                name: escape(tensor.name.as_bytes(), 120),
                reason: format!("{other} stands for the same tensor, {name}"),
            });
        }
        let Some(torch) = viewed_dims(&dims, blocks) else {
            let reason = format!("[{}] has rows that are no whole blocks", because(row, &dims));
            self.findings.push(Finding::Senseless { name, reason });
            return None;
        };
        let mut sources = Vec::new();
        let mut whole = true;
        for (number, piece) in pieces.iter().enumerate() {
            let moves = match piece.view.moves(&torch, &|name| names.get(name)) {
                Ok(moves) => moves,
                Err(reason) => {
                    self.findings.push(Finding::Senseless { name, reason });
                    return None;
                }
            };
            let Some(factors) = piece.scale.iter().map(factor).collect::<Option<Vec<f32>>>() else {
                let factors = piece.scale.iter().map(Expression::text).collect::<Vec<_>>();
                let reason = format!("the config does not give {}", factors.join(" and "));
                self.findings.push(Finding::Senseless { name, reason });
                return None;
            };
            let count = moves.experts.map_or(1, |experts| experts.count);
            let mut experts = BTreeSet::new();
            let is_its = |each: &&Found| (each.form, each.piece) == (form, number);
            for Found { expert, parameter, .. } in found.iter().filter(is_its) {
                let Some(tensor) = checkpoint.get(*parameter) else { continue };
                if tensor.shape != moves.shape {
                    whole = false;
                    self.findings.push(Finding::Shape {
                        name: escape(tensor.name.as_bytes(), 120),
                        found: tensor.shape.clone(),
                        expected: moves.shape.clone(),
                        because: format!("{name} is [{}]", because(row, &dims)),
                    });
                } else if *expert >= count {
                    whole = false;
                    self.findings.push(Finding::Unmapped {
                        name: escape(tensor.name.as_bytes(), 120),
                        reason: format!("there are {count} experts, counted from 0"),
                    });
                } else {
                    experts.insert(*expert);
                    sources.push(GgufSource {
                        parameter: *parameter,
                        view: (!piece.view.is_identity()).then_some(piece.view.text()),
                        change: piece.change,
                        factor: factor_of_row,
                        moves: moves.clone(),
                        expert: *expert,
                        factors: factors.clone(),
                    });
                }
            }
            let there: u64 = experts.len().try_into().unwrap_or(u64::MAX);
            if there < count && whole {
                whole = false;
                let tried = there.saturating_add(MISSING_LISTED.try_into().unwrap_or(0));
                let gaps = (0..count.min(tried)).filter(|expert| !experts.contains(expert));
                let parameters = gaps.take(MISSING_LISTED).map(|expert| {
                    hyperparameters.parameter(row, piece, Numbers { layer, expert: Some(expert) })
                });
                self.findings.push(Finding::Missing {
                    first: vec![MissingTensor {
                        name: name.clone(),
                        parameters: parameters.collect(),
                    }],
                    count: count.saturating_sub(there),
                    empty_blocks: 0,
                });
            }
        }
        if whole {
            self.tensors.push(GgufTensor { name, dims, change: row.change, blocks, sources });
        }
        None
    }
}
