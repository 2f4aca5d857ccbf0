//! Blocks of 256 elements of -1, 0 and 1: TQ1_0, TQ2_0.

use half::f16;

use super::Block;
use super::k::pair_place;
use crate::feed::{Feed, Role};
use crate::layout::layout;

layout! {
    /// Five elements a byte, as digits of a number in base 3: `(q - 1)·d`.
    ///
    /// A byte b is the fraction b / 256, rounded up; its first digit is the whole part of three
    /// times the fraction, the next that of three times what is left, and so on.
    TQ1_0: id 34, 256 elements {
        /// Bytes 0 to 31 have elements 0 to 159: first the first digit of each byte, then the
        /// second of each, and so on. Bytes 32 to 47 have elements 160 to 239 in the same way.
        qs: [u8; 48],
        /// Elements 240 to 255, in the same way, with four digits a byte.
        qh: [u8; 4],
        /// The scale.
        d: f16,
    }
}

layout! {
    /// 2 bits an element: `(q - 1)·d`.
    ///
    /// So the digit 3, which ggml never writes, is 2.
    TQ2_0: id 35, 256 elements {
        /// The quants, as in Q2_K: of each 128 elements, 32 bytes; of each byte, bits 0 and 1 are
        /// of the first 32 elements, bits 2 and 3 of the next.
        qs: [u8; 64],
        /// The scale.
        d: f16,
    }
}

/// In which field, which byte of it, and as which digit element `j` of TQ1_0 is.
fn digit_place(j: usize) -> (&'static str, usize, u32) {
    let (field, byte, digit) = match j {
        0..160 => ("qs", j % 32, j / 32),
        160..240 => ("qs", 32 + (j - 160) % 16, (j - 160) / 16),
        _ => ("qh", (j - 240) % 4, (j - 240) / 4),
    };
    (field, byte, digit as u32)
}

/// Digit `n` of a byte: 0, 1 or 2.
fn digit(byte: u8, n: u32) -> u8 {
    // What is left of the fraction after n digits; 256 is one.
    let fraction = u32::from(byte) * 3u32.pow(n) % 256;
    (fraction * 3 / 256) as u8
}

impl Block for TQ1_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let q = match digit_place(j) {
                ("qs", byte, n) => digit(self.qs[byte], n),
                (_, byte, n) => digit(self.qh[byte], n),
            };
            *y = (f32::from(q) - 1.0) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let (field, byte, _) = digit_place(j);
        // A digit depends on every bit of the byte.
        vec![Feed::new(Role::Scale, "d", 0, 0..16), Feed::new(Role::Quant, field, byte, 0..8)]
    }
}

impl Block for TQ2_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let (byte, shift) = pair_place(j);
            let q = self.qs[byte] >> shift & 3;
            *y = (f32::from(q) - 1.0) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let (byte, shift) = pair_place(j);
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::Quant, "qs", byte, shift..shift + 2),
        ]
    }
}
