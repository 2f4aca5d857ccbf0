//! AVX-512: F, BW, DQ and VL, which rustc's `avx512f` completes with AVX2, FMA and F16C, and BMI2.
//!
//! Most kernels look numbers up: the products of the levels of a sub-block and its scale are 16 at
//! most, so they are computed once, into one register, and each element is a permutation of it.

mod bits;
mod fp4;
mod iq1;
mod iq2;
mod iq3;
mod iq4;
mod k;
mod legacy;
mod plain;
mod sign;
mod ternary;

use core::arch::x86_64::*;

use super::avx2::{load, load_32};
use super::{Line, entries, missing_features};

/// What is not there, of what has to be.
pub(crate) fn missing() -> Vec<&'static str> {
    missing_features!("avx512f", "avx512bw", "avx512dq", "avx512vl", "bmi2")
}

entries! {
    "avx512bw,avx512dq,avx512vl,bmi2";
    plain::f32: F32,
    plain::f16: F16,
    legacy::q4_0: Q4_0,
    legacy::q4_1: Q4_1,
    legacy::q5_0: Q5_0,
    legacy::q5_1: Q5_1,
    legacy::q8_0: Q8_0,
    legacy::q8_1: Q8_1,
    k::q2_k: Q2_K,
    k::q3_k: Q3_K,
    k::q4_k: Q4_K,
    k::q5_k: Q5_K,
    k::q6_k: Q6_K,
    k::q8_k: Q8_K,
    iq2::iq2_xxs: IQ2_XXS,
    iq2::iq2_xs: IQ2_XS,
    iq3::iq3_xxs: IQ3_XXS,
    iq1::iq1_s: IQ1_S,
    iq4::iq4_nl: IQ4_NL,
    iq3::iq3_s: IQ3_S,
    iq2::iq2_s: IQ2_S,
    iq4::iq4_xs: IQ4_XS,
    plain::i8: I8,
    plain::i16: I16,
    plain::i32: I32,
    plain::i64: I64,
    plain::f64: F64,
    iq1::iq1_m: IQ1_M,
    plain::bf16: BF16,
    ternary::tq1_0: TQ1_0,
    ternary::tq2_0: TQ2_0,
    fp4::mxfp4: MXFP4,
    fp4::nvfp4: NVFP4,
    bits::q1_0: Q1_0,
    bits::q2_0: Q2_0,
    plain::f8_e4m3: F8_E4M3,
}

/// 16 numbers into their place.
#[target_feature(enable = "avx512f")]
#[inline]
fn put<L: Line>(line: &mut L, numbers: __m512) {
    let to = (&raw mut *line).cast::<f32>();
    if L::STREAMED {
        // SAFETY: a line is 16 `f32`, and this one is aligned to 64 bytes (`Line`).
        unsafe { _mm512_stream_ps(to, numbers) }
    } else {
        // SAFETY: a line is 16 `f32` (`Line`).
        unsafe { _mm512_storeu_ps(to, numbers) }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_64(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: there are 64 bytes to read.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn numbers(numbers: &[f32; 16]) -> __m512 {
    // SAFETY: there are 16 numbers to read.
    unsafe { _mm512_loadu_ps(numbers.as_ptr()) }
}

/// 16 bytes as 16 lanes.
#[target_feature(enable = "avx512f")]
#[inline]
fn widen(bytes: &[u8; 16]) -> __m512i {
    _mm512_cvtepu8_epi32(load(bytes))
}

/// 16 signed bytes as numbers.
#[target_feature(enable = "avx512f")]
#[inline]
fn signed(bytes: &[u8; 16]) -> __m512 {
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load(bytes)))
}

/// A half-precision number in each lane.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn half(bytes: [u8; 2]) -> __m512 {
    _mm512_cvtph_ps(_mm256_set1_epi16(i16::from_le_bytes(bytes)))
}

/// The numbers from `first` on.
#[target_feature(enable = "avx512f")]
#[inline]
fn count_from(first: f32) -> __m512 {
    let from_zero = _mm512_setr_ps(
        0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
    );
    _mm512_add_ps(from_zero, _mm512_set1_ps(first))
}

/// Of each lane of `indices` the four low bits select a lane of `table`.
#[target_feature(enable = "avx512f")]
#[inline]
fn look_up(table: __m512, indices: __m512i) -> __m512 {
    _mm512_permutexvar_ps(indices, table)
}
