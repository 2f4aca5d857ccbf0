//! `gguf-assay explain`: a rule or a case in full.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use gguf_assay_cases::{
    AnyCase, BlockCase, Case, CheckpointCase, Corpus, ExpectedCheckpoint, NamesCase, NamesInput,
    Verdict, find_rule,
};
use gguf_assay_checkpoint::method::Method;
use gguf_assay_checkpoint::{Checkpoint, MemoryFiles, Options, judge};
use gguf_assay_format::{ByteOrder, Profile, Requirement, Rule, diagnose, escape};
use gguf_assay_quant::{RawBlock, fields};

use super::{corpus, print};
use crate::style::{bold, dim};

/// Explain a rule or a case: what it asks, who asks it, what goes wrong without it; or a method of
/// quantization: its fields, tensors and shapes
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A rule (META-006), a case (read/metadata/duplicate-key) or a method (gptq)
    #[arg(value_name = "RULE|CASE|METHOD")]
    name: String,
    /// More cases, from the TOML files of this folder
    #[arg(long, value_name = "DIR")]
    cases: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let corpus = corpus(&args.cases)?;
    let mut text = String::new();
    if let Some(rule) = find_rule(&args.name.to_ascii_uppercase()) {
        explain_rule(&mut text, rule, &corpus);
    } else if let Some(case) = corpus.find(&args.name) {
        explain_head(&mut text, case);
        match case {
            AnyCase::Read(case) => explain_file(&mut text, case)?,
            AnyCase::Dequantize(case) => explain_blocks(&mut text, case)?,
            AnyCase::MapNames(case) => explain_names(&mut text, case)?,
            AnyCase::Checkpoint(case) => explain_checkpoint(&mut text, case)?,
        }
    } else if let Some(method) = Method::find(&args.name.to_ascii_lowercase()) {
        text = method.to_text();
    } else {
        let near = nearest(&args.name, &corpus);
        bail!(
            "there is no rule, case or method `{}`{near}; see gguf-assay list rules, cases or methods",
            args.name
        );
    }
    print(&text)?;
    Ok(crate::SUCCESS)
}

fn nearest(name: &str, corpus: &Corpus) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let near = corpus.all().find(|case| !last.is_empty() && case.id().contains(last));
    near.map_or(String::new(), |case| format!("; did you mean `{}`?", case.id()))
}

fn explain_rule(text: &mut String, rule: &Rule, corpus: &Corpus) {
    let _ = writeln!(text, "{}: {}", bold(rule.id), rule.title);
    for (who, requirement) in [("spec", rule.spec), ("ggml", rule.ggml), ("policy", rule.policy)] {
        let _ = match requirement {
            Requirement::Must(clause) => writeln!(text, "  {who:<7} must: {clause}"),
            Requirement::Should(clause) => writeln!(text, "  {who:<7} should: {clause}"),
            Requirement::Silent => writeln!(text, "  {who:<7} silent"),
        };
    }
    let _ = writeln!(text, "  effect  {}", rule.effect);
    let _ = writeln!(text, "  advice  {}", rule.advice);
    if !rule.cves.is_empty() {
        let _ = writeln!(text, "  known   {}", rule.cves.join(", "));
    }
    let cases: Vec<AnyCase<'_>> = corpus.all().filter(|case| case.rule() == rule).collect();
    let _ = writeln!(text, "\n{} cases", cases.len());
    const SHOWN: usize = 12;
    for case in cases.iter().take(SHOWN) {
        let _ = writeln!(text, "  {}  {}", case.id(), dim(case.summary()));
    }
    if cases.len() > SHOWN {
        let _ = writeln!(text, "  … {} more", cases.len() - SHOWN);
    }
}

fn explain_head(text: &mut String, case: AnyCase<'_>) {
    let _ = writeln!(text, "{}: {}", bold(case.id()), case.summary());
    let _ = writeln!(text, "  rule    {}: {}", case.rule(), case.rule().title);
    let _ = writeln!(text, "  source  {}", case.source());
    for profile in Profile::ALL {
        let _ = writeln!(text, "  {profile:<7} {}", case.verdict(profile));
    }
}

/// The fields of each block, and the numbers it stands for.
fn explain_blocks(text: &mut String, case: &BlockCase) -> Result<()> {
    let t = case.tensor_type;
    let len = t.block_len as usize;
    const SHOWN: usize = 4;
    for (index, values) in case.values.chunks(len).enumerate().take(SHOWN) {
        let block = RawBlock::at(t, &case.bytes, case.byte_order, index)?;
        let order = if case.byte_order == ByteOrder::Big { ", big-endian" } else { "" };
        let _ = writeln!(text, "\nblock {index} of {t}{order}");
        for field in fields(t) {
            let parts = (0..field.count).filter_map(|place| block.field(field.name, place));
            let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
            let _ = writeln!(text, "  {:<8} {}", field.name, parts.join(" "));
        }
        let values: Vec<String> =
            values.iter().map(|bits| format!("{:?}", f32::from_bits(*bits))).collect();
        let _ = writeln!(text, "  {:<8} {}", "numbers", values.join(" "));
    }
    let blocks = case.values.len() / len;
    if blocks > SHOWN {
        let _ = writeln!(text, "\n… {} more blocks", blocks - SHOWN);
    }
    Ok(())
}

/// What is given, and what is expected on the other side.
fn explain_names(text: &mut String, case: &NamesCase) -> Result<()> {
    let _ = writeln!(text, "  pair    {}, to {}", case.pair.name, case.to.name());
    if let Some(reason) = &case.any_numbers {
        let _ = writeln!(text, "  numbers any: {reason}");
    }
    if !case.says.is_empty() {
        let _ = writeln!(text, "  says    a refusal names {}", case.says.join(" or "));
    }
    let input = case.input()?;
    let _ = writeln!(text, "\ngiven, of the architecture {}", input.architecture());
    let rows: Vec<(String, Vec<u64>)> = match input {
        NamesInput::File { description, .. } => (description.tensors.into_iter())
            .map(|tensor| (String::from_utf8_lossy(&tensor.name).into_owned(), tensor.dims))
            .collect(),
        NamesInput::Checkpoint { parameters, .. } => parameters,
    };
    for (name, shape) in rows {
        let _ = writeln!(text, "  {name} {shape:?}");
    }
    if *case.verdict() == Verdict::Reject {
        return Ok(());
    }
    let expected = case.expected()?;
    let _ = writeln!(text, "\nexpected");
    for (name, expected_name) in &expected.names {
        let from = expected_name.from.iter().flatten().map(String::as_str);
        let from: Vec<&str> = from.collect();
        let from = if from.is_empty() { String::new() } else { format!("  {}", from.join(", ")) };
        let optional = if expected.optional.contains(name) { "  may be left out" } else { "" };
        let _ = writeln!(text, "  {name} {:?}{}{optional}", expected_name.shape, dim(&from));
    }
    for (field, value) in &expected.config {
        let _ = writeln!(text, "  {field} = {value}");
    }
    Ok(())
}

/// The files, what is wrong with them, and what is expected.
fn explain_checkpoint(text: &mut String, case: &CheckpointCase) -> Result<()> {
    let asked = match &case.module {
        Some(module) => format!("unpack {module}"),
        None => "judge".into(),
    };
    let _ = writeln!(text, "  asked   {asked}");
    if let Some(tp) = case.tp {
        let _ = writeln!(text, "  tp      {tp}");
    }
    let _ = writeln!(text, "  base    {}", case.base);
    if !case.says.is_empty() {
        let _ = writeln!(text, "  says    a refusal names {}", case.says.join(" or "));
    }
    let files = case.build()?;
    let checkpoint = Checkpoint::open(MemoryFiles(files.0.clone()))?;
    let _ = writeln!(text, "\nwhat is wrong with it");
    let options = Options { tp: case.tp.map(u64::from), ..Options::default() };
    let findings = judge(&checkpoint, &options).findings;
    for finding in findings.iter().take(8) {
        let _ = writeln!(text, "  {finding}");
    }
    if findings.is_empty() {
        let _ = writeln!(text, "  nothing");
    }
    for (name, bytes) in &files.0 {
        let _ = writeln!(text, "\n{name}, {} bytes", bytes.len());
        if name.ends_with(".json") {
            let _ = writeln!(text, "  {}", escape(bytes, 2000));
        }
        let shards = checkpoint.shards.iter().filter(|shard| shard.name == *name);
        for tensor in shards.flat_map(|shard| &shard.header.tensors) {
            let name = escape(tensor.name.as_bytes(), 200);
            let _ = writeln!(text, "  {name} {} {:?}", tensor.dtype, tensor.shape);
        }
    }
    if *case.verdict() == Verdict::Reject {
        return Ok(());
    }
    let _ = writeln!(text, "\nexpected");
    match case.expected()? {
        ExpectedCheckpoint::Judged { value, method, plain } => {
            let mut line = |name: &str, value: Option<String>| {
                if let Some(value) = value {
                    let _ = writeln!(text, "  {name} {value}");
                }
            };
            line("method", method.then(|| value.method.unwrap_or("none".into())));
            line("bits", value.bits.map(|bits| bits.to_string()));
            line("group_size", value.group_size.map(|size| size.to_string()));
            line("symmetric", value.symmetric.map(|symmetric| symmetric.to_string()));
            line("experts", value.experts);
            for module in value.modules.iter().flatten() {
                let features = [module.out_features, module.in_features];
                let sizes = features.map(|size| size.map_or("any".into(), |size| size.to_string()));
                let layout = module.layout.as_deref().unwrap_or_default();
                line(&module.name, Some(format!("[{}] {layout}", sizes.join(", "))));
            }
            plain.iter().for_each(|name| line(name, Some("not quantized".into())));
        }
        ExpectedCheckpoint::Unpacked { value, tolerance } => {
            const SHOWN: usize = 64;
            let numbers: Vec<String> =
                value.numbers.iter().take(SHOWN).map(|number| format!("{number:?}")).collect();
            let more = if value.numbers.len() > SHOWN { " …" } else { "" };
            let _ = writeln!(text, "  {:?}: {}{more}", value.shape, numbers.join(" "));
            if let Some(tolerance) = tolerance {
                let _ = writeln!(text, "  within {tolerance}");
            }
        }
    }
    Ok(())
}

fn explain_file(text: &mut String, case: &Case) -> Result<()> {
    if case.is_large() {
        let _ = writeln!(text, "  large   built and run only with --large");
        return Ok(());
    }
    let bytes = case.build()?.to_bytes();
    let _ = writeln!(text, "\nwhat is wrong with it");
    let diagnosis = diagnose(&bytes);
    for violation in diagnosis.violations.iter().take(8) {
        let _ = writeln!(text, "  {violation}");
    }
    if diagnosis.violations.is_empty() {
        let _ = writeln!(text, "  nothing");
    }
    let _ = writeln!(text, "\n{} bytes", bytes.len());
    hexdump(text, &bytes, 512);
    Ok(())
}

/// The start of the file, 16 bytes a line, as `xxd` shows it.
fn hexdump(text: &mut String, bytes: &[u8], most: usize) {
    let shown = &bytes[..bytes.len().min(most)];
    for (line, chunk) in shown.chunks(16).enumerate() {
        let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let printable = |&byte: &u8| match byte {
            b' '..=b'~' => char::from(byte),
            _ => '.',
        };
        let ascii: String = chunk.iter().map(printable).collect();
        let _ = writeln!(text, "  {:06x}  {:<47}  {ascii}", line * 16, hex.join(" "));
    }
    if bytes.len() > most {
        let _ = writeln!(text, "  … {} more bytes", bytes.len() - most);
    }
}
