//! Blocks of 256 elements in sub-blocks.
//!
//! Digits of two bits are looked up. Longer ones are put together as bytes, 32 at once, and
//! converted.

use core::arch::x86_64::*;
use core::hint::black_box;

use super::{half, load, load_8, load_32, put, signed};
use crate::arch::x86_64::k::{UNIT, q3_scales, scales_and_mins};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(super) fn q2_k<L: Line>(block: &[u8; 84], out: &mut [L; 16]) {
    fields!(block => scales: 16, qs: 64, d: 2, dmin: 2);
    let (scales, low) = (load(scales), _mm_set1_epi8(0xF));
    let mins = _mm_and_si128(_mm_srli_epi16::<4>(scales), low);
    let mut memory = [[0.0; 16]; 2];
    let [of_scales, of_mins] = &mut memory;
    let scales = in_memory(of_scales, products(half(*d), _mm_and_si128(scales, low)));
    let mins = in_memory(of_mins, products(half(*dmin), mins));

    // The next bit of an index makes no difference.
    let levels = _mm256_setr_ps(0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0);
    let put_line = |out: &mut L, i: usize, [low, high]: [__m256i; 2]| {
        let (scale, min) = (_mm256_set1_ps(scales[i]), _mm256_set1_ps(mins[i]));
        let table = _mm256_fmsub_ps(levels, scale, min);
        let low = _mm256_permutevar8x32_ps(table, low);
        put(out, [low, _mm256_permutevar8x32_ps(table, high)]);
    };
    let (qs, _) = qs.as_chunks::<16>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (mut first, mut second) = (widen(&qs[2 * half]), widen(&qs[2 * half + 1]));
        for (k, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            put_line(&mut out[0], 8 * half + 2 * k, first);
            put_line(&mut out[1], 8 * half + 2 * k + 1, second);
            first = first.map(|qs| _mm256_srli_epi32::<2>(qs));
            second = second.map(|qs| _mm256_srli_epi32::<2>(qs));
        }
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q3_k<L: Line>(block: &[u8; 110], out: &mut [L; 16]) {
    fields!(block => hmask: 32, qs: 64, _scales: 12, d: 2);
    let tail = block.last_chunk().expect("16 bytes");
    let d = _mm256_mul_ps(half(*d), _mm256_set1_ps(UNIT));
    let mut memory = [0.0; 16];
    let products = in_memory(&mut memory, products(d, q3_scales(load(tail))));
    let (products, _) = products.as_chunks::<2>();

    // Four is subtracted where the third bit is not set.
    let hmask = across(hmask);
    let (qs, _) = qs.as_chunks::<32>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut low = across(&qs[half]);
        for (k, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let i = 4 * half + k;
            let bit = _mm256_set1_epi8((1_u8 << i) as i8);
            let unset = _mm256_cmpeq_epi8(_mm256_and_si256(hmask, bit), _mm256_setzero_si256());
            let four = _mm256_and_si256(unset, _mm256_set1_epi8(4));
            let qs = _mm256_and_si256(low, _mm256_set1_epi8(3));
            put_products(_mm256_sub_epi8(qs, four), products[i], out);
            low = _mm256_srli_epi64::<2>(low);
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(super) fn q4_k<L: Line>(block: &[u8; 144], out: &mut [L; 16]) {
    fields!(block => d: 2, dmin: 2, scales: 12, qs: 128);
    let mut memory = [0.0; 16];
    let products = in_memory(&mut memory, scales_and_mins_of(*d, *dmin, scales));
    let (qs, _) = qs.as_chunks::<32>();
    for (i, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let (out, _) = out.as_chunks_mut::<2>();
        let [low, high] = nibbles(across(&qs[i]));
        put_differences(low, products[2 * i], products[8 + 2 * i], &mut out[0]);
        put_differences(high, products[2 * i + 1], products[8 + 2 * i + 1], &mut out[1]);
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
pub(super) fn q5_k<L: Line>(block: &[u8; 176], out: &mut [L; 16]) {
    fields!(block => d: 2, dmin: 2, scales: 12, qh: 32, qs: 128);
    let mut memory = [0.0; 16];
    let products = in_memory(&mut memory, scales_and_mins_of(*d, *dmin, scales));
    let mut fifth = across(qh);
    let (qs, _) = qs.as_chunks::<32>();
    for (i, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let (out, _) = out.as_chunks_mut::<2>();
        let [low, high] = nibbles(across(&qs[i]));
        let bit = _mm256_set1_epi8(16);
        let low = _mm256_or_si256(low, _mm256_and_si256(_mm256_slli_epi64::<4>(fifth), bit));
        let high = _mm256_or_si256(high, _mm256_and_si256(_mm256_slli_epi64::<3>(fifth), bit));
        put_differences(low, products[2 * i], products[8 + 2 * i], &mut out[0]);
        put_differences(high, products[2 * i + 1], products[8 + 2 * i + 1], &mut out[1]);
        fifth = _mm256_srli_epi64::<2>(fifth);
    }
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q6_k<L: Line>(block: &[u8; 210], out: &mut [L; 16]) {
    fields!(block => ql: 128, qh: 64, scales: 16, d: 2);
    let d = _mm256_mul_ps(half(*d), _mm256_set1_ps(UNIT));
    let mut memory = [0.0; 16];
    let products = in_memory(&mut memory, products(d, load(scales)));
    let (products, _) = products.as_chunks::<2>().0.as_chunks::<4>();
    let (ql, _) = ql.as_chunks::<32>();
    let (qh, _) = qh.as_chunks::<32>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let [low0, high0] = nibbles(across(&ql[2 * half]));
        let [low1, high1] = nibbles(across(&ql[2 * half + 1]));
        let qh = across(&qh[half]);
        let (out, _) = out.as_chunks_mut::<2>();
        let products = &products[half];
        put_q6(low0, _mm256_slli_epi64::<4>(qh), products[0], &mut out[0]);
        put_q6(low1, _mm256_slli_epi64::<2>(qh), products[1], &mut out[1]);
        put_q6(high0, qh, products[2], &mut out[2]);
        put_q6(high1, _mm256_srli_epi64::<2>(qh), products[3], &mut out[3]);
    }
}

/// The digits are `low` and above them two bits of `high`.
#[target_feature(enable = "avx2")]
#[inline]
fn put_q6<L: Line>(low: __m256i, high: __m256i, products: [f32; 2], out: &mut [L; 2]) {
    let qs = _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(0x30)));
    put_products(_mm256_sub_epi8(qs, _mm256_set1_epi8(32)), products, out);
}

#[target_feature(enable = "avx2,f16c")]
#[inline]
pub(super) fn q8_k<L: Line>(block: &[u8; 292], out: &mut [L; 16]) {
    fields!(block => d: 4, qs: 256, _bsums: 32);
    let d = _mm256_set1_ps(f32::from_le_bytes(*d));
    for (qs, out) in qs.as_chunks().0.iter().zip(out) {
        put(out, products(d, load(qs)));
    }
}

/// Products of 16 signed bytes and `d`.
#[target_feature(enable = "avx2")]
#[inline]
fn products(d: __m256, factors: __m128i) -> [__m256; 2] {
    signed(factors).map(|factor| _mm256_mul_ps(factor, d))
}

/// Numbers where a load repeats one of them for nothing, for which one in a register takes a
/// shuffle. The compiler would do that if it saw through this.
#[target_feature(enable = "avx2")]
#[inline]
fn in_memory(memory: &mut [f32; 16], numbers: [__m256; 2]) -> &[f32; 16] {
    put(memory, numbers);
    black_box(memory)
}

/// The scales of the 8 sub-blocks of Q4_K and Q5_K in [`UNIT`]s, and then their mins.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn scales_and_mins_of(d: [u8; 2], dmin: [u8; 2], scales: &[u8; 12]) -> [__m256; 2] {
    let [scales, mins] = scales_and_mins(scales).map(i64::from_le_bytes);
    let [scales, mins] = signed(_mm_set_epi64x(mins, scales));
    let d = _mm256_mul_ps(half(d), _mm256_set1_ps(UNIT));
    [_mm256_mul_ps(scales, d), _mm256_mul_ps(mins, half(dmin))]
}

/// 16 bytes as 16 lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn widen(bytes: &[u8; 16]) -> [__m256i; 2] {
    let (halves, _) = bytes.as_chunks::<8>();
    [_mm256_cvtepu8_epi32(load_8(&halves[0])), _mm256_cvtepu8_epi32(load_8(&halves[1]))]
}

/// The low and the high four bits of 32 bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles(bytes: __m256i) -> [__m256i; 2] {
    let low = _mm256_set1_epi8(0xF);
    [_mm256_and_si256(bytes, low), _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), low)]
}

/// 32 bytes in the order of [`numbers`].
#[target_feature(enable = "avx2")]
#[inline]
fn across(bytes: &[u8; 32]) -> __m256i {
    _mm256_permutevar8x32_epi32(load_32(bytes), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7))
}

/// Two lines of 32 signed bytes, over [`UNIT`]. Each 128 bits have four bytes of each half line.
#[target_feature(enable = "avx2")]
#[inline]
fn numbers(bytes: __m256i) -> [[__m256; 2]; 2] {
    [[eight(bytes, 0), eight(bytes, 4)], [eight(bytes, 8), eight(bytes, 12)]]
}

/// The half of a line whose bytes are from `first` on in each 128 bits.
#[target_feature(enable = "avx2")]
#[inline]
fn eight(bytes: __m256i, first: i32) -> __m256 {
    // Each as the highest byte of a lane, where its sign is the lane's, with zeros below.
    let [a, b, c, d] = [first, first + 1, first + 2, first + 3];
    let places = _mm_slli_epi32::<24>(_mm_setr_epi32(a, b, c, d));
    let places = _mm_or_si128(places, _mm_set1_epi32(0x0080_8080));
    _mm256_cvtepi32_ps(_mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(places)))
}

/// Products of 32 bytes as of [`numbers`], and of one number for each line.
#[target_feature(enable = "avx2")]
#[inline]
fn put_products<L: Line>(qs: __m256i, products: [f32; 2], out: &mut [L; 2]) {
    let [first, second] = numbers(qs);
    put(&mut out[0], first.map(|q| _mm256_mul_ps(q, _mm256_set1_ps(products[0]))));
    put(&mut out[1], second.map(|q| _mm256_mul_ps(q, _mm256_set1_ps(products[1]))));
}

/// `scale·q - min`, of 32 bytes as of [`numbers`].
#[target_feature(enable = "avx2,fma")]
#[inline]
fn put_differences<L: Line>(qs: __m256i, scale: f32, min: f32, out: &mut [L; 2]) {
    let (scale, min) = (_mm256_set1_ps(scale), _mm256_set1_ps(min));
    let [first, second] = numbers(qs);
    put(&mut out[0], first.map(|q| _mm256_fmsub_ps(q, scale, min)));
    put(&mut out[1], second.map(|q| _mm256_fmsub_ps(q, scale, min)));
}
