//! x86-64.
//!
//! A kernel is a function from one block, or from 16 numbers of a plain type, to lines of the
//! output. It is written once for both ways to store a line, and is safe code: what is not, the
//! loads and stores of whole vectors, is in a few functions at the top of each instruction set, and
//! what those rely on is in the types of their arguments.

#![allow(unsafe_code, reason = "kernels")]

pub(crate) mod avx2;
pub(crate) mod avx512;
pub(crate) mod fill;
mod grid;
mod k;

use core::arch::x86_64::{_mm_sfence, _mm256_loadu_ps, _mm256_stream_ps};

use crate::number::{E8M0, UE4M3};

/// 16 numbers of the output, the unit in which kernels write.
///
/// # Safety
///
/// The type is 16 `f32` and nothing else; if `STREAMED`, it is aligned to 64 bytes.
unsafe trait Line {
    /// Whether stores go around the caches.
    const STREAMED: bool;
}

// SAFETY: it is 16 `f32`, and is not streamed.
unsafe impl Line for [f32; 16] {
    const STREAMED: bool = false;
}

/// A whole cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([f32; 16]);

// SAFETY: `repr(C)` and as long as its alignment, so 16 `f32` and nothing else, and aligned.
unsafe impl Line for CacheLine {
    const STREAMED: bool = true;
}

/// [`E8M0::half_to_f32`] of each byte.
static E8M0_HALVES: [f32; 256] = {
    let mut numbers = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        numbers[byte] = E8M0(byte as u8).half_to_f32();
        byte += 1;
    }
    numbers
};

/// [`UE4M3::half_to_f32`] of each byte.
static UE4M3_HALVES: [f32; 256] = {
    let mut numbers = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        numbers[byte] = UE4M3(byte as u8).half_to_f32();
        byte += 1;
    }
    numbers
};

/// Those of the features that the machine does not have.
macro_rules! missing_features {
    ($($feature:tt),+) => {
        [$(($feature, is_x86_feature_detected!($feature))),+]
            .into_iter()
            .filter_map(|(feature, found)| (!found).then_some(feature))
            .collect()
    };
}

/// Names the fields of a block, in the order of its bytes: each a reference to an array of so many.
macro_rules! fields {
    ($block:ident => $($field:ident: $bytes:literal),+) => {
        let rest: &[u8] = $block;
        $(let ($field, rest) = rest.split_first_chunk::<$bytes>().expect("a part of the block");)+
        assert!(rest.is_empty(), "the fields fill the block");
    };
}

/// The table of an instruction set's kernels: each loops over the blocks, with its kernel inlined.
macro_rules! entries {
    ($features:literal; $($family:ident::$name:ident: $t:ident,)+) => {
        /// The kernels.
        pub(crate) static ENTRIES: &[$crate::arch::Entry] = &[$(
            $crate::arch::Entry {
                id: <$crate::block::$t as $crate::layout::Layout>::ID,
                step: steps::$name::LINES * 16,
                cached: steps::$name::cached,
                streamed: steps::$name::streamed,
            },
        )+];

        mod steps { $(
            pub(super) mod $name {
                use super::super::super::{Line, stream};
                use $crate::layout::Layout;

                type Block = $crate::block::$t;
                /// Lines in a step, which is a block unless that is shorter than a line.
                pub(in super::super) const LINES: usize = Block::LEN.div_ceil(16);
                const BYTES: usize = LINES * 16 / Block::LEN * Block::BYTES;

                #[target_feature(enable = $features)]
                pub(in super::super) fn cached(blocks: &[u8], out: &mut [f32]) {
                    run::<[f32; 16]>(blocks, out.as_chunks_mut().0);
                }

                #[target_feature(enable = $features)]
                pub(in super::super) fn streamed(blocks: &[u8], out: &mut [f32]) {
                    stream::<BYTES, LINES>(
                        blocks,
                        out,
                        |blocks, lines| run(blocks, lines),
                        |blocks, lines| run(blocks, lines),
                    );
                }

                #[target_feature(enable = $features)]
                fn run<L: Line>(blocks: &[u8], out: &mut [L]) {
                    let (blocks, _) = blocks.as_chunks::<BYTES>();
                    let (out, _) = out.as_chunks_mut::<LINES>();
                    for (block, out) in blocks.iter().zip(out) {
                        super::super::$family::$name(block, out);
                    }
                }
            }
        )+ }
    };
}
use {entries, fields, missing_features};

/// Writes steps of so many bytes and lines around the caches: right away if the output is cache
/// lines, or else by way of a tile that stays in the cache.
#[target_feature(enable = "avx")]
fn stream<const BYTES: usize, const LINES: usize>(
    blocks: &[u8],
    out: &mut [f32],
    to_lines: impl Fn(&[u8], &mut [CacheLine]),
    to_tile: impl Fn(&[u8], &mut [[f32; 16]]),
) {
    // SAFETY: a cache line is `f32` and nothing else, and any are valid.
    let (before, lines, after) = unsafe { out.align_to_mut::<CacheLine>() };
    if before.is_empty() && after.is_empty() {
        to_lines(blocks, lines);
    } else {
        by_tile::<BYTES, LINES>(blocks, [before, after], lines, to_tile);
    }
    // Such stores are ordered with later ones by nothing else.
    _mm_sfence();
}

/// Has tiles written that stay in the cache, and copies them to the cache lines between the ends.
///
/// What is left of a tile and is no whole line waits for the next one: an ordinary store, which has
/// to fetch its line first, would hold up all stores behind it.
#[target_feature(enable = "avx")]
#[inline]
fn by_tile<const BYTES: usize, const LINES: usize>(
    blocks: &[u8],
    [before, after]: [&mut [f32]; 2],
    lines: &mut [CacheLine],
    to_tile: impl Fn(&[u8], &mut [[f32; 16]]),
) {
    const TILE: usize = 64;
    /// Aligned, so that no store of a kernel lies across two cache lines.
    #[repr(align(64))]
    struct Tile([f32; 16 * (TILE + 1)]);
    let Tile(tile) = &mut Tile([0.0; 16 * (TILE + 1)]);
    // In front of the first number of a tile.
    let mut waiting = 0;
    let mut lines = lines.iter_mut();
    let mut before = Some(before);
    for blocks in blocks.chunks(TILE / LINES * BYTES) {
        let end = 16 + blocks.len() / BYTES * LINES * 16;
        to_tile(blocks, tile[16..end].as_chunks_mut().0);
        let mut ready = &tile[16 - waiting..end];
        if let Some(before) = before.take() {
            let (first, rest) = ready.split_at(before.len());
            before.copy_from_slice(first);
            ready = rest;
        }
        let (whole, rest) = ready.as_chunks();
        for (from, to) in whole.iter().zip(&mut lines) {
            stream_line(from, to);
        }
        waiting = rest.len();
        tile.copy_within(end - waiting..end, 16 - waiting);
    }
    after.copy_from_slice(&tile[16 - waiting..16]);
}

#[target_feature(enable = "avx")]
#[inline]
fn stream_line(from: &[f32; 16], to: &mut CacheLine) {
    for (from, to) in from.as_chunks::<8>().0.iter().zip(to.0.as_chunks_mut::<8>().0) {
        // SAFETY: there are 8 numbers.
        let numbers = unsafe { _mm256_loadu_ps(from.as_ptr()) };
        // SAFETY: there is room for 8, at the start or in the middle of a line.
        unsafe { _mm256_stream_ps(to.as_mut_ptr(), numbers) };
    }
}
