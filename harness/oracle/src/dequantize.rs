//! ggml's functions that turn blocks into numbers.

#![allow(unsafe_code)]

use std::fmt;

use crate::sys::{self, ToFloat};
use crate::type_info;

/// Why ggml was not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDequantized {
    /// ggml has no type with this id, or has removed it.
    UnknownType,
    /// ggml has the type, but no function: F32, F64, the integers and Q8_1.
    NoFunction,
    /// The elements are no whole blocks, or the bytes not those of so many elements.
    WrongLength,
}

impl fmt::Display for NotDequantized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotDequantized::UnknownType => "ggml has no such type",
            NotDequantized::NoFunction => "ggml has no function that dequantizes this type",
            NotDequantized::WrongLength => "not the bytes of so many elements in whole blocks",
        })
    }
}

impl std::error::Error for NotDequantized {}

/// Dequantizes blocks of the type with this id as ggml does: `to_float` of `ggml_get_type_traits`
/// or, for Q8_K, which has none, `dequantize_row_q8_K`.
///
/// `bytes` are whole blocks in the machine's byte order, which is the order of a file only if both
/// are little-endian; `out` takes their elements, and is not touched if there is an error.
pub fn dequantize(type_id: u32, bytes: &[u8], out: &mut [f32]) -> Result<(), NotDequantized> {
    dequantize_by(sys::gguf_assay_to_float, type_id, bytes, out)
}

/// [`dequantize`] by the same source, compiled for the machine that compiled it: the program runs on
/// no lesser one.
#[cfg(feature = "native")]
pub fn dequantize_native(
    type_id: u32,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), NotDequantized> {
    dequantize_by(sys::native_gguf_assay_to_float, type_id, bytes, out)
}

fn dequantize_by(
    to_float: extern "C" fn(i32) -> Option<ToFloat>,
    type_id: u32,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), NotDequantized> {
    let id = i32::try_from(type_id).map_err(|_| NotDequantized::UnknownType)?;
    let info = type_info(id).filter(|info| info.block_len > 0 && info.block_bytes > 0);
    let info = info.ok_or(NotDequantized::UnknownType)?;
    let to_float = to_float(id).ok_or(NotDequantized::NoFunction)?;

    let blocks = out.len() as u64 / info.block_len;
    if blocks.checked_mul(info.block_len) != Some(out.len() as u64)
        || blocks.checked_mul(info.block_bytes) != Some(bytes.len() as u64)
    {
        return Err(NotDequantized::WrongLength);
    }
    // Every block struct of ggml is made of numbers of at most 4 bytes, and every plain number has
    // at most 8.
    let moved: Vec<u64>;
    let row = if bytes.as_ptr().cast::<u64>().is_aligned() {
        bytes.as_ptr()
    } else {
        moved = words(bytes);
        moved.as_ptr().cast()
    };
    // SAFETY: `row` points to the bytes of `blocks` blocks, aligned as any of ggml's block structs
    // asks, and `out` is as long as their elements: the function reads the ones, writes the others
    // and stops there. It does not abort, since they are whole blocks. Any bytes are a value of
    // those structs, whose fields are numbers, and indices of tables are masked to the table's
    // length.
    unsafe { to_float(row.cast(), out.as_mut_ptr(), out.len() as i64) };
    Ok(())
}

/// The same bytes, padded at the end, at an address that is a multiple of 8.
fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
