//! The layout and the meaning of each type's blocks, one file for a family of types.
//!
//! Each struct mirrors ggml's `block_…` of `ggml/src/ggml-common.h`, and says how its elements are
//! computed; the function of ggml that does the same is `dequantize_row_…` in
//! `ggml/src/ggml-quants.c` (ggml 0.28.0). `lo` and `hi` are the low and high four bits of a byte,
//! `q` an element's own digits, `j` its place in the block.
//!
//! # Rounding
//!
//! All arithmetic is in `f32`, in the order in which it is written down. In nearly all types each
//! product is exact, since a scale has 11 significant bits and quants few, and only the last
//! addition rounds; so multiplying and adding in one step makes no difference. Infinite and NaN
//! scales go through the arithmetic like any others, and a zero has the sign that it gives.

mod bits;
mod fp4;
mod iq1;
mod iq2;
mod iq3;
mod iq4;
mod k;
mod legacy;
mod plain;
mod sign;
mod ternary;

use gguf_assay_format::{ByteOrder, TensorType};

use crate::feed::Feed;
use crate::layout::{Field, Layout};

pub use bits::{Q1_0, Q2_0};
pub use fp4::{FP4_TWICE, MXFP4, NVFP4};
pub use iq1::{IQ1_M, IQ1_S};
pub use iq2::{IQ2_S, IQ2_XS, IQ2_XXS};
pub use iq3::{IQ3_S, IQ3_XXS};
pub use iq4::{IQ4_LEVELS, IQ4_NL, IQ4_XS};
pub use k::{Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K};
pub use legacy::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1};
pub use plain::{BF16, F8_E4M3, F16, F32, F64, I8, I16, I32, I64};
pub use ternary::{TQ1_0, TQ2_0};

/// A block that can be turned into numbers.
pub trait Block: Layout {
    /// Writes the block's elements.
    ///
    /// # Panics
    ///
    /// If `out` is not [`Layout::LEN`] long.
    fn dequantize(&self, out: &mut [f32]) {
        assert_eq!(out.len(), Self::LEN, "the elements of a block");
        self.write(out);
    }

    /// [`dequantize`](Block::dequantize), by which it is called, without the check of the length.
    fn write(&self, out: &mut [f32]);

    /// The bits that the element at `element`, which is less than [`Layout::LEN`], comes from, as
    /// [`feeds`](crate::feeds) describes them.
    fn feeds(element: usize) -> Vec<Feed>;
}

/// What there is to know of a type.
pub(crate) struct Format {
    pub(crate) id: u32,
    /// Elements in a block.
    pub(crate) len: usize,
    /// Bytes in a block.
    pub(crate) bytes: usize,
    pub(crate) fields: &'static [Field],
    /// Writes the elements of whole blocks; the lengths fit each other.
    pub(crate) decode: fn(&[u8], ByteOrder, &mut [f32]),
    /// [`Block::feeds`]
    pub(crate) feeds: fn(usize) -> Vec<Feed>,
}

const fn format_of<B: Block>() -> Format {
    Format {
        id: B::ID,
        len: B::LEN,
        bytes: B::BYTES,
        fields: B::FIELDS,
        decode: decode::<B>,
        feeds: B::feeds,
    }
}

fn decode<B: Block>(bytes: &[u8], order: ByteOrder, out: &mut [f32]) {
    for (bytes, out) in bytes.chunks_exact(B::BYTES).zip(out.chunks_exact_mut(B::LEN)) {
        B::parse(bytes, order).expect("as many bytes as a block has").dequantize(out);
    }
}

static FORMATS: [Format; 36] = [
    format_of::<F32>(),
    format_of::<F16>(),
    format_of::<Q4_0>(),
    format_of::<Q4_1>(),
    format_of::<Q5_0>(),
    format_of::<Q5_1>(),
    format_of::<Q8_0>(),
    format_of::<Q8_1>(),
    format_of::<Q2_K>(),
    format_of::<Q3_K>(),
    format_of::<Q4_K>(),
    format_of::<Q5_K>(),
    format_of::<Q6_K>(),
    format_of::<Q8_K>(),
    format_of::<IQ2_XXS>(),
    format_of::<IQ2_XS>(),
    format_of::<IQ3_XXS>(),
    format_of::<IQ1_S>(),
    format_of::<IQ4_NL>(),
    format_of::<IQ3_S>(),
    format_of::<IQ2_S>(),
    format_of::<IQ4_XS>(),
    format_of::<I8>(),
    format_of::<I16>(),
    format_of::<I32>(),
    format_of::<I64>(),
    format_of::<F64>(),
    format_of::<IQ1_M>(),
    format_of::<BF16>(),
    format_of::<TQ1_0>(),
    format_of::<TQ2_0>(),
    format_of::<MXFP4>(),
    format_of::<NVFP4>(),
    format_of::<Q1_0>(),
    format_of::<Q2_0>(),
    format_of::<F8_E4M3>(),
];

/// How the type is laid out and decoded, unless it does not exist, was removed, or is not the type
/// of `TENSOR_TYPES` that has its id.
pub(crate) fn format(tensor_type: &TensorType) -> Option<&'static Format> {
    let known = TensorType::by_id(tensor_type.id) == Some(tensor_type);
    FORMATS.iter().find(|format| known && format.id == tensor_type.id)
}

#[cfg(test)]
mod tests {
    use gguf_assay_format::{Status, TENSOR_TYPES};

    use super::*;

    /// Every type that files may use has a format, of the size in the table, and no other has.
    #[test]
    fn all_types() {
        for t in TENSOR_TYPES {
            let found = format(t).map(|format| (format.len as u32, format.bytes as u32));
            let expected = (t.status != Status::Removed).then_some((t.block_len, t.block_bytes));
            assert_eq!(found, expected, "{t}");
        }
    }

    #[test]
    fn made_up_types() {
        let q4_0 = TensorType::by_id(2).unwrap();
        assert!(format(&TensorType { block_len: 16, ..*q4_0 }).is_none());
        assert!(format(&TensorType { id: 1000, ..*q4_0 }).is_none());
    }
}
