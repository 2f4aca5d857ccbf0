//! Configs: `config.json` of transformers 5, from metadata and back.

use gguf_assay_format::{OwnedArray, OwnedValue};
use serde_json::{Map as Object, Value as Json, json};

use crate::architecture::{Architecture, Class, Field};
use crate::data::KeyType;
use crate::expression::{Expression, Failure, Value};
use crate::hyperparameters::{Held, Hyperparameters, Metadata};

/// The config that a file stands for. Numbers that a file has as `f32` are the shortest decimal
/// numbers that are that `f32`: what the source said, unless it said more digits than an `f32` has.
pub(crate) fn of(hyperparameters: &Hyperparameters, class: &Class) -> Json {
    let mut config = Object::new();
    config.insert("architectures".into(), json!([class.name]));
    config.insert("model_type".into(), json!(class.model_type));
    let names = hyperparameters.at(None);
    for field in &hyperparameters.architecture.config {
        let Some(name) = &field.row.field else { continue };
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
            let count = hyperparameters.metadata.layers();
            let blocks = hyperparameters.count("n_layer").unwrap_or(0).min(count);
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
                    values.iter().map(|value| named(field, value.clone())).collect()
                }
                None => None,
            },
            (None, None) => None,
        };
        if let Some(value) = value.or_else(|| evaluated(&field.default)) {
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

/// A field of a config, by its name with dots; `None` for `null`.
pub(crate) fn get<'a>(config: &'a Json, name: &str) -> Option<&'a Json> {
    let found = name.split('.').try_fold(config, |within, name| within.get(name))?;
    (!found.is_null()).then_some(found)
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

/// The value of a field; of a list of one and the same value, that.
fn value_or_all(json: &Json) -> Option<Value> {
    let Json::Array(list) = json else { return value_of(json) };
    let first = list.first()?;
    if list.iter().all(|each| each == first) { value_of(first) } else { None }
}

/// A key and its value, as the converter writes it.
pub(crate) struct Written {
    /// Without the architecture and its dot.
    pub(crate) key: String,
    pub(crate) value: OwnedValue,
}

/// The metadata that a config comes to.
pub(crate) fn metadata(architecture: &Architecture, config: &Json) -> (Metadata, Vec<Written>) {
    let config = &with_rope_parameters(config);
    let lookup = |name: &str| get(config, name).and_then(value_or_all);
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
        if let (true, Some(from), None) = (field.row.each, &field.from, &field.leading) {
            let blocks = field.blocks.as_ref().map(|blocks| blocks.value(&lookup));
            if let Some((values, owned)) = each_layer(config, from, blocks, key_type) {
                metadata.held.insert(key.clone(), Held::Each(values));
                written.push(Written { key: key.clone(), value: OwnedValue::Array(owned) });
            }
            continue;
        }
        let leading = field.leading.as_ref().and_then(|holds| leading(config, holds));
        let value = match (&field.from, &field.row.field) {
            _ if leading.is_some() => leading,
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

/// How many of the first layers a condition holds in. `None` if the config has no list for it.
fn leading(config: &Json, holds: &Expression) -> Option<Value> {
    let values = in_each_layer(config, holds, None)?;
    let count = values.take_while(|value| *value == Some(Value::Bool(true))).count();
    Some(Value::Int(count.try_into().ok()?))
}

/// The value of an expression in each layer: as many as the lists of the config that it needs have,
/// or as there are `blocks`, but not many more.
fn in_each_layer(
    config: &Json,
    from: &Expression,
    blocks: Option<Result<Value, Failure>>,
) -> Option<impl Iterator<Item = Option<Value>>> {
    let lists = from.names().into_iter().filter_map(|name| get(config, name)?.as_array());
    let layers = lists.map(Vec::len).min()?;
    let count = match blocks {
        None => layers,
        Some(blocks) => {
            usize::try_from(blocks.ok()?.as_u64()?).ok()?.min(layers.saturating_add(64))
        }
    };
    Some((0..count).map(move |layer| {
        let lookup = |name: &str| match get(config, name)? {
            Json::Array(list) => value_of(list.get(layer)?),
            value => value_of(value),
        };
        from.value(&lookup).ok()
    }))
}

/// The values of a key for each layer.
fn each_layer(
    config: &Json,
    from: &Expression,
    blocks: Option<Result<Value, Failure>>,
    key_type: KeyType,
) -> Option<(Vec<Value>, OwnedArray)> {
    let mut values = Vec::new();
    let mut owned = Vec::new();
    for value in in_each_layer(config, from, blocks)? {
        let (value, one) = typed(key_type, value?)?;
        values.push(value);
        owned.push(one);
    }
    let element = owned.first()?.value_type();
    Some((values, OwnedArray::new(element, owned)))
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
