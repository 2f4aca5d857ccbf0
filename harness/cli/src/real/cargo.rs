//! A file out of a crate, by cargo.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Part, client};

/// Copies the file out of the crate to `to`. Nothing is compiled: the crate is a dependency of a
/// package that is thrown away, for a platform that there is not.
pub(super) fn fetch(part: &Part, to: &Path, work: &Path) -> Result<()> {
    let Part { name, version, file, .. } = part;
    // The metadata of a version (behind `+`) is not for requirements.
    let exact = version.split('+').next().unwrap_or(version);
    let manifest = format!(
        "[package]\n\
         name = \"throw-away\"\n\
         version = \"0.0.0\"\n\
         edition = \"2024\"\n\
         [lib]\n\
         path = \"lib.rs\"\n\
         [workspace]\n\
         [target.'cfg(any())'.dependencies]\n\
         {name} = {{ version = \"={exact}\", default-features = false }}\n"
    );
    let write = |name: &str, text: &str| {
        fs::write(work.join(name), text)
            .with_context(|| format!("cannot write into {}", work.display()))
    };
    write("Cargo.toml", &manifest)?;
    write("lib.rs", "")?;

    // Offline first: with the crate at hand, nothing waits for the network.
    let answer = metadata(work, &["--offline"]).or_else(|_| metadata(work, &[]))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&answer).context("cannot read cargo's answer")?;
    let found = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|found| found["name"] == name.as_str() && found["version"] == version.as_str());
    let Some(found) = found.and_then(|found| found["manifest_path"].as_str()) else {
        bail!("cargo fetched another version than {part}");
    };
    let from = Path::new(found).with_file_name(file);
    fs::copy(&from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn metadata(work: &Path, extra: &[&str]) -> Result<Vec<u8>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1"]).args(extra).current_dir(work);
    client::run(&mut command, "cargo could not fetch the crate", "it comes with Rust")
}
