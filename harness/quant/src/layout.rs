//! The layout of blocks, as data and as structs: both come from one declaration.

use core::fmt;

use gguf_assay_format::{ByteOrder, TensorType};
use half::{bf16, f16};

use crate::block;
use crate::number::{E4M3, E8M0, UE4M3};

/// A field of a block: one number, or several of a kind in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// ggml's name of it.
    pub name: &'static str,
    /// What it is for.
    pub meaning: &'static str,
    /// Where it starts, in bytes from the start of the block.
    pub offset: usize,
    /// What kind of number it has: the unit that is turned around in big-endian files.
    pub kind: Kind,
    /// How many numbers it has.
    pub count: usize,
}

impl Field {
    /// How long the field is, in bytes.
    pub const fn byte_len(&self) -> usize {
        self.kind.byte_len() * self.count
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident $bytes:literal $name:literal)+) => {
        /// The kinds of numbers in blocks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind),+
        }

        impl Kind {
            /// How long such a number is, in bytes.
            pub const fn byte_len(self) -> usize {
                match self {
                    $(Kind::$kind => $bytes),+
                }
            }
        }

        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Kind::$kind => $name),+
                })
            }
        }
    };
}

kinds! {
    /// Unsigned, 8 bits. Where bits are packed, a byte of them.
    U8 1 "u8"
    /// Two's complement, 8 bits.
    I8 1 "i8"
    /// Unsigned, 16 bits. Where bits are packed, a word of them.
    U16 2 "u16"
    /// Two's complement, 16 bits.
    I16 2 "i16"
    /// Unsigned, 32 bits. Where bits are packed, a word of them.
    U32 4 "u32"
    /// Two's complement, 32 bits.
    I32 4 "i32"
    /// Two's complement, 64 bits.
    I64 8 "i64"
    /// IEEE 754 half precision.
    F16 2 "f16"
    /// The upper half of a single precision number.
    BF16 2 "bf16"
    /// IEEE 754 single precision.
    F32 4 "f32"
    /// IEEE 754 double precision.
    F64 8 "f64"
    /// [`E8M0`]
    E8M0 1 "e8m0"
    /// [`UE4M3`]
    UE4M3 1 "ue4m3"
    /// [`E4M3`]
    E4M3 1 "e4m3"
}

/// The layout of a type's blocks.
pub trait Layout: Sized {
    /// The type's id in a file.
    const ID: u32;
    /// Elements in a block.
    const LEN: usize;
    /// Bytes in a block.
    const BYTES: usize;
    /// The fields, in the order of the bytes. They fill the block.
    const FIELDS: &'static [Field];

    /// The block that these bytes are, if they are as many as a block has.
    fn parse(bytes: &[u8], order: ByteOrder) -> Option<Self>;
}

/// The fields of a type's blocks, in the order of the bytes; none if there is no such type or if
/// it was removed.
pub fn fields(tensor_type: &TensorType) -> &'static [Field] {
    block::format(tensor_type).map_or(&[], |format| format.fields)
}

/// A number, or an array of numbers of one kind, as a field of a block.
pub(crate) trait Part: Sized {
    const KIND: Kind;
    const COUNT: usize;
    const BYTES: usize = Self::KIND.byte_len() * Self::COUNT;

    /// Reads the part that `rest` starts with and takes it off; `None` if `rest` is too short.
    fn take(rest: &mut &[u8], order: ByteOrder) -> Option<Self>;
}

macro_rules! parts {
    ($($t:ty: $kind:ident, $bytes:literal, |$chunk:ident| $little:expr, $big:expr;)+) => { $(
        impl Part for $t {
            const KIND: Kind = Kind::$kind;
            const COUNT: usize = 1;

            fn take(rest: &mut &[u8], order: ByteOrder) -> Option<$t> {
                let $chunk: [u8; $bytes];
                ($chunk, *rest) = rest.split_first_chunk().map(|(chunk, rest)| (*chunk, rest))?;
                Some(match order {
                    ByteOrder::Little => $little,
                    ByteOrder::Big => $big,
                })
            }
        }
    )+ };
}

parts! {
    u8: U8, 1, |b| b[0], b[0];
    i8: I8, 1, |b| i8::from_le_bytes(b), i8::from_be_bytes(b);
    u16: U16, 2, |b| u16::from_le_bytes(b), u16::from_be_bytes(b);
    i16: I16, 2, |b| i16::from_le_bytes(b), i16::from_be_bytes(b);
    u32: U32, 4, |b| u32::from_le_bytes(b), u32::from_be_bytes(b);
    i32: I32, 4, |b| i32::from_le_bytes(b), i32::from_be_bytes(b);
    i64: I64, 8, |b| i64::from_le_bytes(b), i64::from_be_bytes(b);
    f16: F16, 2, |b| f16::from_le_bytes(b), f16::from_be_bytes(b);
    bf16: BF16, 2, |b| bf16::from_le_bytes(b), bf16::from_be_bytes(b);
    f32: F32, 4, |b| f32::from_le_bytes(b), f32::from_be_bytes(b);
    f64: F64, 8, |b| f64::from_le_bytes(b), f64::from_be_bytes(b);
    E8M0: E8M0, 1, |b| E8M0(b[0]), E8M0(b[0]);
    UE4M3: UE4M3, 1, |b| UE4M3(b[0]), UE4M3(b[0]);
    E4M3: E4M3, 1, |b| E4M3(b[0]), E4M3(b[0]);
}

impl<T: Part + Copy, const N: usize> Part for [T; N] {
    const KIND: Kind = T::KIND;
    const COUNT: usize = N;

    fn take(rest: &mut &[u8], order: ByteOrder) -> Option<[T; N]> {
        let (mut part, tail) = rest.split_at_checked(Self::BYTES)?;
        *rest = tail;
        Some(core::array::from_fn(|_| {
            T::take(&mut part, order).expect("the part is as long as its numbers")
        }))
    }
}

/// Puts fields one behind the other; the offsets that it is given do not matter.
pub(crate) const fn in_a_row<const N: usize>(mut fields: [Field; N]) -> [Field; N] {
    let mut i = 1;
    while i < N {
        fields[i].offset = fields[i - 1].offset + fields[i - 1].byte_len();
        i += 1;
    }
    fields
}

/// Declares the struct of a type's blocks, and its [`Layout`].
macro_rules! layout {
    (
        $(#[doc = $doc:literal])+
        $name:ident: id $id:literal, $len:literal elements {
            $($(#[doc = $meaning:literal])+ $field:ident: $t:ty,)+
        }
    ) => {
        $(#[doc = $doc])+
        // The names are ggml's.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: $t,)+
        }

        impl $crate::layout::Layout for $name {
            const ID: u32 = $id;
            const LEN: usize = $len;
            const BYTES: usize = 0 $(+ <$t as $crate::layout::Part>::BYTES)+;
            const FIELDS: &'static [$crate::layout::Field] =
                &$crate::layout::in_a_row([$($crate::layout::Field {
                    name: stringify!($field),
                    meaning: concat!($($meaning),+).trim_ascii(),
                    offset: 0,
                    kind: <$t as $crate::layout::Part>::KIND,
                    count: <$t as $crate::layout::Part>::COUNT,
                }),+]);

            fn parse(bytes: &[u8], order: gguf_assay_format::ByteOrder) -> Option<$name> {
                let mut rest = bytes;
                // In the order of the declaration, which is the order of the bytes.
                let block = $name {
                    $($field: <$t as $crate::layout::Part>::take(&mut rest, order)?,)+
                };
                rest.is_empty().then_some(block)
            }
        }
    };
}
pub(crate) use layout;
