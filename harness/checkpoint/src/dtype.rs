//! The types of safetensors.

use std::fmt;

/// Types that hold a number in each element, all of which are exact in `f32`; scales have them.
pub(crate) const FLOATS: &[Dtype] = &[Dtype::BF16, Dtype::F16, Dtype::F32];

/// A type of elements, as the header of a safetensors file spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dtype {
    /// `BF16`, `F8_E4M3`, `F4` …
    pub name: &'static str,
    /// How many bits an element takes. The bytes of a tensor are whole.
    pub bits: u64,
}

macro_rules! dtypes {
    ($($constant:ident = $name:literal $bits:literal,)+) => {
        /// The types that safetensors 0.8 has (`Dtype` in its `tensor.rs`).
        impl Dtype {
            $(
                #[doc = concat!("`", $name, "`, ", $bits, " bits.")]
                pub const $constant: Dtype = Dtype { name: $name, bits: $bits };
            )+

            /// All of them.
            pub const ALL: &[Dtype] = &[$(Dtype::$constant),+];
        }
    };
}

dtypes! {
    BOOL = "BOOL" 8,
    F4 = "F4" 4,
    F6_E2M3 = "F6_E2M3" 6,
    F6_E3M2 = "F6_E3M2" 6,
    U8 = "U8" 8,
    I8 = "I8" 8,
    F8_E5M2 = "F8_E5M2" 8,
    F8_E4M3 = "F8_E4M3" 8,
    F8_E8M0 = "F8_E8M0" 8,
    F8_E4M3FNUZ = "F8_E4M3FNUZ" 8,
    F8_E5M2FNUZ = "F8_E5M2FNUZ" 8,
    I16 = "I16" 16,
    U16 = "U16" 16,
    F16 = "F16" 16,
    BF16 = "BF16" 16,
    I32 = "I32" 32,
    U32 = "U32" 32,
    F32 = "F32" 32,
    C64 = "C64" 64,
    F64 = "F64" 64,
    I64 = "I64" 64,
    U64 = "U64" 64,
}

impl Dtype {
    /// The type of this name.
    pub fn find(name: &str) -> Option<Dtype> {
        Dtype::ALL.iter().copied().find(|dtype| dtype.name == name)
    }

    /// The bytes of a tensor of this shape; `None` if they are not whole, or beyond 64 bits.
    pub fn byte_len(self, shape: &[u64]) -> Option<u64> {
        let elements = shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))?;
        let bits = elements.checked_mul(self.bits)?;
        bits.is_multiple_of(8).then(|| bits.div_euclid(8))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
