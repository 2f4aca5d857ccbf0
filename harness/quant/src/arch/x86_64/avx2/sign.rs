//! Numbers with separate signs.
//!
//! Signs that are packed into seven bits are unpacked for a whole block at once, by shifts: machines
//! without AVX-512 may be those that need hundreds of cycles for `pdep`.

use core::arch::x86_64::*;

/// The products of 8 signed bytes and a factor, negated where `signs` are negative.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn signed_products(entry: u64, factor: __m256, signs: __m256i) -> __m256 {
    let entry = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(entry as i64));
    let signs = _mm256_and_si256(signs, _mm256_set1_epi32(i32::MIN));
    let products = _mm256_mul_ps(_mm256_cvtepi32_ps(entry), factor);
    _mm256_xor_ps(products, _mm256_castsi256_ps(signs))
}

/// Of 32 signs those of each 8 elements, at the top of the lanes.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn spread(signs: u32) -> [__m256i; 4] {
    let signs = _mm256_set1_epi32(signs as i32);
    let counts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    [0, 8, 16, 24]
        .map(|first| _mm256_sllv_epi32(signs, _mm256_sub_epi32(counts, _mm256_set1_epi32(first))))
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
