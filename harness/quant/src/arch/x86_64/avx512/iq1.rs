//! IQ1_S, IQ1_M.

use core::arch::x86_64::*;

use super::{half, look_up, numbers, put};
use crate::arch::x86_64::grid::{IQ1_FACTORS, IQ1S};
use crate::arch::x86_64::{Line, fields};

/// Two entries.
#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn join(first: usize, second: usize) -> __m128i {
    _mm_set_epi64x(IQ1S[second] as i64, IQ1S[first] as i64)
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn iq1_s<L: Line>(block: &[u8; 50], out: &mut [L; 16]) {
    fields!(block => d: 2, qs: 32, qh: 16);
    let d = half(*d);
    let (out, _) = out.as_chunks_mut::<2>();
    for ((qs, qh), out) in qs.as_chunks::<4>().0.iter().zip(qh.as_chunks().0).zip(out) {
        let qh = usize::from(u16::from_le_bytes(*qh));
        let factor = _mm512_mul_ps(d, _mm512_set1_ps(IQ1_FACTORS[qh >> 12 & 7]));
        let table = _mm512_mul_ps(factor, levels(if qh >> 15 == 1 { -0.125 } else { 0.125 }));
        let index = |i: usize, high: usize| usize::from(qs[i]) | (high & 7) << 8;
        let first = join(index(0, qh), index(1, qh >> 3));
        let second = join(index(2, qh >> 6), index(3, qh >> 9));
        put(&mut out[0], look_up(table, _mm512_cvtepu8_epi32(first)));
        put(&mut out[1], look_up(table, _mm512_cvtepu8_epi32(second)));
    }
}

/// By the four low bits of -1, 0 and 1, these numbers and `delta`.
#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn levels(delta: f32) -> __m512 {
    let levels = _mm512_setr_ps(0., 1., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., -1.);
    _mm512_add_ps(levels, _mm512_set1_ps(delta))
}

/// By the signs of the deltas of two entries, those of their 16 elements.
static DELTAS: [[f32; 16]; 4] = {
    const P: f32 = 0.125;
    const N: f32 = -P;
    [
        [P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P],
        [N, N, N, N, N, N, N, N, P, P, P, P, P, P, P, P],
        [P, P, P, P, P, P, P, P, N, N, N, N, N, N, N, N],
        [N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N],
    ]
};

#[target_feature(enable = "avx512bw,avx512vl,bmi2")]
#[inline]
pub(super) fn iq1_m<L: Line>(block: &[u8; 56], out: &mut [L; 16]) {
    fields!(block => qs: 32, qh: 16, scales: 8);
    let d =
        half((_pext_u64(u64::from_le_bytes(*scales), 0xF000_F000_F000_F000) as u16).to_le_bytes());
    let (scales, _) = scales.as_chunks();
    let (qs, _) = qs.as_chunks::<4>();
    let (qs, _) = qs.as_chunks::<2>();
    let (qh, _) = qh.as_chunks::<2>();
    let (qh, _) = qh.as_chunks::<2>();
    for (i, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let scales = u16::from_le_bytes(scales[i]);
        for (j, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let qh = u16::from_le_bytes(qh[i][j]).into();
            // Four of 16 bits, with the sign of the delta above each.
            let indices = _pdep_u64(u32::from_le_bytes(qs[i][j]).into(), 0x00FF_00FF_00FF_00FF)
                | _pdep_u64(qh, 0x0F00_0F00_0F00_0F00);
            let signs = _pext_u64(qh, 0x8888) as usize;
            let scales = scales >> (6 * j);
            put(&mut out[0], with_deltas(d, scales, &DELTAS[signs & 3], indices));
            put(&mut out[1], with_deltas(d, scales >> 3, &DELTAS[signs >> 2 & 3], indices >> 32));
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn with_deltas(d: __m512, sc: u16, deltas: &[f32; 16], indices: u64) -> __m512 {
    let factor = _mm512_mul_ps(d, _mm512_set1_ps(IQ1_FACTORS[usize::from(sc & 7)]));
    let entries = join((indices & 2047) as usize, (indices >> 16 & 2047) as usize);
    let levels = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(entries));
    _mm512_mul_ps(factor, _mm512_add_ps(levels, numbers(deltas)))
}
