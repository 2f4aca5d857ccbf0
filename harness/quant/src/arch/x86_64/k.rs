//! What both instruction sets do in the same way, above all to unpack the scales of sub-blocks.

use core::arch::x86_64::*;

/// What a scale is multiplied by, which is exact, for digits that are the highest byte of a lane.
pub(super) const UNIT: f32 = 1.0 / (1 << 24) as f32;

/// The 8 scales and the 8 mins of Q4_K and Q5_K.
#[inline]
pub(super) fn scales_and_mins(scales: &[u8; 12]) -> [[u8; 8]; 2] {
    // Four at once.
    let (words, _) = scales.as_chunks();
    let [a, b, c] = [words[0], words[1], words[2]].map(u32::from_le_bytes);
    let eight = |first: u32, low: u32, high: u32| {
        let first = u64::from(first & 0x3F3F_3F3F);
        let second = u64::from(low & 0x0F0F_0F0F | high >> 2 & 0x3030_3030);
        (first | second << 32).to_le_bytes()
    };
    [eight(a, c, a), eight(b, c >> 4, b)]
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
