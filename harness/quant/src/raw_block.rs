//! One block, field by field.

use core::fmt;

use gguf_assay_format::{ByteOrder, TensorType};
use half::{bf16, f16};

use crate::block::Format;
use crate::dequantize::find_format;
use crate::error::{Error, Fault};
use crate::feed::{Feed, Role};
use crate::layout::{Field, Kind};
use crate::number::{E4M3, E8M0, UE4M3};

/// The bytes of one block of any type, and what is in them.
#[derive(Clone, Copy)]
pub struct RawBlock<'a> {
    format: &'static Format,
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> RawBlock<'a> {
    /// The block at `index` of a tensor or of a part of it, which `bytes` are.
    ///
    /// # Errors
    ///
    /// Those of [`find_type`](crate::find_type); if `bytes` are no whole blocks, or not so many.
    pub fn at(
        tensor_type: &TensorType,
        bytes: &'a [u8],
        order: ByteOrder,
        index: usize,
    ) -> Result<RawBlock<'a>, Error> {
        let format = find_format(tensor_type)?;
        let tensor_type = *tensor_type;
        if !bytes.len().is_multiple_of(format.bytes) {
            return Err(Fault::Blocks { tensor_type, found: bytes.len() as u64 }.into());
        }
        let mut blocks = bytes.chunks_exact(format.bytes);
        let fault = Fault::Block { tensor_type, index, blocks: blocks.len() };
        let bytes = blocks.nth(index).ok_or(fault)?;
        Ok(RawBlock { format, bytes, order })
    }

    /// The block's bytes, as they are in the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number at `index` of the field with this name, if there is one.
    pub fn field(&self, name: &str, index: usize) -> Option<FieldValue> {
        let field = self.format.fields.iter().find(|field| field.name == name)?;
        (index < field.count).then(|| self.value(field, index))
    }

    /// Every number of the block with its field and its index in the field.
    pub fn values(&self) -> impl Iterator<Item = (&'static Field, usize, FieldValue)> {
        let block = *self;
        block.format.fields.iter().flat_map(move |field| {
            (0..field.count).map(move |index| (field, index, block.value(field, index)))
        })
    }

    /// What `role` is for an element: its bits, put together, as an unsigned number. `None` if the
    /// type has no such thing, or the block no such element.
    ///
    /// In Q4_K, for example, `SubMin` is the 6-bit min of the element's sub-block, wherever its
    /// bits are.
    pub fn part(&self, role: Role, element: usize) -> Option<u64> {
        if element >= self.format.len {
            return None;
        }
        let feeds = (self.format.feeds)(element);
        let mut bits = feeds.iter().filter(|feed| feed.role == role).peekable();
        bits.peek()?;
        let (part, _) = bits.fold((0, 0), |(part, width), feed| {
            let more = self.bits(feed).expect("types are fed by their own fields");
            (part | more << width, width + (feed.bits.end - feed.bits.start))
        });
        Some(part)
    }

    /// The bits that `feed` names, as an unsigned number, if the block has them.
    pub fn bits(&self, feed: &Feed) -> Option<u64> {
        let value = self.field(feed.field, feed.index)?;
        let width = feed.bits.end.checked_sub(feed.bits.start)?;
        let inside = width > 0 && feed.bits.end as usize <= 8 * value.kind.byte_len();
        inside.then(|| value.bits >> feed.bits.start & u64::MAX >> (64 - width))
    }

    fn value(&self, field: &Field, index: usize) -> FieldValue {
        let len = field.kind.byte_len();
        let bytes = &self.bytes[field.offset + index * len..][..len];
        let push = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        let bits = match self.order {
            ByteOrder::Little => bytes.iter().rev().fold(0, push),
            ByteOrder::Big => bytes.iter().fold(0, push),
        };
        FieldValue { kind: field.kind, bits }
    }
}

impl fmt::Debug for RawBlock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawBlock")
            .field("type_id", &self.format.id)
            .field("bytes", &self.bytes)
            .field("order", &self.order)
            .finish()
    }
}

/// A number of a block.
///
/// Shows as the number, and a floating-point one with its bits: `-3`, `0.5 (0x3800)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// What kind of number it is.
    pub kind: Kind,
    /// Its bits, in the low ones of the 64.
    pub bits: u64,
}

impl FieldValue {
    /// The number. An I64 beyond 2^53 is rounded; all others are exact.
    pub fn to_f64(self) -> f64 {
        let FieldValue { kind, bits } = self;
        match kind {
            Kind::U8 | Kind::U16 | Kind::U32 => bits as f64,
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 => self.to_i64() as f64,
            Kind::F16 => f16::from_bits(bits as u16).to_f64(),
            Kind::BF16 => bf16::from_bits(bits as u16).to_f64(),
            Kind::F32 => f32::from_bits(bits as u32).into(),
            Kind::F64 => f64::from_bits(bits),
            Kind::E8M0 => 2.0 * f64::from(E8M0(bits as u8).half_to_f32()),
            Kind::UE4M3 => 2.0 * f64::from(UE4M3(bits as u8).half_to_f32()),
            Kind::E4M3 => E4M3(bits as u8).to_f32().into(),
        }
    }

    /// The bits as two's complement of the kind's width.
    fn to_i64(self) -> i64 {
        let unused = 64 - 8 * self.kind.byte_len();
        (self.bits << unused) as i64 >> unused
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::U8 | Kind::U16 | Kind::U32 => write!(f, "{}", self.bits),
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 => write!(f, "{}", self.to_i64()),
            _ => {
                let width = 2 + 2 * self.kind.byte_len();
                write!(f, "{:?} ({:#0width$x})", self.to_f64(), self.bits)
            }
        }
    }
}
