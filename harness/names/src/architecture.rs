//! Architectures: their rows, made of the data files, and the table of those that llama.cpp knows.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::LazyLock;

use gguf_assay_format::TensorType;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::config;
use crate::data::{
    AbsentRow, Change, ConfigRow, DataFile, Include, KeyedRow, OneOrMany, TensorRow, Within,
};
use crate::expression::{Expression, Value};
use crate::hyperparameters::{Held, Metadata};
use crate::pattern::{Pattern, key_of};
use crate::view::View;

static ARCHITECTURES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/architectures.rs"));
static SHARED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shared.rs"));

/// How much is known of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// llama.cpp has it, by this name; there is no map yet.
    Known,
    /// Tensors, transforms and config, both ways.
    Full,
}

impl Level {
    /// `known` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Known => "known",
            Level::Full => "full",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What `general.architecture` names, and how its files and checkpoints correspond.
#[derive(Debug)]
pub struct Architecture {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) classes: Vec<Class>,
    pub(crate) rows: Vec<Row>,
    pub(crate) keyed: Vec<Keyed>,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) config: Vec<Field>,
    pub(crate) absent: Vec<AbsentRow>,
    /// Keys that the converter writes and llama.cpp does not have.
    pub(crate) undeclared: Vec<String>,
    /// Where a checkpoint has this model within a larger one.
    pub(crate) within: Option<Within>,
    /// Each behind those that it needs.
    pub(crate) hyperparameters: Vec<Hyperparameter>,
    /// Tiny models, which have a tensor of each row between them.
    pub(crate) examples: Vec<Example>,
    by_tensor: HashMap<String, Vec<usize>>,
    by_parameter: HashMap<String, Vec<usize>>,
}

/// A class of transformers.
#[derive(Debug)]
pub struct Class {
    /// As `architectures` in `config.json` has it.
    pub name: String,
    /// As `model_type` in `config.json` has it.
    pub model_type: String,
    pub(crate) when: Option<Expression>,
    pub(crate) chosen_when: Option<Expression>,
}

/// A GGUF tensor pattern and what it stands for.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) tensor: Pattern,
    /// In ggml's order.
    pub(crate) dims: Vec<Expression>,
    /// What it stands for.
    pub(crate) pieces: Vec<Piece>,
    /// Other parameters that checkpoints have in their place.
    pub(crate) alternatives: Vec<Alternative>,
    pub(crate) change: Change,
    /// What each number is multiplied by, over the hyperparameters.
    pub(crate) factor: Option<Expression>,
    pub(crate) when: Option<Expression>,
    /// The layer from which the parameters count theirs; the first if there is none.
    pub(crate) from_layer: Option<Expression>,
    pub(crate) optional: bool,
    pub(crate) instead_of: Vec<Pattern>,
    /// The layer of the parameters, where the tensor is of none.
    pub(crate) layer: Option<Expression>,
    pub(crate) note: Option<String>,
}

/// A parameter, or a part of one, and where it lies in the tensor.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) parameter: Pattern,
    pub(crate) view: View,
    pub(crate) change: Change,
    /// What each number is multiplied by, over the config's fields.
    pub(crate) scale: Vec<Expression>,
}

/// Parameters in place of those that a tensor stands for.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub(crate) pieces: Vec<Piece>,
    /// The type whose blocks they hold: the views are of the tensor's bytes.
    pub(crate) blocks: Option<&'static TensorType>,
}

impl Row {
    /// The parameters that it stands for, and after them those that may be in their place; each
    /// with the type whose blocks they hold.
    pub(crate) fn forms(&self) -> impl Iterator<Item = (&[Piece], Option<&'static TensorType>)> {
        let alternatives =
            self.alternatives.iter().map(|each| (each.pieces.as_slice(), each.blocks));
        std::iter::once((self.pieces.as_slice(), None)).chain(alternatives)
    }
}

/// Dimensions in torch's order as a view takes them, of a tensor's dimensions in ggml's order: of
/// elements, or of bytes if the view is of the blocks of a type. `None` if rows are no whole
/// blocks.
pub(crate) fn viewed_dims(dims: &[u64], blocks: Option<&TensorType>) -> Option<Vec<u64>> {
    let mut viewed: Vec<u64> = dims.iter().rev().copied().collect();
    if let (Some(t), Some(row)) = (blocks, viewed.last_mut()) {
        let (len, bytes) = (u64::from(t.block_len), u64::from(t.block_bytes));
        if row.checked_rem(len) != Some(0) {
            return None;
        }
        *row = row.checked_div(len)?.checked_mul(bytes)?;
    }
    Some(viewed)
}

/// A parameter of one number for each layer, which a file has in a metadata key.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) key: String,
    pub(crate) parameter: Pattern,
    /// In torch's order.
    pub(crate) shape: Vec<u64>,
}

/// A parameter that a file does not hold.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) parameter: Pattern,
    pub(crate) note: String,
}

impl Dropped {
    /// Whether it is the parameter of this name, or one of those that begin alike.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self.parameter.text().strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => self.parameter.matches(name).is_some(),
        }
    }
}

/// A metadata key and a field of the config.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) row: ConfigRow,
    pub(crate) value: Option<Expression>,
    pub(crate) from: Option<Expression>,
    pub(crate) blocks: Option<Expression>,
    pub(crate) leading: Option<Expression>,
    pub(crate) default: Option<Expression>,
    pub(crate) when: Option<Expression>,
    pub(crate) written_when: Option<Expression>,
}

/// A name for something of a file's metadata or tensors.
#[derive(Debug)]
pub(crate) struct Hyperparameter {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// For files that do not have what it comes from.
    pub(crate) default: Option<Expression>,
}

/// A tiny model.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) metadata: Metadata,
    pub(crate) without: Vec<String>,
}

/// Where a hyperparameter comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A metadata key.
    Key(String),
    /// An expression over others.
    Is(Expression),
    /// Something of the array of a metadata key.
    OfArray(OfArray, String),
    /// Something of the tensor of this name.
    OfTensor(OfTensor, String),
    /// Whether there is a tensor of this name, or of this pattern in any layer.
    Present(String),
    /// Whether the layer has a tensor of this pattern.
    PresentEach(Pattern),
    /// The first layer for which this holds.
    First(Expression),
}

/// What is taken of an array; of an only value, all but the count are that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfArray {
    Count,
    Largest,
    Smallest,
    First,
    Last,
}

impl OfArray {
    /// For people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            OfArray::Count => "length",
            OfArray::Largest => "largest",
            OfArray::Smallest => "smallest",
            OfArray::First => "first",
            OfArray::Last => "last",
        }
    }
}

/// What is taken of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OfTensor {
    /// The largest of its numbers, if they are F32.
    Largest,
    /// The last of its dimensions in ggml's order.
    Rows,
    /// Of how many parameters it is made; a file does not tell.
    Parts,
}

impl OfTensor {
    /// For people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            OfTensor::Largest => "largest number",
            OfTensor::Rows => "rows",
            OfTensor::Parts => "parts",
        }
    }
}

impl Origin {
    /// Reads one as a data file has it.
    fn parse(origin: &str, text: &str) -> Result<Origin, String> {
        let of_array = |what| Origin::OfArray(what, text.to_owned());
        let of_tensor = |what| Origin::OfTensor(what, text.to_owned());
        Ok(match origin {
            "key" => Origin::Key(text.to_owned()),
            "is" => Origin::Is(Expression::parse(text)?),
            "count_of" => of_array(OfArray::Count),
            "largest_of" => of_array(OfArray::Largest),
            "smallest_of" => of_array(OfArray::Smallest),
            "first_of" => of_array(OfArray::First),
            "last_of" => of_array(OfArray::Last),
            "largest_in" => of_tensor(OfTensor::Largest),
            "rows_of" => of_tensor(OfTensor::Rows),
            "parts_of" => of_tensor(OfTensor::Parts),
            "present" => Origin::Present(text.to_owned()),
            "present_each" => Origin::PresentEach(Pattern::new(text)),
            "first" => Origin::First(Expression::parse(text)?),
            other => return Err(format!("`{other}` is no origin of a hyperparameter")),
        })
    }

    /// The metadata key that it needs, if it needs one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Origin::Key(key) | Origin::OfArray(_, key) => Some(key),
            _ => None,
        }
    }

    /// The expression that it needs, if it needs one.
    pub(crate) fn expression(&self) -> Option<&Expression> {
        match self {
            Origin::Is(expression) | Origin::First(expression) => Some(expression),
            _ => None,
        }
    }

    /// The tensor, or the pattern of those, that it needs, if it needs one.
    pub(crate) fn tensor(&self) -> Option<&str> {
        match self {
            Origin::OfTensor(_, tensor) | Origin::Present(tensor) => Some(tensor),
            Origin::PresentEach(pattern) => Some(pattern.text()),
            _ => None,
        }
    }
}

/// There is no map of an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArchitecture {
    /// What was asked for.
    pub name: String,
    /// Whether llama.cpp has it.
    pub known: bool,
    /// The nearest names that there are maps of.
    pub nearest: Vec<&'static str>,
}

impl fmt::Display for UnknownArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = gguf_assay_format::escape(self.name.as_bytes(), 80);
        if self.known {
            write!(
                f,
                "llama.cpp knows the architecture \"{name}\", but there is no map of it yet"
            )?;
        } else {
            write!(f, "no architecture is named \"{name}\"")?;
        }
        match self.nearest.as_slice() {
            [] => write!(f, "; gguf-assay list architectures names all"),
            nearest => write!(f, "; the nearest with a map: {}", nearest.join(", ")),
        }
    }
}

impl std::error::Error for UnknownArchitecture {}

/// The names that the pinned llama.cpp declares, recorded by `tests/source.rs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceTable {
    /// The package and version that was read.
    pub source: String,
    /// Every value of `general.architecture` (`LLM_ARCH_NAMES`).
    pub architectures: Vec<String>,
    /// Every tensor name (`LLM_TENSOR_NAMES`), with `N` for the layer and `E` for the expert,
    /// without the suffix `.weight` or `.bias`.
    pub tensors: Vec<String>,
    /// Every metadata key (`LLM_KV_NAMES`), without the architecture and its dot.
    pub keys: Vec<String>,
    /// Of each architecture, those tensors that the code which loads it asks for.
    pub tensors_of: BTreeMap<String, Vec<String>>,
}

impl SourceTable {
    /// The recorded table.
    pub fn recorded() -> &'static SourceTable {
        static TABLE: LazyLock<SourceTable> = LazyLock::new(|| {
            // The file is ours, and a test reads it.
            #[expect(clippy::expect_used)]
            toml::from_str(include_str!("../llama-arch.toml")).expect("the recorded table loads")
        });
        &TABLE
    }
}

/// How keys begin that do not stand behind the architecture's name.
const ALONE: [&str; 3] = ["general.", "tokenizer.", "xielu."];

impl Architecture {
    /// Every architecture that there is a map of, by name.
    pub fn all() -> &'static [Architecture] {
        static ALL: LazyLock<Vec<Architecture>> = LazyLock::new(|| {
            let parsed = ARCHITECTURES.iter().map(|(stem, text)| {
                Architecture::parse(text).map_err(|error| format!("{stem}.toml: {error}"))
            });
            // The files are ours, and a test reads them all.
            #[expect(clippy::expect_used)]
            parsed.collect::<Result<_, _>>().expect("the embedded architectures load")
        });
        &ALL
    }

    /// The names of all architectures that are known at any level, sorted, with the level.
    pub fn names() -> BTreeMap<&'static str, Level> {
        let mut names: BTreeMap<&str, Level> = BTreeMap::new();
        for name in &SourceTable::recorded().architectures {
            names.insert(name, Level::Known);
        }
        for architecture in Architecture::all() {
            names.insert(&architecture.name, Level::Full);
        }
        names
    }

    /// The architecture of this name, as `general.architecture` has it.
    ///
    /// # Errors
    ///
    /// There is no map of it.
    pub fn find(name: &str) -> Result<&'static Architecture, UnknownArchitecture> {
        let all = Architecture::all();
        if let Some(found) = all.iter().find(|architecture| architecture.name == name) {
            return Ok(found);
        }
        let known = SourceTable::recorded().architectures.iter().any(|other| other == name);
        let short: String = name.chars().take(40).collect();
        let mut near: Vec<(usize, &str)> = all
            .iter()
            .map(|other| (distance(&plain(&short), &plain(&other.name)), other.name.as_str()))
            .filter(|(distance, other)| {
                *distance <= other.len().max(short.len()).div_ceil(2).saturating_sub(1)
            })
            .collect();
        near.sort_unstable();
        let nearest = near.into_iter().map(|(_, name)| name).take(3).collect();
        Err(UnknownArchitecture { name: name.to_owned(), known, nearest })
    }

    /// The architecture that a checkpoint with this config becomes: by its class, or else by its
    /// `model_type`, which some classes share with what they come from, and where several have that
    /// by what else tells them apart. `None` if there is no map of it.
    pub fn of_config(config: &Json) -> Option<&'static Architecture> {
        let class = config.get("architectures").and_then(|list| list.get(0)?.as_str());
        let model_type = config.get("model_type").and_then(Json::as_str);
        let is_chosen = |class: &Class| {
            let chosen = class.chosen_when.as_ref();
            chosen.is_none_or(|chosen| config::holds(config, chosen))
        };
        let find = |fits: &dyn Fn(&Class) -> bool| {
            let fit = Architecture::all().iter().filter(|architecture| {
                architecture.classes.iter().any(|class| fits(class) && is_chosen(class))
            });
            fit.min_by_key(|architecture| Some(architecture.name()) != model_type)
        };
        find(&|each| Some(each.name.as_str()) == class)
            .or_else(|| find(&|each| Some(each.model_type.as_str()) == model_type))
    }

    /// `general.architecture`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who says so: public sources, with versions.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The transformers classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The patterns of the GGUF tensors.
    pub fn tensor_patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.rows.iter().map(|row| &row.tensor)
    }

    /// Each tensor pattern with the patterns of the parameters that it stands for.
    pub fn pairs(&self) -> impl Iterator<Item = (&Pattern, &Pattern)> {
        self.rows
            .iter()
            .flat_map(|row| row.pieces.iter().map(move |piece| (&row.tensor, &piece.parameter)))
    }

    /// The metadata keys that say something of the config or of a shape, each without the
    /// architecture and its dot.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let fields = self.config.iter().filter_map(|field| field.row.key.as_deref());
        let hyperparameters = self.hyperparameters.iter().filter_map(|each| each.origin.key());
        let keyed = self.keyed.iter().map(|each| each.key.as_str());
        fields.chain(hyperparameters).chain(keyed)
    }

    /// The whole key for one of [`keys`](Architecture::keys).
    pub(crate) fn full_key(&self, key: &str) -> String {
        if ALONE.iter().any(|start| key.starts_with(start)) {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    /// The rows whose tensor may have this name.
    pub(crate) fn rows_of_tensor(&self, name: &str) -> &[usize] {
        self.by_tensor.get(&key_of(name)).map_or(&[], Vec::as_slice)
    }

    /// A parameter's name as the data have it: a text model may be a checkpoint of its own, or
    /// within one of several forms.
    pub(crate) fn parameter_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if !self.rows_of_parameter(name).is_empty()
            || self.dropped.iter().any(|dropped| dropped.matches(name))
        {
            return name.into();
        }
        if let Some(output) = name.strip_prefix("language_model.lm_head.") {
            return format!("lm_head.{output}").into();
        }
        let before =
            ["model.language_model.", "language_model.model.", "model.text_model.", "model."];
        let rest = before.iter().find_map(|before| name.strip_prefix(before));
        let ours = self.within.as_ref().map_or("model.", |within| within.parameters.as_str());
        match rest.map(|rest| format!("{ours}{rest}")) {
            Some(plain) if !self.rows_of_parameter(&plain).is_empty() => plain.into(),
            _ => name.into(),
        }
    }

    /// The rows that stand for a parameter of this name.
    pub(crate) fn rows_of_parameter(&self, name: &str) -> &[usize] {
        self.by_parameter.get(&key_of(name)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn parse(text: &str) -> Result<Architecture, String> {
        let file: DataFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut parts = Parts::default();
        parts.add(&file, None, false, &BTreeMap::new())?;
        if let Some(within) = &file.within {
            parts.put_within(&within.parameters);
        }
        let name = file.name.clone().ok_or("an architecture needs a `name`")?;
        if file.classes.is_empty() {
            return Err("an architecture needs `classes`".into());
        }
        let classes = file.classes.iter().map(|row| {
            let when = row.when.as_deref().map(Expression::parse).transpose()?;
            let chosen_when = row.chosen_when.as_deref().map(Expression::parse).transpose()?;
            let (name, model_type) = (row.class.clone(), row.model_type.clone());
            Ok(Class { name, model_type, when, chosen_when })
        });
        let classes = classes.collect::<Result<_, String>>()?;
        let hyperparameters = in_order(parts.hyperparameters)?;
        let mut examples = vec![Example {
            name: "example".into(),
            metadata: example(&parts.example)?,
            without: Vec::new(),
        }];
        for variant in file.variants {
            let mut rows = parts.example.clone();
            rows.extend(variant.set);
            let metadata = example(&rows)?;
            let (name, without) = (variant.name, variant.without);
            examples.push(Example { name, metadata, without });
        }
        let mut by_tensor: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_parameter: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, row) in parts.rows.iter().enumerate() {
            by_tensor.entry(row.tensor.key()).or_default().push(place);
            for piece in row.forms().flat_map(|(pieces, _)| pieces) {
                let places = by_parameter.entry(piece.parameter.key()).or_default();
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Ok(Architecture {
            name,
            source: file.source,
            classes,
            rows: parts.rows,
            keyed: parts.keyed,
            dropped: parts.dropped,
            config: parts.config,
            absent: parts.absent,
            undeclared: file.undeclared,
            within: file.within,
            hyperparameters,
            examples,
            by_tensor,
            by_parameter,
        })
    }
}

/// What a file and its includes come to.
#[derive(Default)]
struct Parts {
    rows: Vec<Row>,
    keyed: Vec<Keyed>,
    dropped: Vec<Dropped>,
    config: Vec<Field>,
    absent: Vec<AbsentRow>,
    hyperparameters: BTreeMap<String, Hyperparameter>,
    example: BTreeMap<String, toml::Value>,
}

impl Parts {
    /// Adds a file: first what it includes, so that it can say otherwise.
    fn add(
        &mut self,
        file: &DataFile,
        when: Option<&str>,
        optional: bool,
        rename: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        for include in &file.include {
            let mut rename = rename.clone();
            let (part, condition, all_optional) = match include {
                Include::Whole(part) => (part, None, false),
                Include::Some(some) => {
                    rename.extend(some.rename.clone());
                    (&some.part, some.when.as_deref(), some.optional)
                }
            };
            let text = SHARED.iter().find(|(stem, _)| stem == part).map(|(_, text)| text);
            let text = text.ok_or_else(|| format!("there is no shared/{part}.toml"))?;
            let shared: DataFile =
                toml::from_str(text).map_err(|error| format!("shared/{part}.toml: {error}"))?;
            if shared.name.is_some() || !shared.classes.is_empty() {
                return Err(format!("shared/{part}.toml is no architecture"));
            }
            let rows = self.rows.len();
            let condition = both(when, condition);
            self.add(&shared, condition.as_deref(), optional || all_optional, &rename)
                .map_err(|error| format!("shared/{part}.toml: {error}"))?;
            let mut pieces = self.rows.iter().skip(rows).flat_map(|row| &row.pieces);
            if let Some(unused) = rename
                .values()
                .find(|to| !pieces.any(|piece| piece.parameter.text().starts_with(to.as_str())))
            {
                return Err(format!("shared/{part}.toml has nothing that becomes {unused}"));
            }
        }
        for row in &file.tensors {
            let error = |error| format!("{}: {error}", row.gguf);
            self.rows.push(parse_row(row, when, optional, rename).map_err(error)?);
        }
        self.keyed.extend(file.keyed.iter().map(parse_keyed).collect::<Result<Vec<_>, _>>()?);
        for row in &file.dropped {
            let parameter = Pattern::new(&row.transformers);
            self.dropped.push(Dropped { parameter, note: row.note.clone() });
        }
        // A row takes the place of those that an included file has for its field or key.
        self.config.retain(|other| {
            !file.config.iter().any(|row| {
                let same_field = row.field.is_some() && other.row.field == row.field;
                let same_key = row.key.is_some() && other.row.key == row.key;
                same_field || same_key
            })
        });
        for row in &file.config {
            let name = row.field.as_ref().or(row.key.as_ref()).ok_or("a field or a key")?;
            let field = parse_field(row).map_err(|error| format!("{name}: {error}"))?;
            self.config.push(field);
        }
        self.absent.retain(|old| {
            let told = file.config.iter().any(|row| row.field.as_ref() == Some(&old.field));
            !told && !file.absent.iter().any(|row| row.field == old.field)
        });
        self.absent.extend(file.absent.iter().cloned());
        for (name, row) in &file.hyperparameters {
            let mut origins = row.iter().filter(|(origin, _)| *origin != "default");
            let (Some((origin, text)), None) = (origins.next(), origins.next()) else {
                return Err(format!("{name} needs one origin: key, is, count_of, ..."));
            };
            let origin = Origin::parse(origin, text).map_err(|error| format!("{name}: {error}"))?;
            let default = row.get("default").map(|text| Expression::parse(text)).transpose()?;
            let name = name.clone();
            self.hyperparameters.insert(name.clone(), Hyperparameter { name, origin, default });
        }
        let example = file.example.iter().map(|(key, value)| (key.clone(), value.clone()));
        self.example.extend(example);
        Ok(())
    }
}

impl Parts {
    /// Puts parameters where a larger checkpoint has them.
    fn put_within(&mut self, start: &str) {
        let put = |pattern: &mut Pattern| {
            if let (false, Some(rest)) =
                (pattern.text().ends_with('*'), pattern.text().strip_prefix("model."))
            {
                *pattern = Pattern::new(&format!("{start}{rest}"));
            }
        };
        for row in &mut self.rows {
            let alternatives = row.alternatives.iter_mut().flat_map(|each| &mut each.pieces);
            let pieces = row.pieces.iter_mut().chain(alternatives);
            pieces.for_each(|piece| put(&mut piece.parameter));
        }
        self.dropped.iter_mut().for_each(|dropped| put(&mut dropped.parameter));
    }
}

/// The metadata of an example; the number under `tokenizer.ggml.tokens` is how many there are, and
/// one under a tensor's name how many rows it has.
fn example(rows: &BTreeMap<String, toml::Value>) -> Result<Metadata, String> {
    let mut metadata = Metadata { most_layers: 64, ..Metadata::default() };
    for (key, value) in rows {
        let scalar = |value: &toml::Value| match value {
            toml::Value::Integer(int) => Ok(Value::Int((*int).into())),
            toml::Value::Float(float) => Ok(Value::Float(*float)),
            toml::Value::Boolean(value) => Ok(Value::Bool(*value)),
            toml::Value::String(text) => Ok(Value::Text(text.clone())),
            other => Err(format!("example: {key} = {other}")),
        };
        let held = match value {
            toml::Value::Integer(count) if key == "tokenizer.ggml.tokens" => {
                metadata.counts.insert(key.clone(), u64::try_from(*count).unwrap_or(0));
                continue;
            }
            toml::Value::Integer(count) if key.ends_with(".weight") => {
                let rows = Value::Int((*count).into());
                metadata.of_tensors.insert((OfTensor::Rows, key.clone()), rows);
                continue;
            }
            toml::Value::Array(values) => {
                Held::Each(values.iter().map(scalar).collect::<Result<_, _>>()?)
            }
            value => Held::One(scalar(value)?),
        };
        metadata.held.insert(key.clone(), held);
    }
    Ok(metadata)
}

fn both(outer: Option<&str>, inner: Option<&str>) -> Option<String> {
    match (outer, inner) {
        (Some(outer), Some(inner)) => Some(format!("({outer}) and ({inner})")),
        (Some(only), None) | (None, Some(only)) => Some(only.to_owned()),
        (None, None) => None,
    }
}

/// A parameter's name with another beginning.
fn renamed(parameter: &str, rename: &BTreeMap<String, String>) -> String {
    let found = rename.iter().find_map(|(from, to)| Some((to, parameter.strip_prefix(from)?)));
    found.map_or_else(|| parameter.to_owned(), |(to, rest)| format!("{to}{rest}"))
}

fn parse_row(
    row: &TensorRow,
    when: Option<&str>,
    optional: bool,
    rename: &BTreeMap<String, String>,
) -> Result<Row, String> {
    let dims = row.dims.split(',').map(|dim| Expression::parse(dim.trim()));
    let dims = dims.collect::<Result<Vec<_>, _>>()?;
    let tensor = Pattern::new(&row.gguf);
    let rank = dims.len();
    let parameters = row.transformers.as_slice().iter().map(|name| renamed(name, rename));
    let parameters = &parameters.collect::<Vec<_>>()[..];
    let count = row.count.as_deref().unwrap_or("n_expert");
    let mut pieces = pieces(&tensor, rank, count, parameters, &row.view, &[row.value])?;
    let scales = row.scale.as_slice();
    if !matches!(scales.len(), 0 | 1) && scales.len() != pieces.len() {
        return Err("as many scales as views, or one".into());
    }
    for (place, piece) in pieces.iter_mut().enumerate() {
        let factors = scales.get(place).or(scales.first()).map_or("", String::as_str);
        let factors = factors.split(',').map(str::trim).filter(|text| !text.is_empty());
        piece.scale = factors.map(Expression::parse).collect::<Result<Vec<_>, _>>()?;
    }
    if pieces.is_empty() && row.note.is_none() {
        return Err("a tensor that stands for no parameter needs a note".into());
    }
    let alternatives = row.alternatives.iter().map(|each| {
        let blocks = each.blocks.as_deref().map(|name| {
            TensorType::by_name(name).ok_or_else(|| format!("no type is named {name}"))
        });
        let parameters = each.transformers.as_slice().iter().map(|name| renamed(name, rename));
        let parameters = &parameters.collect::<Vec<_>>()[..];
        let pieces = self::pieces(&tensor, rank, count, parameters, &each.view, &each.value)?;
        Ok(Alternative { pieces, blocks: blocks.transpose()? })
    });
    let alternatives = alternatives.collect::<Result<Vec<_>, String>>()?;
    if row.value == Change::Ternary
        && !matches!(pieces.as_slice(), [piece] if piece.view.is_identity())
    {
        return Err("a mean is of one whole parameter".into());
    }
    if row.factor.is_some() && (row.value != Change::None || !alternatives.is_empty()) {
        return Err("a factor, and a value or alternatives beside it".into());
    }
    let condition = both(when, row.when.as_deref());
    Ok(Row {
        dims,
        pieces,
        alternatives,
        change: row.value,
        factor: row.factor.as_deref().map(Expression::parse).transpose()?,
        when: condition.as_deref().map(Expression::parse).transpose()?,
        from_layer: row.from_layer.as_deref().map(Expression::parse).transpose()?,
        optional: optional || row.optional || !row.instead_of.is_empty(),
        instead_of: row.instead_of.iter().map(|text| Pattern::new(text)).collect(),
        layer: row.layer.as_deref().map(Expression::parse).transpose()?,
        note: row.note.clone(),
        tensor,
    })
}

/// The parameters that a tensor stands for, or that may be in their place. Of `changes` there is
/// one for each, one for all, or none; `count` is how many experts there are.
fn pieces(
    tensor: &Pattern,
    rank: usize,
    count: &str,
    parameters: &[String],
    views: &OneOrMany,
    changes: &[Change],
) -> Result<Vec<Piece>, String> {
    let views = views.as_slice();
    let view = |parameter: &str, text: Option<&String>| match text {
        Some(text) => View::parse(text, count),
        None if Pattern::new(parameter).has_expert() && !tensor.has_expert() => {
            Ok(View::stack(rank))
        }
        None => Ok(View::identity(rank)),
    };
    let pairs: Vec<(&String, Option<&String>)> = match (parameters, views) {
        (parameters, []) => parameters.iter().map(|parameter| (parameter, None)).collect(),
        ([parameter], views) => views.iter().map(|view| (parameter, Some(view))).collect(),
        (parameters, views) if parameters.len() == views.len() => {
            parameters.iter().zip(views.iter().map(Some)).collect()
        }
        _ => return Err("as many views as parameters, or one parameter".into()),
    };
    let changes: Vec<Change> = match changes {
        [] => vec![Change::None; pairs.len()],
        [one] => vec![*one; pairs.len()],
        changes if changes.len() == pairs.len() => changes.to_vec(),
        _ => return Err("as many values as parameters, or one".into()),
    };
    let pieces = pairs.into_iter().zip(changes).map(|((parameter, text), change)| {
        let view = view(parameter, text)?;
        if view.tensor_rank() != rank {
            return Err(format!("{rank} dimensions, and `{}`", view.text()));
        }
        Ok(Piece { parameter: Pattern::new(parameter), view, change, scale: Vec::new() })
    });
    pieces.collect()
}

/// A default that is no value.
pub(crate) const NULL: &str = "null";

fn parse_keyed(row: &KeyedRow) -> Result<Keyed, String> {
    let parameter = Pattern::new(&row.transformers);
    if !parameter.has_layer() || row.shape.iter().any(|size| *size != 1) {
        return Err(format!("{}: a key has one number of each layer", row.transformers));
    }
    Ok(Keyed { key: row.key.clone(), parameter, shape: row.shape.clone() })
}

fn parse_field(row: &ConfigRow) -> Result<Field, String> {
    let parse = |text: &Option<String>| text.as_deref().map(Expression::parse).transpose();
    if row.key.is_some() != row.key_type.is_some() {
        return Err("a key has a type".into());
    }
    Ok(Field {
        value: parse(&row.value)?,
        from: parse(&row.from)?,
        blocks: parse(&row.blocks)?,
        leading: parse(&row.leading)?,
        default: parse(&row.default.clone().filter(|text| text != NULL))?,
        when: parse(&row.when)?,
        written_when: parse(&row.written_when)?,
        row: row.clone(),
    })
}

/// Each behind those that it needs.
fn in_order(mut open: BTreeMap<String, Hyperparameter>) -> Result<Vec<Hyperparameter>, String> {
    let mut done: Vec<Hyperparameter> = Vec::new();
    while !open.is_empty() {
        let ready = open.values().find(|each| {
            let needs = each
                .origin
                .expression()
                .into_iter()
                .chain(&each.default)
                .flat_map(Expression::names);
            needs.into_iter().all(|name| name == LAYER || !open.contains_key(name))
        });
        let Some(name) = ready.map(|each| each.name.clone()) else {
            let names: Vec<_> = open.keys().map(String::as_str).collect();
            return Err(format!("hyperparameters that need each other: {}", names.join(", ")));
        };
        done.extend(open.remove(&name));
    }
    Ok(done)
}

/// What the layer's number is called in an expression.
pub(crate) const LAYER: &str = "layer";

/// Letters and digits only: `qwen3_moe` is `qwen3moe`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The Levenshtein distance, in bytes.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (place, a) in left.bytes().enumerate() {
        let mut diagonal = place;
        let mut before = place.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = before;
        }
        for (cell, b) in row.iter_mut().skip(1).zip(right.bytes()) {
            let change = diagonal.saturating_add(usize::from(a != b));
            diagonal = *cell;
            before = change.min(before.saturating_add(1)).min(cell.saturating_add(1));
            *cell = before;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        // By hand.
        for (left, right, expected) in [("", "abc", 3), ("kitten", "sitting", 3), ("a", "a", 0)] {
            assert_eq!(distance(left, right), expected);
        }
    }

    #[test]
    fn an_unknown_architecture_is_named_with_the_nearest() {
        let error = Architecture::find("qwen3_moe").unwrap_err();
        assert!(!error.known);
        assert_eq!(error.nearest[0], "qwen3moe");
        let error = Architecture::find("clip").unwrap_err();
        assert!(error.known);
        let error = Architecture::find("\x1b[2Jzzzzzzzzzzzzzzzzzzzz").unwrap_err();
        assert!(error.nearest.is_empty());
        assert!(!error.to_string().contains('\x1b'), "{error}");
    }
}
