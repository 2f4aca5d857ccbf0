//! What the kernels of the IQ types look up, whatever their instruction set: the grids, an entry a
//! word, and the factors that belong to scales.

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

/// The scales of IQ4_XS.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn iq4_xs_scales(low: [u8; 4], high: [u8; 2]) -> __m256 {
    let low = _mm256_set1_epi32(i32::from_le_bytes(low));
    let low = _mm256_srlv_epi32(low, _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    let high = _mm256_set1_epi32(u16::from_le_bytes(high).into());
    // With four zeros below.
    let high = _mm256_srlv_epi32(
        _mm256_slli_epi32::<4>(high),
        _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14),
    );
    let low = _mm256_and_si256(low, _mm256_set1_epi32(0x0F));
    let high = _mm256_and_si256(high, _mm256_set1_epi32(0x30));
    let scales = _mm256_or_si256(low, high);
    _mm256_cvtepi32_ps(_mm256_sub_epi32(scales, _mm256_set1_epi32(32)))
}
