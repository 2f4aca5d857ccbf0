//! JSON files: configs and the index.

use std::fmt;

use gguf_assay_format::printable;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use crate::files::{Files, stranger};
use crate::finding::{Finding, Findings};
use crate::rule;

/// As long as a config or an index may be. Those of a trillion parameters have a few megabytes.
const MAX_LEN: u64 = 64 << 20;

/// Reads a file that holds a JSON object, and finds what is wrong with it.
pub(crate) fn read<F: Files>(files: &F, name: &str, findings: &mut Findings) -> Option<Json> {
    let mut finding = |finding: Finding| findings.add(finding.in_file(name));
    let bytes = match bytes(files, name) {
        Ok(bytes) => bytes,
        Err(problem) => {
            finding(*problem);
            return None;
        }
    };
    let text = match simdutf8::compat::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            finding(not_utf8(&rule::CKPT_003, &bytes, error.valid_up_to(), 0));
            return None;
        }
    };
    let mut duplicates = Vec::new();
    let parsed = parse(text, &mut duplicates).or_else(|error| {
        // `json` of Python reads more than JSON, and transformers writes it in older versions.
        duplicates.clear();
        let replaced = without_constants(text);
        let Some(json) = replaced.and_then(|text| parse(&text, &mut duplicates).ok()) else {
            return Err(error);
        };
        let found = "NaN or Infinity outside of a string, which is taken for null";
        finding(Finding::new(&rule::CKPT_006, found, "numbers, or null"));
        Ok(json)
    });
    let json = match parsed {
        Ok(json) => json,
        Err(error) => {
            let found = match stranger(&bytes) {
                Some(kind) => kind.into(),
                None => format!("no JSON: {error}"),
            };
            let offset = offset_of(&error, text);
            finding(Finding::new(&rule::CKPT_003, found, "a JSON object").at(offset));
            return None;
        }
    };
    for path in duplicates {
        finding(Finding::new(&rule::CKPT_005, "the key again", "each key once").of_field(path));
    }
    if !json.is_object() {
        let found = format!("{} in place of an object", kind(&json));
        finding(Finding::new(&rule::CKPT_003, found, "a JSON object").at(0));
        return None;
    }
    Some(json)
}

fn bytes<F: Files>(files: &F, name: &str) -> Result<Vec<u8>, Box<Finding>> {
    let unreadable = |error| Box::new(unreadable(&error));
    let len = files.len(name).map_err(unreadable)?;
    if len > MAX_LEN {
        let expected = format!("at most {MAX_LEN}");
        return Err(Box::new(Finding::new(&rule::CKPT_004, format!("{len} bytes"), expected)));
    }
    let len = usize::try_from(len).map_err(std::io::Error::other).map_err(unreadable)?;
    let mut bytes = vec![0; len];
    files.read_at(name, 0, &mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// The finding of a file that the file system does not give.
pub(crate) fn unreadable(error: &std::io::Error) -> Finding {
    Finding::new(&rule::CKPT_001, format!("it cannot be read: {error}"), "a file that can be read")
}

/// The finding of a text that is not UTF-8 from `place` on; the text begins at `start`.
pub(crate) fn not_utf8(
    rule: &'static gguf_assay_format::Rule,
    text: &[u8],
    place: usize,
    start: u64,
) -> Finding {
    let found = match text.get(place) {
        Some(byte) => format!("the byte {byte:#04x}, which is not UTF-8 there"),
        None => "a character that is cut".into(),
    };
    let offset = u64::try_from(place).ok().and_then(|place| start.checked_add(place));
    Finding::new(rule, found, "UTF-8").at(offset.unwrap_or(u64::MAX))
}

/// Where in the text an error is.
pub(crate) fn offset_of(error: &serde_json::Error, text: &str) -> u64 {
    if error.is_eof() {
        return u64::try_from(text.len()).unwrap_or(u64::MAX);
    }
    let before: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let offset = before.saturating_add(error.column().saturating_sub(1)).min(text.len());
    u64::try_from(offset).unwrap_or(u64::MAX)
}

/// What kind of value it is, in words.
pub(crate) fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// A text of JSON, and the paths of the keys that come again; the last counts, as in Python.
fn parse(text: &str, duplicates: &mut Vec<String>) -> Result<Json, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let json = Tree { path: &mut String::new(), duplicates }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(json)
}

/// As many duplicates are told.
const MOST_DUPLICATES: usize = 100;

struct Tree<'a> {
    /// Where in the text, with dots.
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) =
            seq.next_element_seed(Tree { path: self.path, duplicates: self.duplicates })?
        {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let outer = self.path.len();
            if outer > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if object.contains_key(&key) && self.duplicates.len() < MOST_DUPLICATES {
                self.duplicates.push(printable(self.path, 400));
            }
            let value =
                map.next_value_seed(Tree { path: self.path, duplicates: self.duplicates })?;
            self.path.truncate(outer);
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

/// The text with null for Python's constants, if there are any outside of strings.
fn without_constants(text: &str) -> Option<String> {
    let mut replaced = String::new();
    let mut rest = text;
    let mut any = false;
    while let Some(c) = rest.chars().next() {
        let taken = if c == '"' {
            string_len(rest)
        } else if let Some(constant) =
            ["-Infinity", "Infinity", "NaN"].iter().find(|constant| rest.starts_with(**constant))
        {
            any = true;
            replaced.push_str("null");
            rest = rest.get(constant.len()..)?;
            continue;
        } else {
            c.len_utf8()
        };
        let (part, after) = rest.split_at_checked(taken)?;
        replaced.push_str(part);
        rest = after;
    }
    any.then_some(replaced)
}

/// The bytes of the string that the text begins with, quotes included.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (place, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return place.saturating_add(1),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::MemoryFiles;

    fn read_text(text: &[u8]) -> (Option<Json>, Vec<Finding>) {
        let files = MemoryFiles([("config.json".into(), text.to_vec())].into());
        let mut findings = Findings::default();
        let json = read(&files, "config.json", &mut findings);
        (json, findings.finish())
    }

    /// Rule, offset and field.
    fn found(text: &[u8]) -> Vec<(&'static str, Option<u64>, Option<String>)> {
        let findings = read_text(text).1.into_iter();
        findings.map(|found| (found.rule.id, found.offset, found.field)).collect()
    }

    // Offsets are counted by hand.
    #[test]
    fn what_is_no_json_is_found_where_it_is() {
        assert_eq!(found(b"{}"), []);
        assert_eq!(found(b""), [("CKPT-003", Some(0), None)]);
        assert_eq!(found(b"[1]"), [("CKPT-003", Some(0), None)]);
        assert_eq!(found(b"{\"a\": 1,}"), [("CKPT-003", Some(8), None)]);
        assert_eq!(found(b"{\n\"a\": tru }"), [("CKPT-003", Some(10), None)]);
        assert_eq!(found(b"{} x"), [("CKPT-003", Some(3), None)]);
        assert_eq!(found(b"{\"\xff\": 1}"), [("CKPT-003", Some(2), None)]);
        assert_eq!(found(&b"[".repeat(100_000)).len(), 1);
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n";
        assert!(read_text(pointer).1[0].found.contains("Git LFS"));
    }

    #[test]
    fn keys_that_come_again_are_noted_and_the_last_counts() {
        let text = br#"{"a": {"b": 1, "c": [{"d": 1, "d": 2}], "b": 2}, "a.b": 3}"#;
        let (json, findings) = read_text(text);
        let paths: Vec<_> = findings.iter().filter_map(|found| found.field.as_deref()).collect();
        assert_eq!(paths, ["a.c.d", "a.b"]);
        assert!(findings.iter().all(|found| !found.is_fault() && found.rule.id == "CKPT-005"));
        assert_eq!(json.unwrap()["a"]["b"], 2);
    }

    /// As in the configs of Mamba 2: `"time_step_limit": [0.0, Infinity]`.
    #[test]
    fn constants_of_python_are_noted() {
        let (json, findings) =
            read_text(br#"{"a": [0.0, Infinity, -Infinity], "b": "NaN \" NaN"}"#);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].rule.id, findings[0].is_fault()), ("CKPT-006", false));
        let json = json.unwrap();
        assert_eq!(json["a"], serde_json::json!([0.0, null, null]));
        assert_eq!(json["b"], "NaN \" NaN");
        assert_eq!(found(b"{\"a\": Infinity,}"), [("CKPT-003", Some(6), None)]);
    }
}
