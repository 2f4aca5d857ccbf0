//! This project's own reader as a subject.

use gguf_assay_cases::{FileValue, TensorValue, sha256};
use gguf_assay_format::{ByteOrder, OwnedValue, read};
use gguf_assay_quant::dequantize;

use crate::{About, DequantizeRequest, Failure, ReadRequest, Subject};

/// The reader of the crate `gguf-assay-format`, under the profile that it is asked for, and the
/// dequantizer of `gguf-assay-quant`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Subject for Reference {
    fn about(&self) -> About {
        About {
            ops: vec!["read".into(), "dequantize".into()],
            big_endian: true,
            ..About::new("reference", env!("CARGO_PKG_VERSION"))
        }
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Result<Vec<f32>, Failure> {
        let mut numbers = vec![0.0; request.elements()];
        dequantize(request.tensor_type, &request.bytes, request.byte_order, &mut numbers)?;
        Ok(numbers)
    }

    fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure> {
        let bytes = std::fs::read(&request.path)?;
        let gguf = read(&bytes, request.profile)?;
        let metadata = gguf.metadata.iter();
        let tensors = gguf.tensors.iter().map(|tensor| TensorValue {
            name: tensor.name.0.into(),
            type_name: tensor.tensor_type.map(|t| t.name.into()),
            dims: Some(tensor.dims.iter().collect()),
            offset: Some(tensor.offset),
            sha256: gguf.tensor_bytes(tensor).map(|data| {
                // Cases in big-endian order have tensors of plain numbers only.
                let width = tensor.tensor_type.map_or(1, |t| t.block_bytes as usize);
                match gguf.byte_order {
                    ByteOrder::Little => sha256(data),
                    ByteOrder::Big => {
                        let numbers = data.chunks(width.max(1));
                        let little: Vec<u8> =
                            numbers.flat_map(|number| number.iter().rev().copied()).collect();
                        sha256(&little)
                    }
                }
            }),
        });
        Ok(FileValue {
            version: Some(gguf.version),
            tensors: Some(tensors.collect()),
            metadata: Some(
                metadata.map(|entry| (entry.key.0.into(), OwnedValue::from(entry.value))).collect(),
            ),
        })
    }
}
