//! The readers that the suite judges, one folder each: how to install and start them, which of
//! their refusals are unclear, and their known failures.
//!
//! A folder has a `subject.toml` (see [`Manifest`]), an `expect.toml` (see [`Expectations`]) and
//! what the adapter is made of. The folders are part of this crate; a new one needs no new code
//! here.
//!
//! ```no_run
//! use gguf_assay::process::Process;
//!
//! let cache = gguf_assay_subjects::cache_dir()?;
//! let subject = gguf_assay_subjects::get("gguf-py").expect("it is one of them");
//! subject.install(&cache, &mut |line| eprintln!("{line}"))?;
//! let program = subject.program(&cache, &std::env::current_exe()?);
//! let process = Process::start(program, subject.bounds()).map_err(anyhow::Error::msg)?;
//! # Ok::<(), anyhow::Error>(())
//! ```

#![forbid(unsafe_code)]

mod install;
mod manifest;

use std::path::{Path, PathBuf};

use gguf_assay::Expectations;
use gguf_assay::capability::Capabilities;
use gguf_assay::process::{Bounds, Program};

pub use install::{Status, cache_dir, is_offline};
pub use manifest::{Install, Limits, Manifest, RunWith};

/// A folder as the build script found it: names below it, and texts.
struct Embedded {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

static FOLDERS: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/folders.rs"));

/// A reader under test.
#[derive(Clone, Debug)]
pub struct SubjectFolder {
    /// The folder's name, by which the command knows the subject.
    pub name: &'static str,
    /// What its `subject.toml` says.
    pub manifest: Manifest,
    files: &'static [(&'static str, &'static str)],
}

/// Every subject: the reference, then the others that need no installation, then the rest by name.
///
/// # Panics
///
/// Never in a released crate: its tests load every folder.
pub fn all() -> Vec<SubjectFolder> {
    let mut subjects: Vec<SubjectFolder> = FOLDERS
        .iter()
        .map(|&Embedded { name, files }| {
            let text = file(files, "subject.toml").unwrap_or_default();
            match Manifest::parse(text) {
                Ok(manifest) => SubjectFolder { name, manifest, files },
                Err(error) => panic!("{name}/subject.toml: {error}"),
            }
        })
        .collect();
    subjects.sort_by_key(|subject| {
        (subject.manifest.install != Install::Builtin, subject.name != "reference", subject.name)
    });
    subjects
}

/// The subject of this name.
pub fn get(name: &str) -> Option<SubjectFolder> {
    all().into_iter().find(|subject| subject.name == name)
}

/// Which tensor types each subject reads, as recorded in `capabilities.json`.
///
/// # Panics
///
/// Never in a released crate: its tests read the record.
pub fn capabilities() -> Capabilities {
    match Capabilities::parse(include_str!("../capabilities.json")) {
        Ok(capabilities) => capabilities,
        Err(error) => panic!("capabilities.json: {error}"),
    }
}

fn file(files: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    files.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

impl SubjectFolder {
    /// The subject's known failures, from its `expect.toml`.
    ///
    /// # Errors
    ///
    /// What is wrong with the file.
    pub fn expectations(&self) -> Result<Expectations, String> {
        let text = file(self.files, "expect.toml").unwrap_or_default();
        Expectations::parse(text).map_err(|error| format!("{}/expect.toml: {error}", self.name))
    }

    /// The version that is installed, where it is pinned here; that of a builtin is its own to say.
    pub fn version(&self) -> Option<String> {
        self.manifest.version(|name| file(self.files, name))
    }

    /// What the subject may take.
    pub fn bounds(&self) -> Bounds {
        self.manifest.bounds.bounds()
    }

    /// Whether the subject can be started.
    pub fn status(&self, cache: &Path) -> Status {
        install::status(self, cache)
    }

    /// Installs the subject, if it is not there yet as it is pinned. `log` is told what goes on, a
    /// line at a time.
    ///
    /// # Errors
    ///
    /// What is missing, or how the installation failed: with the end of its output, and the path of
    /// the whole.
    pub fn install(&self, cache: &Path, log: &mut dyn FnMut(&str)) -> anyhow::Result<()> {
        install::install(self, cache, log)
    }

    /// How to start the subject's adapter. `own_exe` is the command, which serves the builtin ones
    /// itself: `gguf-assay serve NAME`.
    pub fn program(&self, cache: &Path, own_exe: &Path) -> Program {
        install::program(self, cache, own_exe)
    }

    /// Where the subject is installed.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        cache.join("subjects").join(self.name)
    }
}
