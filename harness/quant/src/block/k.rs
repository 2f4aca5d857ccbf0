//! Blocks of 256 elements in sub-blocks that have scales of their own: Q2_K to Q6_K; and Q8_K, the
//! form that activations take beside them.

use half::f16;

use super::Block;
use crate::feed::{Feed, Role};
use crate::layout::layout;

layout! {
    /// 2 bits an element, 16 sub-blocks of 16 with a scale and a min: `(d·sc)·q - (dmin·mn)`.
    Q2_K: id 10, 256 elements {
        /// Sub-block j / 16 has the byte of that number: lo is the scale, hi the min.
        scales: [u8; 16],
        /// The quants: of each 128 elements, 32 bytes; of each byte, bits 0 and 1 are of the first
        /// 32 elements, bits 2 and 3 of the next.
        qs: [u8; 64],
        /// The scale of the scales.
        d: f16,
        /// The scale of the mins.
        dmin: f16,
    }
}

layout! {
    /// 3 bits an element, 16 sub-blocks of 16 with a scale: `(d·(sc - 32))·(q - 4)`.
    Q3_K: id 11, 256 elements {
        /// The third bits: bit k of byte l is that of element 32·k + l.
        hmask: [u8; 32],
        /// The two low bits, as in Q2_K.
        qs: [u8; 64],
        /// 16 scales of 6 bits: the low four of scale i < 8 are lo of byte i, of scale i + 8 hi of
        /// byte i; the high two of scales i, i + 4, i + 8 and i + 12 are in byte 8 + i, lowest
        /// first.
        scales: [u8; 12],
        /// The scale of the scales.
        d: f16,
    }
}

layout! {
    /// 4 bits an element, 8 sub-blocks of 32 with a scale and a min: `(d·sc)·q - (dmin·mn)`.
    Q4_K: id 12, 256 elements {
        /// The scale of the scales.
        d: f16,
        /// The scale of the mins.
        dmin: f16,
        /// 8 scales and 8 mins of 6 bits. For i < 4, scale i is the low six bits of byte i, and min
        /// i those of byte i + 4; scale i + 4 has its low four in lo of byte i + 8, min i + 4 in
        /// hi, and the high two are those of byte i (scale) and byte i + 4 (min).
        scales: [u8; 12],
        /// The quants: of each 64 elements, 32 bytes; lo is of the first 32, hi of the others.
        qs: [u8; 128],
    }
}

layout! {
    /// 5 bits an element, 8 sub-blocks of 32 with a scale and a min: `(d·sc)·q - (dmin·mn)`.
    Q5_K: id 13, 256 elements {
        /// The scale of the scales.
        d: f16,
        /// The scale of the mins.
        dmin: f16,
        /// The scales and mins, as in Q4_K.
        scales: [u8; 12],
        /// The fifth bits: bit k of byte l is that of element 32·k + l.
        qh: [u8; 32],
        /// The four low bits, as in Q4_K.
        qs: [u8; 128],
    }
}

layout! {
    /// 6 bits an element, 16 sub-blocks of 16 with a scale: `(d·sc)·(q - 32)`.
    Q6_K: id 14, 256 elements {
        /// The four low bits: of each 128 elements, 64 bytes; lo is of the first 64, hi of the
        /// others.
        ql: [u8; 128],
        /// The two high bits: of each 128 elements, 32 bytes; of each byte, bits 0 and 1 are of the
        /// first 32 elements, bits 2 and 3 of the next.
        qh: [u8; 64],
        /// The scale of sub-block j / 16.
        scales: [i8; 16],
        /// The scale of the scales.
        d: f16,
    }
}

layout! {
    /// 8 bits an element: `d·q`.
    ///
    /// ggml makes such blocks of activations for dot products; its type table names no function
    /// that turns them into numbers, although there is one (`dequantize_row_q8_K`).
    Q8_K: id 15, 256 elements {
        /// The scale. The only one of 32 bits, so that the product is rounded.
        d: f32,
        /// The elements.
        qs: [i8; 256],
        /// The sums of 16 elements each. No element comes from them.
        bsums: [i16; 16],
    }
}

/// In which byte and from which bit on the two bits of element `j` are, if each 128 elements have
/// 32 bytes.
pub(super) fn pair_place(j: usize) -> (usize, u32) {
    (32 * (j / 128) + j % 32, 2 * (j / 32 % 4) as u32)
}

/// In which byte and from which bit on the four bits of element `j` are, if each 64 elements have
/// 32 bytes.
fn nibble_place(j: usize) -> (usize, u32) {
    (32 * (j / 64) + j % 32, 4 * (j / 32 % 2) as u32)
}

/// In which byte and in which bit the high bit of element `j` is, in Q3_K and Q5_K.
fn high_bit_place(j: usize) -> (usize, u32) {
    (j % 32, (j / 32) as u32)
}

/// In which byte and from which bit on the four low bits of element `j` of Q6_K are.
fn q6_low_place(j: usize) -> (usize, u32) {
    (64 * (j / 128) + j % 64, 4 * (j / 64 % 2) as u32)
}

/// Scale `i` of Q3_K, without the 32 that is subtracted.
fn q3_scale(scales: &[u8; 12], i: usize) -> u8 {
    let low = scales[i % 8] >> (4 * (i / 8)) & 0xF;
    let high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
    low | high << 4
}

/// The scale and the min of sub-block `i` of Q4_K and Q5_K.
fn scale_and_min(scales: &[u8; 12], i: usize) -> (u8, u8) {
    if i < 4 {
        (scales[i] & 63, scales[i + 4] & 63)
    } else {
        let scale = scales[i + 4] & 0xF | scales[i - 4] >> 6 << 4;
        let min = scales[i + 4] >> 4 | scales[i] >> 6 << 4;
        (scale, min)
    }
}

/// Where [`scale_and_min`] gets them, between the scale and the min of the block.
fn scale_and_min_feeds(i: usize) -> Vec<Feed> {
    let mut feeds = vec![Feed::new(Role::Scale, "d", 0, 0..16)];
    if i < 4 {
        feeds.push(Feed::new(Role::SubScale, "scales", i, 0..6));
    } else {
        feeds.push(Feed::new(Role::SubScale, "scales", i + 4, 0..4));
        feeds.push(Feed::new(Role::SubScale, "scales", i - 4, 6..8));
    }
    feeds.push(Feed::new(Role::Min, "dmin", 0, 0..16));
    if i < 4 {
        feeds.push(Feed::new(Role::SubMin, "scales", i + 4, 0..6));
    } else {
        feeds.push(Feed::new(Role::SubMin, "scales", i + 4, 4..8));
        feeds.push(Feed::new(Role::SubMin, "scales", i, 6..8));
    }
    feeds
}

/// `width` bits of the element's digits.
fn quant_feed(field: &'static str, (byte, shift): (usize, u32), width: u32) -> Feed {
    Feed::new(Role::Quant, field, byte, shift..shift + width)
}

impl Block for Q2_K {
    fn write(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, y) in out.iter_mut().enumerate() {
            let (byte, shift) = pair_place(j);
            let q = self.qs[byte] >> shift & 3;
            let (sc, mn) = (self.scales[j / 16] & 0xF, self.scales[j / 16] >> 4);
            *y = (d * f32::from(sc)) * f32::from(q) - dmin * f32::from(mn);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::SubScale, "scales", j / 16, 0..4),
            Feed::new(Role::Min, "dmin", 0, 0..16),
            Feed::new(Role::SubMin, "scales", j / 16, 4..8),
            quant_feed("qs", pair_place(j), 2),
        ]
    }
}

impl Block for Q3_K {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let (byte, shift) = pair_place(j);
            let (high_byte, high_bit) = high_bit_place(j);
            let q = self.qs[byte] >> shift & 3 | (self.hmask[high_byte] >> high_bit & 1) << 2;
            let sc = q3_scale(&self.scales, j / 16);
            *y = (d * (f32::from(sc) - 32.0)) * (f32::from(q) - 4.0);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let i = j / 16;
        let (low, high) = (4 * (i / 8) as u32, 2 * (i / 4) as u32);
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::SubScale, "scales", i % 8, low..low + 4),
            Feed::new(Role::SubScale, "scales", 8 + i % 4, high..high + 2),
            quant_feed("qs", pair_place(j), 2),
            quant_feed("hmask", high_bit_place(j), 1),
        ]
    }
}

impl Block for Q4_K {
    fn write(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, y) in out.iter_mut().enumerate() {
            let (byte, shift) = nibble_place(j);
            let q = self.qs[byte] >> shift & 0xF;
            let (sc, mn) = scale_and_min(&self.scales, j / 32);
            *y = (d * f32::from(sc)) * f32::from(q) - dmin * f32::from(mn);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let mut feeds = scale_and_min_feeds(j / 32);
        feeds.push(quant_feed("qs", nibble_place(j), 4));
        feeds
    }
}

impl Block for Q5_K {
    fn write(&self, out: &mut [f32]) {
        let (d, dmin) = (self.d.to_f32(), self.dmin.to_f32());
        for (j, y) in out.iter_mut().enumerate() {
            let (byte, shift) = nibble_place(j);
            let (high_byte, high_bit) = high_bit_place(j);
            let q = self.qs[byte] >> shift & 0xF | (self.qh[high_byte] >> high_bit & 1) << 4;
            let (sc, mn) = scale_and_min(&self.scales, j / 32);
            *y = (d * f32::from(sc)) * f32::from(q) - dmin * f32::from(mn);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let mut feeds = scale_and_min_feeds(j / 32);
        feeds.push(quant_feed("qs", nibble_place(j), 4));
        feeds.push(quant_feed("qh", high_bit_place(j), 1));
        feeds
    }
}

impl Block for Q6_K {
    fn write(&self, out: &mut [f32]) {
        let d = self.d.to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            let (low_byte, low_shift) = q6_low_place(j);
            let (high_byte, high_shift) = pair_place(j);
            let low = self.ql[low_byte] >> low_shift & 0xF;
            let q = low | (self.qh[high_byte] >> high_shift & 3) << 4;
            let sc = self.scales[j / 16];
            *y = (d * f32::from(sc)) * (f32::from(q) - 32.0);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![
            Feed::new(Role::Scale, "d", 0, 0..16),
            Feed::new(Role::SubScale, "scales", j / 16, 0..8),
            quant_feed("ql", q6_low_place(j), 4),
            quant_feed("qh", pair_place(j), 2),
        ]
    }
}

impl Block for Q8_K {
    fn write(&self, out: &mut [f32]) {
        for (q, y) in self.qs.iter().zip(out) {
            *y = self.d * f32::from(*q);
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        vec![Feed::new(Role::Scale, "d", 0, 0..32), Feed::new(Role::Quant, "qs", j, 0..8)]
    }
}
