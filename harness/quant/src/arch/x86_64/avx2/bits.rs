//! One or two bits an element and one scale.

use core::arch::x86_64::*;

use super::{half, put};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q1_0<L: Line>(block: &[u8; 18], out: &mut [L; 8]) {
    fields!(block => d: 2, qs: 16);
    let d = half(*d);
    let minus_d = _mm256_xor_ps(d, _mm256_set1_ps(-0.0));
    // By so much a bit is off the place of a sign.
    let places = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    for (line, bits) in out.iter_mut().zip(qs.as_chunks::<2>().0) {
        put(
            line,
            bits.map(|bits| {
                let bits = _mm256_sllv_epi32(_mm256_set1_epi32(bits.into()), places);
                _mm256_blendv_ps(minus_d, d, _mm256_castsi256_ps(bits))
            }),
        );
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q2_0<L: Line>(block: &[u8; 18], out: &mut [L; 4]) {
    fields!(block => d: 2, qs: 16);
    let table = _mm256_mul_ps(two_bit_levels(), half(*d));
    let places = [
        _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14),
        _mm256_setr_epi32(16, 18, 20, 22, 24, 26, 28, 30),
    ];
    for (line, digits) in out.iter_mut().zip(qs.as_chunks().0) {
        let digits = _mm256_set1_epi32(i32::from_le_bytes(*digits));
        put(line, places.map(|places| look_up(table, _mm256_srlv_epi32(digits, places))));
    }
}

/// -1, 0, 1 and 2 twice, so that a look-up minds two bits only.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn two_bit_levels() -> __m256 {
    _mm256_setr_ps(-1.0, 0.0, 1.0, 2.0, -1.0, 0.0, 1.0, 2.0)
}

/// Of each lane of `indices` the three low bits select a lane of `table`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn look_up(table: __m256, indices: __m256i) -> __m256 {
    _mm256_permutevar8x32_ps(table, indices)
}
