//! Reader and writer against each other.

/// What is read is written and read again: see [`gguf_assay_smith::roundtrip`].
pub fn roundtrip(bytes: &[u8]) {
    if let Err(difference) = gguf_assay_smith::roundtrip(bytes) {
        panic!("{difference}");
    }
}
