//! Numbers with separate signs.

use core::arch::x86_64::*;

/// Eight times eight signs from eight times seven: the eighth makes the number of set bits even.
#[target_feature(enable = "bmi2")]
#[inline]
pub(super) fn complete(sevens: u64) -> u64 {
    let signs = _pdep_u64(sevens, 0x7F7F_7F7F_7F7F_7F7F);
    // Only the lowest bit of each byte is to be right in the end.
    let parity = signs ^ signs >> 4;
    let parity = parity ^ parity >> 2;
    let parity = parity ^ parity >> 1;
    signs | (parity & 0x0101_0101_0101_0101) << 7
}

/// The products of 16 signed bytes and a factor, negated where a bit of `signs` is set.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn signed_products(entries: __m128i, factor: __m512, signs: u16) -> __m512 {
    let products = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(entries)), factor);
    _mm512_mask_xor_ps(products, signs, products, _mm512_set1_ps(-0.0))
}
