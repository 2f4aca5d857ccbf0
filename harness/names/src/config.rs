//! Configs: `config.json` of transformers 5, from metadata and back.

use std::collections::{HashMap, HashSet};

use gguf_assay_format::{OwnedArray, OwnedValue};
use serde_json::{Map as Object, Value as Json, json};

use crate::architecture::{Architecture, Class, Field, LAYER, NULL, Origin};
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
        if let Some(value) = field_value(hyperparameters, field) {
            insert(&mut config, name, value);
        }
    }
    Json::Object(config)
}

/// The value of a field; `None` if the file does not give it one.
fn field_value(hyperparameters: &Hyperparameters, field: &Field) -> Option<Json> {
    let names = hyperparameters.at(None);
    let evaluated = |expression: &Expression| {
        let value = expression.value(&|name| names.get(name)).ok()?;
        named(field, value)
    };
    let value = match (&field.value, &field.row.key) {
        (Some(value), _) if field.row.each => each_of_field(hyperparameters, field, value),
        (Some(value), _) => evaluated(value),
        (None, Some(key)) => match hyperparameters.metadata.held.get(key) {
            Some(Held::One(value)) => named(field, value.clone()),
            Some(Held::Each(values)) => list_of_field(field, values),
            None => None,
        },
        (None, None) => None,
    };
    let null = || (field.row.default.as_deref() == Some(NULL)).then_some(Json::Null);
    value.or_else(|| evaluated(field.default.as_ref()?)).or_else(null)
}

/// The values of a field for each layer, or the numbers of the layers for which `value` holds.
fn each_of_field(
    hyperparameters: &Hyperparameters,
    field: &Field,
    value: &Expression,
) -> Option<Json> {
    let layers = if field.row.behind {
        hyperparameters.blocks()?
    } else {
        hyperparameters.count("n_layer")?
    };
    if layers == 0 || layers > hyperparameters.metadata.most_layers {
        return None;
    }
    let mut list = Vec::new();
    for layer in 0..layers {
        let names = hyperparameters.at(Some(layer));
        let value = value.value(&|name| names.get(name)).ok()?;
        match field.row.listed {
            None => list.push(named(field, value)?),
            Some(first) if value == Value::Bool(true) => {
                list.push(json!(layer.saturating_add(first)));
            }
            Some(_) => {}
        }
    }
    Some(list.into())
}

/// The elements of a key as a field has them.
fn list_of_field(field: &Field, values: &[Value]) -> Option<Json> {
    let most = field.row.list.map_or(values.len(), |[of_field, _]| of_field);
    let shift = field.row.shift.unwrap_or(0);
    let shifted = values.iter().take(most).map(|value| match value {
        Value::Int(int) => Value::Int(int.saturating_add(shift.into())),
        value => value.clone(),
    });
    shifted.map(|value| named(field, value)).collect()
}

/// A value as the config has it: the text that stands for it, if the field has texts.
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

/// Fields of the config that a file does not tell, and why.
pub(crate) fn absent(architecture: &'static Architecture) -> Vec<(&'static str, &'static str)> {
    architecture.absent.iter().map(|row| (row.field.as_str(), row.note.as_str())).collect()
}

/// A field of a config, by its name with dots, or an element of a list by its number; `None` for
/// `null`. For `any`, the first field that has the rest.
pub fn get<'a>(config: &'a Json, name: &str) -> Option<&'a Json> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    let found = match (config, first, rest) {
        (Json::Object(fields), "any", Some(rest)) => {
            fields.values().find_map(|each| get(each, rest))?
        }
        (Json::Array(list), number, rest) => {
            let each = list.get(number.parse::<usize>().ok()?)?;
            rest.map_or(Some(each), |rest| get(each, rest))?
        }
        (within, name, Some(rest)) => get(within.get(name)?, rest)?,
        (within, name, None) => within.get(name)?,
    };
    (!found.is_null()).then_some(found)
}

/// What a name stands for in a config: a field, the length of a list, whether a list has a text, or
/// the first number of a text that has commas between numbers.
fn named_in(config: &Json, name: &str) -> Option<Value> {
    let list = |name: &str| get(config, name)?.as_array();
    let count = || Some(Value::Int(list(name.strip_suffix(".count")?)?.len().try_into().ok()?));
    let has = || {
        let (name, text) = name.split_once(".has.")?;
        Some(Value::Bool(list(name)?.iter().any(|each| each.as_str() == Some(text))))
    };
    let first = || {
        let text = get(config, name.strip_suffix(".0")?)?.as_str()?;
        text.split(',').next()?.trim().parse().ok().map(Value::Int)
    };
    get(config, name).and_then(value_or_all).or_else(count).or_else(has).or_else(first)
}

/// Whether a condition over a config's fields holds.
pub(crate) fn holds(config: &Json, condition: &Expression) -> bool {
    let config = &as_read_today(config);
    condition.value(&|name| named_in(config, name)) == Ok(Value::Bool(true))
}

/// What an expression over a config's fields comes to, as the `f32` that the converter takes it
/// for.
pub(crate) fn number(config: &Json, expression: &Expression) -> Option<f32> {
    let value = expression.value(&|name| get(config, name).and_then(value_of)).ok()?;
    match typed(KeyType::F32, value)?.1 {
        OwnedValue::F32(number) => Some(number),
        _ => None,
    }
}

/// A value that is no list and no object.
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

/// The metadata that a config comes to, and a checkpoint of which `present` says whether a GGUF
/// tensor can be made: hyperparameters of this kind have a value beside the fields.
pub(crate) fn metadata(
    architecture: &Architecture,
    config: &Json,
    most_layers: u64,
    present: &dyn Fn(&str) -> bool,
) -> (Metadata, Vec<Written>) {
    let config = &as_read_today(config);
    let given: HashMap<&str, bool> = architecture
        .hyperparameters
        .iter()
        .filter_map(|each| match &each.origin {
            Origin::Present(tensor) => Some((each.name.as_str(), present(tensor))),
            _ => None,
        })
        .collect();
    let given = |name: &str| given.get(name).copied().map(Value::Bool);
    let lookup = |name: &str| named_in(config, name).or_else(|| given(name));
    let mut metadata = Metadata { most_layers, ..Metadata::default() };
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
        let Some((held, value)) = key_value(config, field, key_type, most_layers, &lookup) else {
            continue;
        };
        if let Held::Each(values) = &held {
            let count = values.len().try_into().unwrap_or(u64::MAX);
            metadata.counts.insert(key.clone(), count);
        }
        metadata.held.insert(key.clone(), held);
        written.push(Written { key: key.clone(), value });
    }
    (metadata, written)
}

/// The value of a key, where `lookup` says what names stand for in all layers; `None` if the config
/// does not give it one.
fn key_value(
    config: &Json,
    field: &Field,
    key_type: KeyType,
    most_layers: u64,
    lookup: &dyn Fn(&str) -> Option<Value>,
) -> Option<(Held, OwnedValue)> {
    let row = &field.row;
    let leading = field.leading.as_ref().and_then(|holds| leading(config, holds));
    let value = match (&field.from, &row.field) {
        _ if leading.is_some() => leading?,
        (Some(from), _) if row.each && field.leading.is_none() => {
            return each_of_key(config, field, from, key_type, most_layers, lookup);
        }
        (None, Some(name)) if row.list.is_some() || row.shift.is_some() => {
            return list_of_key(get(config, name)?.as_array()?, field, key_type);
        }
        (Some(from), _) => from.value(lookup).ok()?,
        (None, Some(name)) => lookup(name)?,
        (None, None) => return None,
    };
    let value = match value {
        Value::Text(name) if !row.names.is_empty() => Value::Int((*row.names.get(&name)?).into()),
        value => value,
    };
    let (value, owned) = typed(key_type, value)?;
    Some((Held::One(value), owned))
}

/// How many of the first layers a condition holds in. `None` if the config has no list for it.
fn leading(config: &Json, holds: &Expression) -> Option<Value> {
    let layers = layers_of_lists(config, holds)?;
    let holds = |layer: &u64| {
        let lookup = |name: &str| get(config, name).and_then(|value| of_layer(value, *layer));
        holds.value(&lookup) == Ok(Value::Bool(true))
    };
    let count = (0..layers).take_while(holds).count();
    Some(Value::Int(count.try_into().ok()?))
}

/// The value of a field in a layer: that of a list, or the only one.
fn of_layer(value: &Json, layer: u64) -> Option<Value> {
    match value {
        Json::Array(list) => value_of(list.get(usize::try_from(layer).ok()?)?),
        value => value_of(value),
    }
}

/// The first elements of a list, less what the field's are more, with zeros behind them.
fn list_of_key(list: &[Json], field: &Field, key_type: KeyType) -> Option<(Held, OwnedValue)> {
    let most = field.row.list.map_or(list.len(), |[_, of_key]| of_key);
    let shift = field.row.shift.unwrap_or(0);
    let elements = list.iter().map(|element| match value_of(element)? {
        Value::Int(int) => Some(Value::Int(int.checked_sub(shift.into())?)),
        value => Some(value),
    });
    let elements = elements.chain(std::iter::repeat(Some(Value::Int(0))));
    array(elements.take(most).map(|value| typed(key_type, value?)))
}

/// The values of a key for each layer: as many as it is said to have, or else as the lists of the
/// config that it needs have.
fn each_of_key(
    config: &Json,
    field: &Field,
    from: &Expression,
    key_type: KeyType,
    most_layers: u64,
    lookup: &dyn Fn(&str) -> Option<Value>,
) -> Option<(Held, OwnedValue)> {
    let count = match &field.blocks {
        // As of a file, no more layers are looked at than there can be.
        Some(blocks) => blocks.value(lookup).ok()?.as_u64().filter(|it| *it <= most_layers)?,
        None => layers_of_lists(config, from)?,
    };
    let listed = field.row.field.as_deref().zip(field.row.listed).and_then(|(name, first)| {
        let list = get(config, name)?.as_array()?;
        Some((list.iter().filter_map(Json::as_u64).collect::<HashSet<u64>>(), first))
    });
    array((0..count).map(|layer| {
        let lookup = |name: &str| match (get(config, name), name, &listed) {
            (Some(value), ..) => of_layer(value, layer),
            (None, LAYER, _) => Some(Value::Int(layer.into())),
            (None, "listed", Some((list, first))) => {
                Some(Value::Bool(list.contains(&layer.saturating_add(*first))))
            }
            _ => lookup(name),
        };
        typed(key_type, from.value(&lookup).ok()?)
    }))
}

/// As many layers as all lists have that an expression needs; `None` if it needs no list.
fn layers_of_lists(config: &Json, expression: &Expression) -> Option<u64> {
    let lists = expression.names().into_iter().filter_map(|name| get(config, name)?.as_array());
    lists.map(Vec::len).min()?.try_into().ok()
}

/// An array of values that all have the type of a key; `None` if one is missing, or there is none.
fn array(typed: impl Iterator<Item = Option<(Value, OwnedValue)>>) -> Option<(Held, OwnedValue)> {
    let (values, owned): (Vec<_>, Vec<_>) = typed.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let array = OwnedArray::new(owned.first()?.value_type(), owned);
    Some((Held::Each(values), OwnedValue::Array(array)))
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

/// The config as transformers 5 reads an older one: with `rope_parameters` made of `rope_theta` and
/// `rope_scaling`, and with its own names of layers.
fn as_read_today(config: &Json) -> Json {
    let mut config = with_rope_parameters(&with_text_config(config));
    // `_pattern_to_list` of configuration_nemotron_h.py.
    let pattern = get(&config, "hybrid_override_pattern").and_then(Json::as_str);
    if let (Some(pattern), None) = (pattern, get(&config, "layers_block_type")) {
        let names = pattern.chars().map(|letter| match letter {
            'M' => json!("linear_attention"),
            'E' => json!("moe"),
            '*' => json!("full_attention"),
            '-' => json!("mlp"),
            _ => Json::Null,
        });
        let names: Json = names.collect();
        if let Json::Object(config) = &mut config {
            config.insert("layers_block_type".into(), names);
        }
    }
    for field in ["layer_types", "layers_block_type"] {
        let Some(Json::Array(names)) = config.get_mut(field) else { continue };
        for name in names {
            // `_LEGACY_LAYER_TYPE_REMAP` of configuration_utils.py.
            let today = match name.as_str() {
                Some("mamba") => "linear_attention",
                Some("attention") => "full_attention",
                Some("deepseek_sparse_attention" | "qwen_sparse_attention") => "indexed_attention",
                _ => continue,
            };
            *name = json!(today);
        }
    }
    config
}

/// The config with `rope_parameters`, as transformers 5 reads an older one that has `rope_theta`
/// and `rope_scaling`.
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

/// A value as a key of this type has it: as expressions take it, and as it is written. `None` if it
/// does not fit.
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
            #[expect(clippy::as_conversions)]
            let int = whole as u32;
            (Value::Int(int.into()), OwnedValue::from(int))
        }
        (KeyType::F32, value) => {
            let float = match value {
                #[expect(clippy::as_conversions)]
                Value::Int(int) => int as f64,
                Value::Float(float) => float,
                _ => return None,
            };
            #[expect(clippy::as_conversions)]
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
