//! A checkpoint: its configs, and the tensors of all of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use gguf_assay_format::printable;
use serde_json::Value as Json;

use crate::files::Files;
use crate::finding::{Finding, Findings};
use crate::header::{Header, TensorRecord};
use crate::index::Weights;
use crate::json;
use crate::rule;

/// What says what the model is.
pub(crate) const CONFIG: &str = "config.json";

/// The configs that publishers ship, in the order in which loaders look: what `config.json` says goes
/// before the files of single tools.
pub(crate) const CONFIG_FILES: [&str; 5] = [
    CONFIG,
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

/// A safetensors file whose header can be read.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its name.
    pub name: String,
    /// What its header says.
    pub header: Header,
}

impl Shard {
    /// The names of its tensors, of those too that nothing else is known of.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let tensors = self.header.tensors.iter().map(|tensor| &tensor.name);
        tensors.chain(&self.header.illegible).map(String::as_str)
    }
}

/// What a folder holds: configs, headers, and what is wrong with those.
#[derive(Debug)]
pub struct Checkpoint<F> {
    /// Where the files are.
    pub files: F,
    /// The configs that are JSON objects.
    pub configs: Vec<ConfigFile>,
    /// The safetensors files that are loaded and whose headers can be read, by name.
    pub shards: Vec<Shard>,
    /// What is wrong with the files themselves.
    pub findings: Vec<Finding>,
    /// Each tensor's shard, and place in its header.
    places: BTreeMap<String, (usize, usize)>,
}

impl<F: Files> Checkpoint<F> {
    /// Reads the configs, the index, and the headers of the files that loaders take: of
    /// `model.safetensors`, or of those that the index names. Where neither is there, all are taken.
    ///
    /// # Errors
    ///
    /// The names cannot be read. All else that is wrong is a finding.
    pub fn open(files: F) -> io::Result<Checkpoint<F>> {
        let mut findings = Findings::default();
        let names: BTreeSet<String> = files.names()?.into_iter().collect();
        let mut configs = Vec::new();
        for name in CONFIG_FILES.into_iter().filter(|name| names.contains(*name)) {
            if let Some(json) = json::read(&files, name, &mut findings) {
                configs.push(ConfigFile { name: name.into(), json });
            }
        }
        if !names.contains(CONFIG) {
            let finding = Finding::new(&rule::CKPT_002, "no such file", "the config of the model");
            findings.add(finding.in_file(CONFIG));
        }
        let config = configs.iter().find(|config| config.name == CONFIG).map(|config| &config.json);
        let weights = Weights::find(&files, &names, config, &mut findings);
        let mut shards = Vec::new();
        for name in weights.names {
            let (header, found) = Header::read(&files, &name);
            findings.extend(found);
            shards.extend(header.map(|header| Shard { name, header }));
        }
        if let Some(index) = &weights.index {
            index.compare(&names, &shards, &mut findings);
        }
        let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (shard_place, shard) in shards.iter().enumerate() {
            for (place, tensor) in shard.header.tensors.iter().enumerate() {
                let place = (shard_place, place);
                let Some(first) = places.insert(tensor.name.clone(), place) else { continue };
                let file = |(shard, _): (usize, usize)| {
                    shards.get(shard).map_or("", |shard| shard.name.as_str())
                };
                let found = format!("it is in {}, too", printable(file(first), 200));
                let finding = Finding::new(&rule::CKPT_014, found, "one file");
                findings.add(finding.in_file(&shard.name).of_tensor(&tensor.name));
                // Loaders that take whole files end with the last, and those that look it up do not.
                let index = weights.index.as_ref();
                if index.and_then(|index| index.file_of(&tensor.name)) == Some(file(first)) {
                    places.insert(tensor.name.clone(), first);
                }
            }
        }
        Ok(Checkpoint { files, configs, shards, findings: findings.finish(), places })
    }

    /// The config of this file.
    pub fn config(&self, name: &str) -> Option<&Json> {
        self.configs.iter().find(|config| config.name == name).map(|config| &config.json)
    }

    /// The tensors, by name. Of one that is in several files it is that of the file that the index
    /// names, else of the last.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorRecord> {
        self.places.values().filter_map(|place| self.record(*place))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorRecord> {
        self.record(*self.places.get(name)?)
    }

    /// Whether a header has an entry of this name, be it one that cannot be read.
    pub fn has(&self, name: &str) -> bool {
        let is_illegible = |shard: &Shard| {
            shard.header.illegible.binary_search_by(|each| each.as_str().cmp(name)).is_ok()
        };
        self.places.contains_key(name) || self.shards.iter().any(is_illegible)
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
