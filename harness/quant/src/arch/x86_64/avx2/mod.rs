//! AVX2, with FMA, F16C and BMI2.

mod bits;
mod fp4;
mod iq1;
mod iq2;
mod iq3;
mod iq4;
mod k;
mod legacy;
pub(super) mod plain;
mod sign;
mod ternary;

use core::arch::x86_64::*;

use super::{Line, entries, missing_features};

/// What is not there, of what has to be.
pub(crate) fn missing() -> Vec<&'static str> {
    missing_features!("avx2", "fma", "f16c", "bmi2")
}

entries! {
    "avx2,fma,f16c,bmi2";
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
#[target_feature(enable = "avx2")]
#[inline]
fn put<L: Line>(line: &mut L, numbers: [__m256; 2]) {
    let [low, high] = numbers;
    let (line, _) = lanes(line).as_chunks_mut::<8>();
    let [to_low, to_high] = line else { unreachable!("a line is 16 numbers") };
    if L::STREAMED {
        // SAFETY: the first 8 of 16 `f32` that are aligned to 64 bytes (`Line`).
        unsafe { _mm256_stream_ps(to_low.as_mut_ptr(), low) };
        // SAFETY: the last 8 of 16 `f32` that are aligned to 64 bytes (`Line`), so 32 bytes on.
        unsafe { _mm256_stream_ps(to_high.as_mut_ptr(), high) };
    } else {
        // SAFETY: there is room for 8 `f32`.
        unsafe { _mm256_storeu_ps(to_low.as_mut_ptr(), low) };
        // SAFETY: there is room for 8 `f32`.
        unsafe { _mm256_storeu_ps(to_high.as_mut_ptr(), high) };
    }
}

#[inline]
fn lanes<L: Line>(line: &mut L) -> &mut [f32; 16] {
    // SAFETY: a line is 16 `f32` and nothing else (`Line`).
    unsafe { &mut *(&raw mut *line).cast() }
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: there are 16 bytes to read.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 16 bytes as 16 lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn widen(bytes: __m128i) -> [__m256i; 2] {
    let high = _mm_unpackhi_epi64(bytes, bytes);
    [bytes, high].map(|bytes| _mm256_cvtepu8_epi32(bytes))
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_8(bytes: &[u8; 8]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*bytes))
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn load_32(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: there are 32 bytes to read.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn numbers(numbers: &[f32; 8]) -> __m256 {
    // SAFETY: there are 8 numbers to read.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}

/// 16 signed bytes as numbers.
#[target_feature(enable = "avx2")]
#[inline]
fn signed(bytes: __m128i) -> [__m256; 2] {
    let high = _mm_unpackhi_epi64(bytes, bytes);
    [bytes, high].map(|bytes| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)))
}

/// The low and the high four bits of 16 bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles(bytes: &[u8; 16]) -> [__m128i; 2] {
    let (bytes, low) = (load(bytes), _mm_set1_epi8(0xF));
    [_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16::<4>(bytes), low)]
}

/// A half-precision number in each lane.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn half(bytes: [u8; 2]) -> __m256 {
    _mm256_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes(bytes)))
}
