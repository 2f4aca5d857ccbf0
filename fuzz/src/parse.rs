//! The strict reader alone.

use gguf_assay_format::{Gguf, Profile, Value, read};

/// Reads the bytes as a file, strictly by both profiles, and looks at all that came of it: nothing
/// panics.
pub fn parse(bytes: &[u8]) {
    for profile in Profile::ALL {
        if let Ok(gguf) = read(bytes, profile) {
            look_at(&gguf, bytes);
        }
    }
}

/// Goes through everything once, without keeping any of it.
pub(crate) fn look_at(gguf: &Gguf<'_>, bytes: &[u8]) {
    assert!(gguf.metadata.len() <= bytes.len() && gguf.tensors.len() <= bytes.len());
    for entry in &gguf.metadata {
        look_at_value(&entry.value, bytes.len() as u64);
    }
    for tensor in &gguf.tensors {
        if let Some(data) = gguf.tensor_bytes(tensor) {
            assert_eq!(Some(data.len() as u64), tensor.byte_len);
        }
        assert!(tensor.dims.iter().count() == tensor.dims.len());
    }
}

fn look_at_value(value: &Value<'_>, file_len: u64) {
    if let Value::Array(array) = value {
        // Every element takes a byte at least.
        assert!(array.len() <= file_len);
        let mut count = 0;
        for element in array.iter() {
            look_at_value(&element, file_len);
            count += 1;
        }
        assert_eq!(count, array.len());
    }
}
