//! One or two bits an element and one scale: Q1_0, Q2_0.

use half::f16;

use super::Block;
use crate::feed::{Feed, Role};
use crate::layout::layout;

layout! {
    /// Blocks of 128: `d` if the bit is set, `-d` if not.
    Q1_0: id 41, 128 elements {
        /// The scale.
        d: f16,
        /// Bit k of byte i is element 8·i + k.
        qs: [u8; 16],
    }
}

layout! {
    /// Blocks of 64: `(q - 1)·d`, so -1, 0, 1 or 2 times the scale.
    Q2_0: id 42, 64 elements {
        /// The scale.
        d: f16,
        /// Bits 0 and 1 of byte i are element 4·i, bits 2 and 3 the next.
        qs: [u8; 16],
    }
}

impl Block for Q1_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            *y = if self.qs[j / 8] >> (j % 8) & 1 == 1 { d } else { -d };
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let bit = (j % 8) as u32;
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::Quant, "qs", j / 8, bit..bit + 1),
        ]
    }
}

impl Block for Q2_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let q = self.qs[j / 4] >> (2 * (j % 4)) & 3;
            *y = (f32::from(q) - 1.0) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let shift = 2 * (j % 4) as u32;
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::Quant, "qs", j / 4, shift..shift + 2),
        ]
    }
}
