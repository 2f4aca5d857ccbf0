//! Blocks of 32 elements with one scale.

use core::arch::x86_64::*;

use super::{half, load, nibbles, put, signed};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q4_0<L: Line>(block: &[u8; 18], out: &mut [L; 2]) {
    fields!(block => d: 2, qs: 16);
    let qs = nibbles(qs).map(|qs| _mm_sub_epi8(qs, _mm_set1_epi8(8)));
    put_products(half(*d), qs, out);
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(super) fn q4_1<L: Line>(block: &[u8; 20], out: &mut [L; 2]) {
    fields!(block => d: 2, m: 2, qs: 16);
    put_sums(half(*d), half(*m), nibbles(qs), out);
}

/// 32 digits of five bits.
#[target_feature(enable = "avx2")]
#[inline]
fn five_bits(qh: [u8; 4], qs: &[u8; 16]) -> [__m128i; 2] {
    let fifth = _mm256_set1_epi32(i32::from_le_bytes(qh));
    // Each byte next to the bit that is its own.
    let bytes =
        _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let bits = _mm256_set1_epi64x(i64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]));
    let fifth = _mm256_and_si256(_mm256_shuffle_epi8(fifth, bytes), bits);
    let fifth = _mm256_and_si256(_mm256_cmpeq_epi8(fifth, bits), _mm256_set1_epi8(16));
    let [low, high] = nibbles(qs);
    [
        _mm_or_si128(low, _mm256_castsi256_si128(fifth)),
        _mm_or_si128(high, _mm256_extracti128_si256::<1>(fifth)),
    ]
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q5_0<L: Line>(block: &[u8; 22], out: &mut [L; 2]) {
    fields!(block => d: 2, qh: 4, qs: 16);
    let qs = five_bits(*qh, qs).map(|qs| _mm_sub_epi8(qs, _mm_set1_epi8(16)));
    put_products(half(*d), qs, out);
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(super) fn q5_1<L: Line>(block: &[u8; 24], out: &mut [L; 2]) {
    fields!(block => d: 2, m: 2, qh: 4, qs: 16);
    put_sums(half(*d), half(*m), five_bits(*qh, qs), out);
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q8_0<L: Line>(block: &[u8; 34], out: &mut [L; 2]) {
    fields!(block => d: 2, first: 16, second: 16);
    put_products(half(*d), [load(first), load(second)], out);
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q8_1<L: Line>(block: &[u8; 36], out: &mut [L; 2]) {
    fields!(block => d: 2, _s: 2, first: 16, second: 16);
    put_products(half(*d), [load(first), load(second)], out);
}

/// `q·d`
#[target_feature(enable = "avx2")]
#[inline]
fn put_products<L: Line>(d: __m256, qs: [__m128i; 2], out: &mut [L; 2]) {
    for (line, qs) in out.iter_mut().zip(qs) {
        put(line, signed(qs).map(|q| _mm256_mul_ps(q, d)));
    }
}

/// `q·d + m`
#[target_feature(enable = "avx2,fma")]
#[inline]
fn put_sums<L: Line>(d: __m256, m: __m256, qs: [__m128i; 2], out: &mut [L; 2]) {
    for (line, qs) in out.iter_mut().zip(qs) {
        put(line, signed(qs).map(|q| _mm256_fmadd_ps(q, d, m)));
    }
}
