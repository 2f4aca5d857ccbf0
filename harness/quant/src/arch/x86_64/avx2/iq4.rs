//! IQ4_NL, IQ4_XS.

use core::arch::x86_64::*;

use super::{half, load, nibbles, put, signed};
use crate::arch::x86_64::grid::{IQ4, iq4_xs_scales};
use crate::arch::x86_64::{Line, fields};

/// Writes the products of 32 levels and a factor.
#[target_feature(enable = "avx2")]
#[inline]
fn put_products<L: Line>(factor: __m256, qs: &[u8; 16], out: &mut [L; 2]) {
    let levels = load(&IQ4);
    for (line, qs) in out.iter_mut().zip(nibbles(qs)) {
        let numbers = signed(_mm_shuffle_epi8(levels, qs));
        put(line, numbers.map(|level| _mm256_mul_ps(level, factor)));
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq4_nl<L: Line>(block: &[u8; 18], out: &mut [L; 2]) {
    fields!(block => d: 2, qs: 16);
    put_products(half(*d), qs, out);
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq4_xs<L: Line>(block: &[u8; 136], out: &mut [L; 16]) {
    fields!(block => d: 2, scales_h: 2, scales_l: 4, qs: 128);
    let factors = _mm256_mul_ps(half(*d), iq4_xs_scales(*scales_l, *scales_h));
    let (out, _) = out.as_chunks_mut();
    for (i, (qs, out)) in qs.as_chunks().0.iter().zip(out).enumerate() {
        let factor = _mm256_permutevar8x32_ps(factors, _mm256_set1_epi32(i as i32));
        put_products(factor, qs, out);
    }
}
