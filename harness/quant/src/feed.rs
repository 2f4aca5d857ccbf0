//! Which bits of a block an element comes from.

use core::fmt;
use core::ops::Range;

use gguf_assay_format::TensorType;

use crate::block;

/// What bits of a block do for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// They are the number.
    Value,
    /// The factor of the whole block.
    Scale,
    /// The factor of a part of the block.
    SubScale,
    /// The number that is added to, or subtracted from, the whole block.
    Min,
    /// The factor of `Min` in a part of the block.
    SubMin,
    /// The element's own digits.
    Quant,
    /// The index of the grid's entry that the element is in.
    Index,
    /// The element's sign.
    Sign,
    /// The sign of the 1/8 by which all elements of a group are shifted.
    Delta,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Value => "value",
            Role::Scale => "scale",
            Role::SubScale => "sub-block scale",
            Role::Min => "min",
            Role::SubMin => "sub-block min",
            Role::Quant => "quant",
            Role::Index => "grid index",
            Role::Sign => "sign",
            Role::Delta => "delta",
        })
    }
}

/// Some bits of a block that an element comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// What they do.
    pub role: Role,
    /// The name of the field that they are in.
    pub field: &'static str,
    /// Which of the field's numbers they are in.
    pub index: usize,
    /// Which of that number's bits they are; bit 0 is the least significant.
    pub bits: Range<u32>,
}

impl Feed {
    pub(crate) const fn new(
        role: Role,
        field: &'static str,
        index: usize,
        bits: Range<u32>,
    ) -> Feed {
        Feed { role, field, index, bits }
    }
}

impl fmt::Display for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Feed { role, field, index, bits } = self;
        write!(f, "{role} from {field}[{index}] ")?;
        match bits.end - bits.start {
            1 => write!(f, "bit {}", bits.start),
            _ => write!(f, "bits {} to {}", bits.start, bits.end - 1),
        }
    }
}

/// Every bit of a block that can make a difference to its element at `element`; those of one role
/// together, from the least significant on.
///
/// All bits of a grid index are named, although two entries may agree in one of their elements.
/// Nothing for a type that does not exist or was removed, and for an element beyond the block.
pub fn feeds(tensor_type: &TensorType, element: usize) -> Vec<Feed> {
    match block::format(tensor_type) {
        Some(format) if element < format.len => (format.feeds)(element),
        _ => Vec::new(),
    }
}
