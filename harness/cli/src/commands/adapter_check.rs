//! `gguf-assay adapter-check`: whether an adapter speaks the protocol, and what it leaves unsaid.

use std::fmt::Write as _;

use anyhow::Result;
use gguf_assay::process::{Bounds, Process};
use gguf_assay::{Answer, CaseFiles, Channel, Corpus, Failure, FileValue, Profile, ReadRequest};

use super::run::adapter;
use super::{is_chosen, print};
use crate::style::{bad, good};

/// Tell an adapter's author what is off: protocol, answers, and what they leave unsaid
///
/// Asks the adapter to describe itself and to read a hundred files with every kind of value and tensor,
/// and one that is not GGUF. It says where the answers depart from the protocol
/// (harness/suite/PROTOCOL.md), not whether the reader is right: that is `gguf-assay run --adapter`.
///
///     gguf-assay adapter-check 'python3 my_adapter.py'
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The program and its arguments
    #[arg(value_name = "CMD")]
    command: String,
}

/// Files with every kind of value, tensors, and an HTML page.
const CASES: [&str; 5] = [
    "read/values/*",
    "read/arrays/of-*",
    "read/tensors/every-scalar-type",
    "read/tensors/twelve-tensors",
    "read/download/html",
];

/// The parts of a value that an answer may leave out.
const PARTS: [&str; 7] =
    ["version", "metadata", "tensors", "tensor types", "tensor dims", "tensor offsets", "sha256"];

#[derive(Default)]
struct Seen {
    values: usize,
    refusals: usize,
    unimplemented: usize,
    parts: [bool; PARTS.len()],
    off: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let mut text = String::new();
    let mut seen = Seen::default();
    match Process::start(adapter(&args.command)?, Bounds::default()) {
        Err(error) => seen.off.push(error),
        Ok(mut process) => {
            let about = process.about();
            let _ = writeln!(
                text,
                "describe  {} {} ({}), ops {}",
                about.name,
                about.version,
                about.language,
                about.ops.join(", ")
            );
            for (field, value) in [("name", &about.name), ("version", &about.version)] {
                if value.is_empty() {
                    seen.off.push(format!("describe: `{field}` is empty"));
                }
            }
            if about.ops.iter().any(|op| op == "read") {
                seen.ask(&mut process)?;
                seen.write(&mut text);
            } else {
                seen.off
                    .push("describe: `ops` does not have `read`: only readers are checked".into());
            }
        }
    }
    for off in &seen.off {
        let _ = writeln!(text, "{}  {off}", bad("off"));
    }
    if seen.off.is_empty() {
        let _ = writeln!(text, "{}", good("the adapter speaks the protocol"));
    }
    print(&text)?;
    Ok(if seen.off.is_empty() { crate::SUCCESS } else { crate::FINDINGS })
}

impl Seen {
    fn ask(&mut self, process: &mut Process) -> Result<()> {
        let files = CaseFiles::new()?;
        let corpus = Corpus::embedded();
        let patterns = CASES.map(String::from);
        let cases = corpus.cases.iter().filter(|case| is_chosen(&patterns, &case.id));
        for case in cases.filter(|case| !case.is_large()) {
            let path = files.path(case).map_err(anyhow::Error::msg)?;
            let request = ReadRequest { path, profile: Profile::Ggml, large: false };
            match process.read(&request) {
                Answer::Value(value) => self.value(&value),
                Answer::Numbers(_) => self.off.push(format!("{}: numbers for a file", case.id)),
                Answer::Failure(Failure::Unimplemented(_)) => self.unimplemented += 1,
                Answer::Failure(Failure::Rejected { message, .. }) => {
                    self.refusals += 1;
                    if message.trim().is_empty() {
                        self.off.push(format!("{}: an error without a message", case.id));
                    }
                }
                Answer::Crashed(how) if how.contains("not of the protocol") => {
                    self.off.push(format!("{}: {how}", case.id));
                }
                Answer::Crashed(how) | Answer::Panicked(how) | Answer::TimedOut(how) => {
                    self.off.push(format!("{}: no answer: {how}", case.id));
                }
                Answer::OutOfMemory(how) => self.off.push(format!("{}: no answer: {how}", case.id)),
            }
        }
        Ok(())
    }

    fn value(&mut self, value: &FileValue) {
        self.values += 1;
        let tensors = value.tensors.as_deref().unwrap_or_default();
        let given = [
            value.version.is_some(),
            value.metadata.is_some(),
            value.tensors.is_some(),
            tensors.iter().any(|tensor| tensor.type_name.is_some()),
            tensors.iter().any(|tensor| tensor.dims.is_some()),
            tensors.iter().any(|tensor| tensor.offset.is_some()),
            tensors.iter().any(|tensor| tensor.sha256.is_some()),
        ];
        for (part, given) in self.parts.iter_mut().zip(given) {
            *part |= given;
        }
    }

    fn write(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "answers   {} with a value, {} refused, {} not implemented",
            self.values, self.refusals, self.unimplemented
        );
        let parts = |wanted: bool| -> String {
            let parts = PARTS.iter().zip(self.parts).filter(|(_, given)| *given == wanted);
            let names: Vec<&str> = parts.map(|(name, _)| *name).collect();
            if names.is_empty() { "nothing".into() } else { names.join(", ") }
        };
        let _ = writeln!(text, "compared  {}", parts(true));
        let _ = writeln!(text, "unsaid    {}", parts(false));
    }
}
