//! Floats of four bits.

use core::arch::x86_64::*;

use super::{look_up, put, signed, widen};
use crate::arch::x86_64::{E8M0_HALVES, Line, UE4M3_HALVES, fields};
use crate::block::FP4_TWICE;

/// The 16 numbers with this scale.
#[target_feature(enable = "avx512f")]
#[inline]
fn table(scale: f32) -> __m512 {
    _mm512_mul_ps(signed(&FP4_TWICE.map(|level| level as u8)), _mm512_set1_ps(scale))
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn mxfp4<L: Line>(block: &[u8; 17], out: &mut [L; 2]) {
    fields!(block => e: 1, qs: 16);
    let table = table(E8M0_HALVES[usize::from(e[0])]);
    let qs = widen(qs);
    put(&mut out[0], look_up(table, qs));
    put(&mut out[1], look_up(table, _mm512_srli_epi32::<4>(qs)));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn nvfp4<L: Line>(block: &[u8; 36], out: &mut [L; 4]) {
    fields!(block => d: 4, qs: 32);
    let places = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    for ((line, qs), d) in out.iter_mut().zip(qs.as_chunks().0).zip(d) {
        let table = table(UE4M3_HALVES[usize::from(*d)]);
        let twice = _mm512_cvtepu8_epi32(_mm_set1_epi64x(i64::from_le_bytes(*qs)));
        put(line, look_up(table, _mm512_srlv_epi32(twice, places)));
    }
}
