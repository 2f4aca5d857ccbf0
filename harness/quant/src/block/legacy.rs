//! Blocks of 32 elements with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1.

use half::f16;

use super::Block;
use crate::feed::{Feed, Role};
use crate::layout::layout;

layout! {
    /// 4 bits an element: `(q - 8)·d`.
    Q4_0: id 2, 32 elements {
        /// The scale.
        d: f16,
        /// Element j is lo of byte j, element j + 16 is hi of byte j.
        qs: [u8; 16],
    }
}

layout! {
    /// 4 bits an element, with a min: `q·d + m`.
    Q4_1: id 3, 32 elements {
        /// The scale.
        d: f16,
        /// The min.
        m: f16,
        /// Element j is lo of byte j, element j + 16 is hi of byte j.
        qs: [u8; 16],
    }
}

layout! {
    /// 5 bits an element: `(q - 16)·d`.
    Q5_0: id 6, 32 elements {
        /// The scale.
        d: f16,
        /// The fifth bits: bit j is that of element j.
        qh: u32,
        /// Element j is lo of byte j, element j + 16 is hi of byte j: the four low bits.
        qs: [u8; 16],
    }
}

layout! {
    /// 5 bits an element, with a min: `q·d + m`.
    Q5_1: id 7, 32 elements {
        /// The scale.
        d: f16,
        /// The min.
        m: f16,
        /// The fifth bits: bit j is that of element j.
        qh: u32,
        /// Element j is lo of byte j, element j + 16 is hi of byte j: the four low bits.
        qs: [u8; 16],
    }
}

layout! {
    /// 8 bits an element: `q·d`.
    Q8_0: id 8, 32 elements {
        /// The scale.
        d: f16,
        /// The elements.
        qs: [i8; 32],
    }
}

layout! {
    /// 8 bits an element, with their sum: `q·d`.
    ///
    /// ggml makes such blocks of activations for dot products, and has no function that turns them
    /// into numbers; the sum does not matter for that.
    Q8_1: id 9, 32 elements {
        /// The scale.
        d: f16,
        /// `d` times the sum of `qs`. No element comes from it.
        s: f16,
        /// The elements.
        qs: [i8; 32],
    }
}

/// The four bits of element `j` where bytes have elements 0 to 15 in lo and 16 to 31 in hi.
fn nibble(qs: &[u8; 16], j: usize) -> u8 {
    qs[j % 16] >> (4 * (j / 16)) & 0xF
}

/// Where [`nibble`] gets them.
fn nibble_feed(j: usize) -> Feed {
    let shift = 4 * (j / 16) as u32;
    Feed::new(Role::Quant, "qs", j % 16, shift..shift + 4)
}

/// The fifth bit of element `j`, in its place.
fn fifth(qh: u32, j: usize) -> u8 {
    (qh >> j & 1) as u8 * 16
}

/// Where [`fifth`] gets it.
fn fifth_feed(j: usize) -> Feed {
    let bit = j as u32;
    Feed::new(Role::Quant, "qh", 0, bit..bit + 1)
}

const SCALE: Feed = Feed::new(Role::Scale, "d", 0, 0..16);
const MIN: Feed = Feed::new(Role::Min, "m", 0, 0..16);

impl Block for Q4_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let q = nibble(&self.qs, j);
            *y = (f32::from(q) - 8.0) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![SCALE, nibble_feed(j)]
    }
}

impl Block for Q4_1 {
    fn write(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (j, y) in out.iter_mut().enumerate() {
            let q = nibble(&self.qs, j);
            *y = f32::from(q) * d + m;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![SCALE, MIN, nibble_feed(j)]
    }
}

impl Block for Q5_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let q = nibble(&self.qs, j) | fifth(self.qh, j);
            *y = (f32::from(q) - 16.0) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![SCALE, nibble_feed(j), fifth_feed(j)]
    }
}

impl Block for Q5_1 {
    fn write(&self, out: &mut [f32]) {
        let (d, m) = (self.d.to_f32(), self.m.to_f32());
        for (j, y) in out.iter_mut().enumerate() {
            let q = nibble(&self.qs, j) | fifth(self.qh, j);
            *y = f32::from(q) * d + m;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![SCALE, MIN, nibble_feed(j), fifth_feed(j)]
    }
}

impl Block for Q8_0 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (q, y) in self.qs.iter().zip(out) {
            *y = f32::from(*q) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![SCALE, Feed::new(Role::Quant, "qs", j, 0..8)]
    }
}

impl Block for Q8_1 {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (q, y) in self.qs.iter().zip(out) {
            *y = f32::from(*q) * d;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![SCALE, Feed::new(Role::Quant, "qs", j, 0..8)]
    }
}
