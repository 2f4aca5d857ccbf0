//! Blocks of 256 elements, 4 of which are an entry of a grid; 3 bits an element and some more:
//! IQ3_XXS, IQ3_S.

use half::f16;

use super::Block;
use super::sign::{sign_feed, signs, with_sign};
use crate::feed::{Feed, Role};
use crate::grid;
use crate::layout::layout;

layout! {
    /// 256 grid entries; a scale for 32 elements: `±(d·(0.5 + sc)·0.5)·g`.
    ///
    /// ggml has the two arrays as one, `qs`.
    IQ3_XXS: id 18, 256 elements {
        /// The scale.
        d: f16,
        /// The grid index of each 4 elements.
        qs: [u8; 64],
        /// Of each 32 elements, a word: four times 7 bits of signs, and the scale in the top four.
        scales_and_signs: [u32; 8],
    }
}

layout! {
    /// 512 grid entries; a scale for 32 elements: `±(d·(1 + 2·sc))·g`.
    IQ3_S: id 21, 256 elements {
        /// The scale.
        d: f16,
        /// The low 8 bits of the grid index of each 4 elements.
        qs: [u8; 64],
        /// The ninth bits of the grid indices: of each 32 elements, a byte, lowest first.
        qh: [u8; 8],
        /// The signs: bit k of byte i is that of element 8·i + k.
        signs: [u8; 32],
        /// Of each 64 elements, a byte: lo is the scale of the first 32, hi of the others.
        scales: [u8; 4],
    }
}

const SCALE: Feed = Feed::new(Role::Scale, "d", 0, 0..16);

impl Block for IQ3_XXS {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let word = self.scales_and_signs[i / 4];
            let factor = d * (0.5 + (word >> 28) as f32) * 0.5;
            let signs = signs(word >> (7 * (i % 4)));
            let entries = [2 * i, 2 * i + 1].map(|at| grid::IQ3XXS.entry(self.qs[at].into()));
            for (k, y) in out.iter_mut().enumerate() {
                *y = with_sign(factor * f32::from(entries[k / 4][k % 4]), signs, k);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![
            SCALE,
            Feed::new(Role::SubScale, "scales_and_signs", j / 32, 28..32),
            Feed::new(Role::Index, "qs", j / 4, 0..8),
            sign_feed("scales_and_signs", j / 32, 7 * (j / 8 % 4) as u32, j % 8),
        ]
    }
}

impl Block for IQ3_S {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, out) in out.chunks_exact_mut(4).enumerate() {
            let sc = self.scales[i / 16] >> (4 * (i / 8 % 2)) & 0xF;
            let factor = d * (1.0 + 2.0 * f32::from(sc));
            let high = self.qh[i / 8] >> (i % 8) & 1;
            let entry = grid::IQ3S.entry(usize::from(self.qs[i]) | usize::from(high) << 8);
            let signs = self.signs[i / 2] >> (4 * (i % 2));
            for (k, y) in out.iter_mut().enumerate() {
                *y = with_sign(factor * f32::from(entry[k]), signs, k);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let shift = 4 * (j / 32 % 2) as u32;
        let high = (j / 4 % 8) as u32;
        let sign = (j % 8) as u32;
        vec![
            SCALE,
            Feed::new(Role::SubScale, "scales", j / 64, shift..shift + 4),
            Feed::new(Role::Index, "qs", j / 4, 0..8),
            Feed::new(Role::Index, "qh", j / 32, high..high + 1),
            Feed::new(Role::Sign, "signs", j / 8, sign..sign + 1),
        ]
    }
}
