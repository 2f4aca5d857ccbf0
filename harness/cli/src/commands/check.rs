//! `gguf-assay check`: whether a file is broken, and where.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use gguf_assay_format::{ByteOrder, Diagnosis, Gguf, Profile, Violation, diagnose, escape};
use gguf_assay_quant::kernel::Engine;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{engine, print};
use crate::deep::{NotFinite, inspect};
use crate::identify::{Identity, identify};
use crate::mapped::MappedFile;
use crate::style::{bad, bold, dim, good};

/// Say whether a model file is broken, where, and what to do
///
/// The first line is the answer. Below it stand what the file says of itself, the verdict of the
/// specification and of ggml, and every violation with its rule, place, what was found and what was
/// expected. The file is mapped, not read: size does not matter.
///
///     gguf-assay check model.gguf
///     gguf-assay check --deep model.gguf       also look at every number
///     gguf-assay check --format json *.gguf
///
/// If the file is fine and your loader refuses it, the loader is at fault: `gguf-assay run --adapter`
/// shows in what.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Whose verdict is the exit status
    #[arg(long, default_value = "ggml")]
    profile: Profile,
    /// How to print the findings; `json` is stable and documented, one object a line
    #[arg(long, default_value = "text")]
    format: Format,
    /// Print all violations, not only the first 20
    #[arg(long)]
    all: bool,
    /// Also look at every number of every tensor: NaN and infinite ones are findings
    #[arg(long)]
    deep: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// How many violations are printed without `--all`.
const SHOWN: usize = 20;

/// The name and version of the JSON schema.
const SCHEMA: &str = "gguf-assay/check/1";

/// What is known of a file; this is the JSON, too.
#[derive(Serialize)]
struct Finding {
    schema: &'static str,
    file: String,
    size: u64,
    /// The answer in one line.
    answer: String,
    /// What the file is, if it is not GGUF.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'static str>,
    accepted: BTreeMap<&'static str, bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    violations: Vec<ViolationJson>,
    /// Violations beyond those that are listed.
    omitted: u64,
    /// Tensors with numbers that are NaN or infinite, with `--deep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_finite: Option<Vec<NotFinite>>,
}

#[derive(Serialize)]
struct Summary {
    version: u32,
    byte_order: &'static str,
    /// Whether the header was read to its end.
    complete: bool,
    keys: usize,
    tensors: usize,
    architecture: Option<String>,
    name: Option<String>,
    alignment: u32,
    data_offset: Option<u64>,
    types: Vec<(String, usize)>,
}

#[derive(Serialize)]
struct ViolationJson {
    rule: &'static str,
    title: &'static str,
    binds: Vec<&'static str>,
    field: String,
    offset: u64,
    found: String,
    expected: String,
    /// How many bytes the file lacks here, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<u64>,
    advice: &'static str,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let engine = args.deep.then(engine).transpose()?;
    let mut status = crate::SUCCESS;
    for (index, path) in args.files.iter().enumerate() {
        let bytes = match MappedFile::open(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("gguf-assay: {error:#}");
                status = status.max(crate::USAGE);
                continue;
            }
        };
        let diagnosis = diagnose(&bytes);
        let mut finding = Finding::new(path, &bytes, &diagnosis);
        if !diagnosis.accepted_by(args.profile) {
            status = status.max(crate::FINDINGS);
        }
        let gguf = diagnosis.gguf.as_ref().filter(|_| diagnosis.complete);
        if let (Some(gguf), Some(engine)) = (gguf, engine) {
            finding.look_deep(gguf, engine)?;
            if finding.not_finite.as_ref().is_some_and(|found| !found.is_empty()) {
                status = status.max(crate::FINDINGS);
            }
        }
        let text = match args.format {
            Format::Json => serde_json::to_string(&finding)? + "\n",
            Format::Text => {
                let gap = if index > 0 { "\n" } else { "" };
                gap.to_owned() + &finding.to_text(args.all)
            }
        };
        print(&text)?;
    }
    Ok(status)
}

impl Finding {
    fn new(path: &Path, bytes: &[u8], diagnosis: &Diagnosis<'_>) -> Finding {
        let size = bytes.len() as u64;
        let identity = identify(bytes);
        let answer = answer(size, identity.as_ref(), diagnosis);
        let accepted = Profile::ALL.map(|p| (p.name(), diagnosis.accepted_by(p)));
        let violations = diagnosis.violations.iter().map(ViolationJson::from).collect();
        let name = path.display().to_string();
        Finding {
            schema: SCHEMA,
            file: escape(name.as_bytes(), usize::MAX),
            size,
            answer,
            identity: identity.as_ref().map(|identity| identity.what),
            advice: identity.as_ref().map(|identity| identity.advice),
            accepted: accepted.into_iter().collect(),
            summary: diagnosis.gguf.as_ref().map(|gguf| Summary::new(gguf, diagnosis.complete)),
            violations,
            omitted: diagnosis.omitted,
            not_finite: None,
        }
    }

    /// Looks at every number, with a bar on a terminal, and takes what it finds into the answer.
    fn look_deep(&mut self, gguf: &Gguf<'_>, engine: Engine) -> Result<()> {
        let total = gguf.tensors.iter().filter_map(|tensor| tensor.byte_len).sum();
        // Not drawn where standard error is no terminal.
        let bar = ProgressBar::new(total);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        let found = inspect(gguf, engine, |bytes| bar.inc(bytes))?;
        bar.finish_and_clear();
        if let [first, rest @ ..] = found.as_slice() {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            self.answer = format!(
                "{}, but numbers are not finite in tensor \"{}\"{more}",
                self.answer, first.tensor
            );
        }
        self.not_finite = Some(found);
        Ok(())
    }

    fn to_text(&self, all: bool) -> String {
        let mut text = String::new();
        let finite = self.not_finite.as_ref().is_none_or(Vec::is_empty);
        let fine = finite && self.accepted.values().all(|&accepted| accepted);
        let answer = if fine { good(&self.answer) } else { bad(&self.answer) };
        let _ = writeln!(text, "{}: {answer}", bold(&self.file));
        if let Some(advice) = self.advice {
            let _ = writeln!(text, "  next  {advice}");
        }
        if let Some(summary) = &self.summary {
            summary.write(&mut text, self.size);
        }
        if self.identity.is_none() {
            for (profile, &accepted) in self.accepted.iter().rev() {
                let verdict = if accepted { good("accepted") } else { bad("refused") };
                let who = match *profile {
                    "ggml" => format!("by ggml {}", gguf_assay_oracle::version()),
                    _ => "by the text of docs/gguf.md".into(),
                };
                let _ = writeln!(text, "  {profile}  {verdict} {}", dim(&who));
            }
        }
        let shown = if all { usize::MAX } else { SHOWN };
        if let Some(found) = &self.not_finite {
            write_not_finite(&mut text, found, shown);
        }
        for violation in self.violations.iter().take(shown) {
            violation.write(&mut text);
        }
        let hidden = self.violations.len().saturating_sub(shown) as u64 + self.omitted;
        if hidden > 0 {
            let how = if all { "" } else { ", see --all" };
            let _ = writeln!(text, "\n  {hidden} more violations{how}");
        }
        text
    }
}

fn write_not_finite(text: &mut String, found: &[NotFinite], shown: usize) {
    if found.is_empty() {
        let _ = writeln!(text, "  deep  {}", good("every number of every tensor is finite"));
    }
    for finding in found.iter().take(shown) {
        let NotFinite { tensor, tensor_type, count, of, block, element, value, from } = finding;
        let _ = writeln!(
            text,
            "\n  {} in {tensor} ({tensor_type}): {count} of {of} numbers are not finite\n    first     \
             {value} at element {element} of block {block}, made of {from}",
            bold("NaN or Inf")
        );
    }
    if found.len() > shown {
        let _ = writeln!(text, "\n  {} more tensors, see --all", found.len() - shown);
    }
}

impl Summary {
    fn new(gguf: &Gguf<'_>, complete: bool) -> Summary {
        let text = |key: &str| {
            let value = gguf.get(key)?.as_str()?;
            Some(escape(value.as_bytes(), 80))
        };
        let mut types: BTreeMap<String, usize> = BTreeMap::new();
        for tensor in &gguf.tensors {
            let name =
                tensor.tensor_type.map_or(format!("type {}", tensor.type_id), |t| t.name.into());
            *types.entry(name).or_default() += 1;
        }
        let mut types: Vec<(String, usize)> = types.into_iter().collect();
        types.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Summary {
            version: gguf.version,
            byte_order: match gguf.byte_order {
                ByteOrder::Little => "little",
                ByteOrder::Big => "big",
            },
            complete,
            keys: gguf.metadata.len(),
            tensors: gguf.tensors.len(),
            architecture: text("general.architecture"),
            name: text("general.name"),
            alignment: gguf.alignment,
            data_offset: complete.then_some(gguf.data_offset),
            types,
        }
    }

    fn write(&self, text: &mut String, size: u64) {
        let read = if self.complete { "" } else { " read before the reader had to stop" };
        let _ = writeln!(
            text,
            "  GGUF version {}, {}-endian, {}{}",
            self.version,
            self.byte_order,
            plural(size, "byte"),
            if size < 1024 { String::new() } else { format!(" ({})", human(size)) }
        );
        let (keys, tensors) =
            (plural(self.keys as u64, "key"), plural(self.tensors as u64, "tensor"));
        let _ = write!(text, "  {keys}, {tensors}{read}, alignment {}", self.alignment);
        let _ = match self.data_offset {
            Some(offset) => writeln!(text, ", data from byte {offset}"),
            None => writeln!(text),
        };
        if let Some(architecture) = &self.architecture {
            let name = self.name.as_ref().map_or(String::new(), |name| format!(", \"{name}\""));
            let _ = writeln!(text, "  architecture {architecture}{name}");
        }
        if !self.types.is_empty() {
            let types: Vec<String> = self.types.iter().map(|(t, n)| format!("{n} {t}")).collect();
            let _ = writeln!(text, "  types {}", types.join(", "));
        }
    }
}

impl From<&Violation> for ViolationJson {
    fn from(violation: &Violation) -> ViolationJson {
        let rule = violation.rule();
        let binds = Profile::ALL.into_iter().filter(|&profile| violation.binds(profile));
        ViolationJson {
            rule: rule.id,
            title: rule.title,
            binds: binds.map(Profile::name).collect(),
            field: violation.field().into(),
            offset: violation.offset(),
            found: violation.found().into(),
            expected: violation.expected().into(),
            missing: violation.missing(),
            advice: rule.advice,
        }
    }
}

impl ViolationJson {
    fn write(&self, text: &mut String) {
        let who = match self.binds.as_slice() {
            [] => dim("note"),
            [one] => bad(&format!("refused by {one}")),
            _ => bad("refused by both"),
        };
        let _ = writeln!(
            text,
            "\n  {} at {}, byte {} ({:#x}): {who}\n    {}",
            bold(self.rule),
            self.field,
            self.offset,
            self.offset,
            self.title
        );
        for (label, content) in
            [("found", self.found.as_str()), ("expected", &self.expected), ("next", self.advice)]
        {
            let _ = writeln!(text, "    {label:<8}  {content}");
        }
    }
}

/// The answer in one line: what a person with a broken model wants to know.
fn answer(size: u64, identity: Option<&Identity>, diagnosis: &Diagnosis<'_>) -> String {
    if let Some(identity) = identity {
        return format!("not a GGUF file: this is {}", identity.what);
    }
    let first = |profile| diagnosis.violations.iter().find(|violation| violation.binds(profile));
    match (first(Profile::Spec), first(Profile::Ggml)) {
        (None, None) => {
            let notes = diagnosis.violations.len() as u64 + diagnosis.omitted;
            match notes {
                0 => "the file is fine".into(),
                1 => "the file is fine, with one note".into(),
                notes => format!("the file is fine, with {notes} notes"),
            }
        }
        (Some(violation), _) | (None, Some(violation)) if violation.rule().id == "HDR-001" => {
            "not a GGUF file, and nothing else that is known".into()
        }
        (Some(one), Some(_)) if one.is_truncation() => cut_off(size, one, diagnosis),
        (_, Some(violation)) if violation.is_truncation() => cut_off(size, violation, diagnosis),
        (Some(violation), Some(_)) => {
            format!("the file is broken at {} ({})", violation.field(), violation.rule())
        }
        (None, Some(violation)) => format!(
            "the file keeps to the specification, but ggml and llama.cpp refuse it ({} at {})",
            violation.rule(),
            violation.field()
        ),
        (Some(violation), None) => format!(
            "ggml and llama.cpp accept the file, but it departs from the specification ({} at {})",
            violation.rule(),
            violation.field()
        ),
    }
}

/// How much is missing, and from where on.
fn cut_off(size: u64, violation: &Violation, diagnosis: &Diagnosis<'_>) -> String {
    let Some(gguf) = diagnosis.gguf.as_ref().filter(|_| diagnosis.complete) else {
        let missing = match violation.missing() {
            Some(missing) => format!(", at least {} missing", plural(missing, "byte")),
            None => String::new(),
        };
        let field = violation.field();
        return format!("the file is cut off: it ends in {field}, at byte {size}{missing}");
    };
    let ends = gguf.tensors.iter().map(|tensor| {
        let end = gguf.data_offset.checked_add(tensor.offset)?.checked_add(tensor.byte_len?)?;
        Some((tensor, end))
    });
    let incomplete: Vec<_> = ends.flatten().filter(|(_, end)| *end > size).collect();
    let last = incomplete.iter().map(|(_, end)| *end).max();
    let (Some((tensor, _)), Some(last)) = (incomplete.first(), last) else {
        return format!("the file is broken at {} ({})", violation.field(), violation.rule());
    };
    let missing = last - size;
    let of = match incomplete.len() {
        1 => String::new(),
        number => format!(" and {} more of {} tensors", number - 1, gguf.tensors.len()),
    };
    let name = escape(tensor.name.0, 72);
    let missing = format!("{} of {}", plural(missing, "byte"), sized(last));
    format!("the file is cut off: {missing} missing, from the data of tensor \"{name}\"{of}")
}

fn plural(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `98362432 (93.8 MiB)`; small numbers stand alone.
fn sized(bytes: u64) -> String {
    if bytes < 1024 { bytes.to_string() } else { format!("{bytes} ({})", human(bytes)) }
}

/// A size for people: `93.8 MiB`.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return plural(bytes, "byte");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}
