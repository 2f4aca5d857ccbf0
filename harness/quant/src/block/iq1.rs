//! Blocks of 256 elements, 8 of which are an entry of a grid of -1, 0 and 1; less than 2 bits an
//! element: IQ1_S, IQ1_M.

use half::f16;

use super::Block;
use crate::feed::{Feed, Role};
use crate::grid;
use crate::layout::layout;

layout! {
    /// 2048 grid entries; a scale and a shift for 32 elements: `(d·(2·sc + 1))·(g ± 1/8)`.
    IQ1_S: id 19, 256 elements {
        /// The scale.
        d: f16,
        /// The low 8 bits of the grid index of each 8 elements.
        qs: [u8; 32],
        /// Of each 32 elements, a word: four times the 3 high bits of a grid index, lowest first;
        /// the scale, 3 bits; and the sign of the shift.
        qh: [u16; 8],
    }
}

layout! {
    /// 2048 grid entries; a scale for 16 elements, a shift for 8: `(d·(2·sc + 1))·(g ± 1/8)`.
    ///
    /// `d`, half precision, is put together from the top four bits of the words of `scales`, the
    /// first one's lowest.
    IQ1_M: id 29, 256 elements {
        /// The low 8 bits of the grid index of each 8 elements.
        qs: [u8; 32],
        /// Of each 16 elements, a byte: lo for the first 8, hi for the others. Three bits are the
        /// high ones of the grid index, the fourth is the sign of the shift.
        qh: [u8; 16],
        /// Of each 64 elements, a word: four scales of 3 bits, lowest first, and a part of `d`.
        scales: [u16; 4],
    }
}

/// By how much all elements of a group are shifted: `IQ1S_DELTA` and `IQ1M_DELTA` in
/// `ggml/src/ggml-common.h`.
const DELTA: f32 = 0.125;

fn delta(is_negative: bool) -> f32 {
    if is_negative { -DELTA } else { DELTA }
}

impl Block for IQ1_S {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let word = self.qh[i / 4];
            let factor = d * f32::from(2 * (word >> 12 & 7) + 1);
            let delta = delta(word >> 15 == 1);
            let high = usize::from(word >> (3 * (i % 4)) & 7);
            let entry = grid::IQ1S.entry(usize::from(self.qs[i]) | high << 8);
            for (g, y) in entry.iter().zip(out) {
                *y = factor * (f32::from(*g) + delta);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let high = 3 * (j / 8 % 4) as u32;
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::SubScale, "qh", j / 32, 12..15),
            Feed::new(Role::Index, "qs", j / 8, 0..8),
            Feed::new(Role::Index, "qh", j / 32, high..high + 3),
            Feed::new(Role::Delta, "qh", j / 32, 15..16),
        ]
    }
}

impl IQ1_M {
    /// The scale of the block.
    pub fn d(&self) -> f16 {
        let parts = self.scales.iter().rev();
        f16::from_bits(parts.fold(0, |bits, word| bits << 4 | word >> 12))
    }
}

impl Block for IQ1_M {
    fn write(&self, out: &mut [f32]) {
        let d = self.d().to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let sub_block = i / 2;
            let sc = self.scales[sub_block / 4] >> (3 * (sub_block % 4)) & 7;
            let factor = d * f32::from(2 * sc + 1);
            let nibble = self.qh[i / 2] >> (4 * (i % 2)) & 0xF;
            let delta = delta(nibble >> 3 == 1);
            let entry = grid::IQ1S.entry(usize::from(self.qs[i]) | usize::from(nibble & 7) << 8);
            for (g, y) in entry.iter().zip(out) {
                *y = factor * (f32::from(*g) + delta);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let scale = 3 * (j / 16 % 4) as u32;
        let nibble = 4 * (j / 8 % 2) as u32;
        let mut feeds: Vec<_> =
            (0..4).map(|word| Feed::new(Role::Scale, "scales", word, 12..16)).collect();
        feeds.extend([
            Feed::new(Role::SubScale, "scales", j / 64, scale..scale + 3),
            Feed::new(Role::Index, "qs", j / 8, 0..8),
            Feed::new(Role::Index, "qh", j / 16, nibble..nibble + 3),
            Feed::new(Role::Delta, "qh", j / 16, nibble + 3..nibble + 4),
        ]);
        feeds
    }
}
