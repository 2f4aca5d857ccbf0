//! Three levels and one scale.

use core::arch::x86_64::*;

use super::bits::{look_up, two_bit_levels};
use super::{half, load, put, widen};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn tq1_0<L: Line>(block: &[u8; 54], out: &mut [L; 16]) {
    fields!(block => qs: 48, qh: 4, d: 2);
    let table = _mm256_mul_ps(two_bit_levels(), half(*d));
    let ([qs_0, qs_1, qs_2], _) = qs.as_chunks() else { unreachable!("48 bytes") };

    // What is left of each fraction after a digit; 256 is one.
    let mut fractions = [widen(load(qs_0)), widen(load(qs_1))];
    for lines in out[..10].as_chunks_mut::<2>().0 {
        for (line, fractions) in lines.iter_mut().zip(&mut fractions) {
            put(line, next_digits(fractions).map(|digits| look_up(table, digits)));
        }
    }
    let mut fractions = widen(load(qs_2));
    for line in &mut out[10..15] {
        put(line, next_digits(&mut fractions).map(|digits| look_up(table, digits)));
    }
    // Four bytes, twice, to be begun at the first digit and the second, the third and the fourth.
    let bytes = _mm256_cvtepu8_epi32(_mm_set1_epi32(i32::from_le_bytes(*qh)));
    let powers =
        [_mm256_setr_epi32(1, 1, 1, 1, 3, 3, 3, 3), _mm256_setr_epi32(9, 9, 9, 9, 27, 27, 27, 27)];
    let mut fractions = powers
        .map(|powers| _mm256_and_si256(_mm256_mullo_epi32(bytes, powers), _mm256_set1_epi32(0xFF)));
    put(&mut out[15], next_digits(&mut fractions).map(|digits| look_up(table, digits)));
}

#[target_feature(enable = "avx2")]
#[inline]
fn next_digits(fractions: &mut [__m256i; 2]) -> [__m256i; 2] {
    let thrice = fractions.map(|f| _mm256_add_epi32(f, _mm256_slli_epi32::<1>(f)));
    *fractions = thrice.map(|thrice| _mm256_and_si256(thrice, _mm256_set1_epi32(0xFF)));
    thrice.map(|thrice| _mm256_srli_epi32::<8>(thrice))
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn tq2_0<L: Line>(block: &[u8; 66], out: &mut [L; 16]) {
    fields!(block => qs: 64, d: 2);
    let table = _mm256_mul_ps(two_bit_levels(), half(*d));
    for (lines, qs) in out.as_chunks_mut::<8>().0.iter_mut().zip(qs.as_chunks::<32>().0) {
        fields!(qs => low: 16, high: 16);
        let mut digits = [widen(load(low)), widen(load(high))];
        for lines in lines.as_chunks_mut::<2>().0 {
            for (line, digits) in lines.iter_mut().zip(&mut digits) {
                put(line, digits.map(|digits| look_up(table, digits)));
                *digits = digits.map(|digits| _mm256_srli_epi32::<2>(digits));
            }
        }
    }
}
