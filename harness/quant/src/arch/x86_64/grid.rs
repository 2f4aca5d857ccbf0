//! What the kernels of the grid types have in common: the grids, an entry a word, the factors of the
//! scales, and the signs that are packed into seven bits.

use core::arch::x86_64::*;

use crate::block::IQ4_LEVELS;
use crate::grid::{self, Grid};

pub(super) static IQ1S: [u64; 2048] = words(&grid::IQ1S);
pub(super) static IQ2XXS: [u64; 256] = words(&grid::IQ2XXS);
pub(super) static IQ2XS: [u64; 512] = words(&grid::IQ2XS);
pub(super) static IQ2S: [u64; 1024] = words(&grid::IQ2S);
pub(super) static IQ3XXS: [u32; 256] = half_words(&grid::IQ3XXS);
pub(super) static IQ3S: [u32; 512] = half_words(&grid::IQ3S);

const fn words<const LEN: usize>(grid: &Grid<8>) -> [u64; LEN] {
    assert!(grid.len() == LEN);
    let mut words = [0; LEN];
    let mut index = 0;
    while index < LEN {
        let [a, b, c, d, e, f, g, h] = grid.entry(index);
        let bytes = [a as u8, b as u8, c as u8, d as u8, e as u8, f as u8, g as u8, h as u8];
        words[index] = u64::from_le_bytes(bytes);
        index += 1;
    }
    words
}

const fn half_words<const LEN: usize>(grid: &Grid<4>) -> [u32; LEN] {
    assert!(grid.len() == LEN);
    let mut words = [0; LEN];
    let mut index = 0;
    while index < LEN {
        let [a, b, c, d] = grid.entry(index);
        words[index] = u32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]);
        index += 1;
    }
    words
}

/// By scale, what `d` is multiplied by. The products of these, `d` and an entry's element are
/// exact, so they can be formed in any order.
pub(super) static IQ1_FACTORS: [f32; 8] = odd(1.0);
pub(super) static IQ2_FACTORS: [f32; 16] = odd(0.125);
pub(super) static IQ3_XXS_FACTORS: [f32; 16] = odd(0.25);
pub(super) static IQ3_S_FACTORS: [f32; 16] = odd(1.0);

/// Odd multiples.
const fn odd<const LEN: usize>(first: f32) -> [f32; LEN] {
    let mut multiples = [first; LEN];
    let mut i = 1;
    while i < LEN {
        multiples[i] = multiples[i - 1] + 2.0 * first;
        i += 1;
    }
    multiples
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: there are 32 bytes to read.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The signs of 32 elements each, from words with four times seven bits of them.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn signs_in_words(words: &[u8; 32]) -> [u32; 8] {
    signs_of_words(load(words))
}

/// [`signs_in_words`] of every other word.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn signs_in_odd_words(words: &[u8; 64]) -> [u32; 8] {
    let [low, high] = halves(words).map(|words| _mm256_castsi256_ps(load(words)));
    let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
    signs_of_words(in_order(odd))
}

/// The signs of 8 elements each, from the seven high bits of 16.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn signs_in_high_bits(words: &[u8; 64]) -> [u32; 8] {
    let [low, high] = halves(words).map(|words| _mm256_srli_epi16::<9>(load(words)));
    complete(in_order(_mm256_packus_epi16(low, high)))
}

fn halves(bytes: &[u8; 64]) -> [&[u8; 32]; 2] {
    let (halves, _) = bytes.as_chunks();
    [&halves[0], &halves[1]]
}

/// Undoes that two vectors were joined in each half of them.
#[target_feature(enable = "avx2")]
#[inline]
fn in_order(joined: __m256i) -> __m256i {
    _mm256_permute4x64_epi64::<0b11_01_10_00>(joined)
}

#[target_feature(enable = "avx2")]
#[inline]
fn signs_of_words(words: __m256i) -> [u32; 8] {
    let byte = |words, mask| _mm256_and_si256(words, _mm256_set1_epi32(mask));
    let first = byte(words, 0x7F);
    let second = byte(_mm256_slli_epi32::<1>(words), 0x7F00);
    let third = byte(_mm256_slli_epi32::<2>(words), 0x7F_0000);
    let fourth = byte(_mm256_slli_epi32::<3>(words), 0x7F00_0000);
    complete(_mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, fourth)))
}

/// Adds the eighth bit to bytes of seven: it makes the number of set bits even.
#[target_feature(enable = "avx2")]
#[inline]
fn complete(sevens: __m256i) -> [u32; 8] {
    // The bit that makes the number even, by four of the bits.
    let eighth = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0,
    ));
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(sevens), _mm256_set1_epi8(0xF));
    let of_low = _mm256_shuffle_epi8(eighth, sevens);
    let of_high = _mm256_shuffle_epi8(eighth, high);
    let signs = _mm256_xor_si256(sevens, _mm256_xor_si256(of_low, of_high));
    let mut words = [0; 8];
    // SAFETY: there is room for 32 bytes.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), signs) };
    words
}

/// The levels of IQ4 as bytes.
pub(super) static IQ4: [u8; 16] = {
    let mut bytes = [0; 16];
    let mut i = 0;
    while i < 16 {
        bytes[i] = IQ4_LEVELS[i] as u8;
        i += 1;
    }
    bytes
};

/// The scales of IQ4_XS in eight signed bytes.
#[target_feature(enable = "avx2,bmi2")]
#[inline]
pub(super) fn iq4_xs_scales(low: [u8; 4], high: [u8; 2]) -> __m128i {
    let low = _pdep_u64(u32::from_le_bytes(low).into(), 0x0F0F_0F0F_0F0F_0F0F);
    let high = _pdep_u64(u16::from_le_bytes(high).into(), 0x3030_3030_3030_3030);
    _mm_sub_epi8(_mm_cvtsi64_si128((low | high) as i64), _mm_set1_epi8(32))
}
