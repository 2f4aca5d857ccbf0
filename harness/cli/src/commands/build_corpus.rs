//! `gguf-assay build-corpus`: the files of the cases, from their TOML.

use std::path::PathBuf;

use anyhow::Result;
use gguf_assay_cases::{Corpus, files, lint};

/// Build the files of all cases beside their TOML, after checking the cases
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder that holds the cases
    #[arg(default_value = "corpus")]
    dir: PathBuf,
    /// Write nothing; fail if a file is not what its case builds
    #[arg(long)]
    check: bool,
    /// Write every file of a case below this folder instead, whether it is committed or not
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let corpus = Corpus::from_dir(&args.dir)?;
    let mut errors = lint(&corpus, true);
    if errors.is_empty()
        && let Some(out) = &args.out
    {
        let written = files::write_all(&corpus, out)?;
        println!("{} cases, {written} files written", corpus.all().count());
        return Ok(crate::SUCCESS);
    }
    if errors.is_empty() && !args.check {
        let written = files::write(&corpus, &args.dir)?;
        println!("{} cases, {written} files written", corpus.all().count());
        return Ok(crate::SUCCESS);
    }
    if args.check {
        errors.extend(files::compare(&corpus, &args.dir));
    }
    for error in &errors {
        eprintln!("{error}");
    }
    println!("{} cases, {} problems", corpus.all().count(), errors.len());
    Ok(if errors.is_empty() { crate::SUCCESS } else { crate::FINDINGS })
}
