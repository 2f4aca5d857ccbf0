//! `gguf-assay list`: what there is.

mod architectures;
mod types;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use gguf_assay_cases::rules;
use gguf_assay_checkpoint::method::{Method, Presence};
use gguf_assay_format::{Profile, Status, TENSOR_TYPES, TensorType};
use gguf_assay_quant::kernel::{Engine, VARIABLE};
use serde_json::json;

use super::{corpus, engine, is_chosen, print};

/// List the cases, rules, subjects, tensor types, kernels, architectures or methods of quantization
///
/// `list kernels` shows of each type which engine dequantizes it on this machine, which ones could,
/// and why the others are not taken. GGUF_ASSAY_KERNEL=scalar, avx2 or avx512 forces one.
/// `list types` and `list architectures` show which readers have each right, as recorded.
/// `list methods` has what `explain METHOD` says of each in full.
/// `list architectures` also shows which have a map to transformers (full) and which are only known
/// to llama.cpp by their name (known).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to list
    what: What,
    /// Only names that match; * stands for anything
    patterns: Vec<String>,
    /// More cases, from the TOML files of this folder
    #[arg(long, value_name = "DIR")]
    cases: Vec<PathBuf>,
    /// How to print the list
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Cases,
    Rules,
    Subjects,
    Types,
    Kernels,
    Architectures,
    Methods,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let rows: Vec<(String, Vec<String>, serde_json::Value)> = match args.what {
        What::Types => return types::run(&args.patterns, args.format),
        What::Architectures => return architectures::run(&args.patterns, args.format),
        What::Cases => corpus(&args.cases)?
            .all()
            .map(|case| {
                let verdict = |profile| case.verdict(profile).to_string();
                let word = |profile| {
                    let verdict = verdict(profile);
                    verdict.split(' ').next().unwrap_or_default().to_owned()
                };
                let (spec, ggml) = (word(Profile::Spec), word(Profile::Ggml));
                let cells = vec![case.rule().id.into(), spec, ggml, case.summary().to_owned()];
                let json = json!({
                    "id": case.id(), "rule": case.rule().id, "summary": case.summary(),
                    "source": case.source(), "large": case.is_large(),
                    "verdict": { "spec": verdict(Profile::Spec), "ggml": verdict(Profile::Ggml) },
                });
                (case.id().to_owned(), cells, json)
            })
            .collect(),
        What::Rules => rules()
            .map(|rule| {
                let cells = vec![rule.required_by().into(), rule.title.into()];
                let json = json!({
                    "id": rule.id, "title": rule.title, "required_by": rule.required_by(),
                    "spec": rule.spec.clause(), "ggml": rule.ggml.clause(),
                    "policy": rule.policy.clause(), "effect": rule.effect,
                    "advice": rule.advice, "cves": rule.cves,
                });
                (rule.id.to_owned(), cells, json)
            })
            .collect(),
        What::Subjects => gguf_assay_subjects::all()
            .iter()
            .map(|subject| {
                let manifest = &subject.manifest;
                let cells = vec![manifest.language.clone(), manifest.summary.clone()];
                let json = json!({
                    "name": subject.name, "language": manifest.language,
                    "summary": manifest.summary, "home": manifest.home,
                    "licence": manifest.licence,
                });
                (subject.name.to_string(), cells, json)
            })
            .collect(),
        What::Methods => Method::ALL.iter().map(|method| methods(method)).collect(),
        What::Kernels => {
            let chosen = engine()?;
            TENSOR_TYPES
                .iter()
                .filter(|t| t.status != Status::Removed)
                .map(|t| kernels(t, chosen))
                .collect()
        }
    };
    let rows: Vec<_> =
        rows.into_iter().filter(|(name, ..)| is_chosen(&args.patterns, name)).collect();
    let mut text = String::new();
    if args.format == Format::Json {
        let list: Vec<_> = rows.into_iter().map(|(.., json)| json).collect();
        let _ = writeln!(text, "{}", serde_json::Value::from(list));
    } else {
        table(&mut text, &rows);
    }
    print(&text)?;
    Ok(crate::SUCCESS)
}

/// A method of quantization; `explain` has all of it.
fn methods(method: &Method) -> (String, Vec<String>, serde_json::Value) {
    let layouts = method.layouts.iter().map(|layout| {
        let tensors = layout.tensors.iter().map(|tensor| {
            let dtypes: Vec<&str> = tensor.dtypes.iter().map(|dtype| dtype.name).collect();
            let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            json!({
                "suffix": tensor.suffix, "dtypes": dtypes, "shape": shape, "what": tensor.what,
                "required": tensor.presence == Presence::Always,
            })
        });
        json!({
            "name": layout.name, "tensors": tensors.collect::<Vec<_>>(), "packing": layout.packing,
            "zero_point": layout.zero_point, "value": layout.value, "bits": layout.bits,
            "groups": layout.groups,
        })
    });
    let fields = method.fields.iter().map(|field| {
        json!({
            "name": field.name, "aliases": field.aliases, "holds": field.kind.to_string(),
            "required": field.required, "what": field.what,
        })
    });
    let json = json!({
        "name": method.name, "title": method.title, "source": method.source,
        "fields": fields.collect::<Vec<_>>(), "layouts": layouts.collect::<Vec<_>>(),
    });
    let count = match method.layouts.len() {
        0 => "fields alone".into(),
        1 => "1 layout".into(),
        count => format!("{count} layouts"),
    };
    (method.name.to_owned(), vec![count, method.title.to_owned()], json)
}

/// The engines that could dequantize a type, the one that does, and why the others do not.
fn kernels(t: &TensorType, chosen: Engine) -> (String, Vec<String>, serde_json::Value) {
    let (available, unavailable): (Vec<_>, Vec<_>) =
        Engine::ALL.into_iter().partition(|engine| engine.is_available());
    let available: Vec<_> = available.into_iter().map(Engine::name).collect();
    let unavailable: Vec<_> = unavailable
        .into_iter()
        .map(|engine| (engine, format!("this machine lacks {}", engine.missing().join(", "))))
        .collect();
    let chosen_name = chosen.name();
    let forced = std::env::var_os(VARIABLE).is_some();
    let mut notes: Vec<String> =
        unavailable.iter().map(|(engine, why)| format!("{engine}: {why}")).collect();
    if forced {
        notes.push(format!("{VARIABLE}={chosen}"));
    }
    let not: serde_json::Map<_, _> =
        unavailable.into_iter().map(|(engine, why)| (engine.to_string(), why.into())).collect();
    let json = json!({
        "type": t.name, "chosen": chosen_name, "available": available, "unavailable": not,
        "forced": forced,
    });
    let cells = vec![chosen_name.to_owned(), available.join(", "), notes.join("; ")];
    (t.name.to_owned(), cells, json)
}

/// Columns as wide as their cells; the last is not padded.
fn table(text: &mut String, rows: &[(String, Vec<String>, serde_json::Value)]) {
    let lines: Vec<Vec<&str>> = rows
        .iter()
        .map(|(name, cells, _)| {
            std::iter::once(name.as_str()).chain(cells.iter().map(String::as_str)).collect()
        })
        .collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.len()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
}
