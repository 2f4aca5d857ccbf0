//! IQ3_XXS, IQ3_S: 64 elements at a time, which have as many signs as a word has bits.

use core::arch::x86_64::*;

use super::sign::{complete, signed_products};
use super::{half, put};
use crate::arch::x86_64::grid::{IQ3_S_FACTORS, IQ3_XXS_FACTORS, IQ3S, IQ3XXS};
use crate::arch::x86_64::{Line, fields};

/// Writes the products of entries and factors, with signs.
///
/// Takes a function to find an entry, and not the entries: their indices are then loaded where they
/// are needed, instead of all in a word that has to be taken apart.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl")]
#[inline]
fn put_products<L: Line>(
    entry: impl Fn(usize) -> u32,
    factors: [__m512; 2],
    signs: u64,
    out: &mut [L; 4],
) {
    for (i, line) in out.iter_mut().enumerate() {
        let [a, b, c, d] = [0, 1, 2, 3].map(|j| entry(4 * i + j) as i32);
        let four = _mm_setr_epi32(a, b, c, d);
        put(line, signed_products(four, factors[i / 2], (signs >> (16 * i)) as u16));
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,bmi2")]
#[inline]
pub(super) fn iq3_xxs<L: Line>(block: &[u8; 98], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, scales_and_signs: 32);
    let d = half(*d);
    let (qs, _) = qs.as_chunks::<16>();
    let (words, _) = scales_and_signs.as_chunks();
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let entry = |j: usize| IQ3XXS[usize::from(qs[i][j])];
        let words = u64::from_le_bytes(words[i]);
        let factors = [words >> 28 & 0xF, words >> 60]
            .map(|sc| _mm512_mul_ps(d, _mm512_set1_ps(IQ3_XXS_FACTORS[sc as usize])));
        let sevens = _pext_u64(words, 0x0FFF_FFFF_0FFF_FFFF);
        put_products(entry, factors, complete(sevens), out);
    }
}

#[target_feature(enable = "avx512bw,avx512dq,avx512vl,bmi2")]
#[inline]
pub(super) fn iq3_s<L: Line>(block: &[u8; 110], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, qh: 8, signs: 32, scales: 4);
    let d = half(*d);
    let (qs, _) = qs.as_chunks::<4>();
    let (qs, _) = qs.as_chunks::<4>();
    let (qh, _) = qh.as_chunks();
    let (signs, _) = signs.as_chunks();
    for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let qh = u64::from(u16::from_le_bytes(qh[i]));
        // Four indices in each.
        let indices = [0, 1, 2, 3].map(|j| {
            let low = u64::from(u32::from_le_bytes(qs[i][j]));
            _pdep_u64(low, 0x00FF_00FF_00FF_00FF) | _pdep_u64(qh >> (4 * j), 0x0100_0100_0100_0100)
        });
        let entry = |j: usize| IQ3S[(indices[j / 4] >> (16 * (j % 4)) & 511) as usize];
        let factors = [scales[i], scales[i] >> 4]
            .map(|sc| _mm512_mul_ps(d, _mm512_set1_ps(IQ3_S_FACTORS[usize::from(sc & 0xF)])));
        put_products(entry, factors, u64::from_le_bytes(signs[i]), out);
    }
}
