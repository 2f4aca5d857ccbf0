//! One module a subcommand: its arguments, and what it does.

pub(crate) mod adapter_check;
pub(crate) mod bench_report;
pub(crate) mod build_corpus;
pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod dequantize;
pub(crate) mod explain;
pub(crate) mod fuzz;
pub(crate) mod generate;
pub(crate) mod list;
pub(crate) mod names;
pub(crate) mod real;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod subjects;

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use gguf_assay_cases::Corpus;
use gguf_assay_quant::kernel::{Engine, VARIABLE};

/// Prints a text to standard output, without its colours where they are not wanted.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Whether the error is that whoever reads our output has stopped reading.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The embedded cases, and those of more folders.
pub(crate) fn corpus(folders: &[impl AsRef<Path>]) -> Result<Corpus> {
    let mut corpus = Corpus::embedded();
    for folder in folders {
        let folder = folder.as_ref();
        let more = Corpus::from_dir(folder);
        corpus.extend(more.with_context(|| format!("the cases in {}", folder.display()))?);
    }
    Ok(corpus)
}

/// Whether a name is asked for: by itself, by a pattern with `*`, or because nothing is asked for.
pub(crate) fn is_chosen(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| gguf_assay::matches(pattern, name))
}

/// What dequantizes in this run: the best engine of the machine, or the one that is forced.
pub(crate) fn engine() -> Result<Engine> {
    Engine::chosen().context(VARIABLE)
}
