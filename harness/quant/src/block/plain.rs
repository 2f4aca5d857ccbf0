//! Plain numbers: blocks of one element.
//!
//! ggml has functions for F16, BF16 and F8_E4M3 (`ggml_fp16_to_fp32_row`, `ggml_bf16_to_fp32_row`,
//! `dequantize_row_f8_e4m3`). F32 is its own value; for F64 and the integers there is nothing but
//! the conversion to `f32`, to the nearest, ties to even.

use half::{bf16, f16};

use super::Block;
use crate::feed::{Feed, Role};
use crate::layout::{Layout, layout};
use crate::number::E4M3;

macro_rules! plain {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $id:literal, $t:ty, |$value:ident| $to_f32:expr;
    )+) => { $(
        layout! {
            $(#[doc = $doc])+
            $name: id $id, 1 elements {
                /// The number.
                value: $t,
            }
        }

        impl Block for $name {
            fn write(&self, out: &mut [f32]) {
                let $value = self.value;
                out[0] = $to_f32;
            }

            fn feeds(_: usize) -> Vec<Feed> {
                vec![Feed::new(Role::Value, "value", 0, 0..8 * $name::BYTES as u32)]
            }
        }
    )+ };
}

plain! {
    /// IEEE 754 single precision.
    F32: 0, f32, |value| value;
    /// IEEE 754 half precision.
    F16: 1, f16, |value| value.to_f32();
    /// An integer of 8 bits.
    I8: 24, i8, |value| value.into();
    /// An integer of 16 bits.
    I16: 25, i16, |value| value.into();
    /// An integer of 32 bits; rounded.
    I32: 26, i32, |value| value as f32;
    /// An integer of 64 bits; rounded.
    I64: 27, i64, |value| value as f32;
    /// IEEE 754 double precision; rounded, and infinite beyond the range of `f32`.
    F64: 28, f64, |value| value as f32;
    /// The upper half of a single precision number.
    BF16: 30, bf16, |value| value.to_f32();
    /// OCP FP8 E4M3. Provisional: in the pinned ggml, but not settled upstream.
    F8_E4M3: 43, E4M3, |value| value.to_f32();
}
