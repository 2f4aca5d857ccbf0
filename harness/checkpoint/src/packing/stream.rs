//! Codes of a few bits in 32-bit words: a dense stream, the low bits first, so that a code may
//! straddle words.

/// How many words codes take.
pub(super) fn words_for(codes: usize, bits: usize) -> usize {
    codes.saturating_mul(bits).div_ceil(32)
}

fn split(index: usize, bits: usize) -> (usize, usize) {
    let bit = index.saturating_mul(bits);
    (bit.div_euclid(32), bit.rem_euclid(32))
}

fn mask(bits: usize) -> u64 {
    !(u64::MAX << bits)
}

/// The code at `index` of a stream whose words are at the places that `at` gives.
pub(super) fn read(words: &[u32], at: impl Fn(usize) -> usize, index: usize, bits: usize) -> u8 {
    let (word, shift) = split(index, bits);
    let word_at = |word| u64::from(words.get(at(word)).copied().unwrap_or_default());
    let mut both = word_at(word);
    if shift + bits > 32 {
        both |= word_at(word + 1) << 32;
    }
    u8::try_from(both >> shift & mask(bits)).unwrap_or_default()
}

/// Puts a code where [`read`] finds it; its place has to be 0.
pub(super) fn write(
    words: &mut [u32],
    at: impl Fn(usize) -> usize,
    index: usize,
    bits: usize,
    code: u8,
) {
    let (word, shift) = split(index, bits);
    let both = (u64::from(code) & mask(bits)) << shift;
    for (word, part) in [(word, both & mask(32)), (word + 1, both >> 32)] {
        if part != 0
            && let Some(slot) = words.get_mut(at(word))
        {
            *slot |= u32::try_from(part).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: with 3 bits, code 10 is bits 30 to 32, code 21 bits 63 to 65.
    #[test]
    fn three_bits_straddle() {
        let mut words = [0; 3];
        write(&mut words, |word| word, 10, 3, 0b101);
        assert_eq!(words, [0x4000_0000, 0x0000_0001, 0]);
        write(&mut words, |word| word, 21, 3, 0b110);
        assert_eq!(words, [0x4000_0000, 0x0000_0001, 0b11]);
        let read = |index| read(&words, |word| word, index, 3);
        assert_eq!([9, 10, 11, 20, 21, 22].map(read), [0, 5, 0, 0, 6, 0]);
        assert_eq!([words_for(32, 3), words_for(33, 3), words_for(512, 3)], [3, 4, 48]);
    }
}
