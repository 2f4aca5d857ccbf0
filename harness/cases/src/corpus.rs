//! The corpus: all cases, embedded or from a folder.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use gguf_assay_format::{Layout, Rule, lay_out, rule};
use serde::Deserialize;

use crate::any::AnyCase;
use crate::block::{BlockCase, RawBlock};
use crate::case::{Case, CaseError, RawCase, RawDescription};
use crate::checkpoint::{Bases, CheckpointCase, RawBase, RawCheckpoint};
use crate::expected::sha256;
use crate::names::{NamesCase, RawNames, RawPair};
use crate::pair::{self, Pair};

/// Files of at most this many bytes are committed beside the TOML.
pub const MAX_COMMITTED: u64 = 4096;

static EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A set of cases.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// The cases that ask to read a file, by file and in the order of each file.
    pub cases: Vec<Case>,
    /// The cases that ask to dequantize blocks, likewise.
    pub blocks: Vec<BlockCase>,
    /// The cases that ask what names are on the other side, likewise.
    pub names: Vec<NamesCase>,
    /// The cases that ask about checkpoints, likewise.
    pub checkpoints: Vec<CheckpointCase>,
    /// Ids that were withdrawn, with the reason.
    pub withdrawn: HashMap<String, String>,
    /// The file that each case is from, for the linter.
    pub(crate) files: HashMap<String, String>,
    /// The hash and name of each file.
    texts: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    case: Vec<RawCase>,
    #[serde(default)]
    sweep: Vec<RawSweep>,
    #[serde(default)]
    block: Vec<RawBlock>,
    #[serde(default)]
    pair: Vec<RawPair>,
    #[serde(default)]
    names: Vec<RawNames>,
    #[serde(default)]
    base: Vec<RawBase>,
    #[serde(default)]
    checkpoint: Vec<RawCheckpoint>,
}

/// A file to cut at every field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSweep {
    pub(crate) id: String,
    pub(crate) summary: String,
    pub(crate) source: String,
    #[serde(flatten)]
    pub(crate) description: RawDescription,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWithdrawn {
    #[serde(default)]
    withdrawn: Vec<RawWithdrawnCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWithdrawnCase {
    id: String,
    reason: String,
}

impl Corpus {
    /// The cases that this crate carries.
    ///
    /// # Panics
    ///
    /// Never in a released crate: its tests load it.
    pub fn embedded() -> Corpus {
        let pairs = pair::embedded().expect("the embedded pairs load");
        Corpus::parse(EMBEDDED.iter().copied(), &pairs).expect("the embedded corpus loads")
    }

    /// The cases in the TOML files of a folder and its folders, with the pairs in its `names/pairs`.
    ///
    /// # Errors
    ///
    /// What cannot be read, or is wrong with a file or case.
    pub fn from_dir(dir: &Path) -> Result<Corpus, CaseError> {
        let mut files = Vec::new();
        collect(dir, dir, &mut files)?;
        files.sort();
        let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        Corpus::parse(texts, &pair::open_all(dir)?)
    }

    /// The cases in a text, which is called `name` where something is wrong with it.
    ///
    /// # Errors
    ///
    /// What is wrong with the text or with a case.
    pub fn from_toml(name: &str, text: &str) -> Result<Corpus, CaseError> {
        Corpus::parse([(name, text)].into_iter(), &pair::embedded()?)
    }

    /// The case with this id that asks to read a file.
    pub fn get(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// Every case of every operation.
    pub fn all(&self) -> impl Iterator<Item = AnyCase<'_>> + Clone {
        let blocks = self.blocks.iter().map(AnyCase::Dequantize);
        let names = self.names.iter().map(AnyCase::MapNames);
        let checkpoints = self.checkpoints.iter().map(AnyCase::Checkpoint);
        self.cases.iter().map(AnyCase::Read).chain(blocks).chain(names).chain(checkpoints)
    }

    /// The case with this id, whatever it asks.
    pub fn find(&self, id: &str) -> Option<AnyCase<'_>> {
        self.all().find(|case| case.id() == id)
    }

    /// SHA-256, in hex, of what the files say and of which cases are there: the same for the same
    /// cases, in whatever order they are.
    pub fn digest(&self) -> String {
        let ids: BTreeSet<&str> = self.all().map(|case| case.id()).collect();
        let lines = self.texts.iter().map(String::as_str).chain(ids);
        sha256(lines.flat_map(|line| [line, "\n"]).collect::<String>().as_bytes())
    }

    /// Adds the cases of another corpus.
    pub fn extend(&mut self, other: Corpus) {
        self.cases.extend(other.cases);
        self.blocks.extend(other.blocks);
        self.names.extend(other.names);
        self.checkpoints.extend(other.checkpoints);
        self.withdrawn.extend(other.withdrawn);
        self.files.extend(other.files);
        self.texts.extend(other.texts);
    }

    fn parse<'a>(
        files: impl Iterator<Item = (&'a str, &'a str)>,
        pairs: &BTreeMap<String, Arc<Pair>>,
    ) -> Result<Corpus, CaseError> {
        let mut corpus = Corpus::default();
        // A case may be made of a checkpoint that another file describes.
        let (mut bases, mut checkpoints) = (Vec::new(), Vec::new());
        for (name, text) in files {
            let error = |e: toml::de::Error| CaseError {
                place: name.into(),
                message: e.to_string().trim_end().to_owned(),
            };
            if name == "withdrawn.toml" {
                let raw: RawWithdrawn = toml::from_str(text).map_err(error)?;
                corpus.withdrawn.extend(raw.withdrawn.into_iter().map(|w| (w.id, w.reason)));
                continue;
            }
            let raw: RawFile = toml::from_str(text).map_err(error)?;
            corpus.texts.insert(format!("{}  {name}", sha256(text.as_bytes())));
            for case in raw.case {
                corpus.files.insert(case.id.clone(), name.into());
                corpus.cases.push(Case::parse(case)?);
            }
            for block in raw.block {
                corpus.files.insert(block.id.clone(), name.into());
                corpus.blocks.push(BlockCase::parse(block)?);
            }
            let names = raw.pair.iter().flat_map(RawPair::cases).chain(raw.names);
            for case in names {
                corpus.files.insert(case.id.clone(), name.into());
                let case = NamesCase::parse(case, pairs)?;
                let pair = &case.pair;
                corpus.texts.insert(format!("{}  names/pairs/{}", pair.digest, pair.name));
                corpus.names.push(case);
            }
            bases.extend(raw.base);
            for case in raw.checkpoint {
                corpus.files.insert(case.id.clone(), name.into());
                checkpoints.push(case);
            }
            for sweep in raw.sweep {
                let cuts = sweep.cases()?;
                corpus.files.extend(cuts.iter().map(|case| (case.id.clone(), name.into())));
                corpus.cases.extend(cuts);
            }
        }
        let bases = Bases::parse(&bases)?;
        for case in checkpoints {
            corpus.checkpoints.push(CheckpointCase::parse(case, &bases)?);
        }
        Ok(corpus)
    }
}

fn collect(root: &Path, dir: &Path, files: &mut Vec<(String, String)>) -> Result<(), CaseError> {
    let error = |path: &Path, e: std::io::Error| CaseError {
        place: path.display().to_string(),
        message: e.to_string(),
    };
    for entry in std::fs::read_dir(dir).map_err(|e| error(dir, e))?.flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if name.ends_with(".toml") && name != "real.toml" {
            files.push((name, std::fs::read_to_string(&path).map_err(|e| error(&path, e))?));
        }
    }
    Ok(())
}

impl RawSweep {
    /// One case for each place to cut at: before every field and one byte behind that.
    fn cases(&self) -> Result<Vec<Case>, CaseError> {
        let error = |message| CaseError { place: self.id.clone(), message };
        let layout = lay_out(&self.description.parse().map_err(error)?);
        let mut cases: Vec<Case> = Vec::new();
        let mut last = None;
        for field in &layout.fields {
            if ["data", "end"].contains(&field.path.as_str()) {
                continue;
            }
            for plus in [0, 1] {
                let end = field.range.start + plus;
                if end > field.range.end || last.is_some_and(|last| end <= last) {
                    continue;
                }
                if end >= layout.len() {
                    continue;
                }
                last = Some(end);
                let (rule, accepted) = outcome(&layout, end);
                let suffix = if plus == 0 { "" } else { "-plus-1" };
                let id = format!("{}-at-{}{suffix}", self.id, slug(&field.path));
                cases.push(Case::cut(self, id, rule, &field.path, plus as i64, accepted));
            }
        }
        Ok(cases)
    }
}

/// The rule that a file cut at `end` breaks, and whether it is accepted all the same.
fn outcome(layout: &Layout, end: u64) -> (&'static Rule, bool) {
    let last_data = layout.fields.iter().filter(|field| field.path.ends_with("].data"));
    let data_end = last_data.map(|field| field.range.end).max();
    match data_end {
        _ if end == 0 => (&rule::FILE_001, false),
        Some(data_end) if end >= data_end => (&rule::DATA_008, true),
        Some(_) if end >= layout.data_offset => (&rule::DATA_004, false),
        Some(_) if layout.field("padding").is_some_and(|padding| end >= padding.range.start) => {
            (&rule::DATA_005, false)
        }
        _ => (&rule::FILE_002, false),
    }
}

/// A field's path as part of an id.
fn slug(path: &str) -> String {
    let mut slug = String::new();
    for c in path.chars() {
        match c {
            ']' => {}
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ => slug.push('-'),
        }
    }
    slug
}
