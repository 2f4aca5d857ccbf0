//! IQ2_XXS, IQ2_XS, IQ2_S.

use core::arch::x86_64::*;

use super::{half, put, signed_products};
use crate::arch::x86_64::grid::{self, IQ2_FACTORS, IQ2S, IQ2XS, IQ2XXS};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn factor(d: __m512, sc: u8) -> __m512 {
    _mm512_mul_ps(d, _mm512_set1_ps(IQ2_FACTORS[usize::from(sc & 0xF)]))
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn join(first: u64, second: u64) -> __m128i {
    _mm_set_epi64x(second as i64, first as i64)
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn iq2_xxs<L: Line>(block: &[u8; 66], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64);
    let d = half(*d);
    let signs = grid::signs_in_odd_words(qs);
    let (out, _) = out.as_chunks_mut::<2>();
    for ((qs, signs), out) in qs.as_chunks::<8>().0.iter().zip(signs).zip(out) {
        let factor = factor(d, qs[7] >> 4);
        let entry = |i: usize| IQ2XXS[usize::from(qs[i])];
        put(&mut out[0], signed_products(join(entry(0), entry(1)), factor, signs as u16));
        put(&mut out[1], signed_products(join(entry(2), entry(3)), factor, (signs >> 16) as u16));
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn iq2_xs<L: Line>(block: &[u8; 74], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, scales: 8);
    let d = half(*d);
    let signs = grid::signs_in_high_bits(qs);
    let (out, _) = out.as_chunks_mut::<2>();
    let parts = qs.as_chunks::<8>().0.iter().zip(scales).zip(signs);
    for (((qs, scales), signs), out) in parts.zip(out) {
        let (qs, _) = qs.as_chunks();
        let entry = |i: usize| IQ2XS[usize::from(u16::from_le_bytes(qs[i]) & 511)];
        let [low, high] = [*scales, scales >> 4].map(|sc| factor(d, sc));
        put(&mut out[0], signed_products(join(entry(0), entry(1)), low, signs as u16));
        put(&mut out[1], signed_products(join(entry(2), entry(3)), high, (signs >> 16) as u16));
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn iq2_s<L: Line>(block: &[u8; 82], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 32, signs: 32, qh: 8, scales: 8);
    let d = half(*d);
    let (out, _) = out.as_chunks_mut::<2>();
    let (qs, _) = qs.as_chunks::<4>();
    let (signs, _) = signs.as_chunks();
    for ((((qs, signs), qh), scales), out) in qs.iter().zip(signs).zip(qh).zip(scales).zip(out) {
        let qh = usize::from(*qh) << 8;
        let entry = |i: usize| IQ2S[usize::from(qs[i]) | qh >> (2 * i) & 0x300];
        let [low, high] = [*scales, scales >> 4].map(|sc| factor(d, sc));
        let signs = u32::from_le_bytes(*signs);
        put(&mut out[0], signed_products(join(entry(0), entry(1)), low, signs as u16));
        put(&mut out[1], signed_products(join(entry(2), entry(3)), high, (signs >> 16) as u16));
    }
}
