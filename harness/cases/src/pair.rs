//! Pairs: a tiny checkpoint as transformers saved it, and the GGUF file that llama.cpp's converter made
//! of it (`corpus/names/pairs/README.md`). What the one says of the other is nobody's reading of a
//! table.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use gguf_assay_format::{Description, diagnose};
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::case::CaseError;
use crate::expected::sha256;

/// The files of a pair: name, `config.json`, `source.json`, `model.gguf`, `inexact.safetensors` (empty if
/// there is none).
pub(crate) type PairFiles =
    (&'static str, &'static str, &'static str, &'static [u8], &'static [u8]);

/// The pairs that this crate carries.
pub(crate) static EMBEDDED: &[PairFiles] = include!(concat!(env!("OUT_DIR"), "/pairs.rs"));

/// A checkpoint and the GGUF file that was made of it.
#[derive(Debug)]
pub struct Pair {
    /// The name of its folder.
    pub name: String,
    /// The checkpoint's `config.json`.
    pub config: Json,
    /// The parameters of the checkpoint's safetensors file.
    pub parameters: BTreeMap<String, PairParameter>,
    gguf: Cow<'static, [u8]>,
    /// SHA-256 of the files.
    pub(crate) digest: String,
}

/// A parameter of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct PairParameter {
    /// In torch's order.
    pub shape: Vec<u64>,
    /// What is known of its numbers.
    pub numbers: PairNumbers,
}

/// What is known of a parameter's numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum PairNumbers {
    /// SHA-256, in hex, of the numbers as little-endian `f32`.
    Sha256(String),
    /// The numbers, which change on the way into a file, and do not come back bit for bit.
    Near(Vec<f32>),
    /// They are not `f32`.
    Other,
}

#[derive(Deserialize)]
struct RawParameter {
    dtype: String,
    shape: Vec<u64>,
    sha256: String,
}

impl Pair {
    /// The pair of a folder.
    pub(crate) fn open(folder: &Path) -> Result<Pair, CaseError> {
        let error = |message: String| CaseError { place: folder.display().to_string(), message };
        let read =
            |name: &str| std::fs::read(folder.join(name)).map_err(|e| format!("{name}: {e}"));
        let text =
            |name: &str| String::from_utf8(read(name)?).map_err(|_| format!("{name} is not text"));
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let config = text("config.json").map_err(error)?;
        let source = text("source.json").map_err(error)?;
        let gguf = read("model.gguf").map_err(error)?;
        let inexact = read("inexact.safetensors").unwrap_or_default();
        Pair::parse(name, &config, &source, gguf.into(), &inexact).map_err(error)
    }

    /// A pair that this crate carries.
    pub(crate) fn embedded(files: &PairFiles) -> Result<Pair, CaseError> {
        let (name, config, source, gguf, inexact) = files;
        Pair::parse((*name).to_owned(), config, source, (*gguf).into(), inexact)
            .map_err(|message| CaseError { place: format!("names/pairs/{name}"), message })
    }

    fn parse(
        name: String,
        config: &str,
        source: &str,
        gguf: Cow<'static, [u8]>,
        inexact: &[u8],
    ) -> Result<Pair, String> {
        let raw: BTreeMap<String, RawParameter> =
            serde_json::from_str(source).map_err(|e| format!("source.json: {e}"))?;
        let files = [config.as_bytes(), source.as_bytes(), &gguf, inexact];
        let digest = sha256(files.map(sha256).concat().as_bytes());
        let inexact = match inexact {
            [] => None,
            bytes => Some(
                SafeTensors::deserialize(bytes).map_err(|e| format!("inexact.safetensors: {e}"))?,
            ),
        };
        let parameters = raw.into_iter().map(|(name, raw)| {
            let kept = inexact.as_ref().and_then(|tensors| tensors.tensor(&name).ok());
            let numbers = match kept {
                _ if raw.dtype != "F32" => PairNumbers::Other,
                Some(kept) => PairNumbers::Near(
                    kept.data().as_chunks::<4>().0.iter().map(|n| f32::from_le_bytes(*n)).collect(),
                ),
                None => PairNumbers::Sha256(raw.sha256),
            };
            (name, PairParameter { shape: raw.shape, numbers })
        });
        Ok(Pair {
            config: serde_json::from_str(config).map_err(|e| format!("config.json: {e}"))?,
            parameters: parameters.collect(),
            digest,
            name,
            gguf,
        })
    }

    /// The bytes of the file.
    pub fn gguf(&self) -> &[u8] {
        &self.gguf
    }

    /// The file, to be changed and laid out anew.
    pub(crate) fn description(&self) -> Result<Description, String> {
        let diagnosis = diagnose(&self.gguf);
        let described = diagnosis.gguf.filter(|_| diagnosis.complete).and_then(|g| g.describe());
        described.ok_or_else(|| format!("model.gguf of the pair {} is not whole", self.name))
    }

    /// From which parameters a tensor comes, or whole slices of it along its last dimension, as far
    /// as their bytes are the same.
    pub(crate) fn origins(&self) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
        let mut of_digest: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, parameter) in &self.parameters {
            if let PairNumbers::Sha256(digest) = &parameter.numbers {
                of_digest.entry(digest).or_default().push(name);
            }
        }
        let only = |bytes: &[u8]| match of_digest.get(sha256(bytes).as_str()).map(Vec::as_slice) {
            Some([name]) => Some((*name).to_owned()),
            _ => None,
        };
        let diagnosis = diagnose(&self.gguf);
        let gguf = diagnosis.gguf.ok_or_else(|| format!("{} is no GGUF file", self.name))?;
        let mut origins = BTreeMap::new();
        for tensor in &gguf.tensors {
            let (Some(name), Some(bytes)) = (tensor.name.as_str(), gguf.tensor_bytes(tensor))
            else {
                continue;
            };
            let last = tensor.dims.iter().last().unwrap_or(1) as usize;
            let slice = bytes.len() / last.max(1);
            let slices = || match tensor.dims.iter().count() {
                3 if slice > 0 => bytes.chunks(slice).map(only).collect::<Option<BTreeSet<_>>>(),
                _ => None,
            };
            let whole = only(bytes).map(|name| BTreeSet::from([name]));
            if let Some(found) = whole.or_else(slices) {
                origins.insert(name.to_owned(), found);
            }
        }
        Ok(origins)
    }
}

/// The pairs below the corpus folder `dir`, by name.
pub(crate) fn open_all(dir: &Path) -> Result<BTreeMap<String, Arc<Pair>>, CaseError> {
    let mut pairs = BTreeMap::new();
    for entry in std::fs::read_dir(dir.join("names/pairs")).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            let pair = Pair::open(&entry.path())?;
            pairs.insert(pair.name.clone(), Arc::new(pair));
        }
    }
    Ok(pairs)
}

/// Those that this crate carries, by name.
pub(crate) fn embedded() -> Result<BTreeMap<String, Arc<Pair>>, CaseError> {
    let pairs = EMBEDDED.iter().map(Pair::embedded);
    pairs.map(|pair| pair.map(|pair| (pair.name.clone(), Arc::new(pair)))).collect()
}
