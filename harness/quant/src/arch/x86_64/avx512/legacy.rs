//! Blocks of 32 elements with one scale.

use core::arch::x86_64::*;

use super::{count_from, half, look_up, put, signed, widen};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q4_0<L: Line>(block: &[u8; 18], out: &mut [L; 2]) {
    fields!(block => d: 2, qs: 16);
    let table = _mm512_mul_ps(count_from(-8.0), half(*d));
    let qs = widen(qs);
    put(&mut out[0], look_up(table, qs));
    put(&mut out[1], look_up(table, _mm512_srli_epi32::<4>(qs)));
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q4_1<L: Line>(block: &[u8; 20], out: &mut [L; 2]) {
    fields!(block => d: 2, m: 2, qs: 16);
    let table = _mm512_fmadd_ps(count_from(0.0), half(*d), half(*m));
    let qs = widen(qs);
    put(&mut out[0], look_up(table, qs));
    put(&mut out[1], look_up(table, _mm512_srli_epi32::<4>(qs)));
}

/// Writes what two tables have for the four low bits, the second for elements whose fifth bit is
/// set.
#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn put_five_bits<L: Line>(tables: [__m512; 2], qh: [u8; 4], qs: &[u8; 16], out: &mut [L; 2]) {
    let fifth = u32::from_le_bytes(qh);
    let qs = widen(qs);
    let digits = [(qs, fifth as u16), (_mm512_srli_epi32::<4>(qs), (fifth >> 16) as u16)];
    for (line, (digits, fifth)) in out.iter_mut().zip(digits) {
        let numbers = look_up(tables[0], digits);
        put(line, _mm512_mask_permutexvar_ps(numbers, fifth, digits, tables[1]));
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q5_0<L: Line>(block: &[u8; 22], out: &mut [L; 2]) {
    fields!(block => d: 2, qh: 4, qs: 16);
    let d = half(*d);
    let tables = [_mm512_mul_ps(count_from(-16.0), d), _mm512_mul_ps(count_from(0.0), d)];
    put_five_bits(tables, *qh, qs, out);
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q5_1<L: Line>(block: &[u8; 24], out: &mut [L; 2]) {
    fields!(block => d: 2, m: 2, qh: 4, qs: 16);
    let (d, m) = (half(*d), half(*m));
    let tables = [_mm512_fmadd_ps(count_from(0.0), d, m), _mm512_fmadd_ps(count_from(16.0), d, m)];
    put_five_bits(tables, *qh, qs, out);
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q8_0<L: Line>(block: &[u8; 34], out: &mut [L; 2]) {
    fields!(block => d: 2, first: 16, second: 16);
    put_products(half(*d), [first, second], out);
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q8_1<L: Line>(block: &[u8; 36], out: &mut [L; 2]) {
    fields!(block => d: 2, _s: 2, first: 16, second: 16);
    put_products(half(*d), [first, second], out);
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn put_products<L: Line>(d: __m512, qs: [&[u8; 16]; 2], out: &mut [L; 2]) {
    put(&mut out[0], _mm512_mul_ps(signed(qs[0]), d));
    put(&mut out[1], _mm512_mul_ps(signed(qs[1]), d));
}
