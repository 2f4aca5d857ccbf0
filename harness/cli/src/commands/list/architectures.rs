//! `gguf-assay list architectures`: the architectures, and who maps their names.

use std::fmt::Write as _;

use anyhow::Result;
use gguf_assay::capability::{Capability, Reads};
use gguf_assay_names::{Architecture, Level};
use serde_json::json;

use super::Format;
use super::types::{heads, mark};
use crate::commands::{is_chosen, print};

/// What stands below the mappers.
const LEGEND: &str = "
+ right in every way that it has   x wrong names, numbers or config   ! refuses, panics or crashes
- does not have the architecture, and says so
As recorded; to see for yourself: gguf-assay run --filter 'names/whole/*'
";

pub(super) fn run(patterns: &[String], format: Format) -> Result<u8> {
    let mut mappers = gguf_assay_subjects::capabilities().subjects;
    mappers.retain(|mapper| !mapper.architectures.is_empty());
    let names = Architecture::names().into_iter().filter(|(name, _)| is_chosen(patterns, name));
    let text = match format {
        Format::Json => {
            let list: Vec<_> = names.map(|(name, level)| to_json(name, level, &mappers)).collect();
            format!("{}\n", serde_json::Value::from(list))
        }
        Format::Text => to_text(names.collect(), &mappers),
    };
    print(&text)?;
    Ok(crate::SUCCESS)
}

fn classes(name: &str) -> Vec<&'static str> {
    let classes = Architecture::find(name).map_or(&[][..], Architecture::classes);
    classes.iter().map(|class| class.name.as_str()).collect()
}

fn to_json(name: &str, level: Level, mappers: &[Capability]) -> serde_json::Value {
    let mappers = mappers.iter().map(|mapper| {
        let maps = mapper.maps(name).map(Reads::name);
        json!({ "name": mapper.name, "version": mapper.version, "maps": maps })
    });
    json!({
        "name": name, "level": level.name(), "classes": classes(name),
        "mappers": mappers.collect::<Vec<_>>(),
    })
}

/// A row an architecture, with a column of two for each mapper, and the classes of transformers.
fn to_text(names: Vec<(&str, Level)>, mappers: &[Capability]) -> String {
    let width = names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let left = format!("{:<width$}  {:<5}  ", "name", "level");
    let mut text = heads(&left, mappers);
    for (name, level) in names {
        let mut line = format!("{name:<width$}  {:<5}  ", level.name());
        for mapper in mappers {
            line.push_str(mark(mapper.maps(name)));
            line.push(' ');
        }
        let _ = writeln!(text, "{}", format!("{line} {}", classes(name).join(", ")).trim_end());
    }
    text + LEGEND
}
