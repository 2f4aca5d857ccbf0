//! What holds of the reader and the writer together.

use gguf_assay_format::{Profile, lay_out, read};

/// Reads a file by the profile `spec`, writes what was read, and reads that: it is the same file, to
/// the byte up to the end of the tensor table, and every tensor has the same data. Behind the table,
/// padding and gaps may be anything. False if there is nothing to compare: the file is refused, or
/// not all of its data are there.
///
/// # Errors
///
/// What does not hold.
pub fn roundtrip(bytes: &[u8]) -> Result<bool, String> {
    let Ok(gguf) = read(bytes, Profile::Spec) else { return Ok(false) };
    let Some(description) = gguf.describe() else { return Ok(false) };
    let layout = lay_out(&description);
    let written = layout.to_bytes();
    let again = read(&written, Profile::Spec).map_err(|v| format!("what was written: {v}"))?;
    let Some(description) = again.describe() else {
        return Err("not all that was written is there".into());
    };
    if lay_out(&description).to_bytes() != written {
        return Err("written again, it differs".into());
    }
    let table_end = layout.field("padding").map_or(layout.len(), |padding| padding.range.start);
    let table_end = usize::try_from(table_end).map_err(|e| e.to_string())?;
    match (bytes.get(..table_end), written.get(..table_end)) {
        (Some(read), Some(written)) if read == written => {}
        _ => return Err("the table is not what was read".into()),
    }
    // The tables are the same, so the tensors are.
    for (tensor, again_tensor) in gguf.tensors.iter().zip(&again.tensors) {
        if gguf.tensor_bytes(tensor) != again.tensor_bytes(again_tensor) {
            return Err(format!("{}: the data are not what was read", tensor.name));
        }
    }
    Ok(true)
}
