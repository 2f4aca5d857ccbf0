//! Blocks of 256 elements, 8 of which are an entry of a grid; 2 bits an element and some more:
//! IQ2_XXS, IQ2_XS, IQ2_S.

use half::f16;

use super::Block;
use super::sign::{sign_feed, signs, with_sign};
use crate::feed::{Feed, Role};
use crate::grid;
use crate::layout::layout;

layout! {
    /// 256 grid entries; a scale for 32 elements: `±(d·(0.5 + sc)·0.25)·g`.
    IQ2_XXS: id 16, 256 elements {
        /// The scale.
        d: f16,
        /// Of each 32 elements, four words. The first two are four bytes, the low one of each word
        /// first: the grid indices of 8 elements each. The other two are 32 bits, the low word
        /// first: four times 7 bits of signs, and the scale in the top four.
        qs: [u16; 32],
    }
}

layout! {
    /// 512 grid entries; a scale for 16 elements: `±(d·(0.5 + sc)·0.25)·g`.
    IQ2_XS: id 17, 256 elements {
        /// The scale.
        d: f16,
        /// Of each 8 elements, a word: the grid index in the low 9 bits, above it 7 bits of signs.
        qs: [u16; 32],
        /// Of each 32 elements, a byte: lo is the scale of the first 16, hi of the others.
        scales: [u8; 8],
    }
}

layout! {
    /// 1024 grid entries; a scale for 16 elements: `±(d·(0.5 + sc)·0.25)·g`.
    IQ2_S: id 22, 256 elements {
        /// The scale.
        d: f16,
        /// The low 8 bits of the grid index of each 8 elements, 32 of them; then 32 bytes of signs,
        /// bit k of byte i that of element 8·i + k.
        qs: [u8; 64],
        /// The two high bits of the grid indices: of each 32 elements, a byte, lowest first.
        qh: [u8; 8],
        /// Of each 32 elements, a byte: lo is the scale of the first 16, hi of the others.
        scales: [u8; 8],
    }
}

/// The factor of a sub-block with the 4-bit scale `sc`.
fn factor(d: f32, sc: u8) -> f32 {
    d * (0.5 + f32::from(sc)) * 0.25
}

/// The 4-bit scale of the 16 elements number `i`, in bytes of two.
fn nibble_scale(scales: &[u8; 8], i: usize) -> u8 {
    scales[i / 2] >> (4 * (i % 2)) & 0xF
}

/// Where [`nibble_scale`] gets it.
fn nibble_scale_feed(i: usize) -> Feed {
    let shift = 4 * (i % 2) as u32;
    Feed::new(Role::SubScale, "scales", i / 2, shift..shift + 4)
}

const SCALE: Feed = Feed::new(Role::Scale, "d", 0, 0..16);

impl Block for IQ2_XXS {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let words = &self.qs[i / 4 * 4..][..4];
            let index = words[i % 4 / 2] >> (8 * (i % 2)) & 0xFF;
            let scale_and_signs = u32::from(words[2]) | u32::from(words[3]) << 16;
            let factor = factor(d, (scale_and_signs >> 28) as u8);
            let signs = signs(scale_and_signs >> (7 * (i % 4)));
            let entry = grid::IQ2XXS.entry(index.into());
            for (k, y) in out.iter_mut().enumerate() {
                *y = with_sign(factor * f32::from(entry[k]), signs, k);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let (group, i) = (j / 32 * 4, j / 8 % 4);
        let byte = 8 * (i % 2) as u32;
        let mut feeds = vec![
            SCALE,
            Feed::new(Role::SubScale, "qs", group + 3, 12..16),
            Feed::new(Role::Index, "qs", group + i / 2, byte..byte + 8),
        ];
        // The signs are in a number of two words, and may lie across both.
        let Feed { bits, .. } = sign_feed("qs", group, 7 * i as u32, j % 8);
        for word in 0..2 {
            let first = 16 * word as u32;
            let (start, end) = (bits.start.max(first), bits.end.min(first + 16));
            if start < end {
                let bits = start - first..end - first;
                feeds.push(Feed::new(Role::Sign, "qs", group + 2 + word, bits));
            }
        }
        feeds
    }
}

impl Block for IQ2_XS {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let factor = factor(d, nibble_scale(&self.scales, i / 2));
            let signs = signs(u32::from(self.qs[i]) >> 9);
            let entry = grid::IQ2XS.entry((self.qs[i] & 511).into());
            for (k, y) in out.iter_mut().enumerate() {
                *y = with_sign(factor * f32::from(entry[k]), signs, k);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![
            SCALE,
            nibble_scale_feed(j / 16),
            Feed::new(Role::Index, "qs", j / 8, 0..9),
            sign_feed("qs", j / 8, 9, j % 8),
        ]
    }
}

impl Block for IQ2_S {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let factor = factor(d, nibble_scale(&self.scales, i / 2));
            let high = self.qh[i / 4] >> (2 * (i % 4)) & 3;
            let index = usize::from(self.qs[i]) | usize::from(high) << 8;
            let signs = self.qs[32 + i];
            let entry = grid::IQ2S.entry(index);
            for (k, y) in out.iter_mut().enumerate() {
                *y = with_sign(factor * f32::from(entry[k]), signs, k);
            }
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let high = 2 * (j / 8 % 4) as u32;
        let sign = (j % 8) as u32;
        vec![
            SCALE,
            nibble_scale_feed(j / 16),
            Feed::new(Role::Index, "qs", j / 8, 0..8),
            Feed::new(Role::Index, "qh", j / 32, high..high + 2),
            Feed::new(Role::Sign, "qs", 32 + j / 8, sign..sign + 1),
        ]
    }
}
