//! `subject.toml`: what a subject is, and how it is installed and started.

use std::collections::BTreeMap;
use std::time::Duration;

use gguf_assay::Unclear;
use gguf_assay::process::{Bounds, MemoryKind};
use serde::{Deserialize, Serialize};

/// What a `subject.toml` says:
///
/// ```toml
/// summary = "one line about the reader"
/// language = "python"
/// home = "https://…"
/// licence = "MIT"
/// ops = ["read"]
/// optional = "why it is only installed when it is named" # left out: it is always
///
/// [install]                    # see `Install`
/// kind = "python"
/// python = "3.11"
/// package = "gguf"
/// packages = ["gguf==0.19.0", "numpy==2.4.6"]
///
/// [run]                        # see `RunWith`
/// entry = "adapter.py"
///
/// [unclear]                    # see `gguf_assay::Unclear`
/// kinds = ["IndexError"]
///
/// [bounds]                     # see `Limits`
/// seconds = 10
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What the reader is, in a line.
    pub summary: String,
    /// The language it is written in.
    pub language: String,
    /// Where it lives; empty for our own.
    pub home: String,
    /// Its licence, as an SPDX expression.
    pub licence: String,
    /// The operations that its adapter has.
    pub ops: Vec<String>,
    /// Why it is only installed when it is named, if that is so.
    #[serde(default)]
    pub optional: Option<String>,
    /// How it is installed.
    pub install: Install,
    /// How it is started.
    #[serde(default)]
    pub run: RunWith,
    /// Which of its refusals name neither field nor fault.
    #[serde(default)]
    pub unclear: Unclear,
    /// What it may take, where that is not the default.
    #[serde(default)]
    pub bounds: Limits,
}

/// How a subject is installed. Everything is pinned to exact versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Install {
    /// Not at all: the command serves it itself.
    Builtin,
    /// Into a virtual environment.
    Python {
        /// The oldest Python that the packages have, as `3.11`.
        python: String,
        /// The package that is under test.
        package: String,
        /// All that is installed, as `NAME==VERSION`; pip adds nothing to it.
        packages: Vec<String>,
    },
    /// From the npm registry, with the `package.json` and the lock file of the subject's folder.
    Npm {
        /// The oldest major version of Node.js that the packages have, as `20`.
        node: String,
        /// The package that is under test.
        package: String,
    },
    /// From source, as a cargo workspace of its own in the subject's folder, with its lock file.
    Cargo {
        /// That workspace.
        adapter: String,
        /// The executable that it makes.
        bin: String,
        /// The package that is under test.
        package: String,
    },
}

/// How a subject is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunWith {
    /// The file to start, for readers that are not compiled.
    pub entry: String,
    /// Variables to set.
    pub env: BTreeMap<String, String>,
}

/// What a subject may take. What is left out is [`Bounds::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// For one answer.
    pub seconds: Option<u64>,
    /// For the start.
    pub start_seconds: Option<u64>,
    /// Memory on top of what the subject has after its start, in MiB.
    pub memory_mib: Option<u64>,
    /// How memory is counted: `address-space` or `resident`.
    pub memory_kind: Option<MemoryKind>,
}

impl Limits {
    pub(crate) fn bounds(self) -> Bounds {
        let default = Bounds::default();
        Bounds {
            time: self.seconds.map_or(default.time, Duration::from_secs),
            start: self.start_seconds.map_or(default.start, Duration::from_secs),
            memory: self.memory_mib.map_or(default.memory, |mib| mib.saturating_mul(1 << 20)),
            memory_kind: self.memory_kind.unwrap_or(default.memory_kind),
            output: default.output,
        }
    }
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
        let manifest: Manifest = toml::from_str(text).map_err(|e| e.to_string())?;
        if let Install::Python { packages, .. } = &manifest.install
            && let Some(loose) = packages.iter().find(|package| !package.contains("=="))
        {
            return Err(format!("`{loose}` is not pinned; write NAME==VERSION"));
        }
        let interpreted = matches!(manifest.install, Install::Python { .. } | Install::Npm { .. });
        if interpreted && manifest.run.entry.is_empty() {
            return Err("run.entry names the adapter's file".into());
        }
        Ok(manifest)
    }

    /// The version of the package under test. `file` has the texts of the subject's folder.
    pub(crate) fn version(&self, file: impl Fn(&str) -> Option<&'static str>) -> Option<String> {
        match &self.install {
            Install::Builtin => None,
            Install::Python { package, packages, .. } => {
                let mut pins = packages.iter().filter_map(|pin| pin.split_once("=="));
                pins.find(|(name, _)| name == package).map(|(_, version)| version.to_owned())
            }
            Install::Npm { package, .. } => {
                let lock: serde_json::Value =
                    serde_json::from_str(file("package-lock.json")?).ok()?;
                let locked = &lock["packages"][format!("node_modules/{package}")];
                Some(locked["version"].as_str()?.to_owned())
            }
            Install::Cargo { adapter, package, .. } => {
                let lock: toml::Table =
                    toml::from_str(file(&format!("{adapter}/Cargo.lock"))?).ok()?;
                let mut locked = lock.get("package")?.as_array()?.iter();
                let name = |locked: &toml::Value| locked.get("name")?.as_str().map(str::to_owned);
                let found = locked.find(|locked| name(locked).as_ref() == Some(package))?;
                Some(found.get("version")?.as_str()?.to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "summary = 's'\nlanguage = 'l'\nhome = ''\nlicence = 'MIT'\nops = ['read']\n";

    #[test]
    fn loose_pins_and_unknown_fields_are_refused() {
        let python = |packages: &str| {
            format!(
                "{HEAD}[install]\nkind = 'python'\npython = '3.11'\npackage = 'p'\n\
                 packages = {packages}\n[run]\nentry = 'a.py'"
            )
        };
        assert!(Manifest::parse(&python("['p==1.0']")).is_ok());
        assert!(Manifest::parse(&python("['p>=1.0']")).unwrap_err().contains("not pinned"));
        let npm = format!("{HEAD}[install]\nkind = 'npm'\nnode = '20'\npackage = 'p'");
        assert!(Manifest::parse(&npm).unwrap_err().contains("run.entry"));
        let unknown = format!("{HEAD}[install]\nkind = 'builtin'\n[bounds]\nminutes = 1");
        assert!(Manifest::parse(&unknown).unwrap_err().contains("minutes"));
    }

    #[test]
    fn bounds_are_the_default_where_nothing_is_said() {
        let text = format!("{HEAD}[install]\nkind = 'builtin'\n[bounds]\nseconds = 9");
        let bounds = Manifest::parse(&text).unwrap().bounds.bounds();
        assert_eq!(bounds, Bounds { time: Duration::from_secs(9), ..Bounds::default() });
    }
}
