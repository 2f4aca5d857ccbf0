//! The writer: lays out any description and says where each field is.

use std::ops::Range;

use crate::cursor::{ByteOrder, pad};
use crate::description::{Data, Description, OwnedArray, OwnedValue};
use crate::segments::{Segment, Segments};
use crate::{DEFAULT_ALIGNMENT, MAGIC};

/// A file as it lies on disk, and the place of each field.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The bytes.
    pub segments: Segments,
    /// Every field, in the order of the file, with the path that cases and violations use.
    pub fields: Vec<Field>,
    /// Where the data section starts.
    pub data_offset: u64,
    /// The offset that each tensor was given, within the data section.
    pub tensor_offsets: Vec<u64>,
}

/// A field: its path and its bytes' place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Such as `metadata[1].key.length`.
    pub path: String,
    /// In bytes from the start of the file.
    pub range: Range<u64>,
}

/// Arrays of numbers with more elements than this have no field per element, only one for all.
const MOST_ELEMENT_FIELDS: u64 = 256;

impl Layout {
    /// The size of the file.
    pub fn len(&self) -> u64 {
        self.segments.len()
    }

    /// Whether the file has no byte.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// [`Segments::to_bytes`]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.segments.to_bytes()
    }

    /// The field with this path.
    pub fn field(&self, path: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.path == path)
    }

    /// The smallest field that the byte at `offset` belongs to.
    pub fn field_at(&self, offset: u64) -> Option<&Field> {
        self.fields
            .iter()
            .filter(|field| field.range.contains(&offset))
            .min_by_key(|field| field.range.end.saturating_sub(field.range.start))
    }
}

/// Lays out a file. Whatever the description says is written, valid or not; tensors without an
/// offset of their own follow the one before, padded to `general.alignment` (a positive u32; else
/// 32). Every tensor is padded behind; a file without tensors ends with the table.
pub fn lay_out(description: &Description) -> Layout {
    let mut writer = Writer {
        bytes: Vec::new(),
        order: description.byte_order,
        four_byte_counts: description.version == 1,
        layout: Layout::default(),
        position: 0,
    };
    writer.header(description);
    for (index, (key, value)) in description.metadata.iter().enumerate() {
        let entry = format!("metadata[{index}]");
        writer.string(&format!("{entry}.key"), key);
        writer.u32(&format!("{entry}.type"), value.value_type().id());
        writer.value(&format!("{entry}.value"), value);
    }
    let alignment = u64::from(alignment(description));
    writer.tensors(description, alignment);
    writer.finish()
}

fn alignment(description: &Description) -> u32 {
    description
        .metadata
        .iter()
        .find(|(key, _)| key == b"general.alignment")
        .and_then(|(_, value)| match value {
            OwnedValue::U32(alignment @ 1..) => Some(*alignment),
            _ => None,
        })
        .unwrap_or(DEFAULT_ALIGNMENT)
}

struct Writer {
    /// Bytes not yet in a segment.
    bytes: Vec<u8>,
    order: ByteOrder,
    four_byte_counts: bool,
    layout: Layout,
    position: u64,
}

impl Writer {
    fn finish(mut self) -> Layout {
        self.field("end", self.position);
        self.flush();
        self.layout
    }

    fn flush(&mut self) {
        self.layout.segments.push(Segment::Bytes(std::mem::take(&mut self.bytes)));
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.position = self.position.saturating_add(len);
    }

    fn zeros(&mut self, len: u64) {
        // Small paddings stay with their neighbours; large stretches become holes.
        match usize::try_from(len) {
            Ok(small) if small <= 4096 => {
                self.bytes.resize(self.bytes.len().saturating_add(small), 0)
            }
            _ => {
                self.flush();
                self.layout.segments.push(Segment::Zeros(len));
            }
        }
        self.position = self.position.saturating_add(len);
    }

    /// Records a field that runs from `start` to here.
    fn field(&mut self, path: impl Into<String>, start: u64) {
        self.layout.fields.push(Field { path: path.into(), range: start..self.position });
    }

    fn fixed<const N: usize>(&mut self, path: impl Into<String>, little: [u8; N]) {
        let start = self.position;
        let mut bytes = little;
        if self.order == ByteOrder::Big {
            bytes.reverse();
        }
        self.put(&bytes);
        self.field(path, start);
    }

    fn u32(&mut self, path: &str, value: u32) {
        self.fixed(path, value.to_le_bytes());
    }

    /// A count, length or dimension; what a 32-bit field of version 1 cannot hold is cut.
    fn count(&mut self, path: &str, value: u64) {
        let bytes = value.to_le_bytes();
        match bytes.first_chunk::<4>() {
            Some(&low) if self.four_byte_counts => self.fixed(path, low),
            _ => self.fixed(path, bytes),
        }
    }

    fn len_count(&mut self, path: &str, len: usize) {
        self.count(path, u64::try_from(len).unwrap_or(u64::MAX));
    }

    fn string(&mut self, path: &str, bytes: &[u8]) {
        self.len_count(&format!("{path}.length"), bytes.len());
        let start = self.position;
        self.put(bytes);
        self.field(path, start);
    }

    fn header(&mut self, description: &Description) {
        self.put(&MAGIC);
        self.field("header.magic", 0);
        self.u32("header.version", description.version);
        self.len_count("header.tensor_count", description.tensors.len());
        self.len_count("header.kv_count", description.metadata.len());
    }

    fn value(&mut self, path: &str, value: &OwnedValue) {
        match value {
            OwnedValue::String(bytes) => self.string(path, bytes),
            OwnedValue::Array(array) => self.array(path, array),
            scalar => {
                let start = self.position;
                self.scalar(scalar);
                self.field(path, start);
            }
        }
    }

    fn scalar(&mut self, value: &OwnedValue) {
        let (bytes, width) = scalar_bytes(value, self.order);
        self.put(bytes.get(..width).unwrap_or_default());
    }

    fn array(&mut self, path: &str, array: &OwnedArray) {
        self.u32(&format!("{path}.type"), array.element_type.id());
        self.count(&format!("{path}.count"), array.len());
        if array.element_type.size().is_some() && array.len() > MOST_ELEMENT_FIELDS {
            let start = self.position;
            match array.elements.as_slice() {
                [zero] if is_zero(zero) => {
                    let size = zero.value_type().size().unwrap_or(0);
                    self.zeros(array.len().saturating_mul(size));
                }
                _ => array.iter().for_each(|element| self.scalar(element)),
            }
            self.field(format!("{path}.elements"), start);
            return;
        }
        for (index, element) in array.iter().enumerate() {
            self.value(&format!("{path}[{index}]"), element);
        }
    }

    fn tensors(&mut self, description: &Description, alignment: u64) {
        let tensors = &description.tensors;
        let mut offsets = Vec::new();
        let mut next = 0u64;
        for tensor in tensors {
            let offset = tensor.offset.unwrap_or(next);
            offsets.push(offset);
            next = offset
                .checked_add(tensor.data.len())
                .and_then(|end| pad(end, alignment))
                .unwrap_or(0);
        }
        for (index, (tensor, &offset)) in tensors.iter().zip(&offsets).enumerate() {
            let field = |part: &str| format!("tensors[{index}].{part}");
            self.string(&field("name"), &tensor.name);
            self.u32(&field("n_dims"), u32::try_from(tensor.dims.len()).unwrap_or(u32::MAX));
            for (place, &dim) in tensor.dims.iter().enumerate() {
                self.count(&field(&format!("dims[{place}]")), dim);
            }
            self.u32(&field("type"), tensor.type_id);
            self.fixed(field("offset"), offset.to_le_bytes());
        }
        if tensors.is_empty() {
            self.layout.data_offset = self.position;
            return;
        }
        let start = self.position;
        self.zeros(pad(start, alignment).unwrap_or(start).saturating_sub(start));
        self.field("padding", start);
        self.data(description, &offsets, alignment);
        self.layout.tensor_offsets = offsets;
    }

    /// Lays the data down in the order of the offsets. Of data that begin before what is already
    /// written (tensors that overlap) only what goes beyond it is laid down: the bytes they share
    /// are those of the other tensor.
    fn data(&mut self, description: &Description, offsets: &[u64], alignment: u64) {
        let data_offset = self.position;
        self.layout.data_offset = data_offset;
        let mut order: Vec<usize> = (0..offsets.len()).collect();
        order.sort_by_key(|&index| offsets.get(index));
        for (place, &index) in order.iter().enumerate() {
            let (Some(tensor), Some(&offset)) =
                (description.tensors.get(index), offsets.get(index))
            else {
                continue;
            };
            let end = offset.checked_add(tensor.data.len());
            let (Some(begin), Some(_)) = (data_offset.checked_add(offset), end) else { continue };
            let shared = self.position.saturating_sub(begin);
            if shared > 0 && shared >= tensor.data.len() {
                continue;
            }
            self.zeros(begin.saturating_sub(self.position));
            let start = self.position;
            match &tensor.data {
                Data::Bytes(bytes) => {
                    let shared = usize::try_from(shared).unwrap_or(usize::MAX);
                    self.put(bytes.get(shared..).unwrap_or_default());
                }
                Data::Zeros(len) => self.zeros(len.saturating_sub(shared)),
            }
            self.field(format!("tensors[{index}].data"), start);
            let start = self.position;
            let used = start.saturating_sub(data_offset);
            let padding = pad(used, alignment).unwrap_or(used).saturating_sub(used);
            // Where this one's padding would be, a misaligned tensor may start, or one that overlaps
            // it go on.
            let later = order.iter().skip(place.saturating_add(1));
            let room = later
                .filter_map(|&index| offsets.get(index).zip(description.tensors.get(index)))
                .find(|(offset, later)| {
                    offset.saturating_add(later.data.len()) > used || **offset >= used
                })
                .map_or(u64::MAX, |(offset, _)| offset.saturating_sub(used));
            self.zeros(padding.min(room));
            self.field(format!("tensors[{index}].padding"), start);
        }
        self.field("data", data_offset);
    }
}

/// Whether a scalar's bytes are all zero.
fn is_zero(value: &OwnedValue) -> bool {
    let (bytes, width) = scalar_bytes(value, ByteOrder::Little);
    width > 0 && bytes == [0; 8]
}

/// The bytes of a number or bool, and how many they are; none of a string or an array.
pub(crate) fn scalar_bytes(value: &OwnedValue, order: ByteOrder) -> ([u8; 8], usize) {
    fn widen<const N: usize>(little: [u8; N]) -> ([u8; 8], usize) {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(little).for_each(|(to, from)| *to = from);
        (bytes, N)
    }
    let (mut bytes, width) = match value {
        OwnedValue::U8(v) => widen(v.to_le_bytes()),
        OwnedValue::I8(v) => widen(v.to_le_bytes()),
        OwnedValue::U16(v) => widen(v.to_le_bytes()),
        OwnedValue::I16(v) => widen(v.to_le_bytes()),
        OwnedValue::U32(v) => widen(v.to_le_bytes()),
        OwnedValue::I32(v) => widen(v.to_le_bytes()),
        OwnedValue::F32(v) => widen(v.to_bits().to_le_bytes()),
        OwnedValue::Bool(v) => widen([u8::from(*v)]),
        OwnedValue::U64(v) => widen(v.to_le_bytes()),
        OwnedValue::I64(v) => widen(v.to_le_bytes()),
        OwnedValue::F64(v) => widen(v.to_bits().to_le_bytes()),
        OwnedValue::String(_) | OwnedValue::Array(_) => widen([]),
    };
    if order == ByteOrder::Big {
        bytes.get_mut(..width).unwrap_or_default().reverse();
    }
    (bytes, width)
}
