//! The text of a fault: the one thing that is wrong with a case's file. `corpus/README.md`
//! documents it.

use gguf_assay_format::Fault;
use toml::{Table, Value};

use crate::syntax::{self, Result, byte_string, known_keys, text, unsigned};

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
            parse_described(kind, text(get(kind)?)?, get("to")?)
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

/// The number in `metadata[3]`.
fn index(path: &str, list: &str) -> Result<usize> {
    path.strip_prefix(list)
        .and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| format!("`{path}` is not {list}[N]"))
}
