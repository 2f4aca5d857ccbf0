//! IQ4_NL, IQ4_XS.

use core::arch::x86_64::*;

use super::{half, look_up, put, signed, widen};
use crate::arch::x86_64::grid::{IQ4, iq4_xs_scales};
use crate::arch::x86_64::{Line, fields};

/// Writes the products of 32 levels and a factor.
#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn put_products<L: Line>(factor: __m512, qs: &[u8; 16], out: &mut [L; 2]) {
    let table = _mm512_mul_ps(signed(&IQ4), factor);
    let qs = widen(qs);
    put(&mut out[0], look_up(table, qs));
    put(&mut out[1], look_up(table, _mm512_srli_epi32::<4>(qs)));
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn iq4_nl<L: Line>(block: &[u8; 18], out: &mut [L; 2]) {
    fields!(block => d: 2, qs: 16);
    put_products(half(*d), qs, out);
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn iq4_xs<L: Line>(block: &[u8; 136], out: &mut [L; 16]) {
    fields!(block => d: 2, scales_h: 2, scales_l: 4, qs: 128);
    let factors =
        _mm256_mul_ps(_mm512_castps512_ps256(half(*d)), iq4_xs_scales(*scales_l, *scales_h));
    let factors = _mm512_castps256_ps512(factors);
    let (out, _) = out.as_chunks_mut();
    for (i, (qs, out)) in qs.as_chunks().0.iter().zip(out).enumerate() {
        put_products(look_up(factors, _mm512_set1_epi32(i as i32)), qs, out);
    }
}
