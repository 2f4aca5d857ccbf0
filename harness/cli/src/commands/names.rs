//! `gguf-assay names`: what a file's tensors and keys are called in transformers, and back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use gguf_assay_checkpoint::{Checkpoint, Folder};
use gguf_assay_format::{Gguf, TensorType, diagnose, printable};
use gguf_assay_names::{Architecture, Change, CheckpointMap, CheckpointTensor, Finding, Map};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value as Json, json};

use super::print;
use crate::mapped::MappedFile;
use crate::style::{bad, bold, dim, good};

/// Say what a model's tensors and keys are called on the other side
///
/// For each tensor of a GGUF file: the parameters of transformers that it stands for, and what is done
/// to their elements on the way (`(n_head 2 d) i -> (n_head d 2) i` reads: left the parameter's
/// dimensions, right the tensor's). What has no place, is missing, comes twice or has another shape
/// is a finding. With the name of an architecture in place of a file, its table.
///
/// An exported file beside the config, as config.json, is a checkpoint that transformers loads; the
/// tokenizer stays behind. Parameters have the type of their tensors, and blocks (Q4_K, …) become
/// F32: four bytes a number, exactly what ggml makes of them. They are not what the blocks were
/// made from.
///
///     gguf-assay names model.gguf
///     gguf-assay names model.gguf --config         config.json of transformers 5
///     gguf-assay names model.gguf --export model.safetensors
///     gguf-assay names gpt-oss.gguf --export model.safetensors --keep-mxfp4
///     gguf-assay names --from transformers FOLDER  the tensors and keys of the GGUF file
///     gguf-assay names glm4moe
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A GGUF file, the name of an architecture, or a checkpoint's folder
    input: PathBuf,
    /// What the input is
    #[arg(long, default_value = "gguf", value_name = "SIDE")]
    from: Side,
    /// What is asked for: the other side
    #[arg(long, value_name = "SIDE")]
    to: Option<Side>,
    /// The architecture that a checkpoint becomes; else its class or model_type tells
    #[arg(long, value_name = "NAME")]
    arch: Option<String>,
    /// Print the config alone (of a checkpoint: the keys alone)
    #[arg(long)]
    config: bool,
    /// Write the parameters, with the transforms undone and blocks dequantized, to a safetensors
    /// file
    #[arg(long, value_name = "FILE.safetensors", conflicts_with = "config")]
    export: Option<PathBuf>,
    /// Leave MXFP4 as it is where the published checkpoint has it as well: gpt-oss, whose
    /// parameters are then `…_blocks` and `…_scales`
    #[arg(long)]
    keep_mxfp4: bool,
    /// How to print the answer; `json` is stable and documented
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Side {
    Gguf,
    Transformers,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// The name and version of the JSON schema.
const SCHEMA: &str = "gguf-assay/names/1";

pub(crate) fn run(args: &Args) -> Result<u8> {
    if args.to == Some(args.from) {
        bail!("--from and --to name the same side");
    }
    if args.from == Side::Transformers {
        if args.export.is_some() || args.keep_mxfp4 {
            bail!("--export and --keep-mxfp4 are for parameters of transformers: give a GGUF file");
        }
        return checkpoint(args);
    }
    if args.arch.is_some() {
        bail!("--arch is for --from transformers: a GGUF file names its architecture");
    }
    if !args.input.exists()
        && let Some(name) = args.input.to_str().filter(|name| !name.contains(['/', '.', '\\']))
    {
        let architecture = Architecture::find(name)
            .with_context(|| format!("there is no file {name}, and as an architecture"))?;
        print(&architecture.to_text())?;
        return Ok(crate::SUCCESS);
    }
    let bytes = MappedFile::open(&args.input)?;
    let diagnosis = diagnose(&bytes);
    let hint = || format!("gguf-assay check {} says more", args.input.display());
    let Some(gguf) = diagnosis.gguf.as_ref().filter(|_| diagnosis.complete) else {
        bail!("{} cannot be read to its end; {}", args.input.display(), hint());
    };
    let map = if args.keep_mxfp4 { Map::with_blocks(gguf) } else { Map::of(gguf) };
    let map = map.with_context(|| args.input.display().to_string())?;
    if args.config {
        print(&(serde_json::to_string_pretty(&map.config)? + "\n"))?;
        warn_of(&map.findings);
        return Ok(status(&map.findings));
    }
    // Before anything is printed: whoever reads that may stop early.
    if let Some(out) = args.export.as_deref().filter(|_| map.is_complete()) {
        export(&map, gguf, out)?;
    }
    match args.format {
        Format::Json => print(&(map_json(args, &map).to_string() + "\n"))?,
        Format::Text => print(&map_text(args, &map))?,
    }
    if args.export.is_some() && !map.is_complete() {
        bail!("nothing is exported: not every tensor has its place");
    }
    Ok(status(&map.findings))
}

fn status(findings: &[Finding]) -> u8 {
    if findings.is_empty() { crate::SUCCESS } else { crate::FINDINGS }
}

/// Says beside the config or the keys alone that not everything fits.
fn warn_of(findings: &[Finding]) {
    if !findings.is_empty() {
        let count = findings.len();
        eprintln!(
            "gguf-assay: not everything fits ({count} findings); without --config they are told"
        );
    }
}

fn export(map: &Map, gguf: &Gguf<'_>, out: &Path) -> Result<()> {
    let context = || format!("cannot export to {}", out.display());
    // Not drawn where standard error is no terminal.
    let bar = ProgressBar::new(0);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    let exported = map.export(gguf, out, &|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let exported = exported.with_context(context)?;
    // On standard error, where it does not mix with JSON.
    let dequantized = exported.dequantized.iter().map(|(name, count)| format!("{count} of {name}"));
    let dequantized: Vec<String> = dequantized.collect();
    let note = match dequantized.as_slice() {
        [] => String::new(),
        each => format!("; tensors made F32: {}", each.join(", ")),
    };
    eprintln!("{}: {} parameters{note}", out.display(), exported.parameters);
    Ok(())
}

/// What is done to the elements on the way into a file.
fn transform(view: Option<&str>, change: Change, factor: Option<f32>) -> String {
    let mut parts = Vec::new();
    parts.extend(view.map(str::to_owned));
    if change != Change::None || factor.is_some() {
        parts.push(value_text(change, factor));
    }
    parts.join(", ")
}

/// What is done to each number on the way into a file.
fn value_text(change: Change, factor: Option<f32>) -> String {
    factor.map_or_else(|| change.text().to_owned(), |factor| format!("x * {factor}"))
}

fn findings_text(text: &mut String, findings: &[Finding]) {
    for finding in findings {
        let rule = finding.rule();
        let finding = finding.to_string();
        let (kind, rest) = finding.split_once(':').unwrap_or((&finding, ""));
        // Lines within a finding are ours; what stands in them comes from the file.
        let lines: Vec<String> = rest.lines().map(|line| printable(line, 400)).collect();
        let _ = writeln!(text, "  {} {}:{}", dim(rule.id), bad(kind), lines.join("\n    "));
    }
    if !findings.is_empty() {
        let _ = writeln!(text, "  {}", dim("gguf-assay explain RULE says what to do"));
    }
}

fn map_text(args: &Args, map: &Map) -> String {
    let mut text = String::new();
    let mapped = map.tensors.len();
    let answer = format!(
        "{mapped} of {} tensors stand for {} parameters",
        map.tensor_count,
        map.parameter_count()
    );
    let answer = if map.is_complete() { good(&answer) } else { bad(&answer) };
    let _ = writeln!(
        text,
        "{}: {answer}\n  {} is {} ({})",
        bold(&args.input.display().to_string()),
        map.architecture.name(),
        map.class.name,
        map.class.model_type
    );
    for (style, count) in &map.styles {
        let _ = writeln!(
            text,
            "  {count} tensors of experts, {}: {}",
            style.name(),
            dim(style.explanation())
        );
    }
    findings_text(&mut text, &map.findings);
    for key in &map.unmapped_keys {
        let _ = writeln!(text, "  not mapped: the key {key}");
    }
    text.push('\n');
    let mut of_tensor: Vec<Vec<String>> = vec![Vec::new(); mapped];
    for parameter in &map.parameters {
        for source in &parameter.sources {
            let shape = parameter.shape.as_ref().map(|shape| format!(" {shape:?}"));
            let experts = parameter.experts.map(|count| format!(" for {count} experts E"));
            let transform = transform(source.view, source.change, source.factor);
            let transform =
                if transform.is_empty() { transform } else { format!("  {}", dim(&transform)) };
            let line = format!(
                "{}{}{}{transform}",
                parameter.name,
                shape.unwrap_or_default(),
                experts.unwrap_or_default()
            );
            if let Some(lines) = of_tensor.get_mut(source.tensor) {
                lines.push(line);
            }
        }
    }
    for (tensor, lines) in map.tensors.iter().zip(of_tensor) {
        let _ = writeln!(text, "{} {:?}", tensor.name, tensor.dims);
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
        if let Some(note) = tensor.note() {
            let _ = writeln!(text, "    {}", dim(note));
        }
    }
    for parameter in &map.parameters {
        if let (Some((key, number)), Some(shape)) = (&parameter.key, &parameter.shape) {
            let _ = writeln!(
                text,
                "{key}\n    {} {shape:?}  {}",
                parameter.name,
                dim(&number.to_string())
            );
        }
    }
    if !map.absent.is_empty() {
        text.push_str("\nnot in the file:\n");
    }
    for (field, note) in &map.absent {
        let _ = writeln!(text, "  {field}: {note}");
    }
    text
}

fn findings_json(findings: &[Finding]) -> Json {
    let each = findings.iter().map(|finding| {
        let mut json = match finding {
            Finding::Unmapped { name, reason }
            | Finding::Duplicated { name, reason }
            | Finding::Senseless { name, reason } => json!({ "name": name, "reason": reason }),
            Finding::Missing { first, count, empty_blocks } => {
                let first = first
                    .iter()
                    .map(|each| json!({ "name": each.name, "parameters": each.parameters }));
                json!({
                    "first": first.collect::<Vec<_>>(), "count": count,
                    "empty_blocks": empty_blocks,
                })
            }
            Finding::Shape { name, found, expected, because } => json!({
                "name": name, "found": found, "expected": expected, "because": because,
            }),
            Finding::Incomplete { name, elements, found } => {
                json!({ "name": name, "elements": elements, "found": found })
            }
            Finding::MissingKey { key, name } => json!({ "key": key, "name": name }),
            Finding::Otherwise { key, found, expected } => {
                json!({ "key": key, "found": found, "expected": expected })
            }
        };
        json["kind"] = finding.kind().into();
        json["rule"] = finding.rule().id.into();
        json
    });
    each.collect()
}

fn map_json(args: &Args, map: &Map) -> Json {
    let mut of_tensor: Vec<(Vec<Json>, Option<f32>)> = vec![(Vec::new(), None); map.tensors.len()];
    for parameter in &map.parameters {
        for source in &parameter.sources {
            let mut json = json!({
                "name": parameter.name, "shape": parameter.shape, "experts": parameter.experts,
                "view": source.view,
            });
            bytes_json(&mut json, source.blocks, source.change);
            if let Some((list, factor)) = of_tensor.get_mut(source.tensor) {
                list.push(json);
                *factor = source.factor;
            }
        }
    }
    let tensors = map.tensors.iter().zip(of_tensor).map(|(tensor, (parameters, factor))| {
        let change = tensor.change();
        let back = factor.map(|factor| format!("x / {factor}"));
        json!({
            "name": tensor.name, "dims": tensor.dims, "parameters": parameters,
            "value": value_text(change, factor),
            "inverse": back.unwrap_or_else(|| change.inverse_text().to_owned()),
            "note": tensor.note(),
        })
    });
    let keyed = map.parameters.iter().filter_map(|parameter| {
        let (key, value) = parameter.key.as_ref()?;
        Some(json!({
            "name": parameter.name, "shape": parameter.shape, "key": key, "value": value,
        }))
    });
    let styles = map.styles.iter().map(|(style, count)| (style.name().to_owned(), json!(count)));
    let absent = map.absent.iter().map(|(field, note)| json!({ "field": field, "note": note }));
    json!({
        "schema": SCHEMA,
        "file": printable(&args.input.display().to_string(), 400),
        "from": "gguf",
        "architecture": map.architecture.name(),
        "class": map.class.name,
        "complete": map.is_complete(),
        "tensor_count": map.tensor_count,
        "mapped_count": map.tensors.len(),
        "parameter_count": map.parameter_count(),
        "findings": findings_json(&map.findings),
        "tensors": tensors.collect::<Vec<_>>(),
        "keyed": keyed.collect::<Vec<_>>(),
        "experts": styles.collect::<serde_json::Map<_, _>>(),
        "config": map.config,
        "absent": absent.collect::<Vec<_>>(),
        "unmapped_keys": map.unmapped_keys,
    })
}

/// What there is to say of a parameter that holds bytes of blocks.
fn bytes_json(json: &mut Json, blocks: Option<&TensorType>, change: Change) {
    if let Some(tensor_type) = blocks {
        json["bytes_of"] = tensor_type.name.into();
        json["value"] = change.text().into();
    }
}

fn checkpoint(args: &Args) -> Result<u8> {
    let folder = args.input.display();
    if !args.input.is_dir() {
        bail!("{folder} is not a folder; name the one that has config.json");
    }
    let checkpoint = Checkpoint::open(Folder::new(&args.input))
        .with_context(|| format!("cannot read {folder}"))?;
    if let Some(fault) = checkpoint.findings.iter().find(|finding| finding.is_fault()) {
        bail!("{folder}: {fault}; gguf-assay checkpoint {folder} says more");
    }
    let config = checkpoint.config("config.json").context("config.json is no object")?;
    let architecture = match &args.arch {
        Some(name) => Architecture::find(name)?,
        None => of_config(config)?,
    };
    let tensors: Vec<CheckpointTensor> = checkpoint
        .tensors()
        .map(|tensor| CheckpointTensor { name: tensor.name.clone(), shape: tensor.shape.clone() })
        .collect();
    let map = CheckpointMap::of(architecture, &tensors, config);
    match args.format {
        Format::Json => print(&(checkpoint_json(args, &map, &tensors).to_string() + "\n"))?,
        Format::Text => {
            print(&checkpoint_text(args, &map, &tensors))?;
            if args.config {
                warn_of(&map.findings);
            }
        }
    }
    Ok(status(&map.findings))
}

/// How many parameters that are left out for one reason are named.
const LEFT_OUT: usize = 3;

/// The architecture of a checkpoint.
fn of_config(config: &Json) -> Result<&'static Architecture> {
    if let Some(found) = Architecture::of_config(config) {
        return Ok(found);
    }
    let Some(name) = config["model_type"].as_str() else {
        bail!("config.json has no model_type; name the architecture with --arch");
    };
    bail!(
        "no architecture is mapped from the model_type {}; gguf-assay list architectures says which \
         are, and --arch names one",
        printable(name, 80)
    )
}

fn checkpoint_text(args: &Args, map: &CheckpointMap, tensors: &[CheckpointTensor]) -> String {
    let mut text = String::new();
    let name = |place: usize| {
        tensors.get(place).map(|tensor| printable(&tensor.name, 200)).unwrap_or_default()
    };
    if !args.config {
        let answer = format!("{} parameters come to {} tensors", tensors.len(), map.tensors.len());
        let answer = if map.is_complete() { good(&answer) } else { bad(&answer) };
        let _ = writeln!(
            text,
            "{}: {answer}\n  {} is {}",
            bold(&args.input.display().to_string()),
            map.class.name,
            map.architecture.name()
        );
        findings_text(&mut text, &map.findings);
        for (place, key) in &map.keyed {
            let _ = writeln!(text, "  a number of {key}: {}", name(*place));
        }
        let mut left_out: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, note) in &map.dropped {
            left_out.entry(note).or_default().push(*place);
        }
        for (note, places) in left_out {
            let names: Vec<String> = places.iter().take(LEFT_OUT).map(|at| name(*at)).collect();
            let more = match places.len().saturating_sub(LEFT_OUT) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let _ = writeln!(text, "  left out: {}{more}: {note}", names.join(", "));
        }
        text.push('\n');
        for tensor in &map.tensors {
            let blocks = tensor.blocks.map(|t| format!(" {}", t.name)).unwrap_or_default();
            let _ = writeln!(text, "{} {:?}{blocks}", tensor.name, tensor.dims);
            for source in &tensor.sources {
                let transform = transform(source.view, source.change, source.factor);
                let transform =
                    if transform.is_empty() { transform } else { format!("  {}", dim(&transform)) };
                let _ = writeln!(text, "    {}{transform}", name(source.parameter));
            }
        }
        text.push('\n');
    }
    for (key, value) in &map.metadata {
        let _ = writeln!(text, "{key} = {}", printable(&value_json(value).to_string(), 200));
    }
    text
}

fn value_json(value: &gguf_assay_format::OwnedValue) -> Json {
    use gguf_assay_format::OwnedValue;
    match value {
        OwnedValue::U32(v) => json!(v),
        // The shortest decimal number that is this f32.
        OwnedValue::F32(v) => json!(v.to_string().parse::<f64>().unwrap_or_default()),
        OwnedValue::Bool(v) => json!(v),
        OwnedValue::I32(v) => json!(v),
        OwnedValue::String(v) => json!(String::from_utf8_lossy(v)),
        OwnedValue::Array(array) => array.iter().map(value_json).collect(),
        // A config comes to no other.
        _ => Json::Null,
    }
}

fn checkpoint_json(args: &Args, map: &CheckpointMap, tensors: &[CheckpointTensor]) -> Json {
    let name = |place: usize| tensors.get(place).map(|tensor| tensor.name.as_str());
    let made = map.tensors.iter().map(|tensor| {
        let parameters = tensor.sources.iter().map(|source| {
            let mut json = json!({ "name": name(source.parameter), "view": source.view });
            bytes_json(&mut json, tensor.blocks, source.change);
            json
        });
        // A row has one for all of its parameters.
        let factor = tensor.sources.first().and_then(|source| source.factor);
        json!({
            "name": tensor.name, "dims": tensor.dims, "value": value_text(tensor.change, factor),
            "parameters": parameters.collect::<Vec<_>>(),
        })
    });
    let dropped = map.dropped.iter();
    let dropped = dropped.map(|(place, note)| json!({ "name": name(*place), "note": note }));
    let keyed = map.keyed.iter();
    let keyed = keyed.map(|(place, key)| json!({ "name": name(*place), "key": key }));
    let metadata = map.metadata.iter().map(|(key, value)| (key.clone(), value_json(value)));
    json!({
        "schema": SCHEMA,
        "file": printable(&args.input.display().to_string(), 400),
        "from": "transformers",
        "architecture": map.architecture.name(),
        "class": map.class.name,
        "complete": map.is_complete(),
        "parameter_count": tensors.len(),
        "findings": findings_json(&map.findings),
        "tensors": made.collect::<Vec<_>>(),
        "keyed": keyed.collect::<Vec<_>>(),
        "dropped": dropped.collect::<Vec<_>>(),
        "metadata": metadata.collect::<serde_json::Map<_, _>>(),
    })
}
