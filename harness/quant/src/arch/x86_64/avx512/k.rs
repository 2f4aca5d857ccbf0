//! Blocks of 256 elements in sub-blocks.
//!
//! Digits of up to four bits are looked up. Longer ones are put together as bytes, 64 at once, and
//! converted.

use core::arch::x86_64::*;
use core::hint::black_box;

use super::{count_from, half, load, load_32, load_64, look_up, put, signed, widen};
use crate::arch::x86_64::k::{q3_scales, scales_and_mins};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q2_k<L: Line>(block: &[u8; 84], out: &mut [L; 16]) {
    fields!(block => scales: 16, qs: 64, d: 2, dmin: 2);
    let scales = widen(scales);
    let low = _mm512_and_si512(scales, _mm512_set1_epi32(0xF));
    let high = _mm512_srli_epi32::<4>(scales);
    let (mut scales, mut mins) = ([0.0; 16], [0.0; 16]);
    put_in_memory(&mut scales, _mm512_mul_ps(_mm512_cvtepi32_ps(low), half(*d)));
    put_in_memory(&mut mins, _mm512_mul_ps(_mm512_cvtepi32_ps(high), half(*dmin)));

    // The next two bits make no difference.
    let levels = _mm512_broadcast_f32x4(_mm_setr_ps(0.0, 1.0, 2.0, 3.0));
    let (qs, _) = qs.as_chunks::<32>();
    let (out, _) = out.as_chunks_mut::<8>();
    let (scales, _) = scales.as_chunks::<8>();
    let (mins, _) = mins.as_chunks::<8>();
    for (((qs, out), scales), mins) in qs.iter().zip(out).zip(scales).zip(mins) {
        let (qs, _) = qs.as_chunks::<16>();
        let mut qs = [widen(&qs[0]), widen(&qs[1])];
        for i in 0..8 {
            let table = difference(levels, scales[i], mins[i]);
            put(&mut out[i], look_up(table, qs[i % 2]));
            qs[i % 2] = _mm512_srli_epi32::<2>(qs[i % 2]);
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q3_k<L: Line>(block: &[u8; 110], out: &mut [L; 16]) {
    fields!(block => hmask: 32, qs: 64, _scales: 12, d: 2);
    let tail = block.last_chunk().expect("16 bytes");
    let scales = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q3_scales(load(tail))));
    // The digits are the three highest bits of a byte of their own.
    let d = _mm512_mul_ps(half(*d), _mm512_set1_ps(UNIT / 32.0));
    let mut products = [0.0; 16];
    put_in_memory(&mut products, _mm512_mul_ps(scales, d));

    // Four is to be subtracted where the third bit is not set.
    let third = _mm512_xor_si512(twice(hmask), _mm512_set1_epi8(-1));
    let (qs, _) = qs.as_chunks::<32>();
    let qs = [twice(&qs[0]), twice(&qs[1])];
    let (out, _) = out.as_chunks_mut::<4>();
    let (products, _) = products.as_chunks::<4>();
    for (i, (out, products)) in out.iter_mut().zip(products).enumerate() {
        let k = 2 * i as i64;
        let low = _mm512_rolv_epi64(qs[i / 2], halves(5 - 4 * (i % 2) as i64, 3 - 4 * (i % 2) as i64));
        let third = _mm512_sllv_epi64(third, halves(7 - k, 6 - k));
        let qs = select(_mm512_set1_epi8(0x60), low, third);
        let qs = _mm512_and_si512(qs, _mm512_set1_epi8(0xE0_u8 as i8));
        put_products(qs, products, out);
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q4_k<L: Line>(block: &[u8; 144], out: &mut [L; 16]) {
    fields!(block => head: 16, qs: 128);
    let mut products = [0.0; 16];
    put_in_memory(&mut products, scales_and_mins_of(head));
    let levels = count_from(0.0);
    let (qs, _) = qs.as_chunks::<32>();
    let (out, _) = out.as_chunks_mut::<4>();
    for (i, (qs, out)) in qs.iter().zip(out).enumerate() {
        let (qs, _) = qs.as_chunks::<16>();
        let mut qs = [widen(&qs[0]), widen(&qs[1])];
        let (out, _) = out.as_chunks_mut::<2>();
        for (k, out) in out.iter_mut().enumerate() {
            let table = difference(levels, products[2 * i + k], products[8 + 2 * i + k]);
            put(&mut out[0], look_up(table, qs[0]));
            put(&mut out[1], look_up(table, qs[1]));
            qs = qs.map(|qs| _mm512_srli_epi32::<4>(qs));
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q5_k<L: Line>(block: &[u8; 176], out: &mut [L; 16]) {
    fields!(block => head: 16, qh: 32, qs: 128);
    let products = scales_and_mins_of(head);
    let unit = _mm512_set1_ps(UNIT);
    let products = _mm512_mask_mul_ps(products, 0x00FF, products, unit);
    let mut memory = [0.0; 16];
    put_in_memory(&mut memory, products);
    let products = memory;

    let fifth = twice(qh);
    let (qs, _) = qs.as_chunks::<32>();
    let (out, _) = out.as_chunks_mut::<4>();
    for (i, (qs, out)) in qs.iter().zip(out).enumerate() {
        let k = 2 * i as i64;
        let low = _mm512_srlv_epi64(twice(qs), halves(0, 4));
        let fifth = _mm512_rorv_epi64(fifth, halves(k - 4, k - 3));
        let qs = select(_mm512_set1_epi8(0x0F), low, fifth);
        let qs = _mm512_and_si512(qs, _mm512_set1_epi8(0x1F));
        for (line, out) in out.iter_mut().enumerate() {
            let j = 2 * i + line / 2;
            put(out, difference(numbers(qs, line), products[j], products[8 + j]));
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q6_k<L: Line>(block: &[u8; 210], out: &mut [L; 16]) {
    fields!(block => ql: 128, qh: 64, scales: 16, d: 2);
    let d = _mm512_mul_ps(half(*d), _mm512_set1_ps(UNIT));
    let mut products = [0.0; 16];
    put_in_memory(&mut products, _mm512_mul_ps(signed(scales), d));

    let (ql, _) = ql.as_chunks::<64>();
    let (qh, _) = qh.as_chunks::<32>();
    let (out, _) = out.as_chunks_mut::<8>();
    let (products, _) = products.as_chunks::<8>();
    for (((ql, qh), out), products) in ql.iter().zip(qh).zip(out).zip(products) {
        let (ql, qh) = (across(ql), twice(qh));
        let digits = [
            (ql, _mm512_sllv_epi64(qh, halves(4, 2))),
            (_mm512_srli_epi64::<4>(ql), _mm512_srlv_epi64(qh, halves(0, 2))),
        ];
        let (out, _) = out.as_chunks_mut::<4>();
        let (products, _) = products.as_chunks::<4>();
        for (((low, high), out), products) in digits.into_iter().zip(out).zip(products) {
            let qs = select(_mm512_set1_epi8(0x0F), low, high);
            let qs = _mm512_and_si512(qs, _mm512_set1_epi8(0x3F));
            put_products(_mm512_sub_epi8(qs, _mm512_set1_epi8(32)), products, out);
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q8_k<L: Line>(block: &[u8; 292], out: &mut [L; 16]) {
    fields!(block => d: 4, qs: 256, _bsums: 32);
    let d = _mm512_set1_ps(f32::from_le_bytes(*d));
    for (qs, out) in qs.as_chunks().0.iter().zip(out) {
        put(out, _mm512_mul_ps(signed(qs), d));
    }
}

/// Puts numbers where a load can repeat one of them in all lanes for nothing. Out of a register
/// each would take a shuffle, and the compiler would do that if it saw through this.
#[target_feature(enable = "avx512f")]
#[inline]
fn put_in_memory(memory: &mut [f32; 16], numbers: __m512) {
    put(memory, numbers);
    black_box(memory);
}

/// The scales of the 8 sub-blocks of Q4_K and Q5_K, and then their mins.
#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
fn scales_and_mins_of(head: &[u8; 16]) -> __m512 {
    let head = load(head);
    let d_and_dmin = _mm512_castps128_ps512(_mm_cvtph_ps(head));
    let eight_of_each = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    let factors = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(scales_and_mins(head)));
    _mm512_mul_ps(_mm512_permutexvar_ps(eight_of_each, d_and_dmin), factors)
}

/// `scale·q - min`
#[target_feature(enable = "avx512f")]
#[inline]
fn difference(q: __m512, scale: f32, min: f32) -> __m512 {
    _mm512_fmsub_ps(q, _mm512_set1_ps(scale), _mm512_set1_ps(min))
}

/// 64 bytes in the order of [`numbers`].
#[target_feature(enable = "avx512f")]
#[inline]
fn across(bytes: &[u8; 64]) -> __m512i {
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_epi32(order, load_64(bytes))
}

/// 32 bytes and again the same, in the order of [`numbers`], in which they are [`halves`].
#[target_feature(enable = "avx512f")]
#[inline]
fn twice(bytes: &[u8; 32]) -> __m512i {
    let order = _mm512_setr_epi32(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7);
    _mm512_permutexvar_epi32(order, _mm512_castsi256_si512(load_32(bytes)))
}

/// By how much to shift the first and the second 32 of 64 bytes that are in the order of
/// [`numbers`].
#[target_feature(enable = "avx512f")]
#[inline]
fn halves(first: i64, second: i64) -> __m512i {
    _mm512_set4_epi64(second, first, second, first)
}

/// The bits of `set` where the mask has ones, and those of `unset` where it has none.
#[target_feature(enable = "avx512f")]
#[inline]
fn select(mask: __m512i, set: __m512i, unset: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1100_1010>(mask, set, unset)
}

/// What [`numbers`] are multiples of.
const UNIT: f32 = 1.0 / (1 << 24) as f32;

/// A line of 64 signed bytes in [`UNIT`]s. Each 128 bits have four bytes of each of the four lines.
#[target_feature(enable = "avx512bw")]
#[inline]
fn numbers(bytes: __m512i, line: usize) -> __m512 {
    // Each as the highest byte of a lane, where its sign is the lane's, with zeros below.
    let from = |i: i32| (4 * line as i32 + i) << 24 | 0x0080_8080;
    let places = _mm512_set4_epi32(from(3), from(2), from(1), from(0));
    _mm512_cvtepi32_ps(_mm512_shuffle_epi8(bytes, places))
}

/// Products of 64 bytes as of [`numbers`], and of one number for each line.
#[target_feature(enable = "avx512bw")]
#[inline]
fn put_products<L: Line>(qs: __m512i, products: &[f32; 4], out: &mut [L; 4]) {
    for (line, (out, product)) in out.iter_mut().zip(products).enumerate() {
        put(out, _mm512_mul_ps(numbers(qs, line), _mm512_set1_ps(*product)));
    }
}
