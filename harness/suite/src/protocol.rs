//! The adapter protocol: one JSON object per line, both ways. `PROTOCOL.md` is its text.

use gguf_assay_cases::{
    CheckpointValue, FileValue, MappedName, ModuleValue, NamesValue, TensorValue, WeightValue,
};
use gguf_assay_format::{OwnedArray, OwnedValue, ValueType};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{About, Failure, NamesGiven};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// What the runner sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// The first message: what are you?
    Describe {
        /// The protocol that the runner speaks.
        protocol: u32,
    },
    /// Read a file.
    Read {
        /// To be sent back.
        id: u64,
        /// An absolute path.
        path: String,
        /// `spec` or `ggml`; most readers know one way only and take no notice.
        profile: String,
    },
    /// Dequantize blocks.
    Dequantize {
        /// To be sent back.
        id: u64,
        /// ggml's name of the type (`Q4_K`).
        r#type: String,
        /// Whole blocks in hex.
        hex: String,
        /// Whether they are big-endian; only asked of a subject that says that it takes them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        big_endian: bool,
    },
    /// Say what the names of one side are on the other.
    MapNames {
        /// To be sent back.
        id: u64,
        /// llama.cpp's name of the architecture (`qwen3moe`).
        architecture: String,
        /// The side that is given.
        #[serde(flatten)]
        given: Given,
    },
    /// Say whether a checkpoint is in order, and what it is.
    JudgeCheckpoint {
        /// To be sent back.
        id: u64,
        /// The folder, by an absolute path.
        path: String,
        /// On how many devices its tensors are to be split.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tp: Option<u32>,
    },
    /// Say what the numbers of a module are.
    Unpack {
        /// To be sent back.
        id: u64,
        /// The folder of the checkpoint, by an absolute path.
        path: String,
        /// The module: what comes before `.qweight`, `.weight_packed` and the like.
        module: String,
    },
}

/// The side that is given, by the side that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "lowercase")]
pub enum Given {
    /// A file, to be mapped to transformers.
    Transformers {
        /// An absolute path.
        path: String,
        /// Its metadata, as in the answer to `read`.
        metadata: Vec<(Value, Value)>,
        /// Its tensors; the shape is `dims` of the file, the contiguous one first.
        names: Vec<NameAndShape>,
    },
    /// A checkpoint, to be mapped to GGUF.
    Gguf {
        /// `config.json`.
        config: Value,
        /// Its parameters; the shape is torch's, the contiguous one last.
        names: Vec<NameAndShape>,
    },
}

/// A tensor or a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameAndShape {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
}

impl Given {
    /// As it is sent.
    pub fn of(given: &NamesGiven) -> Given {
        let names = |list: &[(String, Vec<u64>)]| {
            let names = list.iter();
            names
                .map(|(name, shape)| NameAndShape { name: name.clone(), shape: shape.clone() })
                .collect()
        };
        match given {
            NamesGiven::File { path, metadata, tensors } => Given::Transformers {
                path: path.display().to_string(),
                metadata: metadata
                    .iter()
                    .map(|(k, v)| (bytes_to_json(k), value_to_json(v)))
                    .collect(),
                names: names(tensors),
            },
            NamesGiven::Checkpoint { config, parameters } => {
                Given::Gguf { config: config.clone(), names: names(parameters) }
            }
        }
    }

    /// As it is asked of a subject.
    ///
    /// # Errors
    ///
    /// In what the request departs from the protocol.
    pub fn into_given(self) -> Result<NamesGiven, String> {
        let list =
            |names: Vec<NameAndShape>| names.into_iter().map(|n| (n.name, n.shape)).collect();
        Ok(match self {
            Given::Transformers { path, metadata, names } => {
                let entries = metadata.iter();
                let entries = entries.map(|(k, v)| Ok((bytes_from_json(k)?, value_from_json(v)?)));
                NamesGiven::File {
                    path: path.into(),
                    metadata: entries.collect::<Result<_, String>>()?,
                    tensors: list(names),
                }
            }
            Given::Gguf { config, names } => {
                NamesGiven::Checkpoint { config, parameters: list(names) }
            }
        })
    }
}

impl Request {
    /// The id to send back, if the message has one.
    pub fn id(&self) -> Option<u64> {
        match self {
            Request::Describe { .. } => None,
            Request::Read { id, .. }
            | Request::Dequantize { id, .. }
            | Request::MapNames { id, .. }
            | Request::JudgeCheckpoint { id, .. }
            | Request::Unpack { id, .. } => Some(*id),
        }
    }
}

/// The answer to `describe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The protocol that the adapter speaks.
    #[serde(default = "protocol")]
    pub protocol: u32,
    /// What the subject is.
    #[serde(flatten)]
    pub about: About,
}

fn protocol() -> u32 {
    PROTOCOL
}

/// The answer to anything else: an id and one of `ok`, `error`, `unimplemented`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// That of the request.
    pub id: u64,
    /// The value, if the operation succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// The refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorText>,
    /// What the subject does not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unimplemented: Option<String>,
}

/// A refusal in the subject's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorText {
    /// What it says.
    pub message: String,
    /// The error's type in the subject's language.
    #[serde(default)]
    pub kind: String,
}

impl Response {
    /// The answer to a `read`.
    pub fn to_read(id: u64, result: &Result<FileValue, Failure>) -> Response {
        Response::to(id, result, file_to_json)
    }

    /// The answer to a `dequantize`.
    pub fn to_dequantize(id: u64, result: &Result<Vec<f32>, Failure>) -> Response {
        Response::to(id, result, |numbers| json!({ "f32": numbers_to_hex(numbers) }))
    }

    /// The answer to a `map_names`.
    pub fn to_map_names(id: u64, result: &Result<NamesValue, Failure>) -> Response {
        Response::to(id, result, |value| {
            let names: Vec<Value> = value.names.iter().map(name_to_json).collect();
            match &value.config {
                Some(config) => json!({ "names": names, "config": config }),
                None => json!({ "names": names }),
            }
        })
    }

    /// The answer to a `judge_checkpoint`.
    pub fn to_judge_checkpoint(id: u64, result: &Result<CheckpointValue, Failure>) -> Response {
        Response::to(id, result, checkpoint_to_json)
    }

    /// The answer to an `unpack`.
    pub fn to_unpack(id: u64, result: &Result<WeightValue, Failure>) -> Response {
        Response::to(
            id,
            result,
            |weight| json!({ "shape": weight.shape, "f32": numbers_to_hex(&weight.numbers) }),
        )
    }

    fn to<T>(id: u64, result: &Result<T, Failure>, ok: impl Fn(&T) -> Value) -> Response {
        let mut response = Response { id, ..Response::default() };
        match result {
            Ok(value) => response.ok = Some(ok(value)),
            Err(Failure::Rejected { message, kind }) => {
                response.error = Some(ErrorText { message: message.clone(), kind: kind.clone() });
            }
            Err(Failure::Unimplemented(what)) => response.unimplemented = Some(what.clone()),
        }
        response
    }

    /// The result of a `read`.
    ///
    /// # Errors
    ///
    /// In what the answer departs from the protocol.
    pub fn into_read(self) -> Result<Result<FileValue, Failure>, String> {
        self.into(file_from_json)
    }

    /// The result of a `dequantize`.
    ///
    /// # Errors
    ///
    /// In what the answer departs from the protocol.
    pub fn into_dequantize(self) -> Result<Result<Vec<f32>, Failure>, String> {
        self.into(|ok| numbers_from_hex(ok.get("f32").ok_or("`ok` is {\"f32\": HEX}")?))
    }

    /// The result of a `map_names`.
    ///
    /// # Errors
    ///
    /// In what the answer departs from the protocol.
    pub fn into_map_names(self) -> Result<Result<NamesValue, Failure>, String> {
        self.into(names_from_json)
    }

    /// The result of a `judge_checkpoint`.
    ///
    /// # Errors
    ///
    /// In what the answer departs from the protocol.
    pub fn into_judge_checkpoint(self) -> Result<Result<CheckpointValue, Failure>, String> {
        self.into(checkpoint_from_json)
    }

    /// The result of an `unpack`.
    ///
    /// # Errors
    ///
    /// In what the answer departs from the protocol.
    pub fn into_unpack(self) -> Result<Result<WeightValue, Failure>, String> {
        self.into(weight_from_json)
    }

    fn into<T>(
        self,
        ok_from_json: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<Result<T, Failure>, String> {
        match (self.ok, self.error, self.unimplemented) {
            (Some(ok), None, None) => ok_from_json(&ok).map(Ok),
            (None, Some(ErrorText { message, kind }), None) => {
                Ok(Err(Failure::Rejected { message, kind }))
            }
            (None, None, Some(what)) => Ok(Err(Failure::Unimplemented(what))),
            _ => Err("an answer has one of `ok`, `error` and `unimplemented`".into()),
        }
    }
}

fn numbers_to_hex(numbers: &[f32]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_bits().to_le_bytes()).collect();
    hex(&bytes)
}

fn numbers_from_hex(value: &Value) -> Result<Vec<f32>, String> {
    let hex = value.as_str().ok_or("`f32` is hex")?;
    let bytes = from_hex(hex).ok_or_else(|| format!("not hex: {hex}"))?;
    let (numbers, []) = bytes.as_chunks::<4>() else {
        return Err("`f32` has four bytes a number".into());
    };
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

fn checkpoint_to_json(checkpoint: &CheckpointValue) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("method".into(), checkpoint.method.as_deref().into());
    let CheckpointValue { bits, group_size, symmetric, experts, .. } = checkpoint;
    put(&mut object, "bits", *bits);
    put(&mut object, "group_size", *group_size);
    put(&mut object, "symmetric", *symmetric);
    put(&mut object, "experts", experts.as_deref());
    if let Some(modules) = &checkpoint.modules {
        object.insert("modules".into(), modules.iter().map(module_to_json).collect());
    }
    object.into()
}

fn module_to_json(module: &ModuleValue) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("name".into(), module.name.as_str().into());
    put(&mut object, "in_features", module.in_features);
    put(&mut object, "out_features", module.out_features);
    put(&mut object, "bits", module.bits);
    put(&mut object, "group_size", module.group_size);
    put(&mut object, "layout", module.layout.as_deref());
    object.into()
}

/// A field, if there is something to put into it.
fn put(object: &mut serde_json::Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(name.into(), value.into());
    }
}

fn checkpoint_from_json(ok: &Value) -> Result<CheckpointValue, String> {
    let object = ok.as_object().ok_or("`ok` is an object")?;
    if !object.contains_key("method") {
        return Err("`ok` has a `method`, null if nothing is quantized".into());
    }
    let mut checkpoint = CheckpointValue::default();
    for (field, value) in object {
        let wrong = |what: &str| format!("`{field}` is {what}: {value}");
        match field.as_str() {
            "method" => {
                checkpoint.method = match value {
                    Value::Null => None,
                    value => Some(value.as_str().ok_or(wrong("text or null"))?.to_owned()),
                };
            }
            "bits" => checkpoint.bits = Some(value.as_u64().ok_or(wrong("a number"))?),
            "group_size" => checkpoint.group_size = Some(value.as_i64().ok_or(wrong("a number"))?),
            "symmetric" => checkpoint.symmetric = Some(value.as_bool().ok_or(wrong("a bool"))?),
            "experts" => {
                checkpoint.experts = Some(value.as_str().ok_or(wrong("text"))?.to_owned());
            }
            "modules" => {
                let list = value.as_array().ok_or(wrong("a list"))?;
                let modules = list.iter().map(module_from_json);
                checkpoint.modules = Some(modules.collect::<Result<_, _>>()?);
            }
            _ => return Err(format!("unknown field `{field}` in `ok`")),
        }
    }
    Ok(checkpoint)
}

fn module_from_json(value: &Value) -> Result<ModuleValue, String> {
    let object = value.as_object().ok_or("a module is an object")?;
    let name = object.get("name").and_then(Value::as_str).ok_or("a module has a `name`")?;
    let mut module = ModuleValue { name: name.to_owned(), ..ModuleValue::default() };
    for (field, value) in object {
        let wrong = |what: &str| format!("`{field}` of a module is {what}: {value}");
        let number = || value.as_u64().ok_or(wrong("a number"));
        match field.as_str() {
            "name" => {}
            "in_features" => module.in_features = Some(number()?),
            "out_features" => module.out_features = Some(number()?),
            "bits" => module.bits = Some(number()?),
            "group_size" => module.group_size = Some(value.as_i64().ok_or(wrong("a number"))?),
            "layout" => module.layout = Some(value.as_str().ok_or(wrong("text"))?.to_owned()),
            _ => return Err(format!("unknown field `{field}` in a module")),
        }
    }
    Ok(module)
}

fn weight_from_json(ok: &Value) -> Result<WeightValue, String> {
    let fields = ok.as_object().filter(|object| object.len() == 2);
    let fields = fields.and_then(|object| Some((object.get("shape")?, object.get("f32")?)));
    let (shape, numbers) = fields.ok_or("`ok` is {\"shape\": [ROWS, COLUMNS], \"f32\": HEX}")?;
    let shape = shape.as_array().map(|dims| dims.iter().map(Value::as_u64));
    let shape = shape.and_then(|dims| dims.collect::<Option<_>>());
    Ok(WeightValue {
        shape: shape.ok_or("`shape` has numbers")?,
        numbers: numbers_from_hex(numbers)?,
    })
}

fn name_to_json(mapped: &MappedName) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("name".into(), mapped.name.as_str().into());
    if let Some(from) = &mapped.from {
        object.insert("from".into(), from.as_slice().into());
    }
    if let Some(shape) = &mapped.shape {
        object.insert("shape".into(), shape.as_slice().into());
    }
    if let Some(numbers) = &mapped.numbers {
        object.insert("f32".into(), numbers_to_hex(numbers).into());
    }
    object.into()
}

fn names_from_json(ok: &Value) -> Result<NamesValue, String> {
    let object = ok.as_object().ok_or("`ok` is an object")?;
    let mut value = NamesValue::default();
    let names = object.get("names").and_then(Value::as_array).ok_or("`names` is a list")?;
    value.names = names.iter().map(name_from_json).collect::<Result<_, _>>()?;
    for (field, content) in object {
        match field.as_str() {
            "names" => {}
            "config" if content.is_object() => value.config = Some(content.clone()),
            "config" => return Err("`config` is an object".into()),
            _ => return Err(format!("unknown field `{field}` in `ok`")),
        }
    }
    Ok(value)
}

fn name_from_json(value: &Value) -> Result<MappedName, String> {
    let object = value.as_object().ok_or("a name is an object")?;
    let name = object.get("name").and_then(Value::as_str).ok_or("a name has a `name`")?;
    let mut mapped = MappedName { name: name.to_owned(), ..MappedName::default() };
    for (field, value) in object {
        let list = || value.as_array().ok_or_else(|| format!("`{field}` is a list"));
        match field.as_str() {
            "name" => {}
            "from" => {
                let names = list()?.iter().map(|name| name.as_str().map(str::to_owned));
                mapped.from = Some(names.collect::<Option<_>>().ok_or("`from` has names")?);
            }
            "shape" => {
                let dims = list()?.iter().map(Value::as_u64).collect::<Option<_>>();
                mapped.shape = Some(dims.ok_or("`shape` has numbers")?);
            }
            "f32" => mapped.numbers = Some(numbers_from_hex(value)?),
            _ => return Err(format!("unknown field `{field}` in a name")),
        }
    }
    Ok(mapped)
}

/// Bytes as JSON: a string if they are UTF-8, else `{"hex": …}`.
pub fn bytes_to_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": hex(bytes) }),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_from_json(value: &Value) -> Result<Vec<u8>, String> {
    let digits = match value {
        Value::String(text) => return Ok(text.as_bytes().to_vec()),
        Value::Object(object) if object.len() == 1 => object.get("hex").and_then(Value::as_str),
        _ => None,
    };
    let digits = digits.ok_or_else(|| format!("expected a string or {{\"hex\": …}}: {value}"))?;
    from_hex(digits).ok_or_else(|| format!("not hex: {digits}"))
}

/// The bytes that pairs of hex digits stand for.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}

/// A value as JSON: `{"u32": "1"}`; see `PROTOCOL.md`.
pub fn value_to_json(value: &OwnedValue) -> Value {
    json!({ value.value_type().name(): bare(value) })
}

/// A value without its type.
fn bare(value: &OwnedValue) -> Value {
    match value {
        OwnedValue::U8(v) => v.to_string().into(),
        OwnedValue::I8(v) => v.to_string().into(),
        OwnedValue::U16(v) => v.to_string().into(),
        OwnedValue::I16(v) => v.to_string().into(),
        OwnedValue::U32(v) => v.to_string().into(),
        OwnedValue::I32(v) => v.to_string().into(),
        OwnedValue::U64(v) => v.to_string().into(),
        OwnedValue::I64(v) => v.to_string().into(),
        OwnedValue::F32(v) => format!("{:#010x}", v.to_bits()).into(),
        OwnedValue::F64(v) => format!("{:#018x}", v.to_bits()).into(),
        OwnedValue::Bool(v) => (*v).into(),
        OwnedValue::String(v) => bytes_to_json(v),
        OwnedValue::Array(array) => {
            let values: Vec<Value> = array.iter().map(bare).collect();
            json!({ "type": array.element_type.name(), "values": values })
        }
    }
}

fn value_from_json(value: &Value) -> Result<OwnedValue, String> {
    let typed = value.as_object().filter(|object| object.len() == 1);
    let (name, bare) = typed
        .and_then(|object| object.iter().next())
        .ok_or_else(|| format!("a value is {{TYPE: …}}: {value}"))?;
    let value_type =
        ValueType::by_name(name).ok_or_else(|| format!("unknown value type `{name}`"))?;
    bare_from_json(value_type, bare)
}

fn bare_from_json(value_type: ValueType, value: &Value) -> Result<OwnedValue, String> {
    fn integer<T: std::str::FromStr>(value: &Value) -> Result<T, String> {
        let digits = value.as_str().ok_or_else(|| format!("integers are strings: {value}"))?;
        digits.parse().map_err(|_| format!("not such an integer: {digits}"))
    }
    fn bits(value: &Value, digits: usize) -> Result<u64, String> {
        let text = value.as_str().and_then(|text| text.strip_prefix("0x"));
        text.filter(|text| text.len() == digits)
            .and_then(|text| u64::from_str_radix(text, 16).ok())
            .ok_or_else(|| format!("floats are \"0x\" and {digits} hex digits: {value}"))
    }
    Ok(match value_type {
        ValueType::U8 => OwnedValue::U8(integer(value)?),
        ValueType::I8 => OwnedValue::I8(integer(value)?),
        ValueType::U16 => OwnedValue::U16(integer(value)?),
        ValueType::I16 => OwnedValue::I16(integer(value)?),
        ValueType::U32 => OwnedValue::U32(integer(value)?),
        ValueType::I32 => OwnedValue::I32(integer(value)?),
        ValueType::U64 => OwnedValue::U64(integer(value)?),
        ValueType::I64 => OwnedValue::I64(integer(value)?),
        ValueType::F32 => OwnedValue::F32(f32::from_bits(bits(value, 8)? as u32)),
        ValueType::F64 => OwnedValue::F64(f64::from_bits(bits(value, 16)?)),
        ValueType::Bool => {
            OwnedValue::Bool(value.as_bool().ok_or_else(|| format!("not a bool: {value}"))?)
        }
        ValueType::String => OwnedValue::String(bytes_from_json(value)?),
        ValueType::Array => {
            let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
            let values = value.get("values").and_then(Value::as_array);
            let (Some(element_type), Some(values)) = (ValueType::by_name(name), values) else {
                return Err("an array is {\"type\": …, \"values\": […]}".into());
            };
            let elements = values.iter().map(|value| bare_from_json(element_type, value));
            OwnedValue::Array(OwnedArray::new(element_type, elements.collect::<Result<_, _>>()?))
        }
    })
}

/// What a reader read, as JSON.
pub fn file_to_json(file: &FileValue) -> Value {
    let mut object = serde_json::Map::new();
    if let Some(version) = file.version {
        object.insert("version".into(), version.into());
    }
    if let Some(metadata) = &file.metadata {
        let entries = metadata.iter().map(|(k, v)| json!([bytes_to_json(k), value_to_json(v)]));
        object.insert("metadata".into(), entries.collect());
    }
    if let Some(tensors) = &file.tensors {
        object.insert("tensors".into(), tensors.iter().map(tensor_to_json).collect());
    }
    object.into()
}

fn tensor_to_json(tensor: &TensorValue) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("name".into(), bytes_to_json(&tensor.name));
    if let Some(name) = &tensor.type_name {
        object.insert("type".into(), name.as_str().into());
    }
    if let Some(dims) = &tensor.dims {
        let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
        object.insert("dims".into(), dims.into());
    }
    if let Some(offset) = tensor.offset {
        object.insert("offset".into(), offset.to_string().into());
    }
    if let Some(sha256) = &tensor.sha256 {
        object.insert("sha256".into(), sha256.as_str().into());
    }
    object.into()
}

fn file_from_json(value: &Value) -> Result<FileValue, String> {
    let object = value.as_object().ok_or("`ok` is an object")?;
    let mut file = FileValue::default();
    for (field, value) in object {
        let list = || value.as_array().ok_or_else(|| format!("`{field}` is a list"));
        match field.as_str() {
            "version" => {
                let version = value.as_u64().and_then(|version| version.try_into().ok());
                file.version = Some(version.ok_or("`version` is a number")?);
            }
            "metadata" => {
                let entry = |entry: &Value| match entry.as_array().map(Vec::as_slice) {
                    Some([key, value]) => {
                        let key = bytes_from_json(key)?;
                        let value = value_from_json(value)
                            .map_err(|e| format!("metadata {}: {e}", bytes_to_json(&key)))?;
                        Ok((key, value))
                    }
                    _ => Err(format!("a metadata entry is [KEY, {{TYPE: …}}]: {entry}")),
                };
                file.metadata = Some(list()?.iter().map(entry).collect::<Result<_, String>>()?);
            }
            "tensors" => {
                file.tensors =
                    Some(list()?.iter().map(tensor_from_json).collect::<Result<_, _>>()?);
            }
            _ => return Err(format!("unknown field `{field}` in `ok`")),
        }
    }
    Ok(file)
}

fn tensor_from_json(value: &Value) -> Result<TensorValue, String> {
    let object = value.as_object().ok_or("a tensor is an object")?;
    let number = |value: &Value| {
        let digits = value.as_str().and_then(|digits| digits.parse().ok());
        digits.ok_or_else(|| format!("dims and offsets are decimal strings: {value}"))
    };
    let text = |value: &Value| {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("expected a string: {value}"))
    };
    let mut tensor = TensorValue {
        name: bytes_from_json(object.get("name").ok_or("a tensor has a `name`")?)?,
        type_name: None,
        dims: None,
        offset: None,
        sha256: None,
    };
    for (field, value) in object {
        match field.as_str() {
            "name" => {}
            "type" => tensor.type_name = Some(text(value)?),
            "dims" => {
                let dims = value.as_array().ok_or("`dims` is a list")?;
                tensor.dims = Some(dims.iter().map(number).collect::<Result<_, _>>()?);
            }
            "offset" => tensor.offset = Some(number(value)?),
            "sha256" => tensor.sha256 = Some(text(value)?),
            _ => return Err(format!("unknown field `{field}` in a tensor")),
        }
    }
    Ok(tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_there_and_back() {
        let nested = OwnedArray::new(
            ValueType::Array,
            vec![OwnedValue::Array(OwnedArray::new(ValueType::I8, vec![OwnedValue::I8(-1)]))],
        );
        for value in [
            OwnedValue::U64(u64::MAX),
            OwnedValue::I64(i64::MIN),
            OwnedValue::F32(-0.0),
            OwnedValue::F64(f64::MIN_POSITIVE),
            OwnedValue::Bool(true),
            OwnedValue::String(b"\xff\xfe".into()),
            OwnedValue::String("é".into()),
            OwnedValue::Array(nested),
        ] {
            assert_eq!(value_from_json(&value_to_json(&value)), Ok(value));
        }
    }

    #[test]
    fn values_look_as_the_protocol_says() {
        // By hand: 1.5 is 0x3fc00000.
        let value = OwnedValue::Array(OwnedArray::new(ValueType::F32, vec![OwnedValue::F32(1.5)]));
        let json = json!({"array": {"type": "f32", "values": ["0x3fc00000"]}});
        assert_eq!(value_to_json(&value), json);
    }

    #[test]
    fn answers_that_depart_from_the_protocol_are_told() {
        for (answer, complaint) in [
            (json!({"id": 1}), "one of"),
            (json!({"id": 1, "ok": {"metadata": [["a", {"u32": 1}]]}}), "integers are strings"),
            (json!({"id": 1, "ok": {"metadata": [["a", {"uint": "1"}]]}}), "unknown value type"),
            (json!({"id": 1, "ok": {"tensors": [{"dims": ["1"]}]}}), "has a `name`"),
            (json!({"id": 1, "ok": {"size": 3}}), "unknown field"),
        ] {
            let response: Response = serde_json::from_value(answer).unwrap();
            let error = response.into_read().unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn answers_about_checkpoints_that_depart_from_the_protocol_are_told() {
        for (ok, complaint) in [
            (json!({ "bits": 4 }), "has a `method`"),
            (json!({ "method": 4 }), "`method` is text or null: 4"),
            (json!({ "method": null, "bits": "4" }), "`bits` is a number"),
            (json!({ "method": null, "size": 4 }), "unknown field `size`"),
            (json!({ "method": null, "modules": [{}] }), "has a `name`"),
            (json!({ "method": null, "modules": [{ "name": "a", "layout": 1 }] }), "is text: 1"),
            (json!({ "method": null, "modules": [{ "name": "a", "shape": [] }] }), "unknown field"),
        ] {
            let error = checkpoint_from_json(&ok).unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
        for (ok, complaint) in [
            (json!({ "f32": "" }), "`ok` is {"),
            (json!({ "shape": ["1"], "f32": "0000803f" }), "`shape` has numbers"),
            (json!({ "shape": [1], "f32": "0000" }), "four bytes a number"),
        ] {
            let error = weight_from_json(&ok).unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
