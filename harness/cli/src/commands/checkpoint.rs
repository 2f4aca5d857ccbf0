//! `gguf-assay checkpoint`: whether a quantized checkpoint is what its config declares.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use gguf_assay_checkpoint::{Checkpoint, Finding, Folder, Judgement, Options, judge};
use gguf_assay_format::printable;
use serde_json::{Value as Json, json};

use super::print;
use crate::sarif::{self, SarifResult};
use crate::style::{bad, bold, dim, good};

/// Say whether a checkpoint's tensors are what its config declares
///
/// Reads the configs and the headers of the safetensors files of a folder, and a little of the
/// values: zero points, groups, scales. The first line is the answer; below it stand what is
/// declared, what is there, and every finding with its rule, what was found, what it would need to
/// be, and which loaders are known to refuse it. Size does not matter.
///
/// Known methods: gptq, awq, compressed-tensors, fp8, fbgemm_fp8, bitsandbytes, mxfp4, auto-round,
/// modelopt; of hqq and quark the fields alone.
///
///     gguf-assay checkpoint Qwen3-4B-AWQ
///     gguf-assay checkpoint --format sarif Qwen3-4B-AWQ > findings.sarif
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The folder that has config.json
    folder: PathBuf,
    /// How to print the answer; `json` is stable and documented
    #[arg(long, default_value = "text")]
    format: Format,
    /// Look at headers and configs alone
    #[arg(long)]
    headers: bool,
    /// Print all findings and modules, not only the first 20
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

/// How many findings are printed without `--all`.
const SHOWN: usize = 20;

/// The name and version of the JSON schema.
const SCHEMA: &str = "gguf-assay/checkpoint/1";

pub(crate) fn run(args: &Args) -> Result<u8> {
    let folder = &args.folder;
    if !folder.is_dir() {
        bail!("{} is not a folder; name the one that has config.json", folder.display());
    }
    let checkpoint = Checkpoint::open(Folder::new(folder))
        .with_context(|| format!("cannot read {}", folder.display()))?;
    let judgement = judge(&checkpoint, &Options { values: !args.headers });
    match args.format {
        Format::Text => print(&to_text(args, &checkpoint, &judgement))?,
        Format::Json => print(&(to_json(args, &checkpoint, &judgement).to_string() + "\n"))?,
        Format::Sarif => print(&(to_sarif(args, &judgement).to_string() + "\n"))?,
    }
    Ok(if judgement.is_accepted() { crate::SUCCESS } else { crate::FINDINGS })
}

/// What a folder holds, in a few words: `gptq, 4 bits, group 32`.
fn summary(judgement: &Judgement) -> String {
    let mut text = match judgement.method {
        Some(method) => method.name.to_owned(),
        None if judgement.declared_in.is_some() => "a method that is not known".into(),
        None if judgement.modules.is_empty() => return "not quantized".into(),
        None => "no method".into(),
    };
    if let Some(scheme) = &judgement.scheme {
        let _ = write!(text, ", {} bits", scheme.bits);
        let _ = match scheme.block {
            Some((rows, cols)) => write!(text, ", blocks of {rows}x{cols}"),
            None => write!(text, ", group {}", scheme.group),
        };
        if let Some(symmetric) = scheme.symmetric {
            text.push_str(if symmetric { ", symmetric" } else { ", asymmetric" });
        }
    }
    text
}

fn answer(judgement: &Judgement) -> String {
    let faults = judgement.findings.iter().filter(|finding| finding.is_fault()).count();
    let notes = judgement.findings.len() - faults;
    let summary = summary(judgement);
    let count = |count: usize, one: &str| match count {
        1 => format!("one {one}"),
        count => format!("{count} {one}s"),
    };
    match (faults, notes) {
        (0, 0) => format!("in order: {summary}"),
        (0, notes) => format!("in order, with {}: {summary}", count(notes, "note")),
        (faults, _) => format!("{}: declared {summary}", count(faults, "fault")),
    }
}

fn to_text(args: &Args, checkpoint: &Checkpoint<Folder>, judgement: &Judgement) -> String {
    let mut text = String::new();
    let answer = answer(judgement);
    let answer = if judgement.is_accepted() { good(&answer) } else { bad(&answer) };
    let _ = writeln!(text, "{}: {answer}", bold(&args.folder.display().to_string()));
    if let Some((file, field)) = &judgement.declared_in {
        let _ = writeln!(text, "  declared   {file} {field}");
    }
    let tensors = checkpoint.tensors().count();
    let _ = writeln!(text, "  files      {} with {tensors} tensors", checkpoint.shards.len());
    let _ = writeln!(
        text,
        "  modules    {} quantized, {} plain",
        judgement.modules.len(),
        judgement.plain
    );
    let mut layouts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for module in &judgement.modules {
        let sizes = match module.block {
            Some((rows, cols)) => format!("blocks of {rows}x{cols}"),
            None => format!("group {}", module.group),
        };
        let name = format!("{}, {} bits, {sizes}", module.layout.name, module.bits);
        *layouts.entry((name, module.layout.value)).or_default() += 1;
    }
    for ((name, value), count) in layouts {
        let _ = writeln!(text, "  found      {count} of {name}: {}", dim(value));
    }
    let shown = if args.all { usize::MAX } else { SHOWN };
    // Faults first, each kind in its order.
    let (faults, notes): (Vec<_>, Vec<_>) =
        judgement.findings.iter().partition(|finding| finding.is_fault());
    for finding in faults.iter().chain(&notes).take(shown) {
        finding_text(&mut text, finding);
    }
    let hidden = judgement.findings.len().saturating_sub(shown);
    if hidden > 0 {
        let _ = writeln!(text, "\n  {hidden} more findings, see --all");
    }
    text
}

fn finding_text(text: &mut String, finding: &Finding) {
    let rule = finding.rule;
    let level = if finding.is_fault() { bad("fault") } else { dim("note") };
    let _ = writeln!(text, "\n  {} {level}: {}", bold(rule.id), rule.title);
    let mut line = |label: &str, content: &str| {
        let _ = writeln!(text, "    {label:<9}  {content}");
    };
    let name = |name: &str| printable(name, 200);
    match (&finding.file, &finding.field) {
        (Some(file), Some(field)) => line("field", &format!("{} in {}", name(field), name(file))),
        (Some(file), None) => {
            let at = finding.offset.map(|offset| format!(" at byte {offset} ({offset:#x})"));
            line("file", &format!("{}{}", name(file), at.unwrap_or_default()));
        }
        (None, Some(field)) => line("field", &name(field)),
        (None, None) => {}
    }
    if let Some(module) = &finding.module {
        let others = match finding.others.len() {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        line("module", &format!("{}{others}", name(module)));
    }
    if let Some(tensor) = &finding.tensor {
        line("tensor", &name(tensor));
    }
    line("found", &printable(&finding.found, 400));
    line("expected", &printable(&finding.expected, 400));
    for refusal in &finding.refused_by {
        line("refused by", &format!("{}: {}", refusal.loader, refusal.says));
    }
    line("next", rule.advice);
}

fn finding_json(finding: &Finding) -> Json {
    let refused = finding.refused_by.iter();
    let refused = refused.map(|each| json!({ "loader": each.loader, "says": each.says }));
    json!({
        "rule": finding.rule.id,
        "title": finding.rule.title,
        "fault": finding.is_fault(),
        "file": finding.file,
        "offset": finding.offset,
        "field": finding.field,
        "module": finding.module,
        "other_modules": finding.others,
        "tensor": finding.tensor,
        "found": finding.found,
        "expected": finding.expected,
        "refused_by": refused.collect::<Vec<_>>(),
        "advice": finding.rule.advice,
    })
}

fn to_json(args: &Args, checkpoint: &Checkpoint<Folder>, judgement: &Judgement) -> Json {
    let modules = judgement.modules.iter().map(|module| {
        json!({
            "name": module.name,
            "layout": module.layout.name,
            "bits": module.bits,
            "group_size": module.group.to_string().parse::<i64>().ok(),
            "block": module.block.map(|(rows, cols)| [rows, cols]),
            "symmetric": module.symmetric,
            "out_features": module.out_features,
            "in_features": module.in_features,
            "experts": module.experts,
        })
    });
    let scheme = judgement.scheme.as_ref().map(|scheme| {
        json!({
            "bits": scheme.bits,
            "group_size": scheme.group.to_string().parse::<i64>().ok(),
            "block": scheme.block.map(|(rows, cols)| [rows, cols]),
            "symmetric": scheme.symmetric,
        })
    });
    json!({
        "schema": SCHEMA,
        "folder": printable(&args.folder.display().to_string(), 400),
        "accepted": judgement.is_accepted(),
        "answer": answer(judgement),
        "method": judgement.method.map(|method| method.name),
        "declared_in": judgement.declared_in.as_ref().map(|(file, field)| {
            json!({ "file": file, "field": field })
        }),
        "declared": scheme,
        "files": checkpoint.shards.len(),
        "tensors": checkpoint.tensors().count(),
        "plain_modules": judgement.plain,
        "modules": modules.collect::<Vec<_>>(),
        "findings": judgement.findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}

fn to_sarif(args: &Args, judgement: &Judgement) -> Json {
    let results = judgement.findings.iter().map(|finding| {
        let file = finding.file.as_deref().unwrap_or("config.json");
        let names =
            [("member", &finding.field), ("module", &finding.module), ("object", &finding.tensor)];
        let found = printable(&finding.found, 400);
        let expected = printable(&finding.expected, 400);
        SarifResult {
            rule: finding.rule,
            is_fault: finding.is_fault(),
            message: format!("{}: found {found}; expected {expected}", finding.rule.title),
            file: args.folder.join(file).display().to_string(),
            offset: finding.offset,
            names: names
                .into_iter()
                .filter_map(|(kind, name)| Some((kind, printable(name.as_deref()?, 200))))
                .collect(),
        }
    });
    sarif::log(&results.collect::<Vec<_>>())
}
