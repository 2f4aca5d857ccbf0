//! `gguf-assay bench-report`: what the benches measured, for people.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use gguf_assay_record::Record;

use super::print;

/// Make reports of what the benches measured, or compare two records
///
/// With --measure, all engines are measured in turns (about ten minutes; leave the machine alone
/// meanwhile) and a record is added to benches/record/. Without a record, the reports of all records
/// there, and the table in README.md from the newest, are made anew.
///
///     gguf-assay bench-report --measure
///     gguf-assay bench-report --measure -- --types Q4_K,Q6_K --rounds 5 --out trial.json
///     gguf-assay bench-report trial.json
///     gguf-assay bench-report benches/record/2026-11-30-amd-epyc trial.json
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A record to print, or two to compare: a file, or its folder
    #[arg(num_args = 0..=2, conflicts_with_all = ["measure", "check"])]
    records: Vec<PathBuf>,
    /// Measure now, and add a record
    #[arg(long, conflicts_with = "check")]
    measure: bool,
    /// Write nothing; fail if a report or the table of the README is not what its record makes
    #[arg(long)]
    check: bool,
    /// How to print a record
    #[arg(long, default_value = "markdown", requires = "records")]
    format: Format,
    /// What is passed on to the benches: with `--out FILE`, that file is written and nothing else
    #[arg(last = true, requires = "measure", value_name = "OPTION")]
    options: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Markdown,
    Html,
    Json,
}

/// The folder of the records, at the root of the repository, and what a record's folder holds.
const RECORDS: &str = "benches/record";
const RECORD: &str = "record.json";
const MARKDOWN: &str = "report.md";
const HTML: &str = "report.html";

const README: &str = "README.md";
const BEGIN: &str = "<!-- benches: cargo run --release -- bench-report -->\n";
const END: &str = "<!-- end of benches -->\n";

pub(crate) fn run(args: &Args) -> Result<u8> {
    match args.records.as_slice() {
        [] if args.measure => measure(&args.options),
        [] => update(args.check),
        [one] => {
            let record = read(one)?;
            print(&match args.format {
                Format::Markdown => record.to_markdown(),
                Format::Html => record.to_html(),
                Format::Json => record.to_json(),
            })?;
            Ok(crate::SUCCESS)
        }
        [before, after, ..] => {
            print(&read(before)?.compare(&read(after)?))?;
            Ok(crate::SUCCESS)
        }
    }
}

fn read(path: &Path) -> Result<Record> {
    let file = if path.is_dir() { path.join(RECORD) } else { path.to_owned() };
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Record::from_json(&text).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Runs the benches of this repository with this very command, and files the record.
fn measure(options: &[String]) -> Result<u8> {
    need_repository()?;
    let scratch = tempfile::tempdir()?;
    let is_elsewhere = options.iter().any(|option| option.starts_with("--out"));
    let file = scratch.path().join(RECORD);
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["bench", "--package", "gguf-assay-benches", "--bench", "record"]);
    command.args(["--features", "peers", "--"]).args(options);
    if !is_elsewhere {
        command.arg("--out").arg(&file);
    }
    command.env("GGUF_ASSAY_COMMAND", std::env::current_exe()?);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the benches failed ({status})");
    }
    if is_elsewhere {
        return Ok(crate::SUCCESS);
    }
    let record = read(&file)?;
    let folder = Path::new(RECORDS).join(record.folder());
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(RECORD), record.to_json())?;
    for warning in record.warnings() {
        eprintln!("warning: {warning}");
    }
    println!("{}", folder.display());
    update(false)
}

fn need_repository() -> Result<()> {
    if !Path::new(RECORDS).is_dir() {
        bail!("{RECORDS} is not here; run this at the root of a clone of gguf-assay");
    }
    Ok(())
}

/// Writes what follows from the records, or only compares.
fn update(check: bool) -> Result<u8> {
    need_repository()?;
    let mut folders = Vec::new();
    for entry in fs::read_dir(RECORDS)? {
        let folder = entry?.path();
        if folder.join(RECORD).is_file() {
            folders.push(folder);
        }
    }
    // Names begin with the date.
    folders.sort();
    let mut files = Vec::new();
    for folder in &folders {
        let record = read(folder)?;
        files.push((folder.join(MARKDOWN), record.to_markdown()));
        files.push((folder.join(HTML), record.to_html()));
    }
    if let Some(newest) = folders.last() {
        let readme = fs::read_to_string(README).context(README)?;
        files.push((README.into(), splice(&readme, newest, &read(newest)?)?));
    }
    let mut status = crate::SUCCESS;
    for (path, text) in files {
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if check {
            eprintln!(
                "{} is not what its record makes; run gguf-assay bench-report",
                path.display()
            );
            status = crate::FINDINGS;
        } else {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
        }
    }
    Ok(status)
}

/// The README with the table of a record between the marks.
fn splice(readme: &str, folder: &Path, record: &Record) -> Result<String> {
    let (before, rest) =
        readme.split_once(BEGIN).with_context(|| format!("{README} has no {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{README} has no {END}"))?;
    let table = record.to_readme();
    let folder = folder.display().to_string().replace('\\', "/");
    let source = format!("All figures: [{folder}/{MARKDOWN}]({folder}/{MARKDOWN}).");
    Ok(format!("{before}{BEGIN}\n{}\n\n{source}\n\n{END}{after}", table.trim_end()))
}
