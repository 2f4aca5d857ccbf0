//! `gguf-assay report`: many results, one report.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};
use gguf_assay::report::{CorpusId, Report, merge};
use gguf_assay_format::printable;

use super::corpus;
use super::run::{Output, ggml};

/// Missing cases that are named; of more there is only the count.
const NAMED: usize = 3;

/// Merge results of several runs into one report
///
/// Takes what `run --format json` writes, and folders of what tests write where GGUF_ASSAY_RESULTS
/// names a folder: of different subjects, of different cases of one subject, or both, in any order.
/// Two answers of one subject to one case, other versions or other cases are errors. A case that has
/// no result makes the exit status 1, as a failure does.
///
///     gguf-assay report ggml.json candle.json
///     gguf-assay report part-1/ part-2/ --format markdown -o matrix.md
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Results, or folders that hold some
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
    /// Accept that some cases have no result
    #[arg(long)]
    partial: bool,
    /// More cases, from the TOML files of this folder, if the runs had them
    #[arg(long, value_name = "DIR")]
    cases: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let mut files = Vec::new();
    for path in &args.paths {
        let before = files.len();
        collect(path, &mut files).with_context(|| format!("cannot read {}", path.display()))?;
        if files.len() == before {
            bail!("there are no results (*.json) in {}", path.display());
        }
    }
    // A file may be named, and lie in a folder that is.
    files.sort();
    files.dedup();
    let name = |file: &Path| printable(&file.display().to_string(), usize::MAX);
    let reports = files.iter().map(|file| Ok((name(file), read(file)?)));
    let corpus = corpus(&args.cases)?;
    let reports = reports.collect::<Result<_>>()?;
    let mut report = merge(reports, &corpus).map_err(anyhow::Error::msg)?;
    let known = gguf_assay_subjects::all();
    report.subjects.sort_by_key(|subject| {
        known.iter().position(|known| known.name == subject.name).unwrap_or(known.len())
    });
    let is_ours = report.corpus == CorpusId::of(&corpus);
    if !is_ours {
        eprintln!(
            "gguf-assay: the results are of other cases than the {} of this program, so that not \
             all that it says of cases may hold: use the version that made them, or --cases",
            corpus.all().count()
        );
    } else if report.ggml.is_empty() {
        report.ggml = ggml();
    }
    let status = args.output.put(&report, &corpus)?;
    let mut is_complete = true;
    for (subject, missing) in report.missing() {
        is_complete = false;
        let results = subject.run.iter().flat_map(|run| &run.results);
        let has: HashSet<&str> = results.map(|r| r.case.as_str()).collect();
        let ids = corpus.all().map(|case| case.id()).filter(|id| is_ours && !has.contains(id));
        eprintln!(
            "gguf-assay: {}: {missing} of {} cases have no result",
            subject.name, report.corpus.cases
        );
        ids.take(NAMED).for_each(|id| eprintln!("    {id}"));
    }
    match is_complete || args.partial {
        true => Ok(status),
        false => {
            eprintln!("gguf-assay: the parts are not all there; --partial takes them as they are");
            Ok(crate::FINDINGS)
        }
    }
}

/// The file, or the JSON files of the folder and its folders.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.into());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Report> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let report = Report::parse(&text).map_err(anyhow::Error::msg);
    report.with_context(|| path.display().to_string())
}
