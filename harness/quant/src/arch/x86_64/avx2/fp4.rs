//! Floats of four bits.

use core::arch::x86_64::*;

use super::{load, nibbles, put, signed};
use crate::arch::x86_64::{E8M0_HALVES, Line, UE4M3_HALVES, fields};
use crate::block::FP4_TWICE;

/// What four bits stand for, in each byte.
#[target_feature(enable = "avx2")]
#[inline]
fn levels(digits: __m128i) -> __m128i {
    _mm_shuffle_epi8(load(&FP4_TWICE.map(|level| level as u8)), digits)
}

#[target_feature(enable = "avx2")]
#[inline]
fn put_products<L: Line>(line: &mut L, scale: f32, digits: __m128i) {
    let scale = _mm256_set1_ps(scale);
    put(line, signed(levels(digits)).map(|level| _mm256_mul_ps(level, scale)));
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn mxfp4<L: Line>(block: &[u8; 17], out: &mut [L; 2]) {
    fields!(block => e: 1, qs: 16);
    for (line, digits) in out.iter_mut().zip(nibbles(qs)) {
        put_products(line, E8M0_HALVES[usize::from(e[0])], digits);
    }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn nvfp4<L: Line>(block: &[u8; 36], out: &mut [L; 4]) {
    fields!(block => d: 4, qs: 32);
    let out = out.as_chunks_mut::<2>().0.iter_mut();
    for ((lines, qs), d) in out.zip(qs.as_chunks().0).zip(d.as_chunks::<2>().0) {
        let [low, high] = nibbles(qs);
        let digits = [_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high)];
        for ((line, digits), d) in lines.iter_mut().zip(digits).zip(d) {
            put_products(line, UE4M3_HALVES[usize::from(*d)], digits);
        }
    }
}
