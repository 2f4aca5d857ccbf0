//! ggus's GGUF reader behind the adapter protocol. What it hands out is reported as it is.

use std::{fs, io};

use gguf_assay::{
    About, Failure, FileValue, OwnedArray, OwnedValue, ReadRequest, Subject, TensorValue,
    ValueType, sha256,
};
use ggus::{
    GGmlType, GGuf, GGufError, GGufMetaDataValueType as Ty, GGufReadError, GGufReader,
    GGufTensorMeta,
};

struct Ggus;

impl Subject for Ggus {
    fn about(&self) -> About {
        About {
            home: "https://github.com/InfiniTensor/gguf".into(),
            ..About::new("ggus", ggus_version())
        }
    }

    fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure> {
        let bytes = fs::read(&request.path)?;
        let gguf = GGuf::new(&bytes)?;
        let tensors = gguf.tensors.iter().map(|(name, meta)| tensor(name, meta, gguf.data));
        Ok(FileValue {
            version: Some(gguf.header.version),
            metadata: metadata(&gguf).map_err(GGufError::Reading)?,
            tensors: Some(tensors.collect()),
        })
    }
}

/// The file's keys and values; `None` if arrays in it are nested deeper than the protocol's JSON can
/// be.
fn metadata(gguf: &GGuf<'_>) -> Result<Option<Vec<(Vec<u8>, OwnedValue)>>, GGufReadError> {
    const DEEPEST: usize = 50;
    let mut metadata = Vec::new();
    for (key, kv) in &gguf.meta_kvs {
        if depth(kv.value_reader(), kv.ty())? > DEEPEST {
            return Ok(None);
        }
        metadata.push((key.as_bytes().to_vec(), value(&mut kv.value_reader(), kv.ty())?));
    }
    Ok(Some(metadata))
}

/// How many arrays the first element lies in.
fn depth(mut reader: GGufReader<'_>, mut ty: Ty) -> Result<usize, GGufReadError> {
    let mut depth = 0;
    while ty == Ty::Array {
        (ty, _) = reader.read_arr_header()?;
        depth += 1;
    }
    Ok(depth)
}

/// The version that cargo built in: ggus has no constant for it.
fn ggus_version() -> &'static str {
    const LOCK: &str = include_str!("../Cargo.lock");
    LOCK.split_once("name = \"ggus\"\nversion = \"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("unknown", |(version, _)| version)
}

/// The next value, read as ggus reads one of its type; it has no value that holds any type.
fn value(reader: &mut GGufReader<'_>, ty: Ty) -> Result<OwnedValue, GGufReadError> {
    Ok(match ty {
        Ty::U8 => OwnedValue::U8(reader.read()?),
        Ty::I8 => OwnedValue::I8(reader.read()?),
        Ty::U16 => OwnedValue::U16(reader.read()?),
        Ty::I16 => OwnedValue::I16(reader.read()?),
        Ty::U32 => OwnedValue::U32(reader.read()?),
        Ty::I32 => OwnedValue::I32(reader.read()?),
        Ty::U64 => OwnedValue::U64(reader.read()?),
        Ty::I64 => OwnedValue::I64(reader.read()?),
        Ty::F32 => OwnedValue::F32(reader.read()?),
        Ty::F64 => OwnedValue::F64(reader.read()?),
        Ty::Bool => OwnedValue::Bool(reader.read_bool()?),
        Ty::String => OwnedValue::String(reader.read_str()?.as_bytes().to_vec()),
        Ty::Array => {
            let (ty, len) = reader.read_arr_header()?;
            let values = (0..len).map(|_| value(reader, ty)).collect::<Result<_, _>>()?;
            OwnedValue::Array(OwnedArray::new(value_type(ty), values))
        }
    })
}

fn value_type(ty: Ty) -> ValueType {
    match ty {
        Ty::U8 => ValueType::U8,
        Ty::I8 => ValueType::I8,
        Ty::U16 => ValueType::U16,
        Ty::I16 => ValueType::I16,
        Ty::U32 => ValueType::U32,
        Ty::I32 => ValueType::I32,
        Ty::U64 => ValueType::U64,
        Ty::I64 => ValueType::I64,
        Ty::F32 => ValueType::F32,
        Ty::F64 => ValueType::F64,
        Ty::Bool => ValueType::Bool,
        Ty::String => ValueType::String,
        Ty::Array => ValueType::Array,
    }
}

fn tensor(name: &str, meta: &GGufTensorMeta<'_>, data: &[u8]) -> TensorValue {
    let info = meta.to_info();
    // ggus leaves it to its user to take a tensor out of the data. One that is not among them has
    // no hash to report.
    let end = info.offset().checked_add(info.nbytes());
    let bytes = end.and_then(|end| data.get(info.offset()..end));
    TensorValue {
        name: name.as_bytes().to_vec(),
        type_name: type_name(info.ty()),
        dims: Some(info.shape().to_vec()),
        offset: Some(info.offset() as u64),
        sha256: bytes.map(sha256),
    }
}

/// ggml's name of a type; those that were removed from ggml have none.
fn type_name(ty: GGmlType) -> Option<String> {
    let name = match ty {
        GGmlType::F32 => "F32",
        GGmlType::F16 => "F16",
        GGmlType::Q4_0 => "Q4_0",
        GGmlType::Q4_1 => "Q4_1",
        GGmlType::Q5_0 => "Q5_0",
        GGmlType::Q5_1 => "Q5_1",
        GGmlType::Q8_0 => "Q8_0",
        GGmlType::Q8_1 => "Q8_1",
        GGmlType::Q2K => "Q2_K",
        GGmlType::Q3K => "Q3_K",
        GGmlType::Q4K => "Q4_K",
        GGmlType::Q5K => "Q5_K",
        GGmlType::Q6K => "Q6_K",
        GGmlType::Q8K => "Q8_K",
        GGmlType::IQ2XXS => "IQ2_XXS",
        GGmlType::IQ2XS => "IQ2_XS",
        GGmlType::IQ3XXS => "IQ3_XXS",
        GGmlType::IQ1S => "IQ1_S",
        GGmlType::IQ4NL => "IQ4_NL",
        GGmlType::IQ3S => "IQ3_S",
        GGmlType::IQ2S => "IQ2_S",
        GGmlType::IQ4XS => "IQ4_XS",
        GGmlType::I8 => "I8",
        GGmlType::I16 => "I16",
        GGmlType::I32 => "I32",
        GGmlType::I64 => "I64",
        GGmlType::F64 => "F64",
        GGmlType::IQ1M => "IQ1_M",
        GGmlType::BF16 => "BF16",
        _ => return None,
    };
    Some(name.into())
}

fn main() -> io::Result<()> {
    gguf_assay::serve(Ggus)
}
