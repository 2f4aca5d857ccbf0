//! Blocks of 256 elements in sub-blocks.
//!
//! Digits of two and of four bits are looked up. Longer ones are put together as bytes, 64 at once,
//! and converted: two tables or more would cost more shuffles, of which there is but one a cycle.

use core::arch::x86_64::*;
use core::hint::black_box;

use super::{count_from, half, load, load_32, load_64, look_up, put, signed, widen};
use crate::arch::x86_64::k::{UNIT, q3_scales, scales_and_mins};
use crate::arch::x86_64::{Line, fields};

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q2_k<L: Line>(block: &[u8; 84], out: &mut [L; 16]) {
    fields!(block => scales: 16, qs: 64, d: 2, dmin: 2);
    let scales = widen(scales);
    let low = _mm512_and_si512(scales, _mm512_set1_epi32(0xF));
    let high = _mm512_srli_epi32::<4>(scales);
    let scales = _mm512_mul_ps(_mm512_cvtepi32_ps(low), half(*d));
    let mins = _mm512_mul_ps(_mm512_cvtepi32_ps(high), half(*dmin));

    // Of four sub-blocks, four numbers each.
    let levels = _mm512_broadcast_f32x4(_mm_setr_ps(0.0, 1.0, 2.0, 3.0));
    let table = |first: i32| {
        let [a, b, c, d] = [first, first + 1, first + 2, first + 3];
        let four_of_each = _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
        let scales = _mm512_permutexvar_ps(four_of_each, scales);
        _mm512_fmsub_ps(levels, scales, _mm512_permutexvar_ps(four_of_each, mins))
    };
    let put_line = |line: &mut L, table: __m512, place: i32, qs: __m512i| {
        let place = _mm512_set1_epi32(4 * place);
        put(line, look_up(table, select(_mm512_set1_epi32(3), qs, place)));
    };
    let (qs, _) = qs.as_chunks::<16>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let (first, second) = (widen(&qs[2 * half]), widen(&qs[2 * half + 1]));
        let four = table(8 * half as i32);
        put_line(&mut out[0], four, 0, first);
        put_line(&mut out[1], four, 1, second);
        put_line(&mut out[2], four, 2, _mm512_srli_epi32::<2>(first));
        put_line(&mut out[3], four, 3, _mm512_srli_epi32::<2>(second));
        let four = table(8 * half as i32 + 4);
        put_line(&mut out[4], four, 0, _mm512_srli_epi32::<4>(first));
        put_line(&mut out[5], four, 1, _mm512_srli_epi32::<4>(second));
        put_line(&mut out[6], four, 2, _mm512_srli_epi32::<6>(first));
        put_line(&mut out[7], four, 3, _mm512_srli_epi32::<6>(second));
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q3_k<L: Line>(block: &[u8; 110], out: &mut [L; 16]) {
    fields!(block => hmask: 32, qs: 64, _scales: 12, d: 2);
    let tail = block.last_chunk().expect("16 bytes");
    let scales = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q3_scales(load(tail))));
    // The digits are the three highest bits of a byte.
    let d = _mm512_mul_ps(half(*d), _mm512_set1_ps(UNIT / 32.0));
    let mut memory = [0.0; 16];
    let products = in_memory(&mut memory, _mm512_mul_ps(scales, d));

    // Four is subtracted where the third bit is not set.
    let not_third = _mm512_xor_si512(twice(hmask), _mm512_set1_epi8(-1));
    let mut sign = _mm512_rolv_epi64(not_third, halves(7, 6));
    let (qs, _) = qs.as_chunks::<32>();
    let (products, _) = products.as_chunks::<4>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut low = _mm512_rolv_epi64(twice(&qs[half]), halves(5, 3));
        for (k, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let qs = select(_mm512_set1_epi8(0b0110_0000), low, sign);
            let qs = _mm512_and_si512(qs, _mm512_set1_epi8(0b1110_0000_u8 as i8));
            put_products(qs, &products[2 * half + k], out);
            low = _mm512_ror_epi64::<4>(low);
            sign = _mm512_ror_epi64::<2>(sign);
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q4_k<L: Line>(block: &[u8; 144], out: &mut [L; 16]) {
    fields!(block => d: 2, dmin: 2, scales: 12, qs: 128);
    let (d, dmin) = (half(*d), half(*dmin));
    let [scales, mins] = scales_and_mins(scales);
    let table = |i: usize| {
        let scale = _mm512_mul_ps(d, at(&WHOLE, scales[i]));
        _mm512_fmadd_ps(count_from(0.0), scale, _mm512_mul_ps(dmin, at(&NEGATIVE, mins[i])))
    };
    let (qs, _) = qs.as_chunks::<16>();
    for (i, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let (first, second) = (widen(&qs[2 * i]), widen(&qs[2 * i + 1]));
        let low = table(2 * i);
        put(&mut out[0], look_up(low, first));
        put(&mut out[1], look_up(low, second));
        let high = table(2 * i + 1);
        put(&mut out[2], look_up(high, _mm512_srli_epi32::<4>(first)));
        put(&mut out[3], look_up(high, _mm512_srli_epi32::<4>(second)));
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q5_k<L: Line>(block: &[u8; 176], out: &mut [L; 16]) {
    fields!(block => d: 2, dmin: 2, scales: 12, qh: 32, qs: 128);
    let (d, dmin) = (_mm512_mul_ps(half(*d), _mm512_set1_ps(UNIT)), half(*dmin));
    let [scales, mins] = scales_and_mins(scales);
    let put_sub_block = |lines: &mut [L; 2], i: usize, [q0, q1]: [__m512; 2]| {
        let scale = _mm512_mul_ps(d, at(&WHOLE, scales[i]));
        let min = _mm512_mul_ps(dmin, at(&NEGATIVE, mins[i]));
        put(&mut lines[0], _mm512_fmadd_ps(q0, scale, min));
        put(&mut lines[1], _mm512_fmadd_ps(q1, scale, min));
    };
    let digits = |low: __m512i, fifth: __m512i| {
        let qs = select(_mm512_set1_epi8(0x0F), low, fifth);
        numbers(_mm512_and_si512(qs, _mm512_set1_epi8(0x1F)))
    };
    // Of the first and the third sub-block, then of the others.
    let mut fifth = _mm512_rolv_epi64(twice(qh), halves(4, 2));
    let (qs, _) = qs.as_chunks::<64>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let low = across(&qs[half]);
        let [q0, q1, q4, q5] = digits(low, fifth);
        let (low, odd_fifth) = (_mm512_srli_epi64::<4>(low), _mm512_ror_epi64::<1>(fifth));
        let [q2, q3, q6, q7] = digits(low, odd_fifth);
        let (out, _) = out.as_chunks_mut::<2>();
        put_sub_block(&mut out[0], 4 * half, [q0, q1]);
        put_sub_block(&mut out[1], 4 * half + 1, [q2, q3]);
        put_sub_block(&mut out[2], 4 * half + 2, [q4, q5]);
        put_sub_block(&mut out[3], 4 * half + 3, [q6, q7]);
        fifth = _mm512_ror_epi64::<4>(fifth);
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q6_k<L: Line>(block: &[u8; 210], out: &mut [L; 16]) {
    fields!(block => ql: 128, qh: 64, scales: 16, d: 2);
    // The digits are the six highest bits of a byte.
    let d = _mm512_mul_ps(half(*d), _mm512_set1_ps(UNIT / 4.0));
    let mut memory = [0.0; 16];
    let products = in_memory(&mut memory, _mm512_mul_ps(signed(scales), d));

    let (ql, _) = ql.as_chunks::<64>();
    let (qh, _) = qh.as_chunks::<32>();
    let (products, _) = products.as_chunks::<4>();
    for (half, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let mut low = _mm512_rol_epi64::<2>(across(&ql[half]));
        let mut high = _mm512_rolv_epi64(twice(&qh[half]), halves(6, 4));
        for (k, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let qs = select(_mm512_set1_epi8(0b0011_1100), low, high);
            let qs = _mm512_and_si512(qs, _mm512_set1_epi8(0b1111_1100_u8 as i8));
            // This is to subtract 32.
            let qs = _mm512_xor_si512(qs, _mm512_set1_epi8(0b1000_0000_u8 as i8));
            put_products(qs, &products[2 * half + k], out);
            low = _mm512_ror_epi64::<4>(low);
            high = _mm512_ror_epi64::<4>(high);
        }
    }
}

#[target_feature(enable = "avx512bw,avx512vl")]
#[inline]
pub(super) fn q8_k<L: Line>(block: &[u8; 292], out: &mut [L; 16]) {
    fields!(block => d: 4, qs: 256, _bsums: 32);
    let d = _mm512_set1_ps(f32::from_le_bytes(*d));
    for (qs, line) in qs.as_chunks().0.iter().zip(out) {
        put(line, _mm512_mul_ps(signed(qs), d));
    }
}

/// Numbers where the second operand of an instruction can be one of them in all lanes, for which
/// one in a register takes a shuffle. The compiler would do that if it saw through this.
#[target_feature(enable = "avx512f")]
#[inline]
fn in_memory(memory: &mut [f32; 16], numbers: __m512) -> &[f32; 16] {
    put(memory, numbers);
    black_box(memory)
}

static WHOLE: [f32; 64] = multiples(1.0);

/// For mins: to subtract a product, the compiler would negate what is at hand, one number from a
/// table of positive ones, which then takes a shuffle as it does not come from memory.
static NEGATIVE: [f32; 64] = multiples(-1.0);

const fn multiples(of: f32) -> [f32; 64] {
    let mut numbers = [0.0; 64];
    let mut i = 0;
    while i < 64 {
        numbers[i] = i as f32 * of;
        i += 1;
    }
    numbers
}

/// The number of a scale of six bits. To look it up is to convert and repeat it for nothing, as
/// with [`in_memory`] but without waiting for what was just written.
#[target_feature(enable = "avx512f")]
#[inline]
fn at(table: &'static [f32; 64], six_bits: u8) -> __m512 {
    _mm512_set1_ps(table[usize::from(six_bits & 63)])
}

/// 64 bytes in the order of [`numbers`].
#[target_feature(enable = "avx512f")]
#[inline]
fn across(bytes: &[u8; 64]) -> __m512i {
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_epi32(order, load_64(bytes))
}

/// 32 bytes and then again the same, in the order of [`numbers`].
#[target_feature(enable = "avx512f")]
#[inline]
fn twice(bytes: &[u8; 32]) -> __m512i {
    let order = _mm512_setr_epi32(0, 4, 0, 4, 1, 5, 1, 5, 2, 6, 2, 6, 3, 7, 3, 7);
    _mm512_permutexvar_epi32(order, _mm512_castsi256_si512(load_32(bytes)))
}

/// By how much to rotate the first and the second 32 of 64 bytes in the order of [`numbers`].
/// Eight are rotated as one, so that bits that come from the next byte have to be masked.
#[target_feature(enable = "avx512f")]
#[inline]
fn halves(first: i64, second: i64) -> __m512i {
    _mm512_set4_epi64(second, first, second, first)
}

/// The bits of `ones` where the mask has ones, and those of `zeros` where it has none.
#[target_feature(enable = "avx512f")]
#[inline]
fn select(mask: __m512i, ones: __m512i, zeros: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1100_1010>(mask, ones, zeros)
}

/// Four lines of 64 signed bytes, over [`UNIT`]. Each 128 bits have four bytes of each line.
#[target_feature(enable = "avx512bw")]
#[inline]
fn numbers(bytes: __m512i) -> [__m512; 4] {
    // Each as the highest byte of a lane, where its sign is the lane's, with zeros below.
    [
        _mm512_set4_epi32(0x0380_8080, 0x0280_8080, 0x0180_8080, 0x0080_8080),
        _mm512_set4_epi32(0x0780_8080, 0x0680_8080, 0x0580_8080, 0x0480_8080),
        _mm512_set4_epi32(0x0B80_8080, 0x0A80_8080, 0x0980_8080, 0x0880_8080),
        _mm512_set4_epi32(0x0F80_8080, 0x0E80_8080, 0x0D80_8080, 0x0C80_8080),
    ]
    .map(|places| _mm512_cvtepi32_ps(_mm512_shuffle_epi8(bytes, places)))
}

/// Products of 64 bytes as of [`numbers`], and of one number for each line.
#[target_feature(enable = "avx512bw")]
#[inline]
fn put_products<L: Line>(qs: __m512i, products: &[f32; 4], out: &mut [L; 4]) {
    let [q0, q1, q2, q3] = numbers(qs);
    put(&mut out[0], _mm512_mul_ps(q0, _mm512_set1_ps(products[0])));
    put(&mut out[1], _mm512_mul_ps(q1, _mm512_set1_ps(products[1])));
    put(&mut out[2], _mm512_mul_ps(q2, _mm512_set1_ps(products[2])));
    put(&mut out[3], _mm512_mul_ps(q3, _mm512_set1_ps(products[3])));
}
