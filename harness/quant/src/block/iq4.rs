//! 4 bits an element that stand for one of 16 uneven levels: IQ4_NL, IQ4_XS.

use half::f16;

use super::Block;
use crate::feed::{Feed, Role};
use crate::layout::layout;

layout! {
    /// Blocks of 32: `d·L[q]`.
    IQ4_NL: id 20, 32 elements {
        /// The scale.
        d: f16,
        /// Element j is lo of byte j, element j + 16 is hi of byte j.
        qs: [u8; 16],
    }
}

layout! {
    /// Blocks of 256, a scale for 32 elements: `(d·(sc - 32))·L[q]`.
    IQ4_XS: id 23, 256 elements {
        /// The scale.
        d: f16,
        /// The two high bits of the 8 scales, lowest first.
        scales_h: u16,
        /// The four low bits of the scales: of each 64 elements, a byte; lo is of the first 32.
        scales_l: [u8; 4],
        /// The quants: of each 32 elements, 16 bytes; lo is of the first 16, hi of the others.
        qs: [u8; 128],
    }
}

/// The levels, L.
///
/// Source: `kvalues_iq4nl` in `ggml/src/ggml-common.h`, ggml 0.28.0; Copyright (c) 2023-2026 The
/// ggml authors, MIT.
pub static IQ4_LEVELS: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// In which byte and from which bit on the four bits of element `j` are, if each 32 elements have
/// 16 bytes.
fn nibble_place(j: usize) -> (usize, u32) {
    (16 * (j / 32) + j % 16, 4 * (j / 16 % 2) as u32)
}

fn level(qs: &[u8], j: usize) -> f32 {
    let (byte, shift) = nibble_place(j);
    IQ4_LEVELS[usize::from(qs[byte] >> shift & 0xF)].into()
}

fn quant_feed(j: usize) -> Feed {
    let (byte, shift) = nibble_place(j);
    Feed::new(Role::Quant, "qs", byte, shift..shift + 4)
}

impl Block for IQ4_NL {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            *y = d * level(&self.qs, j);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![Feed::new(Role::Scale, "d", 0, 0..16), quant_feed(j)]
    }
}

impl Block for IQ4_XS {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let i = j / 32;
            let low = self.scales_l[i / 2] >> (4 * (i % 2)) & 0xF;
            let high = (self.scales_h >> (2 * i) & 3) as u8;
            let sc = low | high << 4;
            *y = (d * (f32::from(sc) - 32.0)) * level(&self.qs, j);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let i = j / 32;
        let (low, high) = (4 * (i % 2) as u32, 2 * i as u32);
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::SubScale, "scales_l", i / 2, low..low + 4),
            Feed::new(Role::SubScale, "scales_h", 0, high..high + 2),
            quant_feed(j),
        ]
    }
}
