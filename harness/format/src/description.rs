//! Descriptions of files, valid or not: what the writer lays out.

use crate::cursor::ByteOrder;
use crate::reader::Gguf;
use crate::tensor_type::TensorType;
use crate::value::{Array, Value, ValueType};

/// A file to lay out. Nothing in it is checked: the writer writes what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Version 1 has 32-bit counts and lengths; all others are laid out as version 3 is.
    pub version: u32,
    /// The order of the bytes in every number of header, metadata and tensor table. Tensor data
    /// are laid down as they are.
    pub byte_order: ByteOrder,
    /// Keys and values, in order.
    pub metadata: Vec<(Vec<u8>, OwnedValue)>,
    /// The tensor table, in order.
    pub tensors: Vec<TensorDescription>,
}

impl Default for Description {
    /// A little-endian file of version 3 with nothing in it.
    fn default() -> Description {
        Description {
            version: 3,
            byte_order: ByteOrder::Little,
            metadata: Vec::new(),
            tensors: Vec::new(),
        }
    }
}

impl Gguf<'_> {
    /// The file as a description: what [`lay_out`](crate::lay_out) writes is the same file, but for
    /// what stands in paddings and behind the end. `None` if some tensor's data are not there.
    pub fn describe(&self) -> Option<Description> {
        let tensors = self.tensors.iter().map(|tensor| {
            Some(TensorDescription {
                name: tensor.name.0.into(),
                dims: tensor.dims.iter().collect(),
                type_id: tensor.type_id,
                offset: Some(tensor.offset),
                data: Data::Bytes(self.tensor_bytes(tensor)?.into()),
            })
        });
        Some(Description {
            version: self.version,
            byte_order: self.byte_order,
            metadata: self.metadata.iter().map(|e| (e.key.0.into(), e.value.into())).collect(),
            tensors: tensors.collect::<Option<_>>()?,
        })
    }
}

/// A metadata value of its own.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are those of `Value`")]
pub enum OwnedValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(Vec<u8>),
    Array(OwnedArray),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of its own. The elements ought to be of the element type; the writer lays down each as
/// what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedArray {
    /// The type that the file states.
    pub element_type: ValueType,
    /// The elements.
    pub elements: Vec<OwnedValue>,
    /// How many times the elements are laid down, one run after the other. Usually 1; large arrays
    /// of one value take no memory this way.
    pub times: u64,
}

impl OwnedArray {
    /// An array of these elements, each laid down once.
    pub fn new(element_type: ValueType, elements: Vec<OwnedValue>) -> OwnedArray {
        OwnedArray { element_type, elements, times: 1 }
    }

    /// An array of one value, so many times.
    pub fn fill(value: OwnedValue, count: u64) -> OwnedArray {
        OwnedArray { element_type: value.value_type(), elements: vec![value], times: count }
    }

    /// The number of elements that the file states: those laid down.
    pub fn len(&self) -> u64 {
        u64::try_from(self.elements.len()).unwrap_or(u64::MAX).saturating_mul(self.times)
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as they are laid down.
    pub fn iter(&self) -> impl Iterator<Item = &OwnedValue> {
        // Nothing takes no time to repeat, however often.
        let times = if self.elements.is_empty() { 0 } else { self.times };
        (0..times).flat_map(|_| &self.elements)
    }
}

impl OwnedValue {
    /// The value's type.
    pub fn value_type(&self) -> ValueType {
        match self {
            OwnedValue::U8(_) => ValueType::U8,
            OwnedValue::I8(_) => ValueType::I8,
            OwnedValue::U16(_) => ValueType::U16,
            OwnedValue::I16(_) => ValueType::I16,
            OwnedValue::U32(_) => ValueType::U32,
            OwnedValue::I32(_) => ValueType::I32,
            OwnedValue::F32(_) => ValueType::F32,
            OwnedValue::Bool(_) => ValueType::Bool,
            OwnedValue::String(_) => ValueType::String,
            OwnedValue::Array(_) => ValueType::Array,
            OwnedValue::U64(_) => ValueType::U64,
            OwnedValue::I64(_) => ValueType::I64,
            OwnedValue::F64(_) => ValueType::F64,
        }
    }
}

impl From<&str> for OwnedValue {
    fn from(text: &str) -> OwnedValue {
        OwnedValue::String(text.into())
    }
}

impl From<u32> for OwnedValue {
    fn from(value: u32) -> OwnedValue {
        OwnedValue::U32(value)
    }
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> OwnedValue {
        match value {
            Value::U8(v) => OwnedValue::U8(v),
            Value::I8(v) => OwnedValue::I8(v),
            Value::U16(v) => OwnedValue::U16(v),
            Value::I16(v) => OwnedValue::I16(v),
            Value::U32(v) => OwnedValue::U32(v),
            Value::I32(v) => OwnedValue::I32(v),
            Value::F32(v) => OwnedValue::F32(v),
            Value::Bool(v) => OwnedValue::Bool(v),
            Value::String(v) => OwnedValue::String(v.0.into()),
            Value::Array(v) => OwnedValue::Array(v.into()),
            Value::U64(v) => OwnedValue::U64(v),
            Value::I64(v) => OwnedValue::I64(v),
            Value::F64(v) => OwnedValue::F64(v),
        }
    }
}

impl From<Array<'_>> for OwnedArray {
    fn from(array: Array<'_>) -> OwnedArray {
        OwnedArray::new(array.element_type(), array.iter().map(OwnedValue::from).collect())
    }
}

/// A record of the tensor table, and its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDescription {
    /// The name's bytes.
    pub name: Vec<u8>,
    /// The dimensions in the order of the file: the first is the contiguous one.
    pub dims: Vec<u64>,
    /// The type's id.
    pub type_id: u32,
    /// The offset within the data section; without it, the tensor follows the one before, padded.
    pub offset: Option<u64>,
    /// The data.
    pub data: Data,
}

impl TensorDescription {
    /// A tensor of a type in its usual place, with as many zeros for data as its shape asks for
    /// (none if that is not a number).
    pub fn zeros(name: &str, tensor_type: &TensorType, dims: &[u64]) -> TensorDescription {
        let elements = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
        TensorDescription {
            name: name.into(),
            dims: dims.into(),
            type_id: tensor_type.id,
            offset: None,
            data: Data::Zeros(elements.and_then(|n| tensor_type.byte_len(n)).unwrap_or(0)),
        }
    }
}

/// The data of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many zero bytes, which take no memory.
    Zeros(u64),
}

impl Data {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Data::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Data::Zeros(len) => *len,
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
