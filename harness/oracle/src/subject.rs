//! ggml as a subject: what llama.cpp would make of a file.

use std::fs::File as StdFile;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use gguf_assay::{
    About, DequantizeRequest, Failure, FileValue, OwnedArray, OwnedValue, ReadRequest, Subject,
    TensorValue, ValueType, sha256,
};

use crate::{Array, File, Mode, NotDequantized, Value, dequantize};

/// ggml's reader under test. It aborts on failed assertions, so it belongs in a process of its own.
#[derive(Clone, Copy, Debug)]
pub struct Ggml {
    mode: Mode,
}

impl Ggml {
    /// The header only, as llama.cpp reads a model it is going to map. On top comes the check of
    /// llama.cpp's model loader (`llama-model-loader.h`, `llama_tensor_weight`) that every tensor
    /// lies within the file: `gguf.cpp` leaves it to its caller.
    pub fn header() -> Ggml {
        Ggml { mode: Mode::Header }
    }

    /// With the data, which ggml reads into memory.
    pub fn with_data() -> Ggml {
        Ggml { mode: Mode::Data }
    }
}

impl Subject for Ggml {
    fn about(&self) -> About {
        About {
            language: "c++".into(),
            home: "https://github.com/ggml-org/ggml".into(),
            ops: vec!["read".into(), "dequantize".into()],
            ..About::new(
                if self.mode == Mode::Data { "ggml-data" } else { "ggml" },
                crate::version(),
            )
        }
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Result<Vec<f32>, Failure> {
        let mut numbers = vec![0.0; request.elements()];
        match dequantize(request.tensor_type.id, &request.bytes, &mut numbers) {
            Ok(()) => Ok(numbers),
            Err(NotDequantized::NoFunction) => Err(Failure::Unimplemented(format!(
                "ggml has no function that dequantizes {}",
                request.tensor_type
            ))),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure> {
        let file = File::open(&request.path, self.mode).map_err(|rejected| Failure::Rejected {
            // A reader of an empty file says nothing; a user sees that nothing was loaded.
            message: match rejected.message.as_str() {
                "" => "failed to read the file".into(),
                message => message.into(),
            },
            kind: String::new(),
        })?;
        let mut tensors = Vec::new();
        for (index, tensor) in file.tensors().enumerate() {
            let data = match self.mode {
                Mode::Data => file.tensor_data(index).unwrap_or_default().to_vec(),
                _ => read_data(&request.path, &file, tensor.name, tensor.offset, tensor.size)?,
            };
            tensors.push(TensorValue {
                name: tensor.name.to_vec(),
                type_name: Some(spelling(tensor.type_name)),
                dims: Some(tensor.dims.iter().map(|dim| dim.unsigned_abs()).collect()),
                offset: Some(tensor.offset),
                sha256: Some(sha256(&data)),
            });
        }
        let metadata = file.metadata().map(|entry| (entry.key.to_vec(), owned(&entry.value)));
        Ok(FileValue {
            version: Some(file.version()),
            metadata: Some(metadata.collect()),
            tensors: Some(tensors),
        })
    }
}

/// A tensor's bytes out of the file, after the model loader's check that they are within it.
fn read_data(
    path: &Path,
    file: &File,
    name: &[u8],
    offset: u64,
    size: u64,
) -> Result<Vec<u8>, Failure> {
    let mut source = StdFile::open(path)?;
    let len = source.metadata()?.len();
    let start = file.data_offset().checked_add(offset);
    let within = start.and_then(|start| start.checked_add(size)).is_some_and(|end| end <= len);
    let (Some(start), true) = (start, within) else {
        let name = String::from_utf8_lossy(name);
        return Err(Failure::Rejected {
            message: format!(
                "tensor '{name}' data is not within the file bounds, model is corrupted or incomplete"
            ),
            kind: String::new(),
        });
    };
    source.seek(SeekFrom::Start(start))?;
    let mut data = Vec::new();
    source.take(size).read_to_end(&mut data)?;
    Ok(data)
}

/// ggml's `type_name` in the spelling of its enumerators: `q4_K` is `Q4_K`.
fn spelling(name: &str) -> String {
    name.to_ascii_uppercase()
}

fn owned(value: &Value<'_>) -> OwnedValue {
    match value {
        Value::U8(v) => OwnedValue::U8(*v),
        Value::I8(v) => OwnedValue::I8(*v),
        Value::U16(v) => OwnedValue::U16(*v),
        Value::I16(v) => OwnedValue::I16(*v),
        Value::U32(v) => OwnedValue::U32(*v),
        Value::I32(v) => OwnedValue::I32(*v),
        Value::F32(v) => OwnedValue::F32(*v),
        Value::Bool(v) => OwnedValue::Bool(*v),
        Value::String(v) => OwnedValue::String(v.to_vec()),
        Value::Array(v) => OwnedValue::Array(owned_array(v)),
        Value::U64(v) => OwnedValue::U64(*v),
        Value::I64(v) => OwnedValue::I64(*v),
        Value::F64(v) => OwnedValue::F64(*v),
    }
}

fn owned_array(array: &Array<'_>) -> OwnedArray {
    fn of<T: Clone>(t: ValueType, values: &[T], wrap: fn(T) -> OwnedValue) -> OwnedArray {
        OwnedArray::new(t, values.iter().cloned().map(wrap).collect())
    }
    match array {
        Array::U8(v) => of(ValueType::U8, v, OwnedValue::U8),
        Array::I8(v) => of(ValueType::I8, v, OwnedValue::I8),
        Array::U16(v) => of(ValueType::U16, v, OwnedValue::U16),
        Array::I16(v) => of(ValueType::I16, v, OwnedValue::I16),
        Array::U32(v) => of(ValueType::U32, v, OwnedValue::U32),
        Array::I32(v) => of(ValueType::I32, v, OwnedValue::I32),
        Array::F32(v) => of(ValueType::F32, v, OwnedValue::F32),
        Array::Bool(v) => of(ValueType::Bool, v, OwnedValue::Bool),
        Array::String(v) => of(ValueType::String, v, |bytes| OwnedValue::String(bytes.to_vec())),
        Array::U64(v) => of(ValueType::U64, v, OwnedValue::U64),
        Array::I64(v) => of(ValueType::I64, v, OwnedValue::I64),
        Array::F64(v) => of(ValueType::F64, v, OwnedValue::F64),
    }
}
