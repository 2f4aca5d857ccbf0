//! `gguf-assay serve`: a built-in subject as an adapter.

use anyhow::{Result, bail};
use gguf_assay::{Reference, serve};
use gguf_assay_oracle::Ggml;

/// Speak the adapter protocol on standard input and output for a built-in subject
///
/// This is how `gguf-assay run` drives ggml: in a process of its own, since ggml ends the process
/// on some files. It also shows what an adapter has to say (harness/suite/PROTOCOL.md):
///
///     echo '{"op":"describe","protocol":1}' | gguf-assay serve ggml
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// reference, ggml or ggml-data
    subject: String,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    match args.subject.as_str() {
        "reference" => serve(Reference)?,
        "ggml" => serve(Ggml::header())?,
        "ggml-data" => serve(Ggml::with_data())?,
        other => bail!("{other} is not built in; there are reference, ggml and ggml-data"),
    }
    Ok(crate::SUCCESS)
}
