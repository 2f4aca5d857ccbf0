//! `gguf-assay checkpoint`: whether a quantized checkpoint is what its config declares.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use gguf_assay_checkpoint::{
    Checkpoint, Compared, Experts, Finding, Folder, Judgement, Matrix, Options, compare, judge,
};
use gguf_assay_format::printable;
use indicatif::{ProgressBar, ProgressStyle};
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
/// With `--source`, the numbers of each quantized module are compared with the weights that they were
/// made of, by the declared rule and by the known wrong ones (no +1 on zero points, nibbles the other
/// way around, transposed …): the nearest wins.
///
///     gguf-assay checkpoint Qwen3-4B-AWQ
///     gguf-assay checkpoint Qwen3-4B-AWQ --source Qwen3-4B
///     gguf-assay checkpoint --tp 4 Qwen3-4B-AWQ
///     gguf-assay checkpoint gpt-oss-20b --unpack 'model.layers.0.*' --out layer0.safetensors
///     gguf-assay checkpoint --format sarif Qwen3-4B-AWQ > findings.sarif
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The folder that has config.json
    folder: PathBuf,
    /// Compare with the checkpoint that this one was made of
    #[arg(long, value_name = "FOLDER")]
    source: Option<PathBuf>,
    /// Write the numbers of these modules (a name, or a pattern with `*`) as F32, experts that are
    /// packed into one tensor apart
    #[arg(long, value_name = "MODULE", requires = "out")]
    unpack: Option<String>,
    /// The safetensors file that `--unpack` writes
    #[arg(long, value_name = "FILE.safetensors", requires = "unpack")]
    out: Option<PathBuf>,
    /// How to print the answer; `json` is stable and documented
    #[arg(long, default_value = "text")]
    format: Format,
    /// Look at headers and configs alone
    #[arg(long)]
    headers: bool,
    /// Over how many ranks the weights are to be split (tensor parallelism)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    tp: Option<u64>,
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
    let open = |folder: &Path| {
        Checkpoint::open(Folder::new(folder))
            .with_context(|| format!("cannot read {}", folder.display()))
    };
    let checkpoint = open(folder)?;
    let mut judgement = judge(&checkpoint, &Options { values: !args.headers, tp: args.tp });
    if let (Some(pattern), Some(out)) = (&args.unpack, &args.out) {
        unpack(&checkpoint, &judgement, pattern, out)?;
    }
    let mut compared = None;
    if let Some(source) = &args.source {
        compared = Some(compare_with(&checkpoint, &mut judgement, &open(source)?)?);
    }
    let compared = compared.as_deref();
    match args.format {
        Format::Text => print(&to_text(args, &checkpoint, &judgement, compared))?,
        Format::Json => {
            print(&(to_json(args, &checkpoint, &judgement, compared).to_string() + "\n"))?;
        }
        Format::Sarif => print(&(to_sarif(args, &judgement).to_string() + "\n"))?,
    }
    Ok(if judgement.is_accepted() { crate::SUCCESS } else { crate::FINDINGS })
}

/// A bar on a terminal, and nothing in a pipe.
fn bar(count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} modules {eta}") {
        bar.set_style(style);
    }
    bar
}

/// Compares with the source; what is wrong is added to the findings.
fn compare_with(
    checkpoint: &Checkpoint<Folder>,
    judgement: &mut Judgement,
    source: &Checkpoint<Folder>,
) -> Result<Vec<Compared>> {
    let bar = bar(judgement.modules.len());
    let mut findings = Vec::new();
    let compared = compare(checkpoint, judgement, source, &mut findings, &mut |done| {
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    judgement.findings.extend(findings);
    compared.map_err(|(module, error)| anyhow!("cannot compare {module}: {error}"))
}

/// Writes the numbers of the modules that a pattern names.
fn unpack(
    checkpoint: &Checkpoint<Folder>,
    judgement: &Judgement,
    pattern: &str,
    out: &Path,
) -> Result<()> {
    let chosen = judgement.modules.iter().filter(|each| gguf_assay::matches(pattern, &each.name));
    let chosen: Vec<_> = chosen.collect();
    let Some(first) = judgement.modules.first() else { bail!("no module is quantized") };
    if chosen.is_empty() {
        bail!("no quantized module is called {pattern}; one is {}", printable(&first.name, 200));
    }
    let bar = bar(chosen.len());
    let mut matrices = Vec::new();
    for module in chosen {
        let unpacked = checkpoint.unpack_experts(module);
        matrices.extend(unpacked.map_err(|error| anyhow!("{}: {error}", module.name))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let count = matrices.len();
    let views = matrices.into_iter().map(Unpacked::new).collect::<Result<Vec<_>>>()?;
    // As transformers marks its files.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize_to_file(views, Some(metadata), out)
        .with_context(|| format!("cannot write {}", out.display()))?;
    // On standard error, where it does not mix with JSON.
    eprintln!("{}: {count} weights", out.display());
    Ok(())
}

/// A weight on its way into a file.
struct Unpacked {
    shape: Vec<usize>,
    numbers: Vec<f32>,
}

impl Unpacked {
    /// Its name, and what there is to write.
    fn new(matrix: Matrix) -> Result<(String, Unpacked)> {
        let shape = matrix.shape.iter().map(|dim| usize::try_from(*dim));
        let shape = shape.collect::<Result<_, _>>()?;
        Ok((matrix.name, Unpacked { shape, numbers: matrix.numbers }))
    }
}

impl safetensors::View for Unpacked {
    fn dtype(&self) -> safetensors::Dtype {
        safetensors::Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    fn data_len(&self) -> usize {
        self.numbers.len() * size_of::<f32>()
    }
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

/// The least and the greatest error, and of how many modules.
fn errors(compared: &[Compared]) -> Option<(f64, f64, usize)> {
    let errors: Vec<f64> = compared.iter().filter_map(Compared::error).collect();
    let least = errors.iter().copied().min_by(f64::total_cmp)?;
    Some((least, errors.iter().copied().max_by(f64::total_cmp)?, errors.len()))
}

fn to_text(
    args: &Args,
    checkpoint: &Checkpoint<Folder>,
    judgement: &Judgement,
    compared: Option<&[Compared]>,
) -> String {
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
    if let Some(experts) = &judgement.experts {
        let _ = writeln!(
            text,
            "  experts    {} in {} layers, {}: {}",
            experts.count,
            experts.layers,
            experts.layout.name(),
            experts.layout.title()
        );
        for evidence in &experts.evidence {
            let _ = writeln!(text, "    {}", dim(&printable(evidence, 200)));
        }
    }
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
    if let Some(compared) = compared {
        let _ = match errors(compared) {
            Some((least, greatest, count)) => writeln!(
                text,
                "  source     {count} modules of {} compared, {:.1} to {:.1} % off",
                compared.len(),
                least * 100.0,
                greatest * 100.0
            ),
            None => writeln!(text, "  source     it has none of the {} modules", compared.len()),
        };
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

fn experts_json(experts: &Experts) -> Json {
    json!({
        "layout": experts.layout.name(),
        "title": experts.layout.title(),
        "evidence": experts.evidence,
        "count": experts.count,
        "layers": experts.layers,
        "shared_layers": experts.shared_layers,
        "quantized": experts.quantized,
        "router": experts.router,
    })
}

fn to_json(
    args: &Args,
    checkpoint: &Checkpoint<Folder>,
    judgement: &Judgement,
    compared: Option<&[Compared]>,
) -> Json {
    let compared = compared.map(|compared| {
        let each = compared.iter().map(|each| {
            let rules = each.candidates.iter();
            let rules = rules.map(|each| json!({ "rule": each.rule, "error": each.error }));
            json!({ "module": each.module, "rules": rules.collect::<Vec<_>>() })
        });
        each.collect::<Vec<_>>()
    });
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
        "experts": judgement.experts.as_ref().map(experts_json),
        "modules": modules.collect::<Vec<_>>(),
        "source": compared,
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
