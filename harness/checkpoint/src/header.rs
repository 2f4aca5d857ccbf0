//! The header of a safetensors file.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::dtype::Dtype;
use crate::files::Files;
use crate::finding::Finding;
use crate::rule;

/// A tensor, as a header has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRecord {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: Dtype,
    /// Its shape, in torch's order.
    pub shape: Vec<u64>,
    /// Where its bytes begin, counted from the start of the file.
    pub offset: u64,
    /// How many there are.
    pub len: u64,
}

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The tensors, in the order of the header.
    pub tensors: Vec<TensorRecord>,
    /// The entries of `__metadata__`.
    pub metadata: Vec<(String, String)>,
}

/// As long as a header may be: safetensors 0.8, `MAX_HEADER_SIZE`.
const MAX_HEADER: u64 = 100_000_000;

/// The entries of a JSON object in their order, each as often as it is there.
struct Entries(Vec<(String, serde_json::Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry().map_err(de::Error::custom)? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Reads the header of a file, and finds what is wrong with it.
pub(crate) fn read<F: Files>(files: &F, name: &str, findings: &mut Vec<Finding>) -> Option<Header> {
    let mut finding = |finding: Finding| {
        findings.push(finding.in_file(name));
        None
    };
    let unreadable = |error: std::io::Error| {
        Finding::new(&rule::ST_001, format!("it cannot be read: {error}"), "a file")
    };
    let size = match files.len(name) {
        Ok(size) => size,
        Err(error) => return finding(unreadable(error)),
    };
    let mut length = [0; 8];
    if let Err(error) = files.read_at(name, 0, &mut length) {
        return finding(unreadable(error));
    }
    let length = u64::from_le_bytes(length);
    let rest = size.saturating_sub(8);
    if length > rest.min(MAX_HEADER) {
        let found = format!("a header of {length} bytes in a file of {size}");
        return finding(Finding::new(&rule::ST_001, found, format!("at most {rest}")).at(0));
    }
    let mut text = vec![0; usize::try_from(length).ok()?];
    if let Err(error) = files.read_at(name, 8, &mut text) {
        return finding(unreadable(error));
    }
    let entries: Entries = match serde_json::from_slice(&text) {
        Ok(entries) => entries,
        Err(error) => {
            return finding(Finding::new(&rule::ST_002, error.to_string(), "a JSON object").at(8));
        }
    };
    let mut header = Header::default();
    for (name, entry) in entries.0 {
        let text = |field: &str| entry.get(field).and_then(serde_json::Value::as_str);
        let numbers = |field: &str| -> Option<Vec<u64>> {
            entry.get(field)?.as_array()?.iter().map(serde_json::Value::as_u64).collect()
        };
        if name == "__metadata__" {
            let pairs = entry.as_object().into_iter().flatten();
            let pairs =
                pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.into())));
            header.metadata.extend(pairs);
            continue;
        }
        let record = || {
            let dtype = Dtype::find(text("dtype")?)?;
            let [start, end] = numbers("data_offsets")?.try_into().ok()?;
            let base = length.checked_add(8)?;
            let (offset, len) = (base.checked_add(start)?, end.checked_sub(start)?);
            Some(TensorRecord { name: name.clone(), dtype, shape: numbers("shape")?, offset, len })
        };
        header.tensors.extend(record());
    }
    Some(header)
}
