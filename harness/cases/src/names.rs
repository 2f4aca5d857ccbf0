//! Cases that ask what the names of one side are on the other: GGUF and transformers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gguf_assay_format::{Data, Description, OwnedValue, Rule, TensorDescription, lay_out};
use gguf_assay_names::config_field;
use serde::Deserialize;
use serde_json::Value as Json;
use toml::Table;

use crate::case::{CaseError, Verdict, accept};
use crate::file::BuiltFile;
use crate::pair::{Pair, PairNumbers};
use crate::syntax;

/// A side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// A checkpoint of transformers: safetensors and `config.json`.
    Transformers,
    /// A GGUF file.
    Gguf,
}

impl Side {
    /// `transformers` or `gguf`.
    pub fn name(self) -> &'static str {
        match self {
            Side::Transformers => "transformers",
            Side::Gguf => "gguf",
        }
    }
}

/// The text of such a case, as TOML has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawNames {
    pub(crate) id: String,
    rule: String,
    summary: String,
    source: String,
    pair: String,
    to: Side,
    #[serde(default)]
    edit: Vec<Table>,
    #[serde(default)]
    config: Vec<String>,
    #[serde(default)]
    config_is: Table,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    optional: Vec<String>,
    any_numbers: Option<String>,
    /// Set for the one case of a pair that has none the other way.
    #[serde(skip)]
    one_way: bool,
    #[serde(default = "accept")]
    verdict: Verdict,
    #[serde(default)]
    says: Vec<String>,
}

/// The text of two cases, one each way, or of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPair {
    pair: String,
    summary: String,
    #[serde(default)]
    config: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    computed: Vec<String>,
    any_numbers: Option<String>,
    only_to_gguf: Option<String>,
}

/// Where the numbers of a pair come from.
const PAIR_SOURCE: &str = "a checkpoint of transformers 5.24.0, converted by llama.cpp's conversion/*.py (llama-cpp-python 0.3.36)";

impl RawPair {
    /// The cases: from the file to transformers, and from the checkpoint to GGUF.
    pub(crate) fn cases(&self) -> impl Iterator<Item = RawNames> {
        let case = |to: Side| RawNames {
            id: format!("names/whole/{}-to-{}", self.pair.replace('_', "-"), to.name()),
            rule: "NAMES-009".into(),
            summary: match to {
                Side::Transformers => format!("{}: what the file stands for", self.summary),
                Side::Gguf => format!("{}: what the checkpoint comes to", self.summary),
            },
            source: PAIR_SOURCE.into(),
            pair: self.pair.clone(),
            to,
            edit: Vec::new(),
            config: if to == Side::Transformers { self.config.clone() } else { Vec::new() },
            config_is: Table::new(),
            without: if to == Side::Transformers { self.without.clone() } else { Vec::new() },
            optional: if to == Side::Gguf { self.computed.clone() } else { Vec::new() },
            any_numbers: self.any_numbers.clone(),
            one_way: self.only_to_gguf.is_some(),
            verdict: Verdict::Accept,
            says: Vec::new(),
        };
        let back = self.only_to_gguf.is_none().then(|| case(Side::Transformers));
        back.into_iter().chain([case(Side::Gguf)])
    }
}

/// A file or a checkpoint, and what its names, shapes, numbers and config are on the other side.
#[derive(Clone, Debug)]
pub struct NamesCase {
    /// `names/<area>/<slug>`.
    pub id: String,
    /// The rule that it probes.
    pub rule: &'static Rule,
    /// What is special about it.
    pub summary: String,
    /// Where anyone can look it up.
    pub source: String,
    /// The side that is asked for.
    pub to: Side,
    /// The pair that it is made of.
    pub pair: Arc<Pair>,
    /// Why numbers are not compared, if they are not.
    pub any_numbers: Option<String>,
    /// A refusal has to name one of these, so that somebody can find what is wrong.
    pub says: Vec<String>,
    verdict: Verdict,
    one_way: bool,
    edits: Vec<Edit>,
    config: Vec<String>,
    config_is: Table,
    without: BTreeSet<String>,
    optional: BTreeSet<String>,
}

/// What is asked: one side.
#[derive(Clone, Debug, PartialEq)]
pub enum NamesInput {
    /// A file.
    File {
        /// What it says.
        description: Description,
        /// Its bytes.
        file: BuiltFile,
    },
    /// A checkpoint.
    Checkpoint {
        /// What its pair's file says.
        description: Description,
        /// `config.json`.
        config: Json,
        /// Names and shapes, the latter in torch's order.
        parameters: Vec<(String, Vec<u64>)>,
    },
}

impl NamesInput {
    /// The architecture, in llama.cpp's spelling; empty if the file has none that is text.
    pub fn architecture(&self) -> String {
        let (NamesInput::File { description, .. } | NamesInput::Checkpoint { description, .. }) =
            self;
        let mut keys = description.metadata.iter();
        match keys.find(|(key, _)| key == b"general.architecture") {
            Some((_, OwnedValue::String(name))) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        }
    }
}

/// What a mapper says: the names of the other side, and the config where it has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamesValue {
    /// Each name once.
    pub names: Vec<MappedName>,
    /// The fields of `config.json`, on the way to transformers.
    pub config: Option<Json>,
}

/// A name of the other side. What a mapper leaves out (`None`) is not compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MappedName {
    /// The parameter, or the tensor.
    pub name: String,
    /// The names that it comes from.
    pub from: Option<Vec<String>>,
    /// Its shape: torch's order for a parameter, ggml's for a tensor.
    pub shape: Option<Vec<u64>>,
    /// Its numbers, the last dimension of torch's order contiguous.
    pub numbers: Option<Vec<f32>>,
}

/// What is expected of a mapper that accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedNames {
    /// Each name, and what is known of it.
    pub names: BTreeMap<String, ExpectedName>,
    /// Names that may be there or not.
    pub optional: BTreeSet<String>,
    /// Fields of the config, by their names with dots.
    pub config: Vec<(String, Json)>,
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedName {
    /// The names that it comes from, if the bytes say so.
    pub from: Option<BTreeSet<String>>,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its numbers.
    pub numbers: PairNumbers,
}

/// A change of a pair's side.
#[derive(Clone, Debug)]
enum Edit {
    /// A tensor or parameter is left out. In these names, `N` stands for any layer.
    Remove(String),
    /// It has another name.
    Rename(String, String),
    /// It is there once more under another name.
    Copy(String, String),
    /// It has other dimensions, in its side's order, and zeros for data.
    Resize(String, Vec<u64>),
    /// It is cut along its last dimension (ggml's order) into one for each expert, `E`.
    Split(String, String),
    /// A key has another value, or is added.
    Key(Vec<u8>, OwnedValue),
    RemoveKey(String),
    /// A field of the config likewise.
    Field(String, Json),
    RemoveField(String),
}

impl Edit {
    fn parse(table: &Table) -> syntax::Result<Edit> {
        let text = |name: &str| match table.get(name) {
            Some(value) => syntax::text(value).map(str::to_owned),
            None => Err(format!("`{name}` is missing in {{ {table} }}")),
        };
        let known = |names: &[&str]| syntax::known_keys(table, names);
        let first =
            ["remove", "rename", "copy", "resize", "split", "remove_key", "field", "remove_field"];
        Ok(match first.into_iter().find(|name| table.contains_key(*name)) {
            Some("remove") => known(&["remove"]).and(Ok(Edit::Remove(text("remove")?)))?,
            Some("rename") => {
                known(&["rename", "to"])?;
                Edit::Rename(text("rename")?, text("to")?)
            }
            Some("copy") => {
                known(&["copy", "to"])?;
                Edit::Copy(text("copy")?, text("to")?)
            }
            Some("resize") => {
                known(&["resize", "dims"])?;
                let dims = table.get("dims").ok_or("`resize` needs `dims`")?;
                Edit::Resize(text("resize")?, syntax::dims(dims)?)
            }
            Some("split") => {
                known(&["split", "to"])?;
                Edit::Split(text("split")?, text("to")?)
            }
            Some("remove_key") => {
                known(&["remove_key"]).and(Ok(Edit::RemoveKey(text("remove_key")?)))?
            }
            Some("field") => {
                known(&["field", "value"])?;
                let value = table.get("value").ok_or("`field` needs a `value`")?;
                Edit::Field(text("field")?, to_json(value)?)
            }
            Some(_) => {
                known(&["remove_field"]).and(Ok(Edit::RemoveField(text("remove_field")?)))?
            }
            None => {
                let (key, value) = syntax::entry(table)?;
                Edit::Key(key, value)
            }
        })
    }

    /// Changes the names or shapes of one side. Says whether anything was changed; `None` if the change
    /// is about something else.
    fn named<T: Named>(&self, list: &mut Vec<T>) -> Option<bool> {
        let before = list.len();
        Some(match self {
            Edit::Remove(pattern) => {
                list.retain(|each| layer(pattern, each.name()).is_none());
                list.len() != before
            }
            Edit::Rename(pattern, to) => {
                let mut changed = false;
                for each in list {
                    if let Some(number) = layer(pattern, each.name()) {
                        each.rename(filled(to, &number, None));
                        changed = true;
                    }
                }
                changed
            }
            Edit::Copy(pattern, to) => {
                let copies = list.iter().filter_map(|each| {
                    let number = layer(pattern, each.name())?;
                    let mut copy = each.clone();
                    copy.rename(filled(to, &number, None));
                    Some(copy)
                });
                let copies: Vec<T> = copies.collect();
                list.extend(copies);
                list.len() != before
            }
            Edit::Resize(pattern, dims) => {
                let mut changed = false;
                for each in list {
                    if layer(pattern, each.name()).is_some() {
                        each.resize(dims);
                        changed = true;
                    }
                }
                changed
            }
            _ => return None,
        })
    }

    /// Changes a file. Says whether anything was changed.
    fn file(&self, file: &mut Description) -> syntax::Result<bool> {
        let (tensors, metadata) = (&mut file.tensors, &mut file.metadata);
        if let Some(changed) = self.named(tensors) {
            return Ok(changed);
        }
        Ok(match self {
            Edit::Split(pattern, to) => {
                let mut changed = false;
                for tensor in std::mem::take(tensors) {
                    match layer(pattern, &tensor.name) {
                        Some(number) => {
                            changed = true;
                            tensors.extend(split(&tensor, |e| filled(to, &number, Some(e)))?);
                        }
                        None => tensors.push(tensor),
                    }
                }
                changed
            }
            Edit::Key(key, value) => {
                match metadata.iter_mut().find(|(other, _)| other == key) {
                    Some((_, old)) => *old = value.clone(),
                    None => metadata.push((key.clone(), value.clone())),
                }
                true
            }
            Edit::RemoveKey(key) => {
                let before = metadata.len();
                metadata.retain(|(other, _)| other != key.as_bytes());
                metadata.len() != before
            }
            _ => return Err("a file has keys, and no fields of a config".into()),
        })
    }

    /// Changes a checkpoint likewise.
    fn checkpoint(
        &self,
        parameters: &mut Vec<(String, Vec<u64>)>,
        config: &mut Json,
    ) -> syntax::Result<bool> {
        if let Some(changed) = self.named(parameters) {
            return Ok(changed);
        }
        let object = config.as_object_mut().ok_or("config.json is no object")?;
        Ok(match self {
            Edit::Field(name, value) => {
                object.insert(name.clone(), value.clone()).as_ref() != Some(value)
            }
            Edit::RemoveField(name) => object.remove(name).is_some(),
            _ => return Err("a checkpoint has parameters and fields, and no keys".into()),
        })
    }
}

/// A tensor or a parameter, as changes see it.
trait Named: Clone {
    fn name(&self) -> &[u8];
    fn rename(&mut self, name: String);
    fn resize(&mut self, dims: &[u64]);
}

impl Named for TensorDescription {
    fn name(&self) -> &[u8] {
        &self.name
    }

    fn rename(&mut self, name: String) {
        self.name = name.into_bytes();
    }

    fn resize(&mut self, dims: &[u64]) {
        self.dims = dims.to_vec();
        self.data = Data::Zeros(dims.iter().product::<u64>() * 4);
    }
}

impl Named for (String, Vec<u64>) {
    fn name(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn rename(&mut self, name: String) {
        self.0 = name;
    }

    fn resize(&mut self, dims: &[u64]) {
        self.1 = dims.to_vec();
    }
}

/// The number that stands in a name where `pattern` has `N`, or an empty text if it has none; `None` if
/// the name is another.
fn layer(pattern: &str, name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let (mut parts, mut others) = (pattern.split('.'), name.split('.'));
    let mut number = String::new();
    loop {
        match (parts.next(), others.next()) {
            (None, None) => return Some(number),
            (Some("N"), Some(part)) if part.bytes().all(|b| b.is_ascii_digit()) => {
                number = part.into()
            }
            (Some(part), Some(other)) if part == other => {}
            _ => return None,
        }
    }
}

/// A name of a pattern, with its numbers in place.
fn filled(pattern: &str, layer: &str, expert: Option<usize>) -> String {
    let parts = pattern.split('.').map(|part| match (part, expert) {
        ("N", _) => layer.to_owned(),
        ("E", Some(expert)) => expert.to_string(),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// A tensor for each place of the last dimension.
fn split(
    tensor: &TensorDescription,
    name: impl Fn(usize) -> String,
) -> syntax::Result<Vec<TensorDescription>> {
    let (Data::Bytes(bytes), Some((count, dims))) = (&tensor.data, tensor.dims.split_last()) else {
        return Err("there is nothing to split".into());
    };
    let part = bytes.len() / (*count).max(1) as usize;
    let parts = bytes.chunks(part.max(1)).enumerate().map(|(expert, bytes)| TensorDescription {
        name: name(expert).into_bytes(),
        dims: dims.to_vec(),
        data: Data::Bytes(bytes.into()),
        ..tensor.clone()
    });
    Ok(parts.collect())
}

/// A TOML value as JSON; TOML has no null.
fn to_json(value: &toml::Value) -> syntax::Result<Json> {
    serde_json::to_value(value).map_err(|e| e.to_string())
}

impl NamesCase {
    pub(crate) fn parse(
        raw: RawNames,
        pairs: &BTreeMap<String, Arc<Pair>>,
    ) -> Result<NamesCase, CaseError> {
        let error = |message: String| CaseError { place: raw.id.clone(), message };
        let rule = crate::find_rule(&raw.rule)
            .ok_or_else(|| error(format!("there is no rule `{}`", raw.rule)))?;
        let pair = pairs.get(&raw.pair);
        let pair = pair.ok_or_else(|| error(format!("there is no pair `{}`", raw.pair)))?;
        let edits = raw.edit.iter().map(Edit::parse).collect::<syntax::Result<_>>();
        Ok(NamesCase {
            edits: edits.map_err(|e| error(format!("edit: {e}")))?,
            pair: Arc::clone(pair),
            rule,
            id: raw.id,
            summary: raw.summary,
            source: raw.source,
            to: raw.to,
            says: raw.says,
            any_numbers: raw.any_numbers,
            one_way: raw.one_way,
            verdict: raw.verdict,
            config: raw.config,
            config_is: raw.config_is,
            without: raw.without.into_iter().collect(),
            optional: raw.optional.into_iter().collect(),
        })
    }

    /// What is expected of a mapper.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether the pair is changed.
    pub fn is_edited(&self) -> bool {
        !self.edits.is_empty()
    }

    /// Whether file and checkpoint, as they are, stand for each other: neither is changed, and neither has
    /// what the other has not, as the vision of a model of which the file has the text.
    pub fn is_whole(&self) -> bool {
        !self.is_edited() && !self.one_way
    }

    fn error(&self, message: impl Into<String>) -> CaseError {
        CaseError { place: self.id.clone(), message: message.into() }
    }

    /// Makes each change; one that changes nothing is a mistake.
    fn edit(&self, mut make: impl FnMut(&Edit) -> syntax::Result<bool>) -> Result<(), CaseError> {
        for edit in &self.edits {
            match make(edit) {
                Ok(true) => {}
                Ok(false) => return Err(self.error(format!("{edit:?} changes nothing"))),
                Err(message) => return Err(self.error(message)),
            }
        }
        Ok(())
    }

    /// The side that is given.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, such as a change of what is not there.
    pub fn input(&self) -> Result<NamesInput, CaseError> {
        let mut description = self.pair.description().map_err(|e| self.error(e))?;
        if self.to == Side::Transformers {
            self.edit(|edit| edit.file(&mut description))?;
            for tensor in &mut description.tensors {
                tensor.offset = None;
            }
            let file = BuiltFile(lay_out(&description).segments);
            return Ok(NamesInput::File { description, file });
        }
        let mut config = self.pair.config.clone();
        let parameters = self.pair.parameters.iter();
        let mut parameters =
            parameters.map(|(name, parameter)| (name.clone(), parameter.shape.clone())).collect();
        self.edit(|edit| edit.checkpoint(&mut parameters, &mut config))?;
        Ok(NamesInput::Checkpoint { description, config, parameters })
    }

    /// What a mapper that accepts should have said: the other side of the pair.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, such as a field that the checkpoint's config does not have.
    pub fn expected(&self) -> Result<ExpectedNames, CaseError> {
        let origins = self.pair.origins().map_err(|e| self.error(e))?;
        let mut names = BTreeMap::new();
        match self.to {
            Side::Transformers => {
                let from = |parameter: &String| {
                    let mut of = origins.iter().filter(|(_, origins)| origins.contains(parameter));
                    match (of.next(), of.next()) {
                        // The tensor of a changed file has another name.
                        (Some((tensor, _)), None) if !self.is_edited() => {
                            Some(BTreeSet::from([tensor.clone()]))
                        }
                        _ => None,
                    }
                };
                for (name, parameter) in &self.pair.parameters {
                    let (shape, numbers) = (parameter.shape.clone(), parameter.numbers.clone());
                    let from = from(name);
                    names.insert(name.clone(), ExpectedName { from, shape, numbers });
                }
            }
            Side::Gguf => {
                for tensor in self.pair.description().map_err(|e| self.error(e))?.tensors {
                    let name = String::from_utf8_lossy(&tensor.name).into_owned();
                    let numbers = match tensor.data {
                        Data::Bytes(bytes) => PairNumbers::Sha256(crate::sha256(&bytes)),
                        Data::Zeros(_) => PairNumbers::Other,
                    };
                    let from = origins.get(&name).filter(|_| !self.is_edited()).cloned();
                    names.insert(name, ExpectedName { from, shape: tensor.dims, numbers });
                }
            }
        }
        for name in self.without.iter().chain(&self.optional) {
            if !names.contains_key(name) {
                return Err(self.error(format!("{name} is none of the names anyway")));
            }
        }
        names.retain(|name, _| !self.without.contains(name));
        if self.any_numbers.is_some() {
            names.values_mut().for_each(|name| name.numbers = PairNumbers::Other);
        }
        let mut config = Vec::new();
        for name in &self.config {
            let value = config_field(&self.pair.config, name);
            let value = value.ok_or_else(|| self.error(format!("the config has no {name}")))?;
            config.push((name.clone(), value.clone()));
        }
        for (name, value) in &self.config_is {
            config.push((name.clone(), to_json(value).map_err(|e| self.error(e))?));
        }
        Ok(ExpectedNames { names, optional: self.optional.clone(), config })
    }
}
