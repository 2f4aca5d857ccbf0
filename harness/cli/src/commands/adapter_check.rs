//! `gguf-assay adapter-check`: whether an adapter speaks the protocol, and what it leaves unsaid.

use std::fmt::Write as _;

use anyhow::Result;
use gguf_assay::process::{Bounds, Process};
use gguf_assay::{
    About, Answer, CaseFiles, Channel, CheckpointQuestion, Corpus, DequantizeRequest, Failure,
    FileValue, NamesRequest, Profile, ReadRequest,
};
use gguf_assay_format::{ByteOrder, TENSOR_TYPES, TensorType, printable};

use super::run::adapter;
use super::{is_chosen, print};
use crate::style::{bad, good};

/// Tell an adapter's author what is off: protocol, answers, and what they leave unsaid
///
/// Asks the adapter to describe itself; to read a hundred files with every kind of value and tensor,
/// and one that is not GGUF; to dequantize blocks of every type; to map the names of a file and of
/// a checkpoint; and to judge checkpoints that are in order and unpack modules of them. It asks for the
/// operations that the adapter has, and says where the answers depart from the protocol
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

/// The operations that there are.
const OPS: [&str; 5] = ["read", "dequantize", "map_names", "judge_checkpoint", "unpack"];

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

/// What the answers to one operation were.
#[derive(Default)]
struct Seen {
    values: usize,
    refusals: usize,
    /// What is not implemented, by the cases' names for it.
    unimplemented: Vec<String>,
    parts: [bool; PARTS.len()],
    off: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let mut text = String::new();
    let mut off = Vec::new();
    match Process::start(adapter(&args.command)?, Bounds::default()) {
        Err(error) => off.push(error),
        Ok(mut process) => {
            let about = process.about().clone();
            let _ = writeln!(
                text,
                "describe  {} {} ({}), ops {}",
                about.name,
                about.version,
                about.language,
                about.ops.join(", ")
            );
            off.extend(describe_is_off(&about));
            let has = |op: &str| about.ops.iter().any(|other| other == op);
            if has("read") {
                let seen = Seen::reading(&mut process)?;
                seen.write("files", "a value", &mut text);
                seen.write_parts(&mut text);
                off.extend(seen.off);
            }
            if has("dequantize") {
                let seen = Seen::dequantizing(&mut process, &about);
                seen.write("types", "numbers", &mut text);
                seen.write_lacking(&mut text);
                off.extend(seen.off);
            }
            if has("map_names") {
                let seen = Seen::mapping(&mut process)?;
                seen.write("names", "names", &mut text);
                seen.write_lacking(&mut text);
                off.extend(seen.off);
            }
            for (op, title, good) in
                [("judge_checkpoint", "judged", "a judgement"), ("unpack", "unpacked", "numbers")]
            {
                if has(op) {
                    let seen = Seen::of_checkpoints(&mut process, op)?;
                    seen.write(title, good, &mut text);
                    seen.write_lacking(&mut text);
                    off.extend(seen.off);
                }
            }
        }
    }
    for off in &off {
        let _ = writeln!(text, "{}  {off}", bad("off"));
    }
    if off.is_empty() {
        let _ = writeln!(text, "{}", good("the adapter speaks the protocol"));
    }
    print(&text)?;
    Ok(if off.is_empty() { crate::SUCCESS } else { crate::FINDINGS })
}

/// What is off in what the adapter says of itself.
fn describe_is_off(about: &About) -> Vec<String> {
    let mut off = Vec::new();
    for (field, value) in [("name", &about.name), ("version", &about.version)] {
        if value.is_empty() {
            off.push(format!("describe: `{field}` is empty"));
        }
    }
    if about.ops.is_empty() {
        off.push("describe: `ops` is empty: there is nothing to ask for".into());
    }
    for op in about.ops.iter().filter(|op| !OPS.contains(&op.as_str())) {
        let op = printable(op, 40);
        off.push(format!("describe: `ops` has {op}: there are {}", OPS.join(", ")));
    }
    for name in about.types.iter().filter(|name| TensorType::by_name(name).is_none()) {
        let name = printable(name, 40);
        off.push(format!("describe: `types` has {name}: `gguf-assay list types` has the names"));
    }
    off
}

impl Seen {
    /// Puts files to the adapter.
    fn reading(process: &mut Process) -> Result<Seen> {
        let mut seen = Seen::default();
        let files = CaseFiles::new()?;
        let corpus = Corpus::embedded();
        let patterns = CASES.map(String::from);
        let cases = corpus.cases.iter().filter(|case| is_chosen(&patterns, &case.id));
        for case in cases.filter(|case| !case.is_large()) {
            let path = files.path(case).map_err(anyhow::Error::msg)?;
            let request = ReadRequest { path, profile: Profile::Ggml, large: false };
            match process.read(&request) {
                Answer::Value(value) => seen.value(&value),
                other => seen.no_value(&case.id, &case.id, other),
            }
        }
        Ok(seen)
    }

    /// Puts blocks to the adapter: those of one case for each type that it claims to have.
    fn dequantizing(process: &mut Process, about: &About) -> Seen {
        let mut seen = Seen::default();
        let corpus = Corpus::embedded();
        for t in TENSOR_TYPES {
            let mut cases = corpus.blocks.iter().filter(|case| case.tensor_type == t);
            let Some(case) = cases.find(|case| case.byte_order == ByteOrder::Little) else {
                continue;
            };
            if !about.types.is_empty() && !about.types.iter().any(|name| name == t.name) {
                seen.unimplemented.push(t.name.into());
                continue;
            }
            let (bytes, byte_order) = (case.bytes.clone(), case.byte_order);
            let request = DequantizeRequest { tensor_type: t, bytes, byte_order };
            match process.dequantize(&request) {
                Answer::Numbers(numbers) if numbers.len() == request.elements() => seen.values += 1,
                Answer::Numbers(numbers) => seen.off.push(format!(
                    "{}: {} numbers for {} elements",
                    case.id,
                    numbers.len(),
                    request.elements()
                )),
                other => seen.no_value(&case.id, t.name, other),
            }
        }
        seen
    }

    /// Puts names to the adapter: those of whole pairs, both ways.
    fn mapping(process: &mut Process) -> Result<Seen> {
        let mut seen = Seen::default();
        let files = CaseFiles::new()?;
        let corpus = Corpus::embedded();
        for case in corpus.names.iter().filter(|case| !case.is_edited()) {
            let request = NamesRequest::of(case, &files).map_err(anyhow::Error::msg)?;
            match process.map_names(&request) {
                Answer::Names(_) => seen.values += 1,
                other => seen.no_value(&case.id, &case.id, other),
            }
        }
        Ok(seen)
    }

    /// Puts checkpoints that are in order to the adapter.
    fn of_checkpoints(process: &mut Process, op: &str) -> Result<Seen> {
        let mut seen = Seen::default();
        let files = CaseFiles::new()?;
        let corpus = Corpus::embedded();
        let sound = corpus.checkpoints.iter().filter(|case| !case.has_fault() && case.tp.is_none());
        for case in sound.filter(|case| case.operation() == op) {
            let question = CheckpointQuestion::of(case, &files).map_err(anyhow::Error::msg)?;
            match process.checkpoint(&question) {
                Answer::Judged(_) => seen.values += 1,
                Answer::Weight(weight) => {
                    let count: u64 = weight.shape.iter().product();
                    let numbers = weight.numbers.len() as u64;
                    if count == numbers {
                        seen.values += 1;
                    } else {
                        let shape = &weight.shape;
                        seen.off.push(format!("{}: {numbers} numbers for {shape:?}", case.id));
                    }
                }
                other => seen.no_value(&case.id, &case.id, other),
            }
        }
        Ok(seen)
    }

    /// An answer that is no value of what was asked for.
    fn no_value(&mut self, case: &str, what: &str, answer: Answer) {
        match answer {
            // What an answer is depends on what was asked.
            Answer::Value(_)
            | Answer::Numbers(_)
            | Answer::Names(_)
            | Answer::Judged(_)
            | Answer::Weight(_) => {}
            Answer::Failure(Failure::Unimplemented(_)) => self.unimplemented.push(what.into()),
            Answer::Failure(Failure::Rejected { message, .. }) => {
                self.refusals += 1;
                if message.trim().is_empty() {
                    self.off.push(format!("{case}: an error without a message"));
                }
            }
            Answer::Crashed(how) if how.contains("not of the protocol") => {
                self.off.push(format!("{case}: {how}"));
            }
            Answer::Crashed(how)
            | Answer::Panicked(how)
            | Answer::TimedOut(how)
            | Answer::OutOfMemory(how) => self.off.push(format!("{case}: no answer: {how}")),
        }
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

    fn write(&self, title: &str, good: &str, text: &mut String) {
        let _ = writeln!(
            text,
            "{title:<8}  {} with {good}, {} refused, {} not implemented",
            self.values,
            self.refusals,
            self.unimplemented.len()
        );
    }

    /// The parts of a file's value that were given, and those that were not.
    fn write_parts(&self, text: &mut String) {
        for (title, wanted) in [("compared", true), ("unsaid", false)] {
            let parts = PARTS.iter().zip(self.parts).filter(|(_, given)| *given == wanted);
            let names: Vec<&str> = parts.map(|(name, _)| *name).collect();
            let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
            let _ = writeln!(text, "{title:<8}  {names}");
        }
    }

    /// The types that are not implemented.
    fn write_lacking(&self, text: &mut String) {
        if !self.unimplemented.is_empty() {
            let _ = writeln!(text, "{:<8}  {}", "lacking", self.unimplemented.join(", "));
        }
    }
}
