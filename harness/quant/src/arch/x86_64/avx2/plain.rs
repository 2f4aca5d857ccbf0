//! Plain numbers, 16 in a step.

use core::arch::x86_64::*;

use super::{load, load_32, put, signed};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn f32<L: Line>(block: &[u8; 64], out: &mut [L; 1]) {
    fields!(block => low: 32, high: 32);
    put(&mut out[0], [low, high].map(|bytes| _mm256_castsi256_ps(load_32(bytes))));
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn f16<L: Line>(block: &[u8; 32], out: &mut [L; 1]) {
    fields!(block => low: 16, high: 16);
    put(&mut out[0], [low, high].map(|bytes| _mm256_cvtph_ps(load(bytes))));
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn bf16<L: Line>(block: &[u8; 32], out: &mut [L; 1]) {
    fields!(block => low: 16, high: 16);
    let upper = |bytes| _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(load(bytes)));
    put(&mut out[0], [low, high].map(|bytes| _mm256_castsi256_ps(upper(bytes))));
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn f8_e4m3<L: Line>(block: &[u8; 16], out: &mut [L; 1]) {
    let halves = half_of_e4m3(load(block));
    let halves = [_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves)];
    let scale = _mm256_set1_ps(256.0);
    put(&mut out[0], halves.map(|halves| _mm256_mul_ps(_mm256_cvtph_ps(halves), scale)));
}

/// Half-precision numbers that are 1/256 of those of the bytes.
///
/// Their exponent has one bit more, and a bias that is 8 more; and 0x7F and 0xFF, with the largest
/// exponent of E4M3, are finite there unless made NaNs.
#[target_feature(enable = "avx2")]
#[inline]
pub(in crate::arch::x86_64) fn half_of_e4m3(bytes: __m128i) -> __m256i {
    let words = _mm256_cvtepu8_epi16(bytes);
    let magnitude = _mm256_and_si256(words, _mm256_set1_epi16(0x7F));
    let sign = _mm256_slli_epi16::<8>(_mm256_xor_si256(words, magnitude));
    let is_nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7F));
    let nan = _mm256_and_si256(is_nan, _mm256_set1_epi16(0x7C00));
    _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16::<7>(magnitude), sign), nan)
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn i8<L: Line>(block: &[u8; 16], out: &mut [L; 1]) {
    put(&mut out[0], signed(load(block)));
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn i16<L: Line>(block: &[u8; 32], out: &mut [L; 1]) {
    fields!(block => low: 16, high: 16);
    let numbers = |bytes| _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(load(bytes)));
    put(&mut out[0], [numbers(low), numbers(high)]);
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn i32<L: Line>(block: &[u8; 64], out: &mut [L; 1]) {
    fields!(block => low: 32, high: 32);
    put(&mut out[0], [low, high].map(|bytes| _mm256_cvtepi32_ps(load_32(bytes))));
}

/// No instruction of AVX2 converts such integers; those that convert one do it in one rounding.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn i64<L: Line>(block: &[u8; 128], out: &mut [L; 1]) {
    let (numbers, _) = block.as_chunks();
    let n = |i: usize| i64::from_le_bytes(numbers[i]) as f32;
    let low = _mm256_setr_ps(n(0), n(1), n(2), n(3), n(4), n(5), n(6), n(7));
    let high = _mm256_setr_ps(n(8), n(9), n(10), n(11), n(12), n(13), n(14), n(15));
    put(&mut out[0], [low, high]);
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn f64<L: Line>(block: &[u8; 128], out: &mut [L; 1]) {
    fields!(block => a: 32, b: 32, c: 32, d: 32);
    let four = |bytes| _mm256_cvtpd_ps(_mm256_castsi256_pd(load_32(bytes)));
    put(&mut out[0], [_mm256_set_m128(four(b), four(a)), _mm256_set_m128(four(d), four(c))]);
}
