//! The experts of gpt-oss, and the same blocks as GGUF has them.
//!
//! Source: transformers 5.24.0 `integrations/mxfp4.py`; ggml 0.28.0 `block_mxfp4`. The tensors are
//! `blocks`, U8 [experts, out, in / 32, 16], and `scales`, U8 [experts, out, in / 32]. The low nibble
//! of a byte is the even element, the high nibble the odd one. Rows of `gate_up_proj` are those of
//! gate and up in turn: [`deinterleave`] parts them.

use super::fp4::{join_nibbles, nibbles, scaled};
use super::{Job, NotUnpacked, Tensor};
use crate::dtype::Dtype;

/// How many elements share a scale.
pub const BLOCK: usize = 32;

/// The bytes of a block of GGUF's MXFP4: the scale, and two elements to a byte.
pub const GGUF_BLOCK: usize = 17;

/// How many experts the blocks are of; and the blocks.
fn blocks<'t, 'a>(job: &Job<'t, 'a>) -> Result<(usize, &'t Tensor<'a>), NotUnpacked> {
    let Job { rows, cols, .. } = *job;
    job.multiple(cols, BLOCK, "in_features", "the blocks")?;
    let experts = job.find("blocks").and_then(|tensor| tensor.shape.first());
    let experts = experts.and_then(|experts| usize::try_from(*experts).ok()).unwrap_or(1).max(1);
    let shape: &[usize] = &[experts, rows, cols / BLOCK, 16];
    Ok((experts, job.tensor("blocks", &[Dtype::U8], &[shape])?))
}

pub(super) fn codes(job: &Job<'_, '_>) -> Result<Vec<u8>, NotUnpacked> {
    Ok(nibbles(&blocks(job)?.1.bytes))
}

/// `e2m1 * 2^(scale - 127)`, exact.
pub(super) fn numbers(job: &Job<'_, '_>) -> Result<Vec<f32>, NotUnpacked> {
    let (experts, blocks) = blocks(job)?;
    let shape: &[usize] = &[experts, job.rows, job.cols / BLOCK];
    let scales = job.tensor("scales", &[Dtype::U8, Dtype::F8_E8M0], &[shape])?.numbers();
    Ok(scaled(&nibbles(&blocks.bytes), BLOCK, &scales))
}

pub(super) fn pack_codes(
    job: &Job<'_, '_>,
    codes: &[u8],
) -> Result<(&'static str, Tensor<'static>), NotUnpacked> {
    let Job { rows, cols, .. } = *job;
    job.multiple(cols, BLOCK, "in_features", "the blocks")?;
    let experts = codes.len() / (rows * cols);
    let shape = [experts, rows, cols / BLOCK, 16];
    Ok(("blocks", Tensor::of_bytes(Dtype::U8, &shape, join_nibbles(codes))))
}

/// The blocks of GGUF's MXFP4 with the same numbers, in the same order: of 16 bytes, the low nibbles
/// are elements 0 to 15, the high nibbles the others.
///
/// Every scale and every code goes over as it is. The numbers agree but for two things of ggml's: the
/// code of -0 is 0, and a scale of 255, a NaN by the OCP text, is a power of two, 2^128.
///
/// # Errors
///
/// Blocks and scales that are not as many as each other.
pub fn to_gguf(blocks: &[u8], scales: &[u8]) -> Result<Vec<u8>, NotUnpacked> {
    let (rows, rest) = blocks.as_chunks::<16>();
    if rows.len() != scales.len() || !rest.is_empty() {
        let found = format!("{} bytes of blocks and {} scales", blocks.len(), scales.len());
        return Err(NotUnpacked::new(found, "16 bytes for each scale"));
    }
    let block = |(bytes, scale): (&[u8; 16], &u8)| {
        let codes = nibbles(bytes);
        let (first, second) = codes.split_at(16);
        let halves = first.iter().zip(second).map(|(low, high)| low | high << 4);
        [*scale].into_iter().chain(halves).collect::<Vec<u8>>()
    };
    Ok(rows.iter().zip(scales).flat_map(block).collect())
}

/// The blocks and scales of gpt-oss with the numbers of these blocks of GGUF: undoes [`to_gguf`].
///
/// # Errors
///
/// Bytes that are no whole number of blocks.
pub fn from_gguf(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), NotUnpacked> {
    let (gguf, rest) = bytes.as_chunks::<GGUF_BLOCK>();
    if !rest.is_empty() {
        let found = format!("{} bytes", bytes.len());
        return Err(NotUnpacked::new(found, format!("a multiple of {GGUF_BLOCK}")));
    }
    let scales = gguf.iter().map(|[scale, ..]| *scale).collect();
    let block = |[_, qs @ ..]: &[u8; GGUF_BLOCK]| {
        let low = qs.iter().map(|byte| byte & 0xF);
        let codes: Vec<u8> = low.chain(qs.iter().map(|byte| byte >> 4)).collect();
        join_nibbles(&codes)
    };
    Ok((gguf.iter().flat_map(block).collect(), scales))
}

/// Even rows and odd rows: gate and up of `gate_up_proj`, be it numbers, blocks or scales of one
/// expert or of all. A last row that is not whole belongs to neither.
pub fn deinterleave<T: Copy>(items: &[T], row_len: usize) -> [Vec<T>; 2] {
    let mut parts = [Vec::new(), Vec::new()];
    for rows in items.chunks_exact(row_len.max(1).saturating_mul(2)) {
        let (even, odd) = rows.split_at(row_len.max(1));
        parts[0].extend_from_slice(even);
        parts[1].extend_from_slice(odd);
    }
    parts
}

/// Undoes [`deinterleave`].
pub fn interleave<T: Copy>(gate: &[T], up: &[T], row_len: usize) -> Vec<T> {
    let rows = gate.chunks_exact(row_len.max(1)).zip(up.chunks_exact(row_len.max(1)));
    rows.flat_map(|(gate, up)| [gate, up].concat()).collect()
}
