//! A checkpoint: its configs, and the tensors of all of its files.

use std::collections::BTreeMap;
use std::io;

use serde_json::Value as Json;

use crate::files::Files;
use crate::finding::Finding;
use crate::header::{self, Header, TensorRecord};

/// The configs that publishers ship, in the order in which loaders look: what `config.json` says goes
/// before the files of single tools.
pub(crate) const CONFIG_FILES: [&str; 5] = [
    "config.json",
    "quantization_config.json",
    "quantize_config.json",
    "quant_config.json",
    "hf_quant_config.json",
];

/// A config that is there.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// `config.json`, `quantize_config.json` …
    pub name: String,
    /// What it says.
    pub json: Json,
}

/// A safetensors file.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its name.
    pub name: String,
    /// What its header says.
    pub header: Header,
}

/// What a folder holds: configs, headers, and what is wrong with those.
#[derive(Debug)]
pub struct Checkpoint<F> {
    /// Where the files are.
    pub files: F,
    /// The configs that are JSON.
    pub configs: Vec<ConfigFile>,
    /// The safetensors files, by name.
    pub shards: Vec<Shard>,
    /// What is wrong with the files themselves.
    pub findings: Vec<Finding>,
    /// Each tensor's shard, and place in its header.
    places: BTreeMap<String, (usize, usize)>,
}

impl<F: Files> Checkpoint<F> {
    /// Reads the configs and headers.
    ///
    /// # Errors
    ///
    /// The names or a config cannot be read. What is wrong with their content is a finding.
    pub fn open(files: F) -> io::Result<Checkpoint<F>> {
        let mut findings = Vec::new();
        let names = files.names()?;
        let mut configs = Vec::new();
        for name in CONFIG_FILES.into_iter().filter(|name| names.iter().any(|each| each == name)) {
            let mut text = vec![0; usize::try_from(files.len(name)?).map_err(io::Error::other)?];
            files.read_at(name, 0, &mut text)?;
            if let Ok(json) = serde_json::from_slice(&text) {
                configs.push(ConfigFile { name: name.into(), json });
            }
        }
        let mut shards = Vec::new();
        for name in names.iter().filter(|name| name.ends_with(".safetensors")) {
            if let Some(header) = header::read(&files, name, &mut findings) {
                shards.push(Shard { name: name.clone(), header });
            }
        }
        let mut places = BTreeMap::new();
        for (shard_place, shard) in shards.iter().enumerate() {
            for (place, tensor) in shard.header.tensors.iter().enumerate() {
                places.insert(tensor.name.clone(), (shard_place, place));
            }
        }
        Ok(Checkpoint { files, configs, shards, findings, places })
    }

    /// The config of this file.
    pub fn config(&self, name: &str) -> Option<&Json> {
        self.configs.iter().find(|config| config.name == name).map(|config| &config.json)
    }

    /// The tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorRecord> {
        self.places.values().filter_map(|place| self.record(*place))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorRecord> {
        self.record(*self.places.get(name)?)
    }

    fn record(&self, (shard, place): (usize, usize)) -> Option<&TensorRecord> {
        self.shards.get(shard)?.header.tensors.get(place)
    }

    /// The bytes of a tensor, little-endian, the last dimension contiguous. No more is taken than the
    /// file has.
    ///
    /// # Errors
    ///
    /// There is no such tensor, or its file cannot be read there.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.read_part(name, 0, u64::MAX)
    }

    /// At most `len` bytes of a tensor, from `start` of it on.
    ///
    /// # Errors
    ///
    /// As of [`read`](Checkpoint::read).
    pub fn read_part(&self, name: &str, start: u64, len: u64) -> io::Result<Vec<u8>> {
        let place = *self.places.get(name).ok_or(io::ErrorKind::NotFound)?;
        let record = self.record(place).ok_or(io::ErrorKind::NotFound)?;
        let shard = self.shards.get(place.0).ok_or(io::ErrorKind::NotFound)?;
        let len = record.len.saturating_sub(start).min(len);
        let offset = record.offset.checked_add(start).ok_or(io::ErrorKind::UnexpectedEof)?;
        let end = offset.checked_add(len).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > self.files.len(&shard.name)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        self.files.read_at(&shard.name, offset, &mut bytes)?;
        Ok(bytes)
    }
}
