//! Faults: the one thing that is wrong with a case's file.

use gguf_assay_format::{ByteOrder, OwnedValue, TensorType};
use toml::{Table, Value};

use crate::syntax::{self, Result, byte_string, known_keys, text, unsigned};

/// The one thing that is wrong. `corpus/README.md` documents each.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the TOML, which the README documents")]
pub enum Fault {
    Overwrite { at: String, value: OwnedValue },
    Replace { at: String, bytes: Vec<u8> },
    Swap { a: String, b: String },
    Cut { at: String, plus: i64 },
    Insert { at: String, bytes: Vec<u8> },
    Append { bytes: Vec<u8> },
    Prepend { bytes: Vec<u8> },
    Key { entry: usize, to: Vec<u8> },
    Value { entry: usize, to: OwnedValue },
    Name { tensor: usize, to: Vec<u8> },
    Dims { tensor: usize, to: Vec<u64> },
    Type { tensor: usize, to: &'static TensorType },
    Offset { tensor: usize, to: u64 },
    RemoveEntry { entry: usize },
    RemoveTensor { tensor: usize },
}

impl Fault {
    /// Whether the fault changes the description rather than the bytes.
    pub fn is_described(&self) -> bool {
        matches!(
            self,
            Fault::Key { .. }
                | Fault::Value { .. }
                | Fault::Name { .. }
                | Fault::Dims { .. }
                | Fault::Type { .. }
                | Fault::Offset { .. }
                | Fault::RemoveEntry { .. }
                | Fault::RemoveTensor { .. }
        )
    }

    pub(crate) fn parse(table: &Table) -> Result<Fault> {
        let get = |name: &str| table.get(name).ok_or_else(|| format!("the fault needs `{name}`"));
        let path = |name: &str| Ok::<_, String>(text(get(name)?)?.to_owned());
        let kinds =
            ["at", "swap", "cut", "insert", "append", "prepend", "key", "value", "name", "dims"]
                .into_iter()
                .chain(["type", "offset", "remove"]);
        let kind = kinds.into_iter().find(|kind| table.contains_key(*kind));
        let known = |fields: &[&str]| known_keys(table, fields);
        match kind {
            Some("at") if table.contains_key("bytes") => {
                known(&["at", "bytes"])?;
                Ok(Fault::Replace { at: path("at")?, bytes: byte_string(get("bytes")?)? })
            }
            Some("at") => {
                let value = syntax::value(table, &["at"])?;
                if value.value_type().size().is_none() {
                    return Err("`at` takes a number or `bytes`; see `value` for the rest".into());
                }
                Ok(Fault::Overwrite { at: path("at")?, value })
            }
            Some("swap") => {
                known(&["swap"])?;
                match get("swap")?.as_array().map(Vec::as_slice) {
                    Some([a, b]) => Ok(Fault::Swap { a: text(a)?.into(), b: text(b)?.into() }),
                    _ => Err("`swap` takes two paths".into()),
                }
            }
            Some("cut") => {
                known(&["cut", "plus"])?;
                let plus = table.get("plus").map(unsigned).transpose()?.unwrap_or(0);
                Ok(Fault::Cut { at: path("cut")?, plus })
            }
            Some("insert") => {
                known(&["insert", "bytes"])?;
                Ok(Fault::Insert { at: path("insert")?, bytes: byte_string(get("bytes")?)? })
            }
            Some("append") => {
                known(&["append"])?;
                Ok(Fault::Append { bytes: byte_string(get("append")?)? })
            }
            Some("prepend") => {
                known(&["prepend"])?;
                Ok(Fault::Prepend { bytes: byte_string(get("prepend")?)? })
            }
            Some("remove") => {
                known(&["remove"])?;
                let path = text(get("remove")?)?;
                match index(path, "metadata") {
                    Ok(entry) => Ok(Fault::RemoveEntry { entry }),
                    Err(_) => Ok(Fault::RemoveTensor { tensor: index(path, "tensors")? }),
                }
            }
            Some(kind) => {
                known(&[kind, "to"])?;
                Fault::parse_described(kind, text(get(kind)?)?, get("to")?)
            }
            None => Err(format!("no kind of fault: {table}")),
        }
    }

    fn parse_described(kind: &str, path: &str, to: &Value) -> Result<Fault> {
        Ok(match kind {
            "key" => Fault::Key { entry: index(path, "metadata")?, to: byte_string(to)? },
            "value" => {
                let to = to.as_table().ok_or("`to` is { TYPE = VALUE }")?;
                Fault::Value { entry: index(path, "metadata")?, to: syntax::value(to, &[])? }
            }
            "name" => Fault::Name { tensor: index(path, "tensors")?, to: byte_string(to)? },
            "dims" => Fault::Dims { tensor: index(path, "tensors")?, to: syntax::dims(to)? },
            "type" => Fault::Type { tensor: index(path, "tensors")?, to: syntax::tensor_type(to)? },
            _ => Fault::Offset { tensor: index(path, "tensors")?, to: unsigned(to)? },
        })
    }
}

/// The number in `metadata[3]`.
fn index(path: &str, list: &str) -> Result<usize> {
    path.strip_prefix(list)
        .and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| format!("`{path}` is not {list}[N]"))
}

/// The bytes of a number in a file of this order.
pub(crate) fn encode(value: &OwnedValue, order: ByteOrder) -> Vec<u8> {
    let mut bytes = match value {
        OwnedValue::U8(v) => v.to_le_bytes().to_vec(),
        OwnedValue::I8(v) => v.to_le_bytes().to_vec(),
        OwnedValue::Bool(v) => vec![u8::from(*v)],
        OwnedValue::U16(v) => v.to_le_bytes().to_vec(),
        OwnedValue::I16(v) => v.to_le_bytes().to_vec(),
        OwnedValue::U32(v) => v.to_le_bytes().to_vec(),
        OwnedValue::I32(v) => v.to_le_bytes().to_vec(),
        OwnedValue::F32(v) => v.to_bits().to_le_bytes().to_vec(),
        OwnedValue::U64(v) => v.to_le_bytes().to_vec(),
        OwnedValue::I64(v) => v.to_le_bytes().to_vec(),
        OwnedValue::F64(v) => v.to_bits().to_le_bytes().to_vec(),
        OwnedValue::String(_) | OwnedValue::Array(_) => Vec::new(),
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}
