//! The scales of sub-blocks, which both instruction sets unpack in the same way.

use core::arch::x86_64::*;

/// The 8 scales and then the 8 mins of Q4_K and Q5_K, from the first 16 bytes of a block.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn scales_and_mins(head: __m128i) -> __m128i {
    // Four at once: the first scales, the others, the first mins, the others. Six bits of the
    // first, and above the low four of the others two, are in the same bytes.
    let six = _mm_shuffle_epi32::<0b10_10_01_01>(head);
    let six = _mm_srlv_epi32(six, _mm_setr_epi32(0, 2, 0, 2));
    let six_mask = _mm_setr_epi32(0x3F3F_3F3F, 0x3030_3030, 0x3F3F_3F3F, 0x3030_3030);
    let four = _mm_shuffle_epi32::<0b11_11_11_11>(head);
    let four = _mm_srlv_epi32(four, _mm_setr_epi32(0, 0, 0, 4));
    let four_mask = _mm_setr_epi32(0, 0x0F0F_0F0F, 0, 0x0F0F_0F0F);
    _mm_or_si128(_mm_and_si128(six, six_mask), _mm_and_si128(four, four_mask))
}

/// The 16 scales of Q3_K, from the last 16 bytes of a block.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn q3_scales(tail: __m128i) -> __m128i {
    // Two bytes of the quants are before them.
    let scales = _mm_srli_si128::<2>(tail);
    let low = _mm_shuffle_epi32::<0b01_00_01_00>(scales);
    let low = _mm_srlv_epi32(low, _mm_setr_epi32(0, 0, 4, 4));
    let low = _mm_and_si128(low, _mm_set1_epi8(0xF));
    let high = _mm_shuffle_epi32::<0b10_10_10_10>(scales);
    let high = _mm_srlv_epi32(high, _mm_setr_epi32(0, 2, 4, 6));
    let high = _mm_and_si128(high, _mm_set1_epi8(3));
    let scales = _mm_or_si128(low, _mm_slli_epi32::<4>(high));
    _mm_sub_epi8(scales, _mm_set1_epi8(32))
}
