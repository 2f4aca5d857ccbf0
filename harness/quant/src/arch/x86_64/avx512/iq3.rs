//! IQ3_XXS, IQ3_S.

use core::arch::x86_64::*;

use super::{half, put, signed_products};
use crate::arch::x86_64::grid::{self, IQ3_S_FACTORS, IQ3_XXS_FACTORS, IQ3S, IQ3XXS};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn join([a, b, c, d]: [u32; 4]) -> __m128i {
    _mm_setr_epi32(a as i32, b as i32, c as i32, d as i32)
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn iq3_xxs<L: Line>(block: &[u8; 98], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, scales_and_signs: 32);
    let d = half(*d);
    let signs = grid::signs_in_words(scales_and_signs);
    let (scales, _) = scales_and_signs.as_chunks::<4>();
    let (out, _) = out.as_chunks_mut::<2>();
    for (((qs, scale), signs), out) in qs.as_chunks::<8>().0.iter().zip(scales).zip(signs).zip(out)
    {
        let factor = _mm512_mul_ps(d, _mm512_set1_ps(IQ3_XXS_FACTORS[usize::from(scale[3] >> 4)]));
        let entry = |i: usize| IQ3XXS[usize::from(qs[i])];
        let first = join([entry(0), entry(1), entry(2), entry(3)]);
        let second = join([entry(4), entry(5), entry(6), entry(7)]);
        put(&mut out[0], signed_products(first, factor, signs as u16));
        put(&mut out[1], signed_products(second, factor, (signs >> 16) as u16));
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn iq3_s<L: Line>(block: &[u8; 110], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, qh: 8, signs: 32, scales: 4);
    let d = half(*d);
    let scales = u32::from_le_bytes(*scales);
    let (out, _) = out.as_chunks_mut::<2>();
    let (qs, _) = qs.as_chunks::<8>();
    let (signs, _) = signs.as_chunks();
    for (i, (((qs, qh), signs), out)) in qs.iter().zip(qh).zip(signs).zip(out).enumerate() {
        let sc = (scales >> (4 * i) & 0xF) as usize;
        let factor = _mm512_mul_ps(d, _mm512_set1_ps(IQ3_S_FACTORS[sc]));
        let qh = usize::from(*qh) << 8;
        let entry = |i: usize| IQ3S[usize::from(qs[i]) | qh >> i & 0x100];
        let first = join([entry(0), entry(1), entry(2), entry(3)]);
        let second = join([entry(4), entry(5), entry(6), entry(7)]);
        let signs = u32::from_le_bytes(*signs);
        put(&mut out[0], signed_products(first, factor, signs as u16));
        put(&mut out[1], signed_products(second, factor, (signs >> 16) as u16));
    }
}
