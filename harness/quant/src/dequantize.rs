//! The ways in: elements, rows, and the lengths that they have to have.

use gguf_assay_format::{ByteOrder, Status, TensorType};

use crate::block::{self, Format};
use crate::error::{Error, Fault};

/// The type with this id.
///
/// # Errors
///
/// If no type has the id (`TENSOR-008`), or a removed one (`TENSOR-009`).
pub fn find_type(id: u32) -> Result<&'static TensorType, Error> {
    let tensor_type = TensorType::by_id(id).ok_or(Fault::Unknown { id })?;
    match tensor_type.status {
        Status::Removed => Err(Fault::Removed { tensor_type: *tensor_type }.into()),
        Status::Current | Status::Provisional => Ok(tensor_type),
    }
}

/// How many bytes a row of `row_len` elements takes.
///
/// # Errors
///
/// Those of [`find_type`]; if the row is no whole number of blocks (`TENSOR-010`); if 64 bits do
/// not count its bytes (`TENSOR-011`).
pub fn row_bytes(tensor_type: &TensorType, row_len: u64) -> Result<u64, Error> {
    find_format(tensor_type)?;
    let t = *tensor_type;
    if !row_len.is_multiple_of(u64::from(t.block_len)) {
        return Err(Fault::Row { tensor_type: t, elements: row_len }.into());
    }
    Ok(t.byte_len(row_len).ok_or(Fault::Size { tensor_type: t, elements: row_len })?)
}

/// Dequantizes a row, or any other whole number of blocks.
///
/// `bytes` are the blocks, in the byte order of the file; `out` takes their elements as `f32`, and
/// is not touched if there is an error. F64, I32 and I64, which `f32` cannot hold, are rounded to
/// the nearest, ties to even; an F64 beyond the range becomes infinite.
///
/// # Errors
///
/// Those of [`row_bytes`] for as many elements as `out` has; if `bytes` are not exactly the bytes
/// of so many.
pub fn dequantize(
    tensor_type: &TensorType,
    bytes: &[u8],
    order: ByteOrder,
    out: &mut [f32],
) -> Result<(), Error> {
    let format = find_format(tensor_type)?;
    check_lengths(tensor_type, bytes, out)?;
    (format.decode)(bytes, order, out);
    Ok(())
}

/// An error unless `out` is whole blocks and `bytes` are exactly theirs.
pub(crate) fn check_lengths(
    tensor_type: &TensorType,
    bytes: &[u8],
    out: &[f32],
) -> Result<(), Error> {
    let (elements, found) = (out.len() as u64, bytes.len() as u64);
    let expected = row_bytes(tensor_type, elements)?;
    if found != expected {
        return Err(Fault::Bytes { tensor_type: *tensor_type, elements, expected, found }.into());
    }
    Ok(())
}

/// Dequantizes rows of `row_len` elements: a tensor, if `row_len` is its first dimension.
///
/// Rows are whole blocks and follow each other without a gap, so that the numbers are those of
/// [`dequantize`]; but a length that lets rows start inside a block is an error.
///
/// # Errors
///
/// Those of [`row_bytes`] for `row_len`; if `out` is no whole number of rows; if `bytes` are not
/// exactly the bytes of so many elements as `out` has.
pub fn dequantize_rows(
    tensor_type: &TensorType,
    row_len: usize,
    bytes: &[u8],
    order: ByteOrder,
    out: &mut [f32],
) -> Result<(), Error> {
    row_bytes(tensor_type, row_len as u64)?;
    // No number is a multiple of 0 but 0.
    if !out.len().is_multiple_of(row_len) {
        let (row_len, elements) = (row_len as u64, out.len() as u64);
        return Err(Fault::Rows { tensor_type: *tensor_type, row_len, elements }.into());
    }
    dequantize(tensor_type, bytes, order, out)
}

/// How the type is decoded; an error if it is none, was removed, or is not a type of `TENSOR_TYPES`
/// but somebody's own, whose sizes would not be those of the decoder.
pub(crate) fn find_format(tensor_type: &TensorType) -> Result<&'static Format, Error> {
    find_type(tensor_type.id)?;
    Ok(block::format(tensor_type).ok_or(Fault::Altered { tensor_type: *tensor_type })?)
}
