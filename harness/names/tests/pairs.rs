//! The maps against pairs of a checkpoint and the GGUF file that llama.cpp's converter made of it:
//! names, values and configs, both ways. `corpus/names/pairs/README.md` says what the pairs are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gguf_assay_format::{Gguf, OwnedValue, diagnose};
use gguf_assay_names::{Architecture, Change, CheckpointMap, CheckpointTensor, Map, Parameter};
use libtest_mimic::{Arguments, Failed, Trial};
use safetensors::SafeTensors;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

/// Whole pairs: `NAME.gguf` beside `NAME/` with `config.json` and `model.safetensors`.
const VARIABLE: &str = "GGUF_ASSAY_PAIRS";

/// Keys whose values the converter takes from tensors of the checkpoint, and not from its config.
const KEYS_OF_TENSORS: [&str; 3] = [
    "qwen4exp.ple.layer_multipliers",
    "qwen4exp.ple.head_offsets",
    "qwen4exp.ple.head_vocab_sizes",
];

const FACTOR: &str = "the converter multiplies the weights by it";

/// Fields that a file gives otherwise than the source's config, and why.
const OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "gemma2",
        "tie_word_embeddings",
        "the source is not tied, which no Gemma is: the converter drops its lm_head all the same",
    ),
    ("llama-mistral", "architectures", "Mistral's files have Llama's architecture"),
    ("llama-mistral", "model_type", "Mistral's files have Llama's architecture"),
    (
        "gemma4-assistant",
        "text_config.global_head_dim",
        "the source has it of each layer, in per_layer_config",
    ),
    ("gemma4-unified", "global_head_dim", "the source has it of each layer, in per_layer_config"),
    ("gemma4-unified", "num_global_key_value_heads", "likewise"),
    ("gemma4-unified", "enable_moe_block", "the source has no such field, nor experts"),
    ("gemma4-assistant-unified", "architectures", "a file does not tell them apart"),
    ("gemma4-assistant-unified", "model_type", "likewise"),
    ("gemma4-assistant-unified", "text_config.model_type", "likewise"),
    (
        "gemma4-assistant-unified",
        "text_config.global_head_dim",
        "the source has it of each layer, in per_layer_config",
    ),
    (
        "gemma4-assistant-unified",
        "text_config.vocab_size_per_layer_input",
        "the source has no such field",
    ),
    (
        "deepseek4",
        "quantization_config.quant_method",
        "the source has no field for it; published models have that of their other tensors",
    ),
    ("glm4-sees", "head_dim", "GLM-4V has no such field"),
    ("glm4-sees", "attention_bias", "GLM-4V has no such field, and always biases"),
    ("glm4-ocr", "attention_bias", "GLM-OCR has no such field, and no biases"),
    ("glm4moe-sees", "use_qk_norm", "GLM-4.5V has no such field, and no such norms"),
    ("gemma4-sees", "global_head_dim", "the source has it of each layer, in per_layer_config"),
    ("gemma4-sees", "num_global_key_value_heads", "likewise"),
    (
        "llama-3",
        "rope_parameters.original_max_position_embeddings",
        "no file tells, and the source has not what all published models have",
    ),
    ("step35", "moe_layers_enum", "the source has the same list as a text"),
    ("llama-mistral", "attention_bias", "Mistral has none, and no field for it"),
    ("t5-mt5", "architectures", "MT5's files have T5's architecture"),
    ("t5-mt5", "model_type", "MT5's files have T5's architecture"),
    ("t5-mt5", "n_positions", "MT5 has no such field, and the converter writes 512"),
    ("t5-umt5", "n_positions", "UMT5 has no such field, and the converter writes 512"),
    ("qwen4exp", "make_ngram_vocab_size_divisible_by", "any divisor of the rows comes to them"),
    // In the weights.
    ("falcon-h1", "embedding_multiplier", FACTOR),
    ("falcon-h1", "lm_head_multiplier", FACTOR),
    ("falcon-h1", "attention_in_multiplier", FACTOR),
    ("falcon-h1", "attention_out_multiplier", FACTOR),
    ("falcon-h1", "key_multiplier", FACTOR),
    ("falcon-h1", "ssm_in_multiplier", FACTOR),
    ("falcon-h1", "ssm_out_multiplier", FACTOR),
    // As published; the other is what transformers 5 makes of it.
    ("granitehybrid", "layer_types", "published configs have older names of layers"),
    ("granitehybrid-dense", "layer_types", "published configs have older names of layers"),
    ("granite-hybrid", "layer_types", "published configs have older names of layers"),
    ("granitemoe-hybrid", "layer_types", "published configs have older names of layers"),
    ("nemotron_h", "layers_block_type", "published configs have hybrid_override_pattern"),
];

fn main() {
    let arguments = Arguments::from_args();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs");
    let mut trials = Vec::new();
    for name in folders(&here) {
        let folder = here.join(&name);
        for (property, check) in PROPERTIES {
            let (folder, name) = (folder.clone(), name.clone());
            let trial = format!("{name}::{property}");
            trials.push(Trial::test(trial, move || check(&Pair::open(&name, &folder)?)));
        }
        for (file, check) in [
            ("memory.json", names_in_memory as fn(&Pair, &Json) -> Result<(), Failed>),
            ("dequantized.json", dequantized),
        ] {
            let (folder, name) = (folder.clone(), name.clone());
            if folder.join(file).is_file() {
                trials.push(Trial::test(format!("{name}::{file}"), move || {
                    let more = serde_json::from_slice(&fs::read(folder.join(file))?)?;
                    check(&Pair::open(&name, &folder)?, &more)
                }));
            }
        }
    }
    let whole = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match whole {
        Some(whole) => {
            for name in folders(&whole) {
                if !whole.join(format!("{name}.gguf")).is_file() {
                    continue;
                }
                for (property, check) in
                    PROPERTIES.iter().chain(&[("every value", every_value as Check)])
                {
                    let (whole, name) = (whole.clone(), name.clone());
                    let trial = format!("whole::{name}::{property}");
                    trials
                        .push(Trial::test(trial, move || check(&Pair::open_whole(&name, &whole)?)));
                }
            }
        }
        None => {
            // Shown as ignored, by the name of what is missing.
            let trial = Trial::test(format!("whole pairs from ${VARIABLE}"), || Ok(()));
            trials.push(trial.with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

type Check = fn(&Pair) -> Result<(), Failed>;

const PROPERTIES: &[(&str, Check)] = &[
    ("names of transformers", names_of_transformers),
    ("names of gguf", names_of_gguf),
    ("values of transformers", values_of_transformers),
    ("values of gguf", values_of_gguf),
    ("config", config),
    ("metadata", metadata),
];

fn folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A tensor of the source.
struct SourceTensor {
    shape: Vec<u64>,
    sha256: String,
}

struct Pair {
    name: String,
    gguf: Vec<u8>,
    config: Json,
    source: BTreeMap<String, SourceTensor>,
    /// Of a recorded pair, the tensors that are kept; else all.
    safetensors: Option<Vec<u8>>,
}

impl Pair {
    fn open(name: &str, folder: &Path) -> Result<Pair, Failed> {
        let source: BTreeMap<String, Json> =
            serde_json::from_slice(&fs::read(folder.join("source.json"))?)?;
        let source = source.into_iter().map(|(name, entry)| {
            let shape = entry["shape"].as_array().unwrap();
            let shape = shape.iter().map(|dim| dim.as_u64().unwrap()).collect();
            (name, SourceTensor { shape, sha256: entry["sha256"].as_str().unwrap().to_owned() })
        });
        Ok(Pair {
            name: name.to_owned(),
            gguf: fs::read(folder.join("model.gguf"))?,
            config: serde_json::from_slice(&fs::read(folder.join("config.json"))?)?,
            source: source.collect(),
            safetensors: fs::read(folder.join("inexact.safetensors")).ok(),
        })
    }

    fn open_whole(name: &str, folder: &Path) -> Result<Pair, Failed> {
        let checkpoint = fs::read(folder.join(name).join("model.safetensors"))?;
        let tensors = SafeTensors::deserialize(&checkpoint)?;
        let source = tensors.iter().map(|(name, view)| {
            let shape = view.shape().iter().map(|dim| *dim as u64).collect();
            (name.to_owned(), SourceTensor { shape, sha256: sha256(view.data()) })
        });
        Ok(Pair {
            name: name.to_owned(),
            gguf: fs::read(folder.join(format!("{name}.gguf")))?,
            config: serde_json::from_slice(&fs::read(folder.join(name).join("config.json"))?)?,
            source: source.collect(),
            safetensors: Some(checkpoint.clone()),
        })
    }

    /// The file as far as it goes: of some pairs the data are left out.
    fn gguf(&self) -> Result<Gguf<'_>, Failed> {
        let diagnosis = diagnose(&self.gguf);
        match diagnosis.gguf {
            Some(gguf) if diagnosis.complete => Ok(gguf),
            _ => Err(format!("{:?}", diagnosis.violations).into()),
        }
    }

    /// Of blocks, where the source has them.
    fn map(&self, gguf: &Gguf<'_>) -> Result<Map, Failed> {
        let blocks = |name: &String| name.ends_with("_blocks") || name.ends_with(".w1.scale");
        let blocks = self.source.keys().any(blocks);
        Ok(if blocks { Map::with_blocks(gguf)? } else { Map::of(gguf)? })
    }

    /// What a parameter of the text model is called in the source, which may be a larger one.
    fn source_name(&self, name: &str) -> String {
        if name == "lm_head.weight" && !self.source.contains_key(name) {
            return format!("language_model.{name}");
        }
        match name.strip_prefix("model.") {
            Some(rest) if !self.source.contains_key(name) => {
                let forms = ["model.language_model", "language_model.model", "model.text_model"];
                let mut forms = forms.map(|start| format!("{start}.{rest}")).into_iter();
                forms.find(|form| self.source.contains_key(form)).unwrap_or_else(|| name.to_owned())
            }
            _ => name.to_owned(),
        }
    }

    fn checkpoint(&self) -> Vec<CheckpointTensor> {
        let tensors = self.source.iter();
        tensors
            .map(|(name, tensor)| CheckpointTensor {
                name: name.clone(),
                shape: tensor.shape.clone(),
            })
            .collect()
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}\n   found: {found:?}\nexpected: {expected:?}").into())
}

/// Two maps are the same, or an error that says where they differ.
fn same_entries<V: PartialEq + std::fmt::Debug>(
    found: &BTreeMap<String, V>,
    expected: &BTreeMap<String, V>,
) -> Result<(), Failed> {
    let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let wrong = names.into_iter().filter(|name| found.get(*name) != expected.get(*name));
    let wrong: Vec<String> = wrong
        .map(|name| {
            format!("{name}: found {:?}, expected {:?}", found.get(name), expected.get(name))
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn complete<T: std::fmt::Display>(findings: &[T]) -> Result<(), Failed> {
    if findings.is_empty() {
        return Ok(());
    }
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    Err(findings.join("\n").into())
}

/// Every tensor has its place, and what they stand for is every tensor of the source, with its
/// shape, but for those that the converter leaves out.
fn names_of_transformers(pair: &Pair) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let map = pair.map(&gguf)?;
    complete(&map.findings)?;
    same("mapped tensors", map.tensors.len(), gguf.tensors.len())?;
    same("unmapped keys", map.unmapped_keys.as_slice(), &[])?;
    if !is_otherwise(pair, "architectures") && !is_text_alone(pair, &map) {
        same("class", Some(map.class.name.as_str()), pair.config["architectures"][0].as_str())?;
    }
    let mut found = BTreeMap::new();
    for parameter in &map.parameters {
        for name in parameter.names() {
            found.insert(pair.source_name(&name), parameter.shape.clone().unwrap());
        }
    }
    same("each once", found.len() as u64, map.parameter_count())?;
    let checkpoint = CheckpointMap::of(map.architecture, &pair.checkpoint(), &pair.config);
    let tensors: Vec<&String> = pair.source.keys().collect();
    let dropped: BTreeSet<&String> =
        checkpoint.dropped.iter().map(|(place, _)| tensors[*place]).collect();
    let expected: BTreeMap<String, Vec<u64>> = pair
        .source
        .iter()
        .filter(|(name, _)| !dropped.contains(name))
        .map(|(name, tensor)| (name.clone(), tensor.shape.clone()))
        .collect();
    same_entries(&found, &expected)?;
    let is_left_out = |name: &&str| {
        // By the converter's own words: what sees or hears.
        let parts = [
            "visual.",
            "vision_",
            "audio_",
            "_vision.",
            "_audio.",
            "projector.",
            "connector.",
            "patch_merge_mlp.",
            "vit.",
            "mlp_AR.",
        ];
        parts.iter().any(|part| name.contains(part))
            || (pair.name == "gemma2" && *name == "lm_head.weight")
            // Integers, which become keys.
            || (pair.name == "qwen4exp" && name.contains(".ple_embedding.") && !name.ends_with("weight"))
    };
    let left_out = tensors.iter().map(|name| name.as_str()).filter(is_left_out).collect::<Vec<_>>();
    same("left out", dropped.iter().map(|name| name.as_str()).collect(), left_out)
}

/// The source comes to exactly the tensors of the file, but for those that the converter computes.
fn names_of_gguf(pair: &Pair) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let architecture =
        Architecture::find(gguf.get("general.architecture").unwrap().as_str().unwrap())?;
    let chosen = Architecture::of_config(&pair.config).map(Architecture::name);
    if chosen.is_some() || !is_otherwise(pair, "model_type") {
        same("architecture", chosen, Some(architecture.name()))?;
    }
    let map = CheckpointMap::of(architecture, &pair.checkpoint(), &pair.config);
    complete(&map.findings)?;
    let found: BTreeMap<String, Vec<u64>> =
        map.tensors.iter().map(|tensor| (tensor.name.clone(), tensor.dims.clone())).collect();
    same("each once", found.len(), map.tensors.len())?;
    let back = pair.map(&gguf)?;
    let computed: BTreeSet<&str> = (0..back.tensors.len())
        .filter(|place| {
            !back.parameters.iter().any(|p| p.sources.iter().any(|source| source.tensor == *place))
        })
        .map(|place| back.tensors[place].name.as_str())
        .collect();
    let expected = gguf
        .tensors
        .iter()
        .filter(|tensor| !computed.contains(tensor.name.as_str().unwrap()))
        .map(|tensor| (tensor.name.as_str().unwrap().to_owned(), tensor.dims.iter().collect()))
        .collect();
    same_entries(&found, &expected)
}

/// The model's names in memory come to the same tensors as those of its file.
fn names_in_memory(pair: &Pair, memory: &Json) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let architecture =
        Architecture::find(gguf.get("general.architecture").unwrap().as_str().unwrap())?;
    let tensors = memory.as_object().unwrap().iter();
    let checkpoint: Vec<CheckpointTensor> = tensors
        .map(|(name, shape)| CheckpointTensor {
            name: name.clone(),
            shape: serde_json::from_value(shape.clone()).unwrap(),
        })
        .collect();
    let [found, expected] = [checkpoint, pair.checkpoint()]
        .map(|tensors| CheckpointMap::of(architecture, &tensors, &pair.config));
    complete(&found.findings)?;
    let tensors = |map: &CheckpointMap| -> BTreeMap<String, Vec<u64>> {
        map.tensors.iter().map(|tensor| (tensor.name.clone(), tensor.dims.clone())).collect()
    };
    same_entries(&tensors(&found), &tensors(&expected))
}

/// What a tensor of blocks is dequantized to is what transformers makes of the source's blocks.
fn dequantized(pair: &Pair, expected: &Json) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let map = Map::of(&gguf)?;
    let mut found = BTreeMap::new();
    for parameter in &map.parameters {
        if expected.get(&parameter.name).is_some() {
            let values = map.read(&gguf, parameter, 0)?;
            let entry = json!({
                "dtype": format!("{:?}", values.dtype), "shape": values.shape,
                "sha256": sha256(&values.bytes),
            });
            found.insert(parameter.name.clone(), entry);
        }
    }
    let expected = expected.as_object().unwrap();
    same_entries(&found, &expected.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
}

/// The numbers of a recorded or whole source tensor.
fn numbers(pair: &Pair, name: &str) -> Option<Vec<f32>> {
    let bytes = pair.safetensors.as_deref()?;
    let tensors = SafeTensors::deserialize(bytes).unwrap();
    let view = tensors.tensor(name).ok()?;
    let (numbers, _) = view.data().as_chunks::<4>();
    Some(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

/// How many representable numbers lie between two.
fn steps(a: f32, b: f32) -> u64 {
    let place = |x: f32| {
        let bits = i64::from(x.to_bits() & 0x7fff_ffff);
        if x.is_sign_negative() { -bits } else { bits }
    };
    place(a).abs_diff(place(b))
}

/// How far a number may be from the source's after the inverse.
fn tolerance(change: Change, factor: Option<f32>, x: f32) -> f32 {
    match change {
        // Two roundings, each by half a unit in the last place at most.
        Change::None if factor.is_some() => f32::EPSILON * x.abs(),
        Change::None => 0.0,
        // `w + 1` is rounded by half a unit in its last place at most; to take 1 away again is
        // exact between 1/2 and 2.
        Change::PlusOne => f32::EPSILON / 2.0 * (x + 1.0).abs().max(1.0),
        // Both functions are within a unit in the last place, and the logarithm makes a relative
        // error an absolute one.
        Change::NegativeExp => 2.0 * f32::EPSILON * x.abs().max(1.0),
        Change::Nibbles => 0.0,
        // The mean is summed in another order.
        Change::Ternary => 4.0 * f32::EPSILON * x.abs(),
    }
}

/// What is done to a parameter's numbers; one that a metadata key holds comes from no tensor.
fn changes(parameter: &Parameter) -> (Change, Option<f32>) {
    parameter.sources.first().map_or((Change::None, None), |source| (source.change, source.factor))
}

/// Numbers as BitNet has them: -1, 0 or 1 times their mean without signs.
fn ternary(numbers: &[f32]) -> Vec<f32> {
    let mean = numbers.iter().map(|x| f64::from(x.abs())).sum::<f64>() / numbers.len() as f64;
    let each = numbers.iter().map(|x| match f64::from(*x) / mean {
        ratio if ratio > 0.5 => mean as f32,
        ratio if ratio < -0.5 => -mean as f32,
        _ => 0.0,
    });
    each.collect()
}

/// After the inverse transform every number is the source's bit for bit, unless it changed on the
/// way: then within [`tolerance`].
fn values_of_transformers(pair: &Pair) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let map = pair.map(&gguf)?;
    let checkpoint = pair.checkpoint();
    // What is multiplied on the way stays so: the file's own config has factors of 1.
    let multiplied: BTreeSet<&str> = CheckpointMap::of(map.architecture, &checkpoint, &pair.config)
        .tensors
        .iter()
        .flat_map(|tensor| &tensor.sources)
        .filter(|source| source.factors().iter().any(|factor| *factor != 1.0))
        .map(|source| checkpoint[source.parameter].name.as_str())
        .collect();
    for parameter in &map.parameters {
        let (change, factor) = changes(parameter);
        let stays = (change, factor) == (Change::None, None);
        for (expert, name) in (0..).zip(parameter.names()) {
            let values = map.read(&gguf, parameter, expert)?;
            let name = pair.source_name(&name);
            let expected = &pair.source[&name];
            same(&name, &values.shape, &expected.shape)?;
            if multiplied.contains(name.as_str()) {
                continue;
            }
            if sha256(&values.bytes) == expected.sha256 {
                continue;
            }
            let Some(mut expected) = numbers(pair, &name).filter(|_| !stays) else {
                return Err(format!("{name}: other numbers than the source's").into());
            };
            if change == Change::Ternary {
                expected = ternary(&expected);
            }
            let (found, _) = values.bytes.as_chunks::<4>();
            same(&name, found.len(), expected.len())?;
            for (found, expected) in found.iter().zip(expected) {
                let found = f32::from_le_bytes(*found);
                if (found - expected).abs() > tolerance(change, factor, expected) {
                    return Err(format!("{name}: {found} is not {expected}").into());
                }
            }
        }
    }
    Ok(())
}

/// The transform forwards gives the file's tensor bit for bit, of the source's own numbers where
/// the inverse has others; `-exp(x)` to one step of the last place, and BitNet's to a few. Of
/// factors, both ways: the source's numbers with its config, and the file's with the config that
/// the file gives.
fn values_of_gguf(pair: &Pair) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let map = pair.map(&gguf)?;
    let (mut values, mut own) = (BTreeMap::new(), BTreeMap::new());
    for parameter in &map.parameters {
        for (expert, name) in (0..).zip(parameter.names()) {
            let bytes = map.read(&gguf, parameter, expert)?.bytes;
            let name = pair.source_name(&name);
            let numbers = numbers(pair, &name);
            let source = numbers.map(|numbers| {
                numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>()
            });
            let stays = changes(parameter) == (Change::None, None);
            let other = source.as_ref().filter(|_| !stays).unwrap_or(&bytes);
            own.insert(name.clone(), other.clone());
            values.insert(name, source.unwrap_or(bytes));
        }
    }
    forwards(pair, &map, &gguf, &values, &pair.config)?;
    forwards(pair, &map, &gguf, &own, &map.config)
}

/// Parameters give the file's tensors.
fn forwards(
    pair: &Pair,
    map: &Map,
    gguf: &Gguf<'_>,
    values: &BTreeMap<String, Vec<u8>>,
    config: &Json,
) -> Result<(), Failed> {
    let checkpoint = pair.checkpoint();
    let back = CheckpointMap::of(map.architecture, &checkpoint, config);
    complete(&back.findings)?;
    for tensor in &back.tensors {
        let read = |place: usize| values.get(&checkpoint[place].name).map(Vec::as_slice);
        let found = tensor.bytes(4, read).ok_or_else(|| format!("{} has no bytes", tensor.name))?;
        let expected = gguf.tensor_bytes(gguf.tensor(&tensor.name).unwrap()).unwrap();
        same(&tensor.name, found.len(), expected.len())?;
        let at_most = match tensor.change {
            Change::NegativeExp => 1,
            Change::Ternary => 4,
            _ => 0,
        };
        for (found, expected) in found.as_chunks::<4>().0.iter().zip(expected.as_chunks::<4>().0) {
            let (found, expected) = (f32::from_le_bytes(*found), f32::from_le_bytes(*expected));
            if steps(found, expected) > at_most {
                return Err(format!("{}: {found} is not {expected}", tensor.name).into());
            }
        }
    }
    Ok(())
}

/// With the whole source at hand: its numbers give the file's, byte for byte, and back.
fn every_value(pair: &Pair) -> Result<(), Failed> {
    values_of_transformers(pair)?;
    let gguf = pair.gguf()?;
    let source = pair.safetensors.as_deref().unwrap();
    let tensors = SafeTensors::deserialize(source)?;
    let architecture =
        Architecture::find(gguf.get("general.architecture").unwrap().as_str().unwrap())?;
    let checkpoint = pair.checkpoint();
    let map = CheckpointMap::of(architecture, &checkpoint, &pair.config);
    for tensor in &map.tensors {
        let read =
            |place: usize| tensors.tensor(&checkpoint[place].name).ok().map(|view| view.data());
        let found = tensor.bytes(4, read).ok_or_else(|| format!("{} has no bytes", tensor.name))?;
        let expected = gguf.tensor_bytes(gguf.tensor(&tensor.name).unwrap()).unwrap();
        if matches!(tensor.change, Change::NegativeExp | Change::Ternary) {
            continue; // Held to a few steps by `values of gguf`.
        }
        if found != expected {
            return Err(format!("{}: other bytes than the file's", tensor.name).into());
        }
    }
    Ok(())
}

/// Whether a file gives a field otherwise than its source.
fn is_otherwise(pair: &Pair, field: &str) -> bool {
    OTHERWISE.iter().any(|(name, other, _)| *name == pair.name && *other == field)
}

/// The leaves of a config: names with dots, and values.
fn leaves(prefix: &str, json: &Json, out: &mut BTreeMap<String, Json>) {
    match json {
        Json::Object(object) => {
            for (name, value) in object {
                let dot = if prefix.is_empty() { "" } else { "." };
                leaves(&format!("{prefix}{dot}{name}"), value, out);
            }
        }
        value => {
            out.insert(prefix.to_owned(), value.clone());
        }
    }
}

/// The source is a model that sees, and what its file stands for is the text model alone.
fn is_text_alone(pair: &Pair, map: &Map) -> bool {
    pair.config.get("text_config").is_some() && map.config.get("text_config").is_none()
}

/// Every field that the file gives is the source's.
fn config(pair: &Pair) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let map = pair.map(&gguf)?;
    let (mut found, mut expected) = (BTreeMap::new(), BTreeMap::new());
    leaves("", &map.config, &mut found);
    leaves("", &pair.config, &mut expected);
    if map.config.get("text_config").is_none() {
        // A text model of its own, made of one within another.
        leaves("", pair.config.get("text_config").unwrap_or(&Json::Null), &mut expected);
    }
    if is_text_alone(pair, &map) {
        // It has a class of its own.
        found.retain(|name, _| !name.starts_with("architectures") && name != "model_type");
    }
    let mut wrong = Vec::new();
    for (name, value) in &found {
        let other = expected.get(name);
        let excused =
            OTHERWISE.iter().any(|(pair_name, field, _)| *pair_name == pair.name && field == name);
        // A number may be written with or without a fraction.
        let equal = other.is_some_and(|other| {
            other == value || (value.is_number() && value.as_f64() == other.as_f64())
        });
        if equal == excused {
            wrong.push(format!("{name}: {value}, and the source has {other:?}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The config comes to exactly the metadata that the converter wrote for the architecture.
fn metadata(pair: &Pair) -> Result<(), Failed> {
    let gguf = pair.gguf()?;
    let architecture =
        Architecture::find(gguf.get("general.architecture").unwrap().as_str().unwrap())?;
    let map = CheckpointMap::of(architecture, &pair.checkpoint(), &pair.config);
    let found: BTreeMap<String, String> =
        map.metadata.iter().map(|(key, value)| (key.clone(), format!("{value:?}"))).collect();
    let prefix = format!("{}.", architecture.name());
    let expected: BTreeMap<String, String> = gguf
        .metadata
        .iter()
        .filter_map(|entry| Some((entry.key.as_str()?, entry.value)))
        .filter(|(key, _)| key.starts_with(&prefix) && !KEYS_OF_TENSORS.contains(key))
        .map(|(key, value)| (key.to_owned(), format!("{:?}", OwnedValue::from(value))))
        .collect();
    same_entries(&found, &expected)
}
