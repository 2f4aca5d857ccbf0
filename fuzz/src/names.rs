//! The maps of names.

use gguf_assay_format::diagnose;
use gguf_assay_names::Map;

/// Maps the bytes as a file, whatever they say, and reads the parameters: nothing panics, no count is
/// believed, and nothing reaches a report as it is.
pub fn names(bytes: &[u8]) {
    let Some(gguf) = diagnose(bytes).gguf else { return };
    let Ok(map) = Map::of(&gguf) else { return };
    assert!(map.tensors.len() <= gguf.tensors.len());
    for finding in &map.findings {
        let text = finding.to_string();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
    for parameter in &map.parameters {
        if let Ok(values) = map.read(&gguf, parameter, 0) {
            // 128 elements of Q1_0, the smallest type, take 18 bytes, and 512 when dequantized.
            assert!(values.bytes.len() <= 32 * bytes.len(), "{}", parameter.name);
        }
    }
}
