//! Writing cases down.

use gguf_assay_format::{
    ByteOrder, Data, Description, Fault, OwnedArray, OwnedValue, Profile, Rule, TensorDescription,
    TensorType,
};
use toml::{Table, Value};

use crate::expected::elements;
use crate::file::hex;
use crate::{Case, CaseError, Corpus, Verdict};

/// A case that was found, not written: what fuzzing leaves for a person to look at.
#[derive(Clone, Debug)]
pub struct NewCase<'a> {
    /// `read/<area>/<slug>`.
    pub id: &'a str,
    /// The rule that it probes.
    pub rule: &'static Rule,
    /// What is special about the file.
    pub summary: &'a str,
    /// Where it is from.
    pub source: &'a str,
    /// The file.
    pub description: &'a Description,
    /// The one thing that is wrong with it.
    pub fault: Option<&'a Fault>,
    /// What each profile expects, in the order of [`Profile::ALL`].
    pub verdicts: [Verdict; 2],
    /// Why accepted values are not compared, if they are not.
    pub any_value: Option<&'a str>,
}

impl NewCase<'_> {
    /// The text of the case, which [`Corpus::from_toml`] reads.
    ///
    /// # Errors
    ///
    /// If the case format cannot say it: a tensor type that is not ggml's.
    pub fn to_toml(&self) -> Result<String, CaseError> {
        let mut text = String::from("[[case]]\n");
        let mut line = |key: &str, value: &Value| {
            text.push_str(&format!("{key} = {value}\n"));
        };
        line("id", &self.id.into());
        line("rule", &self.rule.id.into());
        line("summary", &self.summary.into());
        line("source", &self.source.into());
        let Description { version, byte_order, metadata, tensors } = self.description;
        if *version != 3 {
            line("version", &i64::from(*version).into());
        }
        if *byte_order == ByteOrder::Big {
            line("byte_order", &"big".into());
        }
        let entries = metadata.iter().map(|(key, value)| {
            let mut entry = vec![("key".to_owned(), byte_string(key))];
            entry.extend(typed(value));
            entry
        });
        list(&mut text, "metadata", entries.collect());
        let tensors: Result<Vec<Fields>, String> = tensors.iter().map(tensor).collect();
        let error = |message| CaseError { place: self.id.into(), message };
        list(&mut text, "tensors", tensors.map_err(error)?);
        if let Some(fault) = self.fault {
            text.push_str(&format!("fault = {}\n", inline(&fault_fields(fault))));
        }
        let verdict = |verdict: &Verdict| match verdict {
            Verdict::Accept => "accept".into(),
            Verdict::Reject => "reject".into(),
            Verdict::Either(reason) => table([("either", reason.as_str().into())]),
        };
        let verdicts = self.verdicts.each_ref().map(verdict);
        let verdicts = Profile::ALL.into_iter().zip(verdicts);
        let verdicts = verdicts.map(|(profile, verdict)| (profile.name().to_owned(), verdict));
        let verdicts: Fields = verdicts.collect();
        text.push_str(&format!("verdict = {}\n", inline(&verdicts)));
        if let Some(reason) = self.any_value {
            text.push_str(&format!("value = {}\n", table([("any", reason.into())])));
        }
        Ok(text)
    }

    /// The case.
    ///
    /// # Errors
    ///
    /// Those of [`to_toml`](Self::to_toml), and what is wrong with the text.
    pub fn to_case(&self) -> Result<Case, CaseError> {
        let corpus = Corpus::from_toml(self.id, &self.to_toml()?)?;
        corpus.cases.into_iter().next().ok_or_else(|| CaseError {
            place: self.id.into(),
            message: "it is no case that asks to read a file".into(),
        })
    }
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

/// What stands in an inline table, in this order.
type Fields = Vec<(String, Value)>;

fn inline(fields: &Fields) -> String {
    let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Inline tables, one a line.
fn list(text: &mut String, key: &str, tables: Vec<Fields>) {
    if tables.is_empty() {
        return;
    }
    text.push_str(&format!("{key} = [\n"));
    for table in tables {
        text.push_str(&format!("    {},\n", inline(&table)));
    }
    text.push_str("]\n");
}

/// As text where that is what a person can read.
fn byte_string(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.into(),
        _ => table([("hex", hex(bytes).into())]),
    }
}

/// Beyond what TOML's integers hold, in a string.
fn unsigned(number: u64) -> Value {
    match i64::try_from(number) {
        Ok(number) => number.into(),
        Err(_) => number.to_string().into(),
    }
}

fn typed(value: &OwnedValue) -> Table {
    Table::from_iter([(value.value_type().name().to_owned(), plain(value))])
}

/// The value without its type.
fn plain(value: &OwnedValue) -> Value {
    match value {
        OwnedValue::U8(v) => i64::from(*v).into(),
        OwnedValue::I8(v) => i64::from(*v).into(),
        OwnedValue::U16(v) => i64::from(*v).into(),
        OwnedValue::I16(v) => i64::from(*v).into(),
        OwnedValue::U32(v) => i64::from(*v).into(),
        OwnedValue::I32(v) => i64::from(*v).into(),
        OwnedValue::U64(v) => unsigned(*v),
        OwnedValue::I64(v) => (*v).into(),
        OwnedValue::F32(v) => format!("0x{:08x}", v.to_bits()).into(),
        OwnedValue::F64(v) => format!("0x{:016x}", v.to_bits()).into(),
        OwnedValue::Bool(v) => (*v).into(),
        OwnedValue::String(v) => byte_string(v),
        OwnedValue::Array(v) => Value::Table(array(v)),
    }
}

fn array(mut array: &OwnedArray) -> Table {
    let mut nest = 0i64;
    while let ([OwnedValue::Array(inner)], 1) = (array.elements.as_slice(), array.times) {
        array = inner;
        nest += 1;
    }
    let elements = match array.elements.as_slice() {
        [value] if array.times > 1 => {
            table([("fill", plain(value)), ("count", unsigned(array.times))])
        }
        _ => Value::Array(array.iter().map(plain).collect()),
    };
    let mut table = Table::from_iter([(array.element_type.name().to_owned(), elements)]);
    if nest > 0 {
        table.insert("nest".into(), nest.into());
    }
    table
}

fn tensor(tensor: &TensorDescription) -> Result<Fields, String> {
    let Some(t) = TensorType::by_id(tensor.type_id) else {
        return Err(format!("the case format has no tensor type {}", tensor.type_id));
    };
    let mut out = vec![
        ("name".to_owned(), byte_string(&tensor.name)),
        ("type".to_owned(), t.name.into()),
        ("dims".to_owned(), dims(&tensor.dims)),
    ];
    let size = elements(&tensor.dims).and_then(|count| t.byte_len(count));
    match &tensor.data {
        Data::Zeros(len) if size == Some(*len) => {
            out.push(("data".into(), table([("zeros", true.into())])));
        }
        Data::Zeros(len) => {
            let bytes = vec![0; usize::try_from(*len).map_err(|e| e.to_string())?];
            out.push(("data".into(), table([("hex", hex(&bytes).into())])));
        }
        Data::Bytes(bytes) => {
            out.push(("data".into(), table([("hex", hex(bytes).into())])));
        }
    }
    if let Some(offset) = tensor.offset {
        out.push(("offset".into(), unsigned(offset)));
    }
    Ok(out)
}

fn dims(dims: &[u64]) -> Value {
    Value::Array(dims.iter().copied().map(unsigned).collect())
}

fn fault_fields(fault: &Fault) -> Fields {
    let place = |list: &str, index: usize| Value::from(format!("{list}[{index}]"));
    let entry = |index| place("metadata", index);
    let tensor = |index| place("tensors", index);
    let path = |at: &String| Value::from(at.clone());
    let to = |kind: &'static str, at, to| [(kind, at), ("to", to)];
    let fields: Vec<(&str, Value)> = match fault {
        Fault::Overwrite { at, value } => {
            let mut fields = vec![("at".to_owned(), path(at))];
            fields.extend(typed(value));
            return fields;
        }
        Fault::Replace { at, bytes } => vec![("at", path(at)), ("bytes", byte_string(bytes))],
        Fault::Swap { a, b } => vec![("swap", Value::Array(vec![path(a), path(b)]))],
        Fault::Cut { at, plus } => vec![("cut", path(at)), ("plus", (*plus).into())],
        Fault::Insert { at, bytes } => vec![("insert", path(at)), ("bytes", byte_string(bytes))],
        Fault::Append { bytes } => vec![("append", byte_string(bytes))],
        Fault::Prepend { bytes } => vec![("prepend", byte_string(bytes))],
        Fault::Key { entry: at, to: key } => to("key", entry(*at), byte_string(key)).into(),
        Fault::Value { entry: at, to: value } => {
            to("value", entry(*at), Value::Table(typed(value))).into()
        }
        Fault::Name { tensor: at, to: name } => to("name", tensor(*at), byte_string(name)).into(),
        Fault::Dims { tensor: at, to: shape } => to("dims", tensor(*at), dims(shape)).into(),
        Fault::Type { tensor: at, to: t } => to("type", tensor(*at), t.name.into()).into(),
        Fault::Offset { tensor: at, to: offset } => {
            to("offset", tensor(*at), unsigned(*offset)).into()
        }
        Fault::RemoveEntry { entry: at } => vec![("remove", entry(*at))],
        Fault::RemoveTensor { tensor: at } => vec![("remove", tensor(*at))],
    };
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
