//! Choices that a stream of bytes makes.

use arbitrary::Unstructured;

/// Choices out of bytes. Where the bytes are used up, each choice is the first one.
pub(crate) struct Choices<'a, 'b>(pub(crate) &'a mut Unstructured<'b>);

impl Choices<'_, '_> {
    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.int_in_range(0..=end - 1).unwrap_or(0)
    }

    /// A number from `first` to `last`.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        self.0.int_in_range(first..=last).unwrap_or(first)
    }

    /// An index of a list of so many, which is not empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// True once in so many times, and never when the bytes are used up.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == times - 1
    }

    /// 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // It only fails with nothing written.
        let _ = self.0.fill_buffer(&mut bytes);
        bytes
    }

    /// Characters of this set, from `least` to `most` of them.
    pub(crate) fn word(&mut self, set: &[u8], least: u64, most: u64) -> Vec<u8> {
        (0..self.between(least, most)).map(|_| self.pick(set)).collect()
    }
}

/// The bytes that a seed stands for: as many as a few files take, or so few that the file is small
/// (SplitMix64).
pub(crate) fn bytes_of(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    };
    let words = 8 << (next() % 7);
    (0..words).flat_map(|_| next().to_le_bytes()).collect()
}
