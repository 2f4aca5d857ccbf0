//! Findings as SARIF 2.1.0, which code hosts and editors show.

use std::collections::BTreeMap;

use gguf_assay_format::Rule;
use serde_json::{Value as Json, json};

/// One result.
pub(crate) struct SarifResult {
    /// The rule that is broken.
    pub(crate) rule: &'static Rule,
    /// Whether it is a fault, or a note.
    pub(crate) is_fault: bool,
    /// What is wrong, in a sentence.
    pub(crate) message: String,
    /// The file, relative to where the command ran.
    pub(crate) file: String,
    /// Where in it.
    pub(crate) offset: Option<u64>,
    /// Fields, modules and tensors, each with the kind of name that it is.
    pub(crate) names: Vec<(&'static str, String)>,
}

/// The log of one run.
pub(crate) fn log(results: &[SarifResult]) -> Json {
    let mut rules: BTreeMap<&str, &Rule> = BTreeMap::new();
    for result in results {
        rules.insert(result.rule.id, result.rule);
    }
    let described = rules.values().map(|rule| {
        json!({
            "id": rule.id,
            "shortDescription": { "text": rule.title },
            "fullDescription": { "text": format!("If it is broken: {}", rule.effect) },
            "help": { "text": rule.advice },
        })
    });
    let found = results.iter().map(|result| {
        let mut physical = json!({ "artifactLocation": { "uri": uri(&result.file) } });
        if let Some(offset) = result.offset {
            physical["region"] = json!({ "byteOffset": offset });
        }
        let names = result.names.iter();
        let names = names.map(|(kind, name)| json!({ "fullyQualifiedName": name, "kind": kind }));
        json!({
            "ruleId": result.rule.id,
            "ruleIndex": rules.keys().position(|id| *id == result.rule.id),
            "level": if result.is_fault { "error" } else { "note" },
            "message": { "text": result.message },
            "locations": [{
                "physicalLocation": physical,
                "logicalLocations": names.collect::<Vec<_>>(),
            }],
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "gguf-assay",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": described.collect::<Vec<_>>(),
            } },
            "results": found.collect::<Vec<_>>(),
        }],
    })
}

/// A path as a relative reference: what may not stand in one is percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
