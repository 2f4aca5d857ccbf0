//! Strategies for descriptions of files, comparisons to the last bit, and files made by hand.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod raw;

use std::collections::HashSet;
use std::ops::Range;

use gguf_assay_format::{
    Array, ByteOrder, Data, Description, Gguf, Layout, OwnedArray, OwnedValue, Segment, Status,
    TENSOR_TYPES, TensorDescription, TensorType, Text, Value, ValueType,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

/// So many cases, unless `PROPTEST_CASES` says otherwise. What fails is added to the hand-written
/// tests, so nothing is left beside the sources.
pub(crate) fn cases(number: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = number;
    }
    config
}

/// What a description may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All that the specification allows: versions 1 to 3, both byte orders, nested arrays.
    Spec,
    /// What ggml allows as well: no version 1, no big-endian file, no array in an array.
    Both,
}

/// Descriptions of valid files.
pub(crate) fn valid(reach: Reach) -> impl Strategy<Value = Description> {
    let (versions, orders) = match reach {
        Reach::Spec => (vec![1, 2, 3], vec![ByteOrder::Little, ByteOrder::Big]),
        Reach::Both => (vec![2, 3], vec![ByteOrder::Little]),
    };
    (
        select(versions),
        select(orders),
        vec((key(), value(reach)), 0..5),
        vec(tensor(), 0..5),
        prop::option::of(select(vec![8u32, 16, 32, 64, 128, 256])),
        "[a-z0-9]{1,12}",
        any::<bool>(),
        any::<[Index; 3]>(),
    )
        .prop_map(
            |(version, byte_order, metadata, tensors, alignment, name, versioned, places)| {
                let mut description = Description { version, byte_order, metadata, tensors };
                let mut seen = HashSet::new();
                description.metadata.retain(|(key, _)| seen.insert(key.clone()));
                seen.clear();
                description.tensors.retain(|tensor| seen.insert(tensor.name.clone()));

                let quantized = description.tensors.iter().any(|tensor| {
                    TensorType::by_id(tensor.type_id).is_some_and(TensorType::is_quantized)
                });
                let mut general = vec![("general.architecture", OwnedValue::from(name.as_str()))];
                general.extend(alignment.map(|value| ("general.alignment", value.into())));
                if quantized || versioned {
                    general.push(("general.quantization_version", 2.into()));
                }
                for ((key, value), place) in general.into_iter().zip(places) {
                    let place = place.index(description.metadata.len() + 1);
                    description.metadata.insert(place, (key.into(), value));
                }
                description
            },
        )
}

/// Descriptions of anything: keys, names, types, shapes and offsets that rules forbid among those
/// that they allow, so that one file often breaks several.
pub(crate) fn anything() -> impl Strategy<Value = Description> {
    let key = prop_oneof![
        4 => key(),
        1 => select(vec!["general.alignment", "general.architecture", "split.no", "split.count",
                         "general.quantization_version", "a-b", "A", "", "a..b"])
            .prop_map(|key| key.as_bytes().to_vec()),
        1 => bytes(),
    ];
    let value = prop_oneof![
        2 => value(Reach::Spec),
        1 => select(vec![0u32, 1, 4, 8, 12, 32, 48, 1 << 31]).prop_map(OwnedValue::U32),
        1 => bytes().prop_map(OwnedValue::String),
        1 => vec(bytes().prop_map(OwnedValue::String), 0..4)
            .prop_map(|strings| OwnedArray::new(ValueType::String, strings).into_value()),
    ];
    let dim = prop_oneof![
        4 => 0u64..70,
        1 => select(vec![256, 512, 1 << 31, 1 << 32, 1 << 62, i64::MAX as u64, 1 << 63, u64::MAX]),
    ];
    let broken = (
        prop_oneof![tensor_name(), bytes(), "[ab]".prop_map(String::into_bytes), name_of(60..70)],
        vec(dim, 0..6),
        prop_oneof![4 => 0u32..45, 1 => any::<u32>()],
        prop::option::of(prop_oneof![(0u64..9).prop_map(|n| n * 32), any::<u64>()]),
        0u64..200,
    )
        .prop_map(|(name, dims, type_id, offset, len)| TensorDescription {
            name,
            dims,
            type_id,
            offset,
            data: Data::Zeros(len),
        });
    (
        prop_oneof![1 => 0u32..5, 6 => Just(3u32)],
        prop_oneof![6 => Just(ByteOrder::Little), 1 => Just(ByteOrder::Big)],
        vec((key, value), 0..6),
        vec(prop_oneof![tensor(), broken], 0..5),
        prop_oneof![3 => Just(true), 1 => Just(false)],
    )
        .prop_map(|(version, byte_order, mut metadata, tensors, named)| {
            if named {
                metadata.insert(0, (b"general.architecture".into(), "llama".into()));
            }
            Description { version, byte_order, metadata, tensors }
        })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..12)
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    r"[a-z0-9_]{1,6}(\.[a-z0-9_]{1,6}){0,2}".prop_map(String::into_bytes)
}

fn name_of(len: Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(b'a'..=b'z', len)
}

/// Up to the 63 bytes that ggml allows.
fn tensor_name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        r"blk\.[0-9]{1,2}\.[a-z_]{1,10}\.weight".prop_map(String::into_bytes),
        // A character has at most 4 bytes.
        "\\PC{0,15}".prop_map(String::into_bytes),
        name_of(62..64),
    ]
}

/// Short texts, and lengths around those that have a high bit in one of their bytes.
pub(crate) fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "\\PC{0,9}".prop_map(String::into_bytes),
        1 => any::<String>().prop_map(String::into_bytes),
        1 => name_of(126..131),
        1 => name_of(254..258),
    ]
}

fn scalar(value_type: ValueType) -> BoxedStrategy<OwnedValue> {
    match value_type {
        ValueType::U8 => any::<u8>().prop_map(OwnedValue::U8).boxed(),
        ValueType::I8 => any::<i8>().prop_map(OwnedValue::I8).boxed(),
        ValueType::U16 => any::<u16>().prop_map(OwnedValue::U16).boxed(),
        ValueType::I16 => any::<i16>().prop_map(OwnedValue::I16).boxed(),
        ValueType::U32 => any::<u32>().prop_map(OwnedValue::U32).boxed(),
        ValueType::I32 => any::<i32>().prop_map(OwnedValue::I32).boxed(),
        // Every bit pattern, NaNs with payloads included.
        ValueType::F32 => any::<u32>().prop_map(|b| OwnedValue::F32(f32::from_bits(b))).boxed(),
        ValueType::F64 => any::<u64>().prop_map(|b| OwnedValue::F64(f64::from_bits(b))).boxed(),
        ValueType::Bool => any::<bool>().prop_map(OwnedValue::Bool).boxed(),
        ValueType::String => text().prop_map(OwnedValue::String).boxed(),
        ValueType::U64 => any::<u64>().prop_map(OwnedValue::U64).boxed(),
        ValueType::I64 => any::<i64>().prop_map(OwnedValue::I64).boxed(),
        ValueType::Array => flat_array(0..4).boxed(),
    }
}

fn scalar_type() -> impl Strategy<Value = ValueType> {
    let types = ValueType::ALL.into_iter().filter(|&t| t != ValueType::Array);
    select(types.collect::<Vec<_>>())
}

fn flat_array(len: Range<usize>) -> impl Strategy<Value = OwnedValue> {
    scalar_type().prop_flat_map(move |element_type| {
        vec(scalar(element_type), len.clone())
            .prop_map(move |elements| OwnedArray::new(element_type, elements).into_value())
    })
}

fn value(reach: Reach) -> BoxedStrategy<OwnedValue> {
    let flat = prop_oneof![
        8 => scalar_type().prop_flat_map(scalar),
        8 => flat_array(0..6),
        // More numbers than get a field each.
        1 => flat_array(255..260),
    ];
    if reach == Reach::Both {
        return flat.boxed();
    }
    let array = flat_array(0..4).boxed();
    let nested = array.prop_recursive(4, 24, 4, |inner| {
        vec(inner, 0..4)
            .prop_map(|elements| OwnedArray::new(ValueType::Array, elements).into_value())
    });
    prop_oneof![3 => flat, 1 => nested].boxed()
}

trait IntoValue {
    fn into_value(self) -> OwnedValue;
}

impl IntoValue for OwnedArray {
    fn into_value(self) -> OwnedValue {
        OwnedValue::Array(self)
    }
}

fn tensor() -> impl Strategy<Value = TensorDescription> {
    let types: Vec<&TensorType> =
        TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed).collect();
    (tensor_name(), select(types), 0u64..3, vec(0u64..4, 0..4), any::<Option<u8>>(), any::<bool>())
        .prop_map(|(name, tensor_type, blocks, rest, fill, scalar)| {
            let mut dims = vec![blocks * u64::from(tensor_type.block_len)];
            dims.extend(rest);
            if scalar && !tensor_type.is_quantized() {
                dims.clear();
            }
            let text = String::from_utf8(name).expect("names are made of characters");
            let mut tensor = TensorDescription::zeros(&text, tensor_type, &dims);
            if let Some(fill) = fill {
                let bytes = (0..tensor.data.len()).map(|i| (i as u8).wrapping_add(fill));
                tensor.data = Data::Bytes(bytes.collect());
            }
            tensor
        })
}

/// The bytes of data, zeros included.
pub(crate) fn data_bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::Bytes(bytes) => bytes.clone(),
        Data::Zeros(len) => vec![0; *len as usize],
    }
}

/// Whether a value that was read is the one described, floats compared by their bits.
pub(crate) fn same(described: &OwnedValue, read: &Value<'_>) -> bool {
    match (described, read) {
        (OwnedValue::F32(a), Value::F32(b)) => a.to_bits() == b.to_bits(),
        (OwnedValue::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        (OwnedValue::String(a), Value::String(b)) => a == b.0,
        (OwnedValue::Array(a), Value::Array(b)) => same_array(a, b),
        (OwnedValue::U8(a), Value::U8(b)) => a == b,
        (OwnedValue::I8(a), Value::I8(b)) => a == b,
        (OwnedValue::U16(a), Value::U16(b)) => a == b,
        (OwnedValue::I16(a), Value::I16(b)) => a == b,
        (OwnedValue::U32(a), Value::U32(b)) => a == b,
        (OwnedValue::I32(a), Value::I32(b)) => a == b,
        (OwnedValue::U64(a), Value::U64(b)) => a == b,
        (OwnedValue::I64(a), Value::I64(b)) => a == b,
        (OwnedValue::Bool(a), Value::Bool(b)) => a == b,
        _ => false,
    }
}

fn same_array(described: &OwnedArray, read: &Array<'_>) -> bool {
    described.element_type == read.element_type()
        && described.len() == read.len()
        && described.iter().count() == read.iter().count()
        && described.iter().zip(read.iter()).all(|(a, b)| same(a, &b))
}

/// Goes through all that a reader returned, as a caller may.
pub(crate) fn look_at_all_of(gguf: &Gguf<'_>) {
    let _ = format!("{gguf:?}");
    for entry in &gguf.metadata {
        let _ = (entry.value.to_string(), gguf.get(&entry.key.to_string()), entry.value.as_u64());
        let _ = OwnedValue::from(entry.value);
    }
    for tensor in &gguf.tensors {
        let _ = (tensor.dims.elements(), tensor.dims.len(), gguf.tensor_bytes(tensor));
        let _ = gguf.tensor(tensor.name.as_str().unwrap_or_default());
        let _: Text<'_> = tensor.name;
    }
}

/// The file up to the first large hole: offsets may lie anywhere.
pub(crate) fn up_to_hole(layout: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    for segment in layout.segments.as_slice() {
        match segment {
            Segment::Bytes(part) => bytes.extend_from_slice(part),
            Segment::Zeros(len) if *len < 1 << 16 => bytes.resize(bytes.len() + *len as usize, 0),
            Segment::Zeros(_) => break,
        }
    }
    bytes
}
