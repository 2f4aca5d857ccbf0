//! Metadata values, borrowed from the input.

use core::fmt;

use crate::Text;
use crate::cursor::{ByteOrder, CountWidth, Cursor};

/// The type of a metadata value. The discriminants are the ids in a file
/// (docs/gguf.md, `gguf_metadata_value_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ValueType {
    /// 8-bit unsigned integer.
    U8 = 0,
    /// 8-bit signed integer.
    I8 = 1,
    /// 16-bit unsigned integer.
    U16 = 2,
    /// 16-bit signed integer.
    I16 = 3,
    /// 32-bit unsigned integer.
    U32 = 4,
    /// 32-bit signed integer.
    I32 = 5,
    /// 32-bit IEEE 754 number.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// Length and bytes that ought to be UTF-8.
    String = 8,
    /// Element type, count, elements.
    Array = 9,
    /// 64-bit unsigned integer.
    U64 = 10,
    /// 64-bit signed integer.
    I64 = 11,
    /// 64-bit IEEE 754 number.
    F64 = 12,
}

impl ValueType {
    /// Every type, in the order of the ids.
    pub const ALL: [ValueType; 13] = [
        ValueType::U8,
        ValueType::I8,
        ValueType::U16,
        ValueType::I16,
        ValueType::U32,
        ValueType::I32,
        ValueType::F32,
        ValueType::Bool,
        ValueType::String,
        ValueType::Array,
        ValueType::U64,
        ValueType::I64,
        ValueType::F64,
    ];

    /// The type with this id.
    #[inline]
    pub fn by_id(id: u32) -> Option<ValueType> {
        ValueType::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// The id in a file.
    pub fn id(self) -> u32 {
        match self {
            ValueType::U8 => 0,
            ValueType::I8 => 1,
            ValueType::U16 => 2,
            ValueType::I16 => 3,
            ValueType::U32 => 4,
            ValueType::I32 => 5,
            ValueType::F32 => 6,
            ValueType::Bool => 7,
            ValueType::String => 8,
            ValueType::Array => 9,
            ValueType::U64 => 10,
            ValueType::I64 => 11,
            ValueType::F64 => 12,
        }
    }

    /// The short name that cases, adapters and reports use: `u8` … `f64`, `bool`, `string`,
    /// `array`.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::U8 => "u8",
            ValueType::I8 => "i8",
            ValueType::U16 => "u16",
            ValueType::I16 => "i16",
            ValueType::U32 => "u32",
            ValueType::I32 => "i32",
            ValueType::F32 => "f32",
            ValueType::Bool => "bool",
            ValueType::String => "string",
            ValueType::Array => "array",
            ValueType::U64 => "u64",
            ValueType::I64 => "i64",
            ValueType::F64 => "f64",
        }
    }

    /// The type with this short name.
    pub fn by_name(name: &str) -> Option<ValueType> {
        ValueType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// The bytes of a value, or `None` for strings and arrays, whose size varies.
    #[inline]
    pub fn size(self) -> Option<u64> {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => Some(1),
            ValueType::U16 | ValueType::I16 => Some(2),
            ValueType::U32 | ValueType::I32 | ValueType::F32 => Some(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => Some(8),
            ValueType::String | ValueType::Array => None,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A metadata value. Floats compare by their bits' meaning as Rust does: NaN differs from itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// 8-bit unsigned integer.
    U8(u8),
    /// 8-bit signed integer.
    I8(i8),
    /// 16-bit unsigned integer.
    U16(u16),
    /// 16-bit signed integer.
    I16(i16),
    /// 32-bit unsigned integer.
    U32(u32),
    /// 32-bit signed integer.
    I32(i32),
    /// 32-bit IEEE 754 number.
    F32(f32),
    /// True for every byte but 0.
    Bool(bool),
    /// Bytes that ought to be UTF-8.
    String(Text<'a>),
    /// Elements of one type.
    Array(Array<'a>),
    /// 64-bit unsigned integer.
    U64(u64),
    /// 64-bit signed integer.
    I64(i64),
    /// 64-bit IEEE 754 number.
    F64(f64),
}

impl<'a> Value<'a> {
    /// The value's type.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::String(_) => ValueType::String,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }

    /// An integer of any width and sign that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::U64(v) => Some(v),
            Value::I8(v) => v.try_into().ok(),
            Value::I16(v) => v.try_into().ok(),
            Value::I32(v) => v.try_into().ok(),
            Value::I64(v) => v.try_into().ok(),
            _ => None,
        }
    }

    /// A string that is UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        match self {
            Value::String(text) => text.as_str(),
            _ => None,
        }
    }

    /// A scalar (neither string nor array) at the cursor.
    #[inline]
    pub(crate) fn read_scalar(value_type: ValueType, cursor: &mut Cursor<'a>) -> Option<Value<'a>> {
        let order = cursor.order;
        Some(match value_type {
            ValueType::U8 => Value::U8(u8::from_le_bytes(cursor.array()?)),
            ValueType::I8 => Value::I8(i8::from_le_bytes(cursor.array()?)),
            ValueType::Bool => Value::Bool(cursor.array::<1>()? != [0]),
            ValueType::U16 => Value::U16(order.u16(cursor.array()?)),
            ValueType::I16 => Value::I16(order.i16(cursor.array()?)),
            ValueType::U32 => Value::U32(cursor.u32()?),
            ValueType::I32 => Value::I32(order.i32(cursor.array()?)),
            ValueType::F32 => Value::F32(f32::from_bits(cursor.u32()?)),
            ValueType::U64 => Value::U64(cursor.u64()?),
            ValueType::I64 => Value::I64(order.i64(cursor.array()?)),
            ValueType::F64 => Value::F64(f64::from_bits(cursor.u64()?)),
            ValueType::String | ValueType::Array => return None,
        })
    }

    /// A value of a file that has been validated: what is missing yields `None`.
    fn read_validated(value_type: ValueType, cursor: &mut Cursor<'a>) -> Option<Value<'a>> {
        match value_type {
            ValueType::String => {
                let len = cursor.count()?;
                Some(Value::String(Text(cursor.bytes(len)?)))
            }
            ValueType::Array => {
                let element_type = ValueType::by_id(cursor.u32()?)?;
                let len = cursor.count()?;
                let start = *cursor;
                let mut elements = Elements { element_type, left: len, cursor: start };
                // Skipping costs what the validation cost; a nested array is walked once more.
                match element_type.size() {
                    Some(size) => {
                        cursor.bytes(len.checked_mul(size)?)?;
                    }
                    None => {
                        for _ in elements.by_ref() {}
                        *cursor = elements.cursor;
                    }
                }
                let bytes = start.bytes_up_to(cursor);
                Some(Value::Array(Array::new(element_type, len, bytes, cursor.order, cursor.width)))
            }
            scalar => Value::read_scalar(scalar, cursor),
        }
    }
}

impl fmt::Display for Value<'_> {
    /// For people: strings and arrays are cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::U8(v) => v.fmt(f),
            Value::I8(v) => v.fmt(f),
            Value::U16(v) => v.fmt(f),
            Value::I16(v) => v.fmt(f),
            Value::U32(v) => v.fmt(f),
            Value::I32(v) => v.fmt(f),
            Value::F32(v) => v.fmt(f),
            Value::Bool(v) => v.fmt(f),
            Value::U64(v) => v.fmt(f),
            Value::I64(v) => v.fmt(f),
            Value::F64(v) => v.fmt(f),
            Value::String(text) => write!(f, "\"{}\"", crate::escape(text.0, 80)),
            Value::Array(array) => {
                f.write_str("[")?;
                for (i, element) in array.iter().take(3).enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    match element {
                        Value::Array(inner) => {
                            write!(f, "[{} × {}]", inner.len(), inner.element_type())?
                        }
                        Value::String(text) => write!(f, "\"{}\"", crate::escape(text.0, 24))?,
                        scalar => scalar.fmt(f)?,
                    }
                }
                if array.len() > 3 {
                    write!(f, ", … {} in all", array.len())?;
                }
                f.write_str("]")
            }
        }
    }
}

/// An array of a file: its elements are decoded as they are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    element_type: ValueType,
    len: u64,
    bytes: &'a [u8],
    order: ByteOrder,
    width: CountWidth,
}

impl<'a> Array<'a> {
    pub(crate) fn new(
        element_type: ValueType,
        len: u64,
        bytes: &'a [u8],
        order: ByteOrder,
        width: CountWidth,
    ) -> Array<'a> {
        Array { element_type, len, bytes, order, width }
    }

    /// The type of every element.
    pub fn element_type(&self) -> ValueType {
        self.element_type
    }

    /// The number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements as they stand in the file: numbers back to back in [`byte_order`], strings
    /// each behind its length.
    ///
    /// [`byte_order`]: Array::byte_order
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The order of the bytes in each number.
    pub fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// The elements, in order.
    pub fn iter(&self) -> Elements<'a> {
        Elements {
            element_type: self.element_type,
            left: self.len,
            cursor: Cursor::new(self.bytes, self.order, self.width),
        }
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// The elements of an [`Array`].
#[derive(Clone)]
pub struct Elements<'a> {
    element_type: ValueType,
    left: u64,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        Value::read_validated(self.element_type, &mut self.cursor)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An element has at least one byte, whatever `left` says.
        let at_most = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.cursor.remaining());
        (0, Some(at_most))
    }
}
