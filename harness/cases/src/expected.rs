//! What a reader should have read: typed and exact.

use gguf_assay_format::{ByteOrder, Data, Description, OwnedValue, TensorDescription, TensorType};
use sha2::{Digest, Sha256};

use crate::file::{hash_zeros, hex};

/// What a reader says a file holds. What it leaves out (`None`) is not compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileValue {
    /// The version in the header.
    pub version: Option<u32>,
    /// Keys and values; their order does not count.
    pub metadata: Option<Vec<(Vec<u8>, OwnedValue)>>,
    /// The tensors; their order does not count.
    pub tensors: Option<Vec<TensorValue>>,
}

/// What a reader says about a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorValue {
    /// The name's bytes.
    pub name: Vec<u8>,
    /// ggml's name of the type (`Q4_K`).
    pub type_name: Option<String>,
    /// The dimensions in the order of the file. Ones at the end do not count: ggml keeps none.
    pub dims: Option<Vec<u64>>,
    /// The offset from the start of the data section.
    pub offset: Option<u64>,
    /// SHA-256, in hex, of the tensor's bytes without padding, numbers in little-endian order.
    pub sha256: Option<String>,
}

/// The SHA-256 of some bytes in hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

impl FileValue {
    /// What the description says; `offsets` are those of its layout.
    pub(crate) fn of(description: &Description, offsets: &[u64]) -> FileValue {
        let tensors =
            description.tensors.iter().zip(offsets).map(|(tensor, &offset)| TensorValue {
                name: tensor.name.clone(),
                type_name: TensorType::by_id(tensor.type_id).map(|t| t.name.to_owned()),
                dims: Some(tensor.dims.clone()),
                offset: Some(offset),
                sha256: data_sha256(tensor, description.byte_order),
            });
        FileValue {
            version: Some(description.version),
            metadata: Some(description.metadata.clone()),
            tensors: Some(tensors.collect()),
        }
    }
}

/// The number of elements of a shape, if it fits 64 bits; 0 if a dimension is, however large others.
pub(crate) fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim))
}

/// The hash of the data that the tensor's shape asks for, which a fault may have made fewer than were
/// laid down; `None` if they are not all there or have no size.
fn data_sha256(tensor: &TensorDescription, order: ByteOrder) -> Option<String> {
    let tensor_type = TensorType::by_id(tensor.type_id)?;
    let len =
        tensor_type.byte_len(elements(&tensor.dims)?).filter(|&len| len <= tensor.data.len())?;
    let mut hash = Sha256::new();
    match &tensor.data {
        Data::Zeros(_) => hash_zeros(&mut hash, len),
        Data::Bytes(bytes) => {
            let bytes = &bytes[..len as usize];
            // Big-endian cases have plain numbers only: what the bytes of a block swap to depends
            // on its fields.
            match order {
                ByteOrder::Little => hash.update(bytes),
                ByteOrder::Big => {
                    for number in bytes.chunks(tensor_type.block_bytes as usize) {
                        let little: Vec<u8> = number.iter().rev().copied().collect();
                        hash.update(&little);
                    }
                }
            }
        }
    }
    Some(hex(&hash.finalize()))
}
