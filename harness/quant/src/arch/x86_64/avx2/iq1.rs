//! IQ1_S, IQ1_M.

use core::arch::x86_64::*;

use super::{half, numbers, put};
use crate::arch::x86_64::grid::{IQ1_FACTORS, IQ1S};
use crate::arch::x86_64::{Line, fields};

/// By the sign of the delta and the three low bits of -1, 0 and 1, these numbers with the delta.
static LEVELS: [[f32; 8]; 2] = [
    [0.125, 1.125, 0.0, 0.0, 0.0, 0.0, 0.0, -0.875],
    [-0.125, 0.875, 0.0, 0.0, 0.0, 0.0, 0.0, -1.125],
];

#[target_feature(enable = "avx2")]
#[inline]
fn factor(d: __m256, sc: u16) -> __m256 {
    _mm256_mul_ps(d, _mm256_set1_ps(IQ1_FACTORS[usize::from(sc & 7)]))
}

/// The products of the levels and a factor; `delta`'s lowest bit is the sign.
#[target_feature(enable = "avx2")]
#[inline]
fn table(factor: __m256, delta: u16) -> __m256 {
    _mm256_mul_ps(factor, numbers(&LEVELS[usize::from(delta & 1)]))
}

/// Looks up the elements of an entry: their three low bits are enough to tell them apart.
#[target_feature(enable = "avx2")]
#[inline]
fn look_up(table: __m256, low: u8, high: u16) -> __m256 {
    let entry = IQ1S[usize::from(low) | usize::from(high & 7) << 8];
    let indices = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(entry as i64));
    _mm256_permutevar8x32_ps(table, indices)
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq1_s<L: Line>(block: &[u8; 50], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 32, qh: 16);
    let d = half(*d);
    let (out, _) = out.as_chunks_mut::<2>();
    for ((qs, qh), out) in qs.as_chunks::<4>().0.iter().zip(qh.as_chunks().0).zip(out) {
        let qh = u16::from_le_bytes(*qh);
        let table = table(factor(d, qh >> 12), qh >> 15);
        put(&mut out[0], [look_up(table, qs[0], qh), look_up(table, qs[1], qh >> 3)]);
        put(&mut out[1], [look_up(table, qs[2], qh >> 6), look_up(table, qs[3], qh >> 9)]);
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn iq1_m<L: Line>(block: &[u8; 56], out: &mut [L; 16]) {
    fields!(block => qs: 32, qh: 16, scales: 8);
    let (scales, _) = scales.as_chunks();
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| u16::from_le_bytes(scales[i]));
    let d = half((a >> 12 | b >> 8 & 0xF0 | c >> 4 & 0xF00 | d & 0xF000).to_le_bytes());
    let (qs, _) = qs.as_chunks::<2>();
    let (qs, _) = qs.as_chunks::<4>();
    let (qh, _) = qh.as_chunks::<4>();
    for (i, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let scales = u16::from_le_bytes(scales[i]);
        for (j, line) in out.iter_mut().enumerate() {
            let factor = factor(d, scales >> (3 * j));
            let qh = u16::from(qh[i][j]);
            let first = look_up(table(factor, qh >> 3), qs[i][j][0], qh);
            let second = look_up(table(factor, qh >> 7), qs[i][j][1], qh >> 4);
            put(line, [first, second]);
        }
    }
}
