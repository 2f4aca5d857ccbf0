//! Checkpoints in memory: made of a few lines, and changed in one thing.

#![allow(dead_code)] // not every test needs all of it

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gguf_assay_checkpoint::{Dtype, MemoryFiles};
use serde_json::{Value as Json, json};

/// A tensor to be written.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) dtype: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// A config and tensors.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) config: Json,
    pub(crate) tensors: Vec<Made>,
}

impl Model {
    /// A checkpoint of `tests/data`.
    pub(crate) fn of_data(name: &str) -> Model {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.json"));
        let json: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let tensors = json["tensors"].as_array().unwrap().iter();
        Model { config: json["config"].clone(), tensors: tensors.map(made).collect() }
    }

    /// The names of all checkpoints of `tests/data`.
    pub(crate) fn names() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".json").map(str::to_owned)
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The tensor whose name ends so.
    pub(crate) fn tensor(&mut self, end: &str) -> &mut Made {
        self.tensors.iter_mut().find(|tensor| tensor.name.ends_with(end)).unwrap()
    }

    /// Its files, all tensors in one.
    pub(crate) fn files(&self) -> MemoryFiles {
        let all: Vec<&Made> = self.tensors.iter().collect();
        MemoryFiles(BTreeMap::from([
            ("config.json".to_owned(), self.config.to_string().into_bytes()),
            ("model.safetensors".to_owned(), safetensors(&all)),
        ]))
    }

    /// Its files, tensors in two shards with an index.
    pub(crate) fn shards(&self) -> MemoryFiles {
        let (one, two) = self.tensors.split_at(self.tensors.len() / 2);
        let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
        let mut files = BTreeMap::new();
        let (mut map, mut total) = (serde_json::Map::new(), 0);
        for (name, tensors) in names.into_iter().zip([one, two]) {
            for tensor in tensors {
                map.insert(tensor.name.clone(), name.into());
                total += tensor.bytes.len();
            }
            files.insert(name.to_owned(), safetensors(&tensors.iter().collect::<Vec<_>>()));
        }
        let index = json!({ "metadata": { "total_size": total }, "weight_map": map });
        files.insert("model.safetensors.index.json".into(), index.to_string().into_bytes());
        files.insert("config.json".into(), self.config.to_string().into_bytes());
        MemoryFiles(files)
    }
}

/// A tensor of zeros.
pub(crate) fn zeros(name: impl Into<String>, dtype: &str, shape: &[u64]) -> Made {
    let len = Dtype::find(dtype).unwrap().byte_len(shape).unwrap() as usize;
    Made { name: name.into(), dtype: dtype.into(), shape: shape.to_vec(), bytes: vec![0; len] }
}

fn made(tensor: &Json) -> Made {
    let text = |field: &str| tensor[field].as_str().map(str::to_owned);
    let shape: Vec<u64> =
        tensor["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).collect();
    let dtype = text("dtype").unwrap();
    let len = Dtype::find(&dtype).unwrap().byte_len(&shape).unwrap() as usize;
    let hex = |digits: String| -> Vec<u8> {
        let digits = digits.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.map(byte).collect()
    };
    let bytes = if let Some(digits) = text("hex") {
        hex(digits)
    } else if let Some(digits) = text("repeat") {
        hex(digits).into_iter().cycle().take(len).collect()
    } else if let Some(size) = tensor["group_of"].as_u64() {
        (0..len as u64 / 4).flat_map(|place| ((place / size) as u32).to_le_bytes()).collect()
    } else {
        vec![0; len]
    };
    assert_eq!(bytes.len(), len, "{tensor}");
    Made { name: text("name").unwrap(), dtype, shape, bytes }
}

/// A safetensors file. Bytes that do not fit the shape are written as they are.
pub(crate) fn safetensors(tensors: &[&Made]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for tensor in tensors {
        let start = data.len();
        data.extend(&tensor.bytes);
        header.insert(
            tensor.name.clone(),
            json!({
                "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, data.len()],
            }),
        );
    }
    let header = Json::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}
