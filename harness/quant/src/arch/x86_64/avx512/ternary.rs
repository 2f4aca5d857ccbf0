//! Three levels and one scale.

use core::arch::x86_64::*;

use super::bits::two_bit_levels;
use super::{half, look_up, put, widen};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn tq1_0<L: Line>(block: &[u8; 54], out: &mut [L; 16]) {
    fields!(block => qs: 48, qh: 4, d: 2);
    let table = _mm512_mul_ps(two_bit_levels(), half(*d));
    let ([qs_0, qs_1, qs_2], _) = qs.as_chunks() else { unreachable!("48 bytes") };

    // What is left of each fraction after a digit; 256 is one.
    let mut fractions = [widen(qs_0), widen(qs_1)];
    for lines in out[..10].as_chunks_mut::<2>().0 {
        for (line, fraction) in lines.iter_mut().zip(&mut fractions) {
            put(line, look_up(table, next_digit(fraction)));
        }
    }
    let mut fraction = widen(qs_2);
    for line in &mut out[10..15] {
        put(line, look_up(table, next_digit(&mut fraction)));
    }
    // Four bytes, four times, to be begun at the first digit, the second and so on.
    let bytes = _mm512_cvtepu8_epi32(_mm_set1_epi32(i32::from_le_bytes(*qh)));
    let powers = _mm512_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27);
    let rest = _mm512_mullo_epi32(bytes, powers);
    let mut fraction = _mm512_and_epi32(rest, _mm512_set1_epi32(0xFF));
    put(&mut out[15], look_up(table, next_digit(&mut fraction)));
}

#[target_feature(enable = "avx512f")]
#[inline]
fn next_digit(fraction: &mut __m512i) -> __m512i {
    let thrice = _mm512_add_epi32(*fraction, _mm512_slli_epi32::<1>(*fraction));
    *fraction = _mm512_and_epi32(thrice, _mm512_set1_epi32(0xFF));
    _mm512_srli_epi32::<8>(thrice)
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn tq2_0<L: Line>(block: &[u8; 66], out: &mut [L; 16]) {
    fields!(block => qs: 64, d: 2);
    let table = _mm512_mul_ps(two_bit_levels(), half(*d));
    for (lines, qs) in out.as_chunks_mut::<8>().0.iter_mut().zip(qs.as_chunks::<32>().0) {
        fields!(qs => low: 16, high: 16);
        let mut digits = [widen(low), widen(high)];
        for lines in lines.as_chunks_mut::<2>().0 {
            for (line, digits) in lines.iter_mut().zip(&mut digits) {
                put(line, look_up(table, *digits));
                *digits = _mm512_srli_epi32::<2>(*digits);
            }
        }
    }
}
