//! Sets of files that are one model.

use gguf_assay_format::{Description, OwnedValue};

/// The shards that llama.cpp's gguf-split makes of a file: the tensors spread over `count` files in
/// their order, all other keys in the first, and the keys that a file has to have and those of the
/// split in each. No shard, if there are no shards to be had or more than 16 bits can count.
pub fn split(description: &Description, count: usize) -> Vec<Description> {
    let Ok(total) = u16::try_from(count) else { return vec![] };
    if count == 0 {
        return vec![];
    }
    let needed: [&[u8]; 3] =
        [b"general.architecture", b"general.alignment", b"general.quantization_version"];
    let tensors = description.tensors.len();
    let most = tensors.div_ceil(count).max(1);
    (0..total)
        .map(|number| {
            let mut metadata = description.metadata.clone();
            metadata.retain(|(key, _)| number == 0 || needed.contains(&key.as_slice()));
            let split: [(&str, OwnedValue); 3] = [
                ("split.no", OwnedValue::U16(number)),
                ("split.count", OwnedValue::U16(total)),
                ("split.tensors.count", OwnedValue::I32(tensors as i32)),
            ];
            metadata.extend(split.map(|(key, value)| (key.into(), value)));
            let first = usize::from(number) * most;
            let tensors = description.tensors.iter().skip(first).take(most).cloned().collect();
            Description { metadata, tensors, ..description.clone() }
        })
        .collect()
}
