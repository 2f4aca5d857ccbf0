//! candle's GGUF reader behind the adapter protocol. What it hands out is reported as it is.

use std::fs::File;
use std::io::{self, BufReader};

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::ggml_file::qtensor_from_ggml;
use candle_core::quantized::gguf_file::{Content, Value, VersionedMagic};
use gguf_assay::{
    About, DequantizeRequest, Failure, FileValue, OwnedArray, OwnedValue, ReadRequest, Subject, TensorValue,
    ValueType, sha256,
};

struct Candle;

impl Subject for Candle {
    fn about(&self) -> About {
        About {
            home: "https://github.com/huggingface/candle".into(),
            ops: vec!["read".into(), "dequantize".into()],
            types: TYPES[..TENSORS].iter().map(|(_, name)| (*name).into()).collect(),
            ..About::new("candle", candle_version())
        }
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Result<Vec<f32>, Failure> {
        let name = request.tensor_type.name;
        let known = TYPES[..TENSORS].iter().find(|(_, known)| *known == name);
        let Some(&(dtype, _)) = known else {
            return Err(Failure::Unimplemented(format!("the type {name}")));
        };
        let (dims, cpu) = (vec![request.elements()], &Device::Cpu);
        let tensor = qtensor_from_ggml(dtype, &request.bytes, dims, cpu)?.dequantize(cpu)?;
        Ok(tensor.to_vec1()?)
    }

    fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure> {
        let mut reader = BufReader::new(File::open(&request.path)?);
        let content = Content::read(&mut reader)?;
        let metadata = content.metadata.iter();
        let metadata = metadata.map(|(key, value)| (key.as_bytes().to_vec(), owned(value)));
        // By name, so that it is the same tensor that fails each time.
        let mut names: Vec<&String> = content.tensor_infos.keys().collect();
        names.sort();
        let mut tensors = Vec::new();
        for name in names {
            let info = &content.tensor_infos[name];
            // This is how a model is loaded: what fails here, fails the file.
            let tensor = content.tensor(&mut reader, name, &Device::Cpu)?;
            tensors.push(TensorValue {
                name: name.as_bytes().to_vec(),
                type_name: type_name(info.ggml_dtype),
                // candle's order is the reverse of the file's.
                dims: Some(info.shape.dims().iter().rev().map(|&dim| dim as u64).collect()),
                offset: Some(info.offset),
                sha256: Some(sha256(&tensor.data()?)),
            });
        }
        Ok(FileValue {
            version: Some(match content.magic {
                VersionedMagic::GgufV1 => 1,
                VersionedMagic::GgufV2 => 2,
                VersionedMagic::GgufV3 => 3,
            }),
            metadata: Some(metadata.collect()),
            tensors: Some(tensors),
        })
    }
}

/// The version that cargo built in: candle has no constant for it.
fn candle_version() -> &'static str {
    const LOCK: &str = include_str!("../Cargo.lock");
    LOCK.split_once("name = \"candle-core\"\nversion = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("unknown", |(version, _)| version)
}

fn owned(value: &Value) -> OwnedValue {
    match value {
        Value::U8(v) => OwnedValue::U8(*v),
        Value::I8(v) => OwnedValue::I8(*v),
        Value::U16(v) => OwnedValue::U16(*v),
        Value::I16(v) => OwnedValue::I16(*v),
        Value::U32(v) => OwnedValue::U32(*v),
        Value::I32(v) => OwnedValue::I32(*v),
        Value::U64(v) => OwnedValue::U64(*v),
        Value::I64(v) => OwnedValue::I64(*v),
        Value::F32(v) => OwnedValue::F32(*v),
        Value::F64(v) => OwnedValue::F64(*v),
        Value::Bool(v) => OwnedValue::Bool(*v),
        Value::String(v) => OwnedValue::String(v.as_bytes().to_vec()),
        Value::Array(values) => {
            let values: Vec<OwnedValue> = values.iter().map(owned).collect();
            // candle keeps no element type. An empty array is one of u32 to candle's own writer.
            let element_type = values.first().map_or(ValueType::U32, OwnedValue::value_type);
            OwnedValue::Array(OwnedArray::new(element_type, values))
        }
    }
}

/// candle's types and ggml's names of them: the first [`TENSORS`] are those that tensors can have, the
/// others serve its products of matrices.
const TYPES: [(GgmlDType, &str); 15] = [
    (GgmlDType::F32, "F32"),
    (GgmlDType::F16, "F16"),
    (GgmlDType::BF16, "BF16"),
    (GgmlDType::Q4_0, "Q4_0"),
    (GgmlDType::Q4_1, "Q4_1"),
    (GgmlDType::Q5_0, "Q5_0"),
    (GgmlDType::Q5_1, "Q5_1"),
    (GgmlDType::Q8_0, "Q8_0"),
    (GgmlDType::Q2K, "Q2_K"),
    (GgmlDType::Q3K, "Q3_K"),
    (GgmlDType::Q4K, "Q4_K"),
    (GgmlDType::Q5K, "Q5_K"),
    (GgmlDType::Q6K, "Q6_K"),
    (GgmlDType::Q8_1, "Q8_1"),
    (GgmlDType::Q8K, "Q8_K"),
];

const TENSORS: usize = 13;

/// ggml's name of a type.
fn type_name(dtype: GgmlDType) -> Option<String> {
    let (_, name) = TYPES.into_iter().find(|(known, _)| *known == dtype)?;
    Some(name.into())
}

fn main() -> io::Result<()> {
    gguf_assay::serve(Candle)
}
