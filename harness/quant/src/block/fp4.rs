//! 4 bits an element that are a floating-point number, E2M1: MXFP4, NVFP4.

use super::Block;
use crate::feed::{Feed, Role};
use crate::layout::layout;
use crate::number::{E8M0, UE4M3};

layout! {
    /// Blocks of 32 with a power of two as scale: `F[q]·e/2` (OCP Microscaling Formats).
    MXFP4: id 39, 32 elements {
        /// The scale.
        e: E8M0,
        /// Element j is lo of byte j, element j + 16 is hi of byte j.
        qs: [u8; 16],
    }
}

layout! {
    /// Blocks of 64 with a scale for 16 elements: `F[q]·d/2`.
    ///
    /// The factor of the whole tensor, which is a tensor of its own (`….scale`), is not applied.
    NVFP4: id 40, 64 elements {
        /// The scale of elements 16·i to 16·i + 15.
        d: [UE4M3; 4],
        /// The quants: of each 16 elements, 8 bytes; lo is of the first 8, hi of the others.
        qs: [u8; 32],
    }
}

/// Twice the numbers of E2M1, F.
///
/// Its negative zero, 8, is plain zero here. Source: `kvalues_fp4` in `ggml/src/ggml-common.h`,
/// ggml 0.28.0; Copyright (c) 2023-2026 The ggml authors, MIT.
pub static FP4_TWICE: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

fn twice(q: u8) -> f32 {
    FP4_TWICE[usize::from(q & 0xF)].into()
}

/// In which byte and from which bit on the four bits of element `j` of NVFP4 are.
fn nvfp4_place(j: usize) -> (usize, u32) {
    (8 * (j / 16) + j % 8, 4 * (j / 8 % 2) as u32)
}

impl Block for MXFP4 {
    fn write(&self, out: &mut [f32]) {
        let scale = self.e.half_to_f32();
        for (j, y) in out.iter_mut().enumerate() {
            *y = twice(self.qs[j % 16] >> (4 * (j / 16))) * scale;
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let shift = 4 * (j / 16) as u32;
        vec![
            Feed::new(Role::Scale, "e", 0, 0..8),
            Feed::new(Role::Quant, "qs", j % 16, shift..shift + 4),
        ]
    }
}

impl Block for NVFP4 {
    fn write(&self, out: &mut [f32]) {
        for (j, y) in out.iter_mut().enumerate() {
            let (byte, shift) = nvfp4_place(j);
            *y = twice(self.qs[byte] >> shift) * self.d[j / 16].half_to_f32();
        }
    }

    fn feeds(j: usize) -> Vec<Feed> {
        let (byte, shift) = nvfp4_place(j);
        vec![
            // Bit 7 matters in one place: 0x7F is 0, and 0xFF is not.
            Feed::new(Role::SubScale, "d", j / 16, 0..8),
            Feed::new(Role::Quant, "qs", byte, shift..shift + 4),
        ]
    }
}
