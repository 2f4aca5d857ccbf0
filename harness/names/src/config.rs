//! Configs: `config.json` of transformers 5, from metadata and back.

use gguf_assay_format::{OwnedArray, OwnedValue, ValueType};
use serde_json::{Map as Object, Value as Json, json};

use crate::architecture::{Architecture, Class, Field, LAYER, NULL};
use crate::data::KeyType;
use crate::expression::{Expression, Value};
use crate::hyperparameters::{Held, Hyperparameters, Metadata};

/// The config that a file stands for. Numbers that a file has as `f32` are the shortest decimal
/// numbers that are that `f32`: what the source said, unless it said more digits than an `f32` has.
pub(crate) fn of(hyperparameters: &Hyperparameters, class: &Class) -> Json {
    let mut config = Object::new();
    config.insert("architectures".into(), json!([class.name]));
    config.insert("model_type".into(), json!(class.model_type));
    let names = hyperparameters.at(None);
    let within = hyperparameters.architecture.within.as_ref();
    for field in &hyperparameters.architecture.config {
        let Some(name) = &field.row.field else { continue };
        let name = &match within.filter(|_| !field.row.top) {
            Some(within) => format!("{}.{name}", within.config),
            None => name.clone(),
        };
        if let Some(when) = &field.when {
            let holds = when.value(&|name| names.get(name));
            if holds != Ok(Value::Bool(true)) {
                continue;
            }
        }
        let evaluated = |expression: &Option<Expression>| {
            let value = expression.as_ref()?.value(&|name| names.get(name)).ok()?;
            named(field, value)
        };
        if let (true, Some(expression)) = (field.row.each, &field.value) {
            // No more layers than the metadata tell of one by one.
            let Some(count) = hyperparameters.layers() else { continue };
            let blocks = hyperparameters.blocks().unwrap_or(0).min(count);
            let each = (0..blocks).map(|layer| {
                let names = hyperparameters.at(Some(layer));
                named(field, expression.value(&|name| names.get(name)).ok()?)
            });
            if let Some(list) = each.collect::<Option<Vec<_>>>() {
                insert(&mut config, name, list.into());
            }
            continue;
        }
        let value = match (&field.value, &field.row.key) {
            (Some(_), _) => evaluated(&field.value),
            (None, Some(key)) => match hyperparameters.metadata.held.get(key) {
                Some(Held::One(value)) => named(field, value.clone()),
                Some(Held::Each(values)) => {
                    let count = values.len().saturating_sub(field.row.zeros.unwrap_or(0));
                    values.iter().take(count).map(|value| named(field, value.clone())).collect()
                }
                None => None,
            },
            (None, None) => None,
        };
        let null = || (field.row.default.as_deref() == Some(NULL)).then_some(Json::Null);
        if let Some(value) = value.or_else(|| evaluated(&field.default)).or_else(null) {
            insert(&mut config, name, value);
        }
    }
    Json::Object(config)
}

fn named(field: &Field, value: Value) -> Option<Json> {
    if field.row.names.is_empty() {
        return Some(json_of(value));
    }
    let number = match value {
        Value::Int(number) => number,
        Value::Bool(value) => value.into(),
        _ => return None,
    };
    let name = field.row.names.iter().find(|(_, each)| i128::from(**each) == number);
    name.map(|(name, _)| json!(name))
}

fn json_of(value: Value) -> Json {
    match value {
        Value::Int(int) => match (u64::try_from(int), i64::try_from(int)) {
            (Ok(int), _) => json!(int),
            (_, Ok(int)) => json!(int),
            _ => Json::Null,
        },
        Value::Float(float) => json!(float),
        Value::Bool(value) => json!(value),
        // It comes from the file, and ends up on a terminal.
        Value::Text(text) => json!(gguf_assay_format::printable(&text, 200)),
    }
}

/// Puts a value where a name with dots says.
fn insert(object: &mut Object<String, Json>, name: &str, value: Json) {
    match name.split_once('.') {
        None => {
            object.insert(name.to_owned(), value);
        }
        Some((outer, inner)) => {
            let within = object.entry(outer).or_insert_with(|| json!({}));
            if let Json::Object(within) = within {
                insert(within, inner, value);
            }
        }
    }
}

pub(crate) fn absent(architecture: &'static Architecture) -> Vec<(&'static str, &'static str)> {
    architecture.absent.iter().map(|row| (row.field.as_str(), row.note.as_str())).collect()
}

/// A field of a config, by its name with dots; `None` for `null`. For `any`, the first field that
/// has the rest.
pub(crate) fn get<'a>(config: &'a Json, name: &str) -> Option<&'a Json> {
    let found = match name.split_once('.') {
        None => config.get(name)?,
        Some(("any", rest)) => config.as_object()?.values().find_map(|each| get(each, rest))?,
        Some((first, rest)) => get(config.get(first)?, rest)?,
    };
    (!found.is_null()).then_some(found)
}

/// The value of a field; of a list's `length`, how many elements it has; of a list's `0`, the
/// first. A text may be a list of numbers with commas between them.
fn lookup(config: &Json, name: &str) -> Option<Value> {
    let (list, last) = name.rsplit_once('.').unwrap_or_default();
    let place = last.parse::<usize>();
    match (get(config, list), place) {
        (Some(Json::Array(list)), Ok(place)) => list.get(place).and_then(value_of),
        (Some(Json::Array(list)), _) if last == "length" => {
            Some(Value::Int(list.len().try_into().ok()?))
        }
        (Some(Json::String(text)), Ok(place)) => {
            text.split(',').nth(place)?.trim().parse().ok().map(Value::Int)
        }
        _ => get(config, name).and_then(value_of),
    }
}

fn value_of(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Bool(value) => Value::Bool(*value),
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(int), ..) => Value::Int(int.into()),
            (_, Some(int), _) => Value::Int(int.into()),
            (.., Some(float)) => Value::Float(float),
            _ => return None,
        },
        Json::Array(_) | Json::Object(_) | Json::Null => return None,
    })
}

/// A key and its value, as the converter writes it.
pub(crate) struct Written {
    /// Without the architecture and its dot.
    pub(crate) key: String,
    pub(crate) value: OwnedValue,
}

/// The metadata that a config comes to.
pub(crate) fn metadata(architecture: &Architecture, config: &Json) -> (Metadata, Vec<Written>) {
    let config = &with_rope_parameters(&with_text_config(config));
    let lookup = |name: &str| lookup(config, name);
    let mut metadata = Metadata::default();
    if let Some(vocabulary) = lookup("vocab_size").and_then(|value| value.as_u64()) {
        // The converter writes a token for each row of the embedding.
        metadata.counts.insert("tokenizer.ggml.tokens".into(), vocabulary);
    }
    let mut written = Vec::new();
    for field in &architecture.config {
        let (Some(key), Some(key_type)) = (&field.row.key, field.row.key_type) else { continue };
        if let Some(when) = &field.written_when
            && when.value(&lookup) != Ok(Value::Bool(true))
        {
            continue;
        }
        if let (Some(zeros), Some(name)) = (field.row.zeros, &field.row.field) {
            let list = get(config, name).and_then(Json::as_array);
            let values = list.into_iter().flatten().map(value_of);
            let values = values.chain(std::iter::repeat_n(Some(Value::Int(0)), zeros));
            let typed = values.map(|value| typed(key_type, value?)).collect::<Option<Vec<_>>>();
            if let (Some(typed), Some(_)) = (typed, list) {
                let (values, owned): (Vec<_>, Vec<_>) = typed.into_iter().unzip();
                let element = owned.first().map_or(ValueType::I32, OwnedValue::value_type);
                metadata.held.insert(key.clone(), Held::Each(values));
                let value = OwnedValue::Array(OwnedArray::new(element, owned));
                written.push(Written { key: key.clone(), value });
            }
            continue;
        }
        if let (true, Some(from)) = (field.row.each, &field.from) {
            if let Some((values, owned)) = each_layer(config, from, key_type) {
                let count = values.len().try_into().unwrap_or(u64::MAX);
                metadata.counts.insert(key.clone(), count);
                metadata.held.insert(key.clone(), Held::Each(values));
                written.push(Written { key: key.clone(), value: OwnedValue::Array(owned) });
            }
            continue;
        }
        let value = match (&field.from, &field.row.field) {
            (Some(from), _) => from.value(&lookup).ok(),
            (None, Some(name)) => lookup(name),
            (None, None) => None,
        };
        let value = match (value, field.row.names.is_empty()) {
            (Some(Value::Text(name)), false) => {
                field.row.names.get(&name).map(|number| Value::Int((*number).into()))
            }
            (value, _) => value,
        };
        let Some((value, owned)) = value.and_then(|value| typed(key_type, value)) else { continue };
        metadata.held.insert(key.clone(), Held::One(value));
        written.push(Written { key: key.clone(), value: owned });
    }
    (metadata, written)
}

/// The values of a key for each layer: as many as the lists of the config that it needs have.
fn each_layer(
    config: &Json,
    from: &Expression,
    key_type: KeyType,
) -> Option<(Vec<Value>, OwnedArray)> {
    let mut names = from.names();
    if names.contains(&LAYER) {
        names.push("layer_types");
    }
    let lists = names.into_iter().filter_map(|name| get(config, name)?.as_array());
    let count = lists.map(Vec::len).min()?;
    let mut values = Vec::new();
    let mut owned = Vec::new();
    for layer in 0..count {
        let lookup = |name: &str| match get(config, name) {
            _ if name == LAYER => Some(Value::Int(layer.try_into().ok()?)),
            Some(Json::Array(list)) => value_of(list.get(layer)?),
            value => value_of(value?),
        };
        let (value, one) = typed(key_type, from.value(&lookup).ok()?)?;
        values.push(value);
        owned.push(one);
    }
    let element = owned.first()?.value_type();
    Some((values, OwnedArray::new(element, owned)))
}

/// The config with the fields of the text model, where those are within it.
fn with_text_config(config: &Json) -> Json {
    let mut config = config.clone();
    if let (Some(Json::Object(text)), Json::Object(outer)) =
        (config.get("text_config").cloned(), &mut config)
    {
        outer.extend(text);
    }
    config
}

/// The config with `rope_parameters`, as transformers 5 reads an older one that has `rope_theta` and
/// `rope_scaling`.
fn with_rope_parameters(config: &Json) -> Json {
    let mut config = config.clone();
    if get(&config, "rope_parameters").is_some() {
        return config;
    }
    let mut rope = match get(&config, "rope_scaling") {
        Some(Json::Object(scaling)) => scaling.clone(),
        _ => Object::new(),
    };
    if let Some(old) = rope.remove("type") {
        rope.entry("rope_type").or_insert(old);
    }
    for name in ["rope_theta", "partial_rotary_factor"] {
        if let Some(value) = get(&config, name) {
            rope.insert(name.to_owned(), value.clone());
        }
    }
    if let Json::Object(config) = &mut config {
        config.insert("rope_parameters".into(), rope.into());
    }
    config
}

fn typed(key_type: KeyType, value: Value) -> Option<(Value, OwnedValue)> {
    Some(match (key_type, value) {
        (KeyType::U32, Value::Int(int)) => {
            (Value::Int(int), OwnedValue::from(u32::try_from(int).ok()?))
        }
        // gguf-py writes the elements of an array so.
        (KeyType::I32, Value::Int(int)) => {
            (Value::Int(int), OwnedValue::I32(i32::try_from(int).ok()?))
        }
        // The converter's `int(…)`.
        (KeyType::U32, Value::Float(float)) => {
            let whole = float.trunc();
            if !(0.0..=f64::from(u32::MAX)).contains(&whole) {
                return None;
            }
            #[allow(clippy::as_conversions)]
            let int = whole as u32;
            (Value::Int(int.into()), OwnedValue::from(int))
        }
        (KeyType::F32, value) => {
            let float = match value {
                #[allow(clippy::as_conversions)]
                Value::Int(int) => int as f64,
                Value::Float(float) => float,
                _ => return None,
            };
            #[allow(clippy::as_conversions)]
            let owned = OwnedValue::F32(float as f32);
            (Value::Float(float), owned)
        }
        (KeyType::Bool, Value::Bool(value)) => (Value::Bool(value), OwnedValue::Bool(value)),
        (KeyType::String, Value::Text(text)) => {
            (Value::Text(text.clone()), OwnedValue::from(text.as_str()))
        }
        _ => return None,
    })
}
