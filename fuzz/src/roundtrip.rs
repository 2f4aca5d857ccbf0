//! Reader and writer against each other.

use gguf_assay_format::{Profile, lay_out, read};

/// Reads the bytes, writes what was read, and reads that: it is the same file, to the byte up to the
/// end of the tensor table.
pub fn roundtrip(bytes: &[u8]) {
    let Ok(gguf) = read(bytes, Profile::Spec) else { return };
    let Some(description) = gguf.describe() else { return };
    let layout = lay_out(&description);
    let written = layout.to_bytes();
    let again = read(&written, Profile::Spec).expect("what was written is valid");
    let again = again.describe().expect("all of it is there");
    assert!(lay_out(&again).to_bytes() == written, "written again, it differs");

    let table_end = layout.field("padding").map_or(layout.len(), |padding| padding.range.start);
    let table_end = usize::try_from(table_end).expect("it was read from memory");
    assert!(written[..table_end] == bytes[..table_end], "the table is not what was read");
}
