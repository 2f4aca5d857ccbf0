//! IQ2_XXS, IQ2_XS, IQ2_S: 64 elements at a time, which have as many signs as a word has bits.

use core::arch::x86_64::*;

use super::sign::{complete, signed_products};
use super::{half, put};
use crate::arch::x86_64::grid::{IQ2_FACTORS, IQ2S, IQ2XS, IQ2XXS};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn factor(d: __m512, sc: u8) -> __m512 {
    _mm512_mul_ps(d, _mm512_set1_ps(IQ2_FACTORS[usize::from(sc & 0xF)]))
}

/// The factors of two bytes of scales.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn factors(d: __m512, [a, b]: [u8; 2]) -> [__m512; 4] {
    [a, a >> 4, b, b >> 4].map(|sc| factor(d, sc))
}

/// Writes the products of entries and factors, with signs.
///
/// Takes a function to find an entry, and not the entries: their indices are then loaded where they
/// are needed, instead of all in a word that has to be taken apart.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn put_products<L: Line>(
    entry: impl Fn(usize) -> u64,
    factors: [__m512; 4],
    signs: u64,
    out: &mut [L; 4],
) {
    for (i, line) in out.iter_mut().enumerate() {
        let pair = _mm_set_epi64x(entry(2 * i + 1) as i64, entry(2 * i) as i64);
        put(line, signed_products(pair, factors[i], (signs >> (16 * i)) as u16));
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,bmi2")]
#[inline]
pub(super) fn iq2_xxs<L: Line>(block: &[u8; 66], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64);
    let d = half(*d);
    let (qs, _) = qs.as_chunks::<4>();
    let (qs, _) = qs.as_chunks::<4>();
    for (qs, out) in qs.iter().zip(out.as_chunks_mut().0) {
        let entry = |i: usize| IQ2XXS[usize::from(qs[2 * (i / 4)][i % 4])];
        let [first, second] = [qs[1], qs[3]].map(u32::from_le_bytes);
        let sevens = u64::from(first & 0xFFF_FFFF) | u64::from(second) << 28;
        let [first, second] = [first, second].map(|word| factor(d, (word >> 28) as u8));
        put_products(entry, [first, first, second, second], complete(sevens), out);
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,bmi2")]
#[inline]
pub(super) fn iq2_xs<L: Line>(block: &[u8; 74], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, scales: 8);
    let d = half(*d);
    let (qs, _) = qs.as_chunks::<8>();
    let (qs, _) = qs.as_chunks::<2>();
    let (scales, _) = scales.as_chunks();
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let qs = qs[i].map(u64::from_le_bytes);
        let entry = |i: usize| IQ2XS[(qs[i / 4] >> (16 * (i % 4)) & 511) as usize];
        let [first, second] = qs.map(|qs| _pext_u64(qs, 0xFE00_FE00_FE00_FE00));
        put_products(entry, factors(d, scales[i]), complete(first | second << 28), out);
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
pub(super) fn iq2_s<L: Line>(block: &[u8; 82], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 32, signs: 32, qh: 8, scales: 8);
    let d = half(*d);
    let (qs, _) = qs.as_chunks::<8>();
    let (signs, _) = signs.as_chunks();
    let (qh, _) = qh.as_chunks();
    let (scales, _) = scales.as_chunks();
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let qh = usize::from(u16::from_le_bytes(qh[i])) << 8;
        let entry = |j: usize| IQ2S[usize::from(qs[i][j]) | qh >> (2 * j) & 0x300];
        put_products(entry, factors(d, scales[i]), u64::from_le_bytes(signs[i]), out);
    }
}
