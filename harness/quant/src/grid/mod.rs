//! The grids of the IQ types: tables of the only vectors that their elements can form.
//!
//! The entries are ggml's, under its licence (MIT, `LICENSE.ggml` beside this file); a test takes
//! each of them from ggml again.

mod iq1s;
mod iq2s;
mod iq2xs;
mod iq2xxs;
mod iq3s;
mod iq3xxs;

pub use iq1s::IQ1S;
pub use iq2s::IQ2S;
pub use iq2xs::IQ2XS;
pub use iq2xxs::IQ2XXS;
pub use iq3s::IQ3S;
pub use iq3xxs::IQ3XXS;

/// A table of vectors of `N` elements, each of which is one of a few levels.
#[derive(Debug)]
pub struct Grid<const N: usize> {
    /// The levels.
    levels: &'static [i8],
    /// How many bits a digit has.
    bits: u32,
    /// For each entry, one digit an element, the first in the lowest bits: the number of its level.
    codes: &'static [u16],
}

impl<const N: usize> Grid<N> {
    /// How many entries there are.
    #[allow(clippy::len_without_is_empty, reason = "no grid is empty")]
    pub const fn len(&self) -> usize {
        self.codes.len()
    }

    /// The entry at `index`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub const fn entry(&self, index: usize) -> [i8; N] {
        let mut code = self.codes[index];
        let mut entry = [0; N];
        let mut at = 0;
        while at < N {
            entry[at] = self.levels[(code & ((1 << self.bits) - 1)) as usize];
            code >>= self.bits;
            at += 1;
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as the bits of an index can tell apart: 11, 8, 9, 10, 8 and 9.
    #[test]
    fn lengths() {
        let of_8 = [&IQ1S, &IQ2XXS, &IQ2XS, &IQ2S].map(Grid::len);
        assert_eq!(of_8, [2048, 256, 512, 1024]);
        assert_eq!([&IQ3XXS, &IQ3S].map(Grid::len), [256, 512]);
    }
}
