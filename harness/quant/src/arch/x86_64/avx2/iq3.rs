//! IQ3_XXS, IQ3_S.

use core::arch::x86_64::*;

use super::sign::{self, signed_products, spread};
use super::{half, put};
use crate::arch::x86_64::grid::{IQ3_S_FACTORS, IQ3_XXS_FACTORS, IQ3S, IQ3XXS};
use crate::arch::x86_64::{Line, fields};

/// Writes the products of eight entries and a factor, with signs.
#[target_feature(enable = "avx2")]
#[inline]
fn put_products<L: Line>(entries: [u32; 8], factor: __m256, signs: u32, out: &mut [L; 2]) {
    let signs = spread(signs);
    let products = |i: usize| {
        let entry = u64::from(entries[2 * i]) | u64::from(entries[2 * i + 1]) << 32;
        signed_products(entry, factor, signs[i])
    };
    put(&mut out[0], [products(0), products(1)]);
    put(&mut out[1], [products(2), products(3)]);
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq3_xxs<L: Line>(block: &[u8; 98], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, scales_and_signs: 32);
    let d = half(*d);
    let signs = sign::signs_in_words(scales_and_signs);
    let (scales, _) = scales_and_signs.as_chunks::<4>();
    let (qs, _) = qs.as_chunks::<8>();
    let (out, _) = out.as_chunks_mut();
    for (((qs, scale), signs), out) in qs.iter().zip(scales).zip(&signs).zip(out) {
        let sc = usize::from(scale[3] >> 4);
        let factor = _mm256_mul_ps(d, _mm256_set1_ps(IQ3_XXS_FACTORS[sc]));
        put_products(qs.map(|index| IQ3XXS[usize::from(index)]), factor, *signs, out);
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq3_s<L: Line>(block: &[u8; 110], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 64, qh: 8, signs: 32, scales: 4);
    let d = half(*d);
    let scales = u32::from_le_bytes(*scales);
    let (out, _) = out.as_chunks_mut();
    let (qs, _) = qs.as_chunks::<8>();
    let (signs, _) = signs.as_chunks();
    for (i, (((qs, qh), signs), out)) in qs.iter().zip(qh).zip(signs).zip(out).enumerate() {
        let sc = (scales >> (4 * i) & 0xF) as usize;
        let factor = _mm256_mul_ps(d, _mm256_set1_ps(IQ3_S_FACTORS[sc]));
        let qh = usize::from(*qh) << 8;
        let entry = |i: usize| IQ3S[usize::from(qs[i]) | qh >> i & 0x100];
        let entries = [0, 1, 2, 3, 4, 5, 6, 7].map(entry);
        put_products(entries, factor, u32::from_le_bytes(*signs), out);
    }
}
