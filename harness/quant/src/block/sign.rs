//! The signs of groups of 8 elements, packed into 7 bits.

use crate::feed::{Feed, Role};

/// The signs of 8 elements, bit k for element k, from the 7 bits that are stored.
///
/// The eighth makes the number of set bits even. Source: `ksigns_iq2xs` in
/// `ggml/src/ggml-common.h`, a table of what this computes.
pub(super) fn signs(seven: u32) -> u8 {
    let seven = seven as u8 & 0x7F;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// `value` with the sign of element `k` of its group.
pub(super) fn with_sign(value: f32, signs: u8, k: usize) -> f32 {
    if signs >> k & 1 == 1 { -value } else { value }
}

/// Where the sign of element `k` of 8 is, if the seven bits start at `bit` of a number: for the
/// eighth, in all of them.
pub(super) fn sign_feed(field: &'static str, index: usize, bit: u32, k: usize) -> Feed {
    let bits = if k < 7 { bit + k as u32..bit + k as u32 + 1 } else { bit..bit + 7 };
    Feed::new(Role::Sign, field, index, bits)
}
