//! Checkpoints as cases describe them: configs and tensors, the changes that may be made to those, and
//! the files that come of it. `corpus/README.md` documents the text.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use gguf_assay_checkpoint::Dtype;
use serde_json::{Map, Value as Json, json};
use toml::{Table, Value};

use crate::syntax::{self, Result, byte_string, known_keys, text, unsigned};

/// The config that is meant where no file is named.
const CONFIG: &str = "config.json";
/// The safetensors file that is meant where none is named.
const MODEL: &str = "model.safetensors";
/// The file that says which tensor is in which shard.
const INDEX: &str = "model.safetensors.index.json";

/// The most bytes that a tensor of a case may have: cases are small.
const MOST: u64 = 1 << 20;

/// The files of a checkpoint, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltFolder(pub BTreeMap<String, Vec<u8>>);

impl BuiltFolder {
    /// The size of all files in bytes.
    pub fn len(&self) -> u64 {
        self.0.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// Whether no file has a byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the files into a folder, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.0.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
    }
}

/// A checkpoint before it is laid down.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Folder {
    /// The configs, by file name.
    configs: BTreeMap<String, Json>,
    /// The tensors, in the order of their files.
    tensors: Vec<Tensor>,
}

/// A tensor of a description.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    file: String,
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    data: Data,
}

/// What a tensor's bytes are.
#[derive(Clone, Debug, PartialEq)]
enum Data {
    /// These.
    Exact(Vec<u8>),
    /// These, again and again.
    Repeat(Vec<u8>),
    /// One more each, from this one on.
    Counting(u8),
    /// `I32`: the place of each element, divided by this.
    Groups(u64),
}

impl Data {
    /// The fields that say what the bytes are.
    const FIELDS: [&str; 10] =
        ["hex", "repeat", "counting", "groups", "text", "i32", "i64", "f32", "f16", "bf16"];

    /// The data of a tensor's table, if it says any.
    fn parse(table: &Table) -> Result<Option<Data>> {
        let mut given =
            Data::FIELDS.into_iter().filter_map(|field| Some((field, table.get(field)?)));
        let Some((field, value)) = given.next() else { return Ok(None) };
        if let Some((other, _)) = given.next() {
            return Err(format!("`{field}` and `{other}`: a tensor has one kind of data"));
        }
        let numbers = |width: usize, encode: &dyn Fn(&Value) -> Result<Vec<u8>>| match value {
            Value::Array(list) => {
                let bytes: Vec<Vec<u8>> = list.iter().map(encode).collect::<Result<_>>()?;
                Ok(Data::Exact(bytes.concat()))
            }
            one => encode(one).map(Data::Repeat).map_err(|e| format!("{e} ({width} bytes each)")),
        };
        let half = |value: &Value, encode: fn(f32) -> (u16, f32)| {
            let number = syntax::exact_f32(value)?;
            let (bits, back) = encode(number);
            if back.to_bits() != number.to_bits() && !number.is_nan() {
                return Err(format!("{value} is not exactly of the type: it would be {back}"));
            }
            Ok(bits.to_le_bytes().to_vec())
        };
        Ok(Some(match field {
            "hex" => Data::Exact(syntax::hex(text(value)?)?),
            "repeat" => match syntax::hex(text(value)?)? {
                pattern if pattern.is_empty() => return Err("`repeat` repeats nothing".into()),
                pattern => Data::Repeat(pattern),
            },
            "counting" => Data::Counting(unsigned(value)?),
            "groups" => match unsigned(value)? {
                0 => return Err("`groups` is how many elements a group has".into()),
                size => Data::Groups(size),
            },
            "text" => Data::Exact(text(value)?.as_bytes().to_vec()),
            "i32" => numbers(4, &|v| syntax::integer::<i32>(v).map(|n| n.to_le_bytes().to_vec()))?,
            "i64" => numbers(8, &|v| syntax::integer::<i64>(v).map(|n| n.to_le_bytes().to_vec()))?,
            "f32" => numbers(4, &|v| syntax::exact_f32(v).map(|n| n.to_le_bytes().to_vec()))?,
            "f16" => numbers(2, &|v| {
                half(v, |n| {
                    let half = half::f16::from_f32(n);
                    (half.to_bits(), half.to_f32())
                })
            })?,
            _ => numbers(2, &|v| {
                half(v, |n| {
                    let half = half::bf16::from_f32(n);
                    (half.to_bits(), half.to_f32())
                })
            })?,
        }))
    }

    /// So many bytes of it.
    fn bytes(&self, len: u64) -> Result<Vec<u8>> {
        if len > MOST {
            return Err(format!("{len} bytes; a tensor of a case has at most {MOST}"));
        }
        let len = len as usize;
        match self {
            Data::Exact(bytes) if bytes.len() == len => Ok(bytes.clone()),
            Data::Exact(bytes) => {
                Err(format!("{} bytes of data, and its shape asks for {len}", bytes.len()))
            }
            Data::Repeat(pattern) => Ok(pattern.iter().copied().cycle().take(len).collect()),
            Data::Counting(first) => {
                Ok((0..len).map(|place| (usize::from(*first) + place) as u8).collect())
            }
            Data::Groups(size) => {
                let groups = (0..len as u64 / 4).map(|place| (place / size) as i32);
                let bytes: Vec<u8> = groups.flat_map(i32::to_le_bytes).collect();
                if bytes.len() == len { Ok(bytes) } else { Err("`groups` is for I32".into()) }
            }
        }
    }
}

fn dtype(value: &Value) -> Result<Dtype> {
    let name = text(value)?;
    Dtype::find(name).ok_or_else(|| {
        let names: Vec<&str> = Dtype::ALL.iter().map(|dtype| dtype.name).collect();
        format!("there is no dtype `{name}`; there are {}", names.join(", "))
    })
}

/// The name of a file, without a path.
fn file_name(value: &Value) -> Result<String> {
    let name = text(value)?;
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', ':']) {
        return Err(format!("`{name}` is not the name of a file in the folder"));
    }
    Ok(name.to_owned())
}

/// `a.{b,c}.{0..2}`: each name that it stands for.
fn braces(pattern: &str) -> Result<Vec<String>> {
    let Some((head, rest)) = pattern.split_once('{') else { return Ok(vec![pattern.to_owned()]) };
    let (list, tail) =
        rest.split_once('}').ok_or_else(|| format!("`{pattern}`: a {{ without its }}"))?;
    let words: Vec<String> = match list.split_once("..") {
        Some((from, to)) => {
            let number = |text: &str| {
                text.parse::<u32>().map_err(|_| format!("`{{{list}}}` is not {{FIRST..LAST}}"))
            };
            (number(from)?..=number(to)?).map(|n| n.to_string()).collect()
        }
        None => list.split(',').map(str::to_owned).collect(),
    };
    let mut names = Vec::new();
    for tail in braces(tail)? {
        names.extend(words.iter().map(|word| format!("{head}{word}{tail}")));
    }
    names.sort();
    Ok(names)
}

/// What each `*` of the pattern stands for in the name; `None` if the name is another.
fn stars<'a>(pattern: &str, name: &'a str) -> Option<Vec<&'a str>> {
    let Some((head, rest)) = pattern.split_once('*') else {
        return (pattern == name).then(Vec::new);
    };
    let name = name.strip_prefix(head)?;
    for (end, _) in name.char_indices().chain([(name.len(), ' ')]) {
        if let Some(mut more) = stars(rest, &name[end..]) {
            more.insert(0, &name[..end]);
            return Some(more);
        }
    }
    None
}

/// A name with what the stars stand for put in.
fn filled(pattern: &str, stars: &[&str]) -> Result<String> {
    let mut pieces = pattern.split('*');
    let mut name = pieces.next().unwrap_or_default().to_owned();
    let mut stars = stars.iter();
    for piece in pieces {
        name.push_str(stars.next().ok_or_else(|| format!("`{pattern}` has more stars"))?);
        name.push_str(piece);
    }
    Ok(name)
}

/// The tensors of one table: one for each name that it stands for.
fn tensors(table: &Table) -> Result<Vec<Tensor>> {
    let known: Vec<&str> =
        ["name", "dtype", "shape", "file"].into_iter().chain(Data::FIELDS).collect();
    known_keys(table, &known)?;
    let name = text(table.get("name").ok_or("a tensor needs `name`")?)?;
    let at = |e: String| format!("tensor `{name}`: {e}");
    let dtype = table.get("dtype").ok_or("no `dtype`".into()).and_then(dtype).map_err(at)?;
    let data = Data::parse(table).map_err(at)?;
    let shape = match (table.get("shape"), &data) {
        (Some(shape), _) => syntax::dims(shape).map_err(at)?,
        (None, Some(Data::Exact(bytes))) if dtype.bits.is_multiple_of(8) => {
            vec![bytes.len() as u64 / (dtype.bits / 8)]
        }
        _ => return Err(at("no `shape`".into())),
    };
    let data = data.unwrap_or(Data::Repeat(vec![0]));
    let file = table.get("file").map_or(Ok(MODEL.to_owned()), file_name).map_err(at)?;
    let one =
        |name| Tensor { file: file.clone(), name, dtype, shape: shape.clone(), data: data.clone() };
    Ok(braces(name)?.into_iter().map(one).collect())
}

impl Tensor {
    fn bytes(&self) -> Result<Vec<u8>> {
        let at = |e: String| format!("tensor `{}`: {e}", self.name);
        let len = self.dtype.byte_len(&self.shape).ok_or_else(|| {
            at(format!("{} of {:?} is no whole number of bytes", self.dtype, self.shape))
        })?;
        self.data.bytes(len).map_err(at)
    }
}

/// A config: a table, or JSON as text.
fn config(value: &Value) -> Result<Json> {
    match value {
        Value::String(text) => serde_json::from_str(text).map_err(|e| format!("no JSON: {e}")),
        table => serde_json::to_value(table).map_err(|e| e.to_string()),
    }
}

/// A place in a config: `"a.b.0"`, or `["a", "with.dots"]`.
fn path(value: &Value) -> Result<Vec<String>> {
    let path: Vec<String> = match value {
        Value::String(path) => path.split('.').map(str::to_owned).collect(),
        Value::Array(parts) => {
            parts.iter().map(|part| text(part).map(str::to_owned)).collect::<Result<_>>()?
        }
        _ => return Err("a place is \"a.b\" or [\"a\", \"b\"]".into()),
    };
    if path.is_empty() { Err("a place needs a name".into()) } else { Ok(path) }
}

/// The object or list that holds the last part of a path.
fn holder<'a>(json: &'a mut Json, path: &[String]) -> Result<&'a mut Json> {
    let mut json = json;
    for part in path {
        json = match json {
            Json::Object(object) => object.get_mut(part),
            Json::Array(list) => part.parse().ok().and_then(|place: usize| list.get_mut(place)),
            _ => None,
        }
        .ok_or_else(|| format!("there is no `{part}` in {}", path.join(".")))?;
    }
    Ok(json)
}

/// One change of a checkpoint. A fault is one; a description may have made some before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    /// A field of a config has this value, or is not there.
    Field { file: String, path: Vec<String>, to: Option<Json> },
    /// Tensors are other ones.
    Tensor { patterns: Vec<String>, change: TensorChange },
    /// Tensors are there, too.
    Add(Vec<AddedTensor>),
    /// The index has another file for a tensor, or none.
    Index { tensor: String, to: Option<String> },
    /// The text of a header is another.
    Header { file: String, from: String, to: String },
    /// The first eight bytes say another length: this, or so much more.
    Length { file: String, to: Length },
    /// The file has only so many bytes, or so many fewer.
    Cut { file: String, at: i64 },
    /// It has more.
    Append { file: String, bytes: Vec<u8> },
    /// It has others.
    Overwrite { file: String, at: u64, bytes: Vec<u8> },
    /// The file is not there.
    Drop { file: String },
    /// It has another name.
    Rename { file: String, to: String },
    /// It has these bytes.
    Write { file: String, bytes: Vec<u8> },
}

/// What the first eight bytes of a safetensors file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Is(u64),
    Plus(i64),
}

/// A tensor that a change adds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AddedTensor(Tensor);

/// What is changed of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TensorChange {
    drop: bool,
    rename: Option<String>,
    copy: Option<String>,
    shape: Option<Vec<u64>>,
    dtype: Option<Dtype>,
    file: Option<String>,
    data: Option<Data>,
}

/// What an edit is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Described,
    Json,
    Header,
    Bytes,
}

impl Edit {
    pub(crate) fn parse(table: &Table) -> Result<Edit> {
        const KINDS: [&str; 14] = [
            "set",
            "remove",
            "tensor",
            "add",
            "index",
            "header",
            "length",
            "length_plus",
            "cut",
            "append",
            "at",
            "drop",
            "rename",
            "write",
        ];
        let kind = KINDS.into_iter().find(|kind| table.contains_key(*kind));
        let kind = kind.ok_or_else(|| {
            format!("no kind of change in {{ {table} }}; there are {}", KINDS.join(", "))
        })?;
        let get = |name: &str| table.get(name).ok_or_else(|| format!("`{kind}` needs `{name}`"));
        let word = |name: &str| text(get(name)?).map(str::to_owned);
        let file = |default: &str| table.get("file").map_or(Ok(default.to_owned()), file_name);
        let known = |names: &[&str]| known_keys(table, names);
        Ok(match kind {
            "set" => {
                known(&["set", "to", "json", "file"])?;
                let to = match (table.get("to"), table.get("json")) {
                    (Some(to), None) => serde_json::to_value(to).map_err(|e| e.to_string())?,
                    (None, Some(json)) => {
                        serde_json::from_str(text(json)?).map_err(|e| format!("`json`: {e}"))?
                    }
                    _ => return Err("`set` needs `to`, or `json` with the value as JSON".into()),
                };
                Edit::Field { file: file(CONFIG)?, path: path(get("set")?)?, to: Some(to) }
            }
            "remove" => {
                known(&["remove", "file"])?;
                Edit::Field { file: file(CONFIG)?, path: path(get("remove")?)?, to: None }
            }
            "tensor" => {
                let own = ["tensor", "drop", "rename", "copy", "shape", "dtype", "file"];
                known(&own.into_iter().chain(Data::FIELDS).collect::<Vec<_>>())?;
                let optional = |name: &str| table.get(name).map(text).transpose();
                let change = TensorChange {
                    drop: table.get("drop").is_some_and(|drop| drop.as_bool() == Some(true)),
                    rename: optional("rename")?.map(str::to_owned),
                    copy: optional("copy")?.map(str::to_owned),
                    shape: table.get("shape").map(syntax::dims).transpose()?,
                    dtype: table.get("dtype").map(dtype).transpose()?,
                    file: table.get("file").map(file_name).transpose()?,
                    data: Data::parse(table)?,
                };
                if change == TensorChange::default() {
                    return Err(
                        "`tensor` needs what is changed: drop, rename, copy, shape, dtype, file \
                                or data"
                            .into(),
                    );
                }
                Edit::Tensor { patterns: braces(&word("tensor")?)?, change }
            }
            "add" => {
                known(&["add"])?;
                let table = get("add")?.as_table().ok_or("`add` is a tensor's table")?;
                Edit::Add(tensors(table)?.into_iter().map(AddedTensor).collect())
            }
            "index" => {
                known(&["index", "to", "drop"])?;
                let to = match (table.get("to"), table.get("drop")) {
                    // Whatever it is: a path that leads elsewhere is a fault, too.
                    (Some(to), None) => Some(text(to)?.to_owned()),
                    (None, Some(Value::Boolean(true))) => None,
                    _ => return Err("`index` needs `to`, or drop = true".into()),
                };
                Edit::Index { tensor: word("index")?, to }
            }
            "header" => {
                known(&["header", "with", "file"])?;
                Edit::Header { file: file(MODEL)?, from: word("header")?, to: word("with")? }
            }
            "length" => {
                known(&["length", "file"])?;
                Edit::Length { file: file(MODEL)?, to: Length::Is(unsigned(get("length")?)?) }
            }
            "length_plus" => {
                known(&["length_plus", "file"])?;
                let plus = syntax::integer(get("length_plus")?)?;
                Edit::Length { file: file(MODEL)?, to: Length::Plus(plus) }
            }
            "cut" => {
                known(&["cut", "file"])?;
                Edit::Cut { file: file(MODEL)?, at: syntax::integer(get("cut")?)? }
            }
            "append" => {
                known(&["append", "file"])?;
                Edit::Append { file: file(MODEL)?, bytes: byte_string(get("append")?)? }
            }
            "at" => {
                known(&["at", "bytes", "file"])?;
                let (at, bytes) = (unsigned(get("at")?)?, byte_string(get("bytes")?)?);
                Edit::Overwrite { file: file(MODEL)?, at, bytes }
            }
            "drop" => {
                known(&["drop"])?;
                Edit::Drop { file: file_name(get("drop")?)? }
            }
            "rename" => {
                known(&["rename", "to"])?;
                Edit::Rename { file: file_name(get("rename")?)?, to: file_name(get("to")?)? }
            }
            _ => {
                known(&["write", "bytes"])?;
                Edit::Write { file: file_name(get("write")?)?, bytes: byte_string(get("bytes")?)? }
            }
        })
    }

    fn stage(&self) -> Stage {
        match self {
            Edit::Field { file, .. } if file == INDEX => Stage::Json,
            Edit::Field { .. } | Edit::Tensor { .. } | Edit::Add(_) => Stage::Described,
            Edit::Index { .. } => Stage::Json,
            Edit::Header { .. } => Stage::Header,
            _ => Stage::Bytes,
        }
    }

    /// Whether the change is one of what is described, so that what is laid down is whole.
    pub(crate) fn is_described(&self) -> bool {
        self.stage() == Stage::Described
    }

    /// Whether it is a change of this file's header.
    fn is_of(&self, name: &str) -> bool {
        matches!(self, Edit::Header { file, .. } if file == name)
    }

    /// Changes configs, by file name.
    fn change_json(&self, configs: &mut BTreeMap<String, Json>) -> Result<()> {
        match self {
            Edit::Field { file, path, to } => {
                let json = configs.get_mut(file).ok_or_else(|| format!("there is no `{file}`"))?;
                let Some((last, parents)) = path.split_last() else { return Ok(()) };
                match (holder(json, parents)?, to) {
                    (Json::Object(object), Some(to)) => {
                        object.insert(last.clone(), to.clone());
                    }
                    (Json::Object(object), None) => {
                        let gone = object.remove(last);
                        gone.ok_or_else(|| format!("there is no `{}`", path.join(".")))?;
                    }
                    (Json::Array(list), to) => {
                        let place = last.parse().ok().filter(|place: &usize| *place <= list.len());
                        let place = place.ok_or_else(|| {
                            format!("`{last}` is no place in {}", parents.join("."))
                        })?;
                        match to {
                            Some(to) if place == list.len() => list.push(to.clone()),
                            Some(to) => list[place] = to.clone(),
                            None if place < list.len() => drop(list.remove(place)),
                            None => return Err(format!("there is no `{}`", path.join("."))),
                        }
                    }
                    _ => return Err(format!("`{}` holds no fields", parents.join("."))),
                }
            }
            Edit::Index { tensor, to } => {
                let map = configs.get_mut(INDEX).and_then(|index| index.get_mut("weight_map"));
                let map = map.and_then(Json::as_object_mut);
                let map = map.ok_or("there is no index: give tensors a `file` of their own")?;
                match to {
                    Some(to) => drop(map.insert(tensor.clone(), to.as_str().into())),
                    None => {
                        let gone = map.remove(tensor);
                        gone.ok_or_else(|| format!("the index has no `{tensor}`"))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Changes what is described.
    fn describe(&self, folder: &mut Folder) -> Result<()> {
        match self {
            Edit::Field { .. } => self.change_json(&mut folder.configs)?,
            Edit::Add(added) => folder.tensors.extend(added.iter().map(|added| added.0.clone())),
            Edit::Tensor { patterns, change } => {
                for pattern in patterns {
                    let mut found = false;
                    let mut tensors = Vec::new();
                    for mut tensor in std::mem::take(&mut folder.tensors) {
                        let Some(stars) = stars(pattern, &tensor.name) else {
                            tensors.push(tensor);
                            continue;
                        };
                        found = true;
                        if change.drop {
                            continue;
                        }
                        let rename =
                            change.rename.as_ref().map(|to| filled(to, &stars)).transpose()?;
                        let copy = change.copy.as_ref().map(|to| filled(to, &stars)).transpose()?;
                        if let Some(name) = copy {
                            tensors.push(tensor.clone());
                            tensor.name = name;
                        }
                        if let Some(name) = rename {
                            tensor.name = name;
                        }
                        let TensorChange { shape, dtype, file, data, .. } = change.clone();
                        tensor.shape = shape.unwrap_or(tensor.shape);
                        tensor.dtype = dtype.unwrap_or(tensor.dtype);
                        tensor.file = file.unwrap_or(tensor.file);
                        tensor.data = data.unwrap_or(tensor.data);
                        tensors.push(tensor);
                    }
                    folder.tensors = tensors;
                    if !found {
                        let names: Vec<&str> =
                            folder.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
                        return Err(format!(
                            "no tensor `{pattern}`; there are {}",
                            names.join(", ")
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Changes the files that are laid down.
    fn change_files(&self, files: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
        let missing = |file: &str| format!("there is no `{file}`");
        if let Edit::Write { file, bytes } = self {
            files.insert(file.clone(), bytes.clone());
            return Ok(());
        }
        let (Edit::Length { file, .. }
        | Edit::Cut { file, .. }
        | Edit::Append { file, .. }
        | Edit::Overwrite { file, .. }
        | Edit::Drop { file }
        | Edit::Rename { file, .. }) = self
        else {
            return Ok(());
        };
        if let Edit::Drop { .. } | Edit::Rename { .. } = self {
            let bytes = files.remove(file).ok_or_else(|| missing(file))?;
            if let Edit::Rename { to, .. } = self {
                files.insert(to.clone(), bytes);
            }
            return Ok(());
        }
        let content = files.get_mut(file).ok_or_else(|| missing(file))?;
        match self {
            Edit::Length { to, .. } => {
                let length = content.first_chunk_mut::<8>().ok_or("the file has no length")?;
                let value = match to {
                    Length::Is(value) => *value,
                    Length::Plus(plus) => u64::from_le_bytes(*length).wrapping_add_signed(*plus),
                };
                *length = value.to_le_bytes();
            }
            Edit::Cut { at, .. } => {
                let len = content.len() as i64;
                let at = if *at < 0 { len + at } else { *at };
                if !(0..len).contains(&at) {
                    return Err(format!("a file of {len} bytes cannot be cut at {at}"));
                }
                content.truncate(at as usize);
            }
            Edit::Append { bytes, .. } => content.extend(bytes),
            Edit::Overwrite { at, bytes, .. } => {
                let at = *at as usize;
                let place = at.checked_add(bytes.len()).and_then(|end| content.get_mut(at..end));
                place.ok_or("the file is shorter than that")?.copy_from_slice(bytes);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Folder {
    /// A checkpoint from its text: `config`, `files`, `tensors`.
    pub(crate) fn parse(
        config_json: Option<&Value>,
        files: &Table,
        tables: &[Table],
    ) -> Result<Folder> {
        let mut folder = Folder::default();
        let configs = files.iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in config_json.map(|value| (CONFIG, value)).into_iter().chain(configs) {
            let name = file_name(&Value::from(name))?;
            let json = config(value).map_err(|e| format!("{name}: {e}"))?;
            if folder.configs.insert(name.clone(), json).is_some() {
                return Err(format!("{name} is there twice"));
            }
        }
        folder.extend(tables)?;
        Ok(folder)
    }

    /// Adds tensors.
    pub(crate) fn extend(&mut self, tables: &[Table]) -> Result<()> {
        for table in tables {
            self.tensors.extend(tensors(table)?);
        }
        Ok(())
    }

    /// Makes changes of what is described.
    pub(crate) fn edit(&mut self, edits: &[Edit]) -> Result<()> {
        edits.iter().try_for_each(|edit| match edit.is_described() {
            true => edit.describe(self),
            false => Err("only a fault can be what no description says".into()),
        })
    }

    /// The quantization method that its configs name.
    pub(crate) fn method(&self) -> Option<&str> {
        self.configs.values().find_map(|config| {
            let nested = [Some(config), config.get("text_config")];
            let nested = nested.into_iter().flatten();
            let found = nested.filter_map(|place| place.get("quantization_config"));
            found.chain([config]).find_map(|place| place.get("quant_method")?.as_str())
        })
    }

    /// The files, with what is wrong with them: no more than one thing, though several changes may make
    /// it.
    pub(crate) fn lay_out(&self, fault: &[Edit]) -> Result<BuiltFolder> {
        let mut folder = self.clone();
        let at = |stage: Stage| fault.iter().filter(move |edit| edit.stage() == stage);
        at(Stage::Described).try_for_each(|edit| edit.describe(&mut folder))?;
        let mut shards: BTreeMap<&str, Vec<&Tensor>> = BTreeMap::new();
        for tensor in &folder.tensors {
            shards.entry(&tensor.file).or_default().push(tensor);
        }
        let mut configs = folder.configs.clone();
        if shards.keys().any(|file| *file != MODEL) {
            configs.entry(INDEX.into()).or_insert(index(&folder.tensors)?);
        }
        at(Stage::Json).try_for_each(|edit| edit.change_json(&mut configs))?;
        let mut files = BTreeMap::new();
        for (name, json) in configs {
            files.insert(name, serde_json::to_vec(&json).map_err(|e| e.to_string())?);
        }
        for (name, tensors) in shards {
            let edits: Vec<&Edit> = at(Stage::Header).filter(|edit| edit.is_of(name)).collect();
            files.insert(name.to_owned(), safetensors(&tensors, &edits)?);
        }
        if let Some(edit) =
            at(Stage::Header).find(|edit| !files.keys().any(|file| edit.is_of(file)))
        {
            return Err(format!("there is no file for {edit:?}"));
        }
        at(Stage::Bytes).try_for_each(|edit| edit.change_files(&mut files))?;
        Ok(BuiltFolder(files))
    }
}

/// What says which tensor is in which file.
fn index(tensors: &[Tensor]) -> Result<Json> {
    let mut map = Map::new();
    let mut size = 0;
    for tensor in tensors {
        size += tensor.bytes()?.len();
        map.insert(tensor.name.clone(), tensor.file.as_str().into());
    }
    Ok(json!({ "metadata": { "total_size": size }, "weight_map": map }))
}

/// A safetensors file: the header as `save_file` writes it, padded with spaces to eight bytes, and the
/// tensors in order.
fn safetensors(tensors: &[&Tensor], edits: &[&Edit]) -> Result<Vec<u8>> {
    let mut header = String::from(r#"{"__metadata__":{"format":"pt"}"#);
    let mut data = Vec::new();
    for tensor in tensors {
        let start = data.len();
        data.extend(tensor.bytes()?);
        header.push_str(&format!(
            r#",{}:{{"dtype":"{}","shape":{},"data_offsets":[{start},{}]}}"#,
            Json::from(tensor.name.as_str()),
            tensor.dtype,
            Json::from(tensor.shape.as_slice()),
            data.len()
        ));
    }
    header.push('}');
    for edit in edits {
        let Edit::Header { from, to, .. } = edit else { continue };
        match header.matches(from.as_str()).count() {
            1 => header = header.replacen(from, to, 1),
            count => return Err(format!("`{from}` is {count} times in the header {header}")),
        }
    }
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_several() {
        assert_eq!(braces("a.{x,y}.b").unwrap(), ["a.x.b", "a.y.b"]);
        assert_eq!(braces("{0..1}.{a,b}").unwrap(), ["0.a", "0.b", "1.a", "1.b"]);
        assert!(braces("a{b").unwrap_err().contains("without its"));
        assert_eq!(stars("a.*.c", "a.b.c"), Some(vec!["b"]));
        assert_eq!(stars("a.*", "b.c"), None);
        assert_eq!(stars("*.x*", "a.x.x1"), Some(vec!["a", ".x1"]));
        assert_eq!(filled("q.*.z", &["7"]).unwrap(), "q.7.z");
    }

    /// By hand, after the format's text: 8 bytes of length, the header, the bytes of the tensors.
    #[test]
    fn a_file_is_laid_down_as_the_format_says() {
        let table: Table =
            toml::from_str("name = \"a\"\ndtype = \"F16\"\nf16 = [1.0, -2.0]").unwrap();
        let folder = Folder::parse(None, &Table::new(), &[table]).unwrap();
        let files = folder.lay_out(&[]).unwrap().0;
        let bytes = &files[MODEL];
        let header =
            br#"{"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
        assert_eq!(bytes[..8], (header.len() as u64).next_multiple_of(8).to_le_bytes());
        assert!(bytes[8..].starts_with(header));
        assert!(bytes.ends_with(&[0x00, 0x3c, 0x00, 0xc0]));
    }
}
