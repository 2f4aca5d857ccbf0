//! The pieces of the case format below the level of a field: byte strings, values, tensors.
//!
//! Each function takes a TOML value and says what is wrong with it in terms of the format.

use gguf_assay_format::{OwnedArray, OwnedValue, TensorType, ValueType};
use toml::{Table, Value};

pub(crate) type Result<T> = std::result::Result<T, String>;

/// Refuses the keys of `table` that are not in `known`.
pub(crate) fn known_keys(table: &Table, known: &[&str]) -> Result<()> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            Err(format!("unknown field `{key}`; the fields here are {}", known.join(", ")))
        }
        None => Ok(()),
    }
}

/// `"text"`, `{ hex = "fffe" }` (once, or `count` times) or `{ repeat = "a", count = 3 }`.
pub(crate) fn byte_string(value: &Value) -> Result<Vec<u8>> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::Table(table) if table.contains_key("hex") => {
            known_keys(table, &["hex", "count"])?;
            let count = table.get("count").map(unsigned::<usize>).transpose()?.unwrap_or(1);
            Ok(hex(text(&table["hex"])?)?.repeat(count))
        }
        Value::Table(table) if table.contains_key("repeat") => {
            known_keys(table, &["repeat", "count"])?;
            let unit = text(&table["repeat"])?.as_bytes();
            let count = table.get("count").ok_or("`repeat` needs a `count`")?;
            Ok(unit.repeat(unsigned::<usize>(count)?))
        }
        _ => Err("a byte string is \"text\", { hex = … } or { repeat = …, count = … }".into()),
    }
}

pub(crate) fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| format!("expected a string, found {value}"))
}

pub(crate) fn hex(digits: &str) -> Result<Vec<u8>> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if !digits.len().is_multiple_of(2) {
        return Err("hex needs two digits a byte".into());
    }
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).map_err(|_| "hex is ASCII")?;
            u8::from_str_radix(pair, 16).map_err(|_| format!("`{pair}` is not hex"))
        })
        .collect()
}

/// A TOML integer, or a decimal string for what is beyond i64.
pub(crate) fn integer<T: TryFrom<i128>>(value: &Value) -> Result<T> {
    let wide: i128 = match value {
        Value::Integer(number) => (*number).into(),
        Value::String(digits) => {
            digits.parse().map_err(|_| format!("`{digits}` is not an integer"))?
        }
        _ => return Err(format!("expected an integer, found {value}")),
    };
    T::try_from(wide).map_err(|_| format!("{wide} does not fit the type"))
}

/// An integer that is not negative.
pub(crate) fn unsigned<T: TryFrom<i128>>(value: &Value) -> Result<T> {
    integer(value)
}

fn f32(value: &Value) -> Result<f32> {
    match value {
        Value::String(bits) => Ok(f32::from_bits(float_bits(bits, 8)? as u32)),
        _ => Ok(f64(value)? as f32),
    }
}

/// A float that is exactly an `f32`, or the bits of one.
pub(crate) fn exact_f32(value: &Value) -> Result<f32> {
    let narrow = f32(value)?;
    match value {
        Value::String(_) => Ok(narrow),
        _ if f64::from(narrow).to_bits() == f64(value)?.to_bits() => Ok(narrow),
        _ => Err(format!("{value} is not exactly an f32; give its bits")),
    }
}

fn f64(value: &Value) -> Result<f64> {
    match value {
        Value::Float(number) => Ok(*number),
        Value::Integer(number) => Ok(*number as f64),
        Value::String(bits) => Ok(f64::from_bits(float_bits(bits, 16)?)),
        _ => Err(format!("expected a number or its bits, found {value}")),
    }
}

fn float_bits(bits: &str, digits: usize) -> Result<u64> {
    bits.strip_prefix("0x")
        .filter(|hex| hex.len() == digits)
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
        .ok_or_else(|| format!("`{bits}` is not 0x and {digits} hex digits"))
}

/// The one key of `table` that names a value type, with its value.
fn typed<'a>(table: &'a Table, beside: &[&str]) -> Result<(ValueType, &'a Value)> {
    let mut found = None;
    for (key, value) in table {
        if beside.contains(&key.as_str()) {
            continue;
        }
        let value_type = ValueType::by_name(key).ok_or_else(|| {
            let names: Vec<_> = ValueType::ALL.iter().map(|t| t.name()).collect();
            format!("unknown field `{key}`; value types are {}", names.join(", "))
        })?;
        if found.replace((value_type, value)).is_some() {
            return Err(format!("two values: {table}"));
        }
    }
    found.ok_or_else(|| format!("no value in {{ {table} }}"))
}

/// `{ TYPE = VALUE }`, where keys in `beside` belong to somebody else.
pub(crate) fn value(table: &Table, beside: &[&str]) -> Result<OwnedValue> {
    let (value_type, value) = typed(table, beside)?;
    of_type(value_type, value)
}

fn of_type(value_type: ValueType, value: &Value) -> Result<OwnedValue> {
    Ok(match value_type {
        ValueType::U8 => OwnedValue::U8(integer(value)?),
        ValueType::I8 => OwnedValue::I8(integer(value)?),
        ValueType::U16 => OwnedValue::U16(integer(value)?),
        ValueType::I16 => OwnedValue::I16(integer(value)?),
        ValueType::U32 => OwnedValue::U32(integer(value)?),
        ValueType::I32 => OwnedValue::I32(integer(value)?),
        ValueType::U64 => OwnedValue::U64(integer(value)?),
        ValueType::I64 => OwnedValue::I64(integer(value)?),
        ValueType::F32 => OwnedValue::F32(f32(value)?),
        ValueType::F64 => OwnedValue::F64(f64(value)?),
        ValueType::Bool => OwnedValue::Bool(value.as_bool().ok_or("a bool is true or false")?),
        ValueType::String => OwnedValue::String(byte_string(value)?),
        ValueType::Array => {
            let table = value.as_table().ok_or("an array is { TYPE = [ … ] }")?;
            OwnedValue::Array(array(table)?)
        }
    })
}

fn array(table: &Table) -> Result<OwnedArray> {
    let (element_type, value) = typed(table, &["nest"])?;
    let mut array = match value {
        Value::Array(elements) => {
            let parse = |element: &Value| match (element_type, element) {
                (ValueType::Array, Value::Table(inner)) => Ok(OwnedValue::Array(array(inner)?)),
                _ => of_type(element_type, element),
            };
            OwnedArray::new(element_type, elements.iter().map(parse).collect::<Result<_>>()?)
        }
        Value::Table(table) if table.contains_key("fill") => {
            known_keys(table, &["fill", "count"])?;
            let count = table.get("count").ok_or("`fill` needs a `count`")?;
            OwnedArray::fill(of_type(element_type, &table["fill"])?, unsigned(count)?)
        }
        _ => return Err("elements are [ … ] or { fill = …, count = … }".into()),
    };
    if let Some(levels) = table.get("nest") {
        let levels = unsigned::<u32>(levels)?;
        if levels > MOST_LEVELS {
            let hint = "insert the bytes of the outer arrays by a fault instead";
            return Err(format!("a `nest` of more than {MOST_LEVELS}: {hint}"));
        }
        for _ in 0..levels {
            array = OwnedArray::new(ValueType::Array, vec![OwnedValue::Array(array)]);
        }
    }
    Ok(array)
}

/// How deep a described array may be: writing and dropping a description recurse.
const MOST_LEVELS: u32 = 100;

/// A metadata entry: `{ key = …, TYPE = VALUE }`.
pub(crate) fn entry(table: &Table) -> Result<(Vec<u8>, OwnedValue)> {
    let key = byte_string(table.get("key").ok_or("an entry needs a `key`")?)?;
    Ok((key, value(table, &["key"])?))
}

/// A tensor as a case describes it.
#[derive(Clone, Debug)]
pub(crate) struct CaseTensor {
    pub(crate) name: Vec<u8>,
    pub(crate) tensor_type: &'static TensorType,
    pub(crate) dims: Vec<u64>,
    pub(crate) data: CaseData,
    pub(crate) offset: Option<u64>,
}

/// Where a tensor's data come from.
#[derive(Clone, Debug)]
pub(crate) enum CaseData {
    Counting,
    Zeros,
    Bytes(Vec<u8>),
}

pub(crate) fn tensor_type(value: &Value) -> Result<&'static TensorType> {
    let name = text(value)?;
    TensorType::by_name(name).ok_or_else(|| format!("ggml has no tensor type `{name}`"))
}

pub(crate) fn dims(value: &Value) -> Result<Vec<u64>> {
    value.as_array().ok_or("dims are a list")?.iter().map(unsigned).collect()
}

/// `{ name = …, type = …, dims = […], data = …, offset = … }`.
pub(crate) fn tensor(table: &Table) -> Result<CaseTensor> {
    known_keys(table, &["name", "type", "dims", "data", "offset"])?;
    let field = |name: &str| table.get(name).ok_or_else(|| format!("a tensor needs `{name}`"));
    let data = match table.get("data") {
        None => CaseData::Counting,
        Some(Value::Table(table)) if table.contains_key("zeros") => {
            known_keys(table, &["zeros"])?;
            CaseData::Zeros
        }
        Some(bytes) => CaseData::Bytes(byte_string(bytes)?),
    };
    Ok(CaseTensor {
        name: byte_string(field("name")?)?,
        tensor_type: tensor_type(field("type")?)?,
        dims: dims(field("dims")?)?,
        data,
        offset: table.get("offset").map(unsigned).transpose()?,
    })
}
