//! The dequantizers of ggml-quants behind the adapter protocol. Their numbers are reported as is.

use std::{io, ptr};

use ggml_quants::{
    IQ1M, IQ1S, IQ2S, IQ2XS, IQ2XXS, IQ3S, IQ3XXS, IQ4NL, IQ4XS, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0,
    Q5_1, Q5K, Q6K, Q8_0, Q8_1, Q8K, QuantExt, bf16, f16,
};
use gguf_assay::{About, DequantizeRequest, Failure, FileValue, ReadRequest, Subject};

struct GgmlQuants;

impl Subject for GgmlQuants {
    fn about(&self) -> About {
        About {
            home: "https://github.com/InfiniTensor/gguf".into(),
            ops: vec!["dequantize".into()],
            types: TYPES.map(|(name, _)| name.into()).into(),
            ..About::new("ggml-quants", ggml_quants_version())
        }
    }

    fn read(&mut self, _: &ReadRequest) -> Result<FileValue, Failure> {
        Err(Failure::Unimplemented("reading files".into()))
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Result<Vec<f32>, Failure> {
        let name = request.tensor_type.name;
        let Some((_, dequantize)) = TYPES.into_iter().find(|(known, _)| *known == name) else {
            return Err(Failure::Unimplemented(format!("the type {name}")));
        };
        dequantize(request)
    }
}

type Dequantize = fn(&DequantizeRequest) -> Result<Vec<f32>, Failure>;

/// ggml's names of the types that have a `Quantize`, whether or not there is something in it.
const TYPES: [(&str, Dequantize); 23] = [
    ("F16", numbers::<f16, 1>),
    ("BF16", numbers::<bf16, 1>),
    ("Q4_0", numbers::<Q4_0, 32>),
    ("Q4_1", numbers::<Q4_1, 32>),
    ("Q5_0", numbers::<Q5_0, 32>),
    ("Q5_1", numbers::<Q5_1, 32>),
    ("Q8_0", numbers::<Q8_0, 32>),
    ("Q8_1", numbers::<Q8_1, 32>),
    ("Q2_K", numbers::<Q2K, 256>),
    ("Q3_K", numbers::<Q3K, 256>),
    ("Q4_K", numbers::<Q4K, 256>),
    ("Q5_K", numbers::<Q5K, 256>),
    ("Q6_K", numbers::<Q6K, 256>),
    ("Q8_K", numbers::<Q8K, 256>),
    ("IQ1_S", numbers::<IQ1S, 256>),
    ("IQ1_M", numbers::<IQ1M, 256>),
    ("IQ2_XXS", numbers::<IQ2XXS, 256>),
    ("IQ2_XS", numbers::<IQ2XS, 256>),
    ("IQ2_S", numbers::<IQ2S, 256>),
    ("IQ3_XXS", numbers::<IQ3XXS, 256>),
    ("IQ3_S", numbers::<IQ3S, 256>),
    ("IQ4_NL", numbers::<IQ4NL, 32>),
    ("IQ4_XS", numbers::<IQ4XS, 256>),
];

/// Takes the bytes for a slice of the crate's blocks, which are `repr(C)` for this.
fn numbers<B: QuantExt<f32, N>, const N: usize>(
    request: &DequantizeRequest,
) -> Result<Vec<f32>, Failure> {
    let blocks = request.bytes.chunks_exact(size_of::<B>());
    // SAFETY: the chunk has the size of a block, and all fields of the blocks of `TYPES` are
    // integers, or floats of 16 bits: any bytes will do.
    let blocks = blocks.map(|chunk| unsafe { ptr::read_unaligned(chunk.as_ptr().cast::<B>()) });
    let mut numbers = vec![0.0; request.elements()];
    B::dequantize_slice(&mut numbers, &blocks.collect::<Vec<B>>()).map_err(|error| {
        Failure::Rejected { message: format!("{error:?}"), kind: "QuantizeError".into() }
    })?;
    Ok(numbers)
}

/// The version that cargo built in: the crate has no constant for it.
fn ggml_quants_version() -> &'static str {
    const LOCK: &str = include_str!("../Cargo.lock");
    LOCK.split_once("name = \"ggml-quants\"\nversion = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("unknown", |(version, _)| version)
}

fn main() -> io::Result<()> {
    gguf_assay::serve(GgmlQuants)
}
