//! `gguf-assay list types`: the tensor types, and who reads them.

use std::fmt::Write as _;

use anyhow::Result;
use gguf_assay::capability::{Capability, Reads};
use gguf_assay_format::{Status, TENSOR_TYPES, TensorType};
use serde_json::json;

use super::Format;
use crate::commands::{is_chosen, print};

/// What stands below the readers.
const LEGEND: &str = "
+ right in every case    x wrong numbers in some   ! refuses, panics or crashes
- does not have the type, and says so
As recorded; to see for yourself: gguf-assay run --filter 'dequantize/*'
";

pub(super) fn run(patterns: &[String], format: Format) -> Result<u8> {
    let mut readers = gguf_assay_subjects::capabilities().subjects;
    readers.retain(|reader| !reader.types.is_empty());
    let types = TENSOR_TYPES.iter().filter(|t| is_chosen(patterns, t.name));
    let text = match format {
        Format::Json => {
            let list: Vec<_> = types.map(|t| to_json(t, &readers)).collect();
            format!("{}\n", serde_json::Value::from(list))
        }
        Format::Text => to_text(types, &readers),
    };
    print(&text)?;
    Ok(crate::SUCCESS)
}

fn to_json(t: &TensorType, readers: &[Capability]) -> serde_json::Value {
    let readers = readers.iter().map(|reader| {
        let reads = reader.reads(t.name).map(Reads::name);
        json!({ "name": reader.name, "version": reader.version, "reads": reads })
    });
    json!({
        "id": t.id, "name": t.name, "block_len": t.block_len, "block_bytes": t.block_bytes,
        "bits_per_weight": bits_per_weight(t), "status": status(t),
        "readers": readers.collect::<Vec<_>>(),
    })
}

/// A row a type, with a column of two for each reader: its name stands at the head of the column,
/// higher up than that of the next.
fn to_text<'a>(types: impl Iterator<Item = &'a TensorType>, readers: &[Capability]) -> String {
    let left = format!(
        "{:>2} {:<10} {:>8} {:>5} {:>6} {:<12}",
        "id", "name", "elements", "bytes", "bits", "status"
    );
    let mut text = heads(&left, readers);
    for t in types {
        // A type that was removed has no blocks.
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".into());
        let bits = bits_per_weight(t);
        let mut line = format!(
            "{:>2} {:<10} {:>8} {:>5} {:>6} {:<12}",
            t.id,
            t.name,
            cell(bits.map(|_| t.block_len.to_string())),
            cell(bits.map(|_| t.block_bytes.to_string())),
            cell(bits.map(|bits| bits.to_string())),
            status(t)
        );
        for reader in readers {
            line.push_str(mark(reader.reads(t.name)));
            line.push(' ');
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text + LEGEND
}

/// The heads of the columns: `left` before them, and each reader higher up than the next.
pub(super) fn heads(left: &str, readers: &[Capability]) -> String {
    let mut text = String::new();
    let width = left.chars().count();
    for (index, reader) in readers.iter().enumerate() {
        let left = if index + 1 == readers.len() { left } else { "" };
        let bars = "│ ".repeat(index);
        let _ = writeln!(text, "{left:<width$}{bars}{} {}", reader.name, reader.version);
    }
    text
}

pub(super) fn mark(reads: Option<Reads>) -> &'static str {
    match reads {
        Some(Reads::Right) => "+",
        Some(Reads::Wrong) => "x",
        Some(Reads::Fails) => "!",
        Some(Reads::Unimplemented) => "-",
        None => " ",
    }
}

fn status(t: &TensorType) -> &'static str {
    match t.status {
        Status::Current => "current",
        Status::Removed => "removed",
        Status::Provisional => "provisional",
    }
}

/// Bits of a block, shared out among its elements; `None` for a type that was removed.
fn bits_per_weight(t: &TensorType) -> Option<f64> {
    (t.block_len > 0).then(|| f64::from(8 * t.block_bytes) / f64::from(t.block_len))
}
