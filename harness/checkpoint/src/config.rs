//! Where a checkpoint declares its quantization, and the fields of it.

use gguf_assay_format::printable;
use serde_json::{Map, Value as Json};

use crate::checkpoint::Checkpoint;
use crate::finding::Finding;
use crate::method::{Field, Kind, Method};
use crate::rule;

/// The longest value that a finding quotes.
const QUOTED: usize = 80;

/// A value of a config, short and safe to print.
pub(crate) fn quote(value: &Json) -> String {
    printable(&value.to_string(), QUOTED)
}

/// An object that declares a quantization.
#[derive(Clone, Debug)]
pub(crate) struct Declared<'a> {
    /// The file.
    pub(crate) file: &'a str,
    /// The field within it; empty if the whole file is meant.
    pub(crate) path: String,
    /// What it says.
    pub(crate) object: &'a Map<String, Json>,
    /// The method that it names, or that its file is of.
    pub(crate) method: Option<&'a str>,
}

impl Declared<'_> {
    /// A field's name with the path of the object before it.
    pub(crate) fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// The fields within `config.json` that hold the config of a text model.
pub(crate) const NESTED: [&str; 4] =
    ["text_config", "llm_config", "language_config", "thinker_config"];

/// Every declaration of a checkpoint, the one that counts first.
pub(crate) fn declarations<F>(checkpoint: &Checkpoint<F>) -> Vec<Declared<'_>> {
    let mut all = Vec::new();
    for config in &checkpoint.configs {
        let Some(object) = config.json.as_object() else { continue };
        let mut push = |path: String, object, method| {
            all.push(Declared { file: &config.name, path, object, method });
        };
        match config.name.as_str() {
            "config.json" => {
                let mut places = vec![(String::new(), object)];
                for name in NESTED {
                    if let Some(nested) = object.get(name).and_then(Json::as_object) {
                        places.push((format!("{name}."), nested));
                    }
                }
                for (prefix, place) in places {
                    for name in ["quantization_config", "compression_config"] {
                        if let Some(found) = place.get(name).and_then(Json::as_object) {
                            push(format!("{prefix}{name}"), found, method_of(found));
                        }
                    }
                }
            }
            "hf_quant_config.json" => {
                if let Some(found) = object.get("quantization").and_then(Json::as_object) {
                    push("quantization".into(), found, Some("modelopt"));
                }
            }
            name => {
                let usual = match name {
                    "quantize_config.json" => Some("gptq"),
                    "quant_config.json" => Some("awq"),
                    _ => None,
                };
                push(String::new(), object, method_of(object).or(usual));
            }
        }
    }
    all
}

/// The method that a config names, or that its fields are of.
fn method_of(object: &Map<String, Json>) -> Option<&str> {
    match object.get("quant_method").and_then(Json::as_str) {
        Some(name) => Some(name),
        None if object.contains_key("config_groups") => Some("compressed-tensors"),
        None => None,
    }
}

/// The fields of one object, read by the table of a method.
pub(crate) struct Fields<'a> {
    declared: &'a Declared<'a>,
    table: &'static [Field],
    prefix: String,
    object: &'a Map<String, Json>,
    pub(crate) findings: &'a mut Vec<Finding>,
}

impl<'a> Fields<'a> {
    /// The fields of a declaration, after each has been held to the table.
    pub(crate) fn read(
        declared: &'a Declared<'a>,
        method: &'static Method,
        findings: &'a mut Vec<Finding>,
    ) -> Fields<'a> {
        let mut fields = Fields {
            declared,
            table: method.fields,
            prefix: String::new(),
            object: declared.object,
            findings,
        };
        fields.check();
        let unknown = declared.object.keys().filter(|name| {
            !["quant_method", "quantization_status"].contains(&name.as_str())
                && !method.fields.iter().any(|field| {
                    field.name == name.as_str() || field.aliases.contains(&name.as_str())
                })
        });
        let unknown: Vec<&str> = unknown.map(String::as_str).collect();
        if !unknown.is_empty() {
            let finding = Finding::new(
                &rule::METHOD_004,
                printable(&unknown.join(", "), 400),
                format!("fields of {}; these are not looked at", method.name),
            );
            let finding = finding.in_file(declared.file).of_field(declared.path.clone());
            fields.findings.push(finding);
        }
        fields
    }

    /// The object in a field, read by a table of its own; nothing else may stand in it.
    pub(crate) fn nested(
        &mut self,
        prefix: String,
        object: &'a Map<String, Json>,
        table: &'static [Field],
    ) -> Fields<'_> {
        let mut fields = Fields {
            declared: self.declared,
            table,
            prefix: format!("{}{prefix}.", self.prefix),
            object,
            findings: &mut *self.findings,
        };
        fields.check();
        for (name, value) in object {
            if !table.iter().any(|field| field.name == name) {
                let finding = Finding::new(&rule::METHOD_003, quote(value), "no such field here");
                let finding = fields.place(finding, &printable(name, QUOTED));
                fields.findings.push(finding);
            }
        }
        fields
    }

    fn check(&mut self) {
        for field in self.table {
            match self.entry(field) {
                Some((name, value)) if !fits(field.kind, value) => {
                    let finding =
                        Finding::new(&rule::METHOD_003, quote(value), field.kind.to_string());
                    let finding = self.place(finding, name);
                    self.findings.push(finding);
                }
                None if field.required => {
                    let finding = Finding::new(
                        &rule::METHOD_002,
                        "not there",
                        format!("{}: {}", field.what, field.kind),
                    );
                    let finding = self.place(finding, field.name);
                    self.findings.push(finding);
                }
                _ => {}
            }
        }
    }

    /// A finding about a field of this object.
    fn place(&self, finding: Finding, name: &str) -> Finding {
        let field = self.declared.field(&format!("{}{name}", self.prefix));
        finding.in_file(self.declared.file).of_field(field)
    }

    /// Reports what is wrong with a field, or with what it says beside others.
    pub(crate) fn report(&mut self, name: &str, finding: Finding) {
        let finding = self.place(finding, name);
        self.findings.push(finding);
    }

    /// The value of a field of the table, and the name under which it was found. Null is as good as
    /// nothing.
    fn entry(&self, field: &Field) -> Option<(&'static str, &'a Json)> {
        let names = std::iter::once(field.name).chain(field.aliases.iter().copied());
        let mut found = names.filter_map(|name| Some((name, self.object.get(name)?)));
        found.find(|(_, value)| !value.is_null())
    }

    /// The value of a field, by the name that the table has.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Json> {
        match self.table.iter().find(|field| field.name == name) {
            Some(field) => self.entry(field).map(|(_, value)| value),
            None => self.object.get(name).filter(|value| !value.is_null()),
        }
    }

    /// Whether a field of the table is not there, not even as null.
    pub(crate) fn is_absent(&self, name: &str) -> bool {
        let field = self.table.iter().find(|field| field.name == name);
        let aliases = field.map_or(&[][..], |field| field.aliases);
        std::iter::once(&name).chain(aliases).all(|name| !self.object.contains_key(*name))
    }

    /// A whole number.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_i64()
    }

    /// A number that is above zero.
    pub(crate) fn positive(&self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64().filter(|number| *number > 0)
    }

    /// True or false.
    pub(crate) fn bool(&self, name: &str) -> Option<bool> {
        self.get(name)?.as_bool()
    }

    /// A text in small letters.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        Some(self.get(name)?.as_str()?.to_ascii_lowercase())
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<&'a str> {
        let list = self.get(name).and_then(Json::as_array);
        list.into_iter().flatten().filter_map(Json::as_str).collect()
    }

    /// An object.
    pub(crate) fn object(&self, name: &str) -> Option<&'a Map<String, Json>> {
        self.get(name)?.as_object()
    }

    /// The rows and columns of a block.
    pub(crate) fn block(&self, name: &str) -> Option<(u64, u64)> {
        block(self.get(name)?)
    }
}

/// A block as `[128, 128]` or `"128x128"`.
fn block(value: &Json) -> Option<(u64, u64)> {
    let sizes: Vec<u64> = match value {
        Json::Array(list) => list.iter().map(Json::as_u64).collect::<Option<_>>()?,
        Json::String(text) => {
            text.split('x').map(|size| size.trim().parse().ok()).collect::<Option<_>>()?
        }
        _ => return None,
    };
    match sizes.as_slice() {
        [rows, cols] if *rows > 0 && *cols > 0 => Some((*rows, *cols)),
        _ => None,
    }
}

/// Whether a value is one that the kind allows.
fn fits(kind: Kind, value: &Json) -> bool {
    match kind {
        Kind::Bool => value.is_boolean(),
        Kind::OneOf(numbers) => value.as_i64().is_some_and(|number| numbers.contains(&number)),
        Kind::GroupSize => value.as_i64().is_some_and(|number| number == -1 || number > 0),
        Kind::Integer(from, to) => {
            value.as_i64().is_some_and(|number| from <= number && number <= to)
        }
        Kind::Number(from, to) => {
            value.as_f64().is_some_and(|number| from <= number && number <= to)
        }
        Kind::Word(words) => value
            .as_str()
            .is_some_and(|text| words.iter().any(|word| text.eq_ignore_ascii_case(word))),
        Kind::Text => value.is_string(),
        Kind::Texts => value.as_array().is_some_and(|list| list.iter().all(Json::is_string)),
        Kind::Block => block(value).is_some(),
        Kind::Object => value.is_object(),
        Kind::Any => true,
    }
}
