//! One or two bits an element and one scale.

use core::arch::x86_64::*;

use super::{half, look_up, put};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn q1_0<L: Line>(block: &[u8; 18], out: &mut [L; 8]) {
    fields!(block => d: 2, qs: 16);
    let d = half(*d);
    let minus_d = _mm512_xor_ps(d, _mm512_set1_ps(-0.0));
    for (line, bits) in out.iter_mut().zip(qs.as_chunks().0) {
        put(line, _mm512_mask_blend_ps(u16::from_le_bytes(*bits), minus_d, d));
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q2_0<L: Line>(block: &[u8; 18], out: &mut [L; 4]) {
    fields!(block => d: 2, qs: 16);
    let table = _mm512_mul_ps(two_bit_levels(), half(*d));
    let places = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    for (line, digits) in out.iter_mut().zip(qs.as_chunks().0) {
        let digits = _mm512_set1_epi32(i32::from_le_bytes(*digits));
        put(line, look_up(table, _mm512_srlv_epi32(digits, places)));
    }
}

/// -1, 0, 1 and 2 over and over, so that a look-up minds two bits only.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn two_bit_levels() -> __m512 {
    _mm512_broadcast_f32x4(_mm_setr_ps(-1.0, 0.0, 1.0, 2.0))
}
