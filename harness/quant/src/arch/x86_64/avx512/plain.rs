//! Plain numbers, 16 in a step.

use core::arch::x86_64::*;

use super::{load, load_32, load_64, put, signed};
use crate::arch::x86_64::avx2::plain::half_of_e4m3;
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn f32<L: Line>(block: &[u8; 64], out: &mut [L; 1]) {
    put(&mut out[0], _mm512_castsi512_ps(load_64(block)));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn f16<L: Line>(block: &[u8; 32], out: &mut [L; 1]) {
    put(&mut out[0], _mm512_cvtph_ps(load_32(block)));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn bf16<L: Line>(block: &[u8; 32], out: &mut [L; 1]) {
    let upper = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load_32(block)));
    put(&mut out[0], _mm512_castsi512_ps(upper));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn f8_e4m3<L: Line>(block: &[u8; 16], out: &mut [L; 1]) {
    let halves = _mm512_cvtph_ps(half_of_e4m3(load(block)));
    put(&mut out[0], _mm512_mul_ps(halves, _mm512_set1_ps(256.0)));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn i8<L: Line>(block: &[u8; 16], out: &mut [L; 1]) {
    put(&mut out[0], signed(block));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn i16<L: Line>(block: &[u8; 32], out: &mut [L; 1]) {
    put(&mut out[0], _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(load_32(block))));
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn i32<L: Line>(block: &[u8; 64], out: &mut [L; 1]) {
    put(&mut out[0], _mm512_cvtepi32_ps(load_64(block)));
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn i64<L: Line>(block: &[u8; 128], out: &mut [L; 1]) {
    fields!(block => low: 64, high: 64);
    let (low, high) = (_mm512_cvtepi64_ps(load_64(low)), _mm512_cvtepi64_ps(load_64(high)));
    put(&mut out[0], _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high));
}

#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub(super) fn f64<L: Line>(block: &[u8; 128], out: &mut [L; 1]) {
    fields!(block => low: 64, high: 64);
    let [low, high] = [low, high].map(|half| _mm512_cvtpd_ps(_mm512_castsi512_pd(load_64(half))));
    put(&mut out[0], _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high));
}
