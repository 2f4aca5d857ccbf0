//! The table of tensor types.

use core::fmt;

/// What has become of a tensor type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Files may use it.
    Current,
    /// Once had a meaning, or an id of its own; ggml refuses it.
    Removed,
    /// In the pinned ggml, but its meaning is not settled upstream.
    Provisional,
}

/// A tensor type: how many elements make a block, and how many bytes a block has.
///
/// Source: `enum ggml_type` in `ggml/include/ggml.h` and `type_traits` in `ggml/src/ggml.c`,
/// ggml 0.28.0 (MIT); held to ggml's own table by a test of the crate `gguf-assay-oracle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// The id in a file.
    pub id: u32,
    /// ggml's name: the enumerator without `GGML_TYPE_`.
    pub name: &'static str,
    /// Elements in a block. 0 for removed types.
    pub block_len: u32,
    /// Bytes in a block. 0 for removed types.
    pub block_bytes: u32,
    /// Whether files may use it.
    pub status: Status,
}

impl TensorType {
    /// The type with this id, removed ones included.
    pub fn by_id(id: u32) -> Option<&'static TensorType> {
        let index = usize::try_from(id).ok()?;
        TENSOR_TYPES.get(index)
    }

    /// The type with this name, in ggml's spelling (`Q4_K`).
    pub fn by_name(name: &str) -> Option<&'static TensorType> {
        TENSOR_TYPES.iter().find(|t| t.name == name)
    }

    /// Whether elements share a block: the type is not a plain number.
    pub fn is_quantized(&self) -> bool {
        self.block_len > 1
    }

    /// The bytes of `elements` elements in rows that are whole blocks, if they fit 64 bits and the
    /// type has a size.
    pub fn byte_len(&self, elements: u64) -> Option<u64> {
        elements.checked_div(u64::from(self.block_len))?.checked_mul(u64::from(self.block_bytes))
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

macro_rules! table {
    ($($id:literal $name:literal $len:literal $bytes:literal $status:ident)+) => {
        /// Every tensor type that has or had an id. A type's place is its id.
        pub static TENSOR_TYPES: &[TensorType] = &[$(TensorType {
            id: $id,
            name: $name,
            block_len: $len,
            block_bytes: $bytes,
            status: Status::$status,
        }),+];
    };
}

table! {
    0 "F32" 1 4 Current
    1 "F16" 1 2 Current
    2 "Q4_0" 32 18 Current
    3 "Q4_1" 32 20 Current
    4 "Q4_2" 0 0 Removed
    5 "Q4_3" 0 0 Removed
    6 "Q5_0" 32 22 Current
    7 "Q5_1" 32 24 Current
    8 "Q8_0" 32 34 Current
    9 "Q8_1" 32 36 Current
    10 "Q2_K" 256 84 Current
    11 "Q3_K" 256 110 Current
    12 "Q4_K" 256 144 Current
    13 "Q5_K" 256 176 Current
    14 "Q6_K" 256 210 Current
    15 "Q8_K" 256 292 Current
    16 "IQ2_XXS" 256 66 Current
    17 "IQ2_XS" 256 74 Current
    18 "IQ3_XXS" 256 98 Current
    19 "IQ1_S" 256 50 Current
    20 "IQ4_NL" 32 18 Current
    21 "IQ3_S" 256 110 Current
    22 "IQ2_S" 256 82 Current
    23 "IQ4_XS" 256 136 Current
    24 "I8" 1 1 Current
    25 "I16" 1 2 Current
    26 "I32" 1 4 Current
    27 "I64" 1 8 Current
    28 "F64" 1 8 Current
    29 "IQ1_M" 256 56 Current
    30 "BF16" 1 2 Current
    31 "Q4_0_4_4" 0 0 Removed
    32 "Q4_0_4_8" 0 0 Removed
    33 "Q4_0_8_8" 0 0 Removed
    34 "TQ1_0" 256 54 Current
    35 "TQ2_0" 256 66 Current
    36 "IQ4_NL_4_4" 0 0 Removed
    37 "IQ4_NL_4_8" 0 0 Removed
    38 "IQ4_NL_8_8" 0 0 Removed
    39 "MXFP4" 32 17 Current
    40 "NVFP4" 64 36 Current
    41 "Q1_0" 128 18 Current
    42 "Q2_0" 64 18 Current
    43 "F8_E4M3" 1 1 Provisional
}

/// The last id that the text's own list of types has (`GGML_TYPE_MXFP4`).
pub(crate) const LAST_ID_IN_SPEC: u32 = 39;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_types_place_is_its_id() {
        for (place, t) in TENSOR_TYPES.iter().enumerate() {
            assert_eq!(place, t.id as usize, "{t}");
        }
    }

    #[test]
    fn byte_lengths() {
        // By hand: 2 blocks of Q4_K are 288 bytes; 2^62 F32 elements are 2^64 bytes.
        assert_eq!(TensorType::by_name("Q4_K").unwrap().byte_len(512), Some(288));
        assert_eq!(TensorType::by_name("F32").unwrap().byte_len(1 << 62), None);
        assert_eq!(TensorType::by_id(4).unwrap().byte_len(32), None);
    }
}
