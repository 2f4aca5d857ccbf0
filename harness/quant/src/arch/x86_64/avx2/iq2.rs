//! IQ2_XXS, IQ2_XS, IQ2_S.

use core::arch::x86_64::*;

use super::sign::{self, signed_products, spread};
use super::{half, put};
use crate::arch::x86_64::grid::{IQ2_FACTORS, IQ2S, IQ2XS, IQ2XXS};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx2")]
#[inline]
fn factor(d: __m256, sc: u8) -> __m256 {
    _mm256_mul_ps(d, _mm256_set1_ps(IQ2_FACTORS[usize::from(sc & 0xF)]))
}

/// Writes the products of four entries and two factors, with signs.
#[target_feature(enable = "avx2")]
#[inline]
fn put_products<L: Line>(entries: [u64; 4], factors: [__m256; 2], signs: u32, out: &mut [L; 2]) {
    let [a, b, c, d] = spread(signs);
    let [first, second] = factors;
    put(
        &mut out[0],
        [signed_products(entries[0], first, a), signed_products(entries[1], first, b)],
    );
    put(
        &mut out[1],
        [signed_products(entries[2], second, c), signed_products(entries[3], second, d)],
    );
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq2_xxs<L: Line>(block: &[u8; 66], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64);
    let d = half(*d);
    let signs = sign::signs_in_odd_words(qs);
    let (out, _) = out.as_chunks_mut();
    let (qs, _) = qs.as_chunks::<8>();
    for ((qs, signs), out) in qs.iter().zip(&signs).zip(out) {
        let [a, b, c, e, .., scale] = *qs;
        let entries = [a, b, c, e].map(|index| IQ2XXS[usize::from(index)]);
        put_products(entries, [factor(d, scale >> 4); 2], *signs, out);
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq2_xs<L: Line>(block: &[u8; 74], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, scales: 8);
    let d = half(*d);
    let signs = sign::signs_in_high_bits(qs);
    let (qs, _) = qs.as_chunks();
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let qs = u64::from_le_bytes(qs[i]);
        let entries = [0, 16, 32, 48].map(|shift| IQ2XS[(qs >> shift & 511) as usize]);
        let factors = [scales[i], scales[i] >> 4].map(|sc| factor(d, sc));
        put_products(entries, factors, signs[i], out);
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq2_s<L: Line>(block: &[u8; 82], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 32, signs: 32, qh: 8, scales: 8);
    let d = half(*d);
    let (qs, _) = qs.as_chunks::<4>();
    let (signs, _) = signs.as_chunks();
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let qh = usize::from(qh[i]) << 8;
        let entries = [0, 1, 2, 3].map(|j| IQ2S[usize::from(qs[i][j]) | qh >> (2 * j) & 0x300]);
        let factors = [scales[i], scales[i] >> 4].map(|sc| factor(d, sc));
        put_products(entries, factors, u32::from_le_bytes(signs[i]), out);
    }
}
