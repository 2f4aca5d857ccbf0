//! The weights that the architecture has, by the config, against those that are there.

use std::collections::HashMap;

use gguf_assay_format::{escape, printable};
use gguf_assay_names as names;
use gguf_assay_names::{Architecture, CheckpointMap, CheckpointTensor};

use crate::experts;
use crate::finding::Finding;
use crate::model::{LISTED, Model, Told, cache_scale, listed};
use crate::module::Module;
use crate::rule;

/// What a tensor of the plain checkpoint is made of.
struct Origin<'m> {
    module: &'m str,
    /// `weight`, `bias`, or nothing for a parameter of its own.
    what: &'static str,
    /// Whether the shape is known.
    is_known: bool,
}

/// What there is to say of the weights.
#[derive(Default)]
pub(crate) struct Weights {
    /// Whether some are missing.
    pub(crate) is_missing: bool,
    /// Whether there are tensors that the architecture does not have.
    pub(crate) is_unmapped: bool,
}

/// Judges the weights; `None` if the architecture is not known. `told` are layers that are
/// known to be missing, or too many.
pub(crate) fn judge(
    model: &Model<'_, '_>,
    told: &Told,
    push: &mut dyn FnMut(Finding),
) -> Option<Weights> {
    let config = model.config?;
    let architecture = Architecture::of_config(config)?;
    let (tensors, origins) = plain(model);
    if tensors.is_empty() {
        return None;
    }
    let map = CheckpointMap::of(architecture, &tensors, config);
    if !map.metadata.iter().any(|(key, _)| key.ends_with(".block_count")) {
        let expected = "the number of layers; without it no weight is judged by the architecture";
        let finding = Finding::new(&rule::MODEL_004, "nothing that counts layers", expected);
        push(finding.in_file("config.json"));
        return None;
    }
    let mut weights = Weights::default();
    if map.findings.is_empty() {
        return Some(weights);
    }
    // The names that findings have.
    let places: HashMap<String, &Origin<'_>> = tensors
        .iter()
        .zip(&origins)
        .map(|(tensor, origin)| (escape(tensor.name.as_bytes(), 120), origin))
        .collect();
    let class = printable(&map.class.name, 80);
    for finding in map.findings {
        push(match finding {
            names::Finding::Missing { first, count, empty_blocks } => {
                weights.is_missing = true;
                let parameters: Vec<String> = first
                    .iter()
                    .flat_map(|each| match each.parameters.as_slice() {
                        [] => std::slice::from_ref(&each.name),
                        parameters => parameters,
                    })
                    .map(|name| printable(name, 120))
                    .collect();
                // What is to be said of layers and experts that are missing as a whole is said.
                let is_told =
                    |name: &String| told.has(name) || experts::is_matrix(name) && model.has_experts;
                if parameters.iter().all(is_told) && (empty_blocks == 0 || !told.is_empty()) {
                    continue;
                }
                let shown: Vec<String> = parameters.iter().take(LISTED).cloned().collect();
                let finding = Finding::new(
                    &rule::MODEL_001,
                    format!("no {}", listed(&shown, count.max(1))),
                    format!("all weights of {class}"),
                );
                finding.in_file("config.json").of_field("architectures")
            }
            names::Finding::Unmapped { name, reason } => {
                weights.is_unmapped = true;
                let Some(origin) = places.get(&name) else { continue };
                if told.has(&name) {
                    continue;
                }
                Finding::new(&rule::MODEL_002, reason, format!("a weight of {class}"))
                    .of_module(origin.module)
            }
            names::Finding::Shape { name, found, expected, because } => {
                let Some(origin) = places.get(&name).filter(|origin| origin.is_known) else {
                    continue;
                };
                // Without the name that the tensor has in GGUF: layers are alike.
                let because = match because.split_once(" is [") {
                    Some((_, dims)) => format!("of [{dims}"),
                    None => because,
                };
                let what = match origin.what {
                    "" => String::new(),
                    what => format!("{what} "),
                };
                Finding::new(
                    &rule::MODEL_003,
                    format!("{what}{found:?}"),
                    format!("{expected:?}: {because}"),
                )
                .of_module(origin.module)
            }
            names::Finding::Senseless { name, reason } => {
                let name = printable(&name, 120);
                Finding::new(&rule::MODEL_003, format!("no shape of {name}: {reason}"), "a shape")
                    .in_file("config.json")
            }
            names::Finding::Duplicated { name, reason } => {
                let finding = Finding::new(&rule::MODEL_005, reason, "one tensor for each weight");
                match places.get(&name) {
                    Some(origin) => finding.of_module(origin.module),
                    None => finding,
                }
            }
            names::Finding::MissingKey { name, .. } => {
                let name = printable(&name, 80);
                let found = format!("nothing that gives {name}");
                let expected = format!("the fields of {class}; shapes that need it are not judged");
                Finding::new(&rule::MODEL_004, found, expected).in_file("config.json")
            }
            // Of files of GGUF.
            names::Finding::Incomplete { .. } | names::Finding::Otherwise { .. } => continue,
        });
    }
    Some(weights)
}

/// The tensors that the checkpoint would have if nothing were quantized.
fn plain<'m>(model: &Model<'m, '_>) -> (Vec<CheckpointTensor>, Vec<Origin<'m>>) {
    let mut tensors = Vec::new();
    let mut origins = Vec::new();
    for module in model.modules {
        let mut add = |name: String, shape: Vec<u64>, what, is_known| {
            tensors.push(CheckpointTensor { name, shape });
            origins.push(Origin { module: module.name, what, is_known });
        };
        let is_quantized = module.is_quantized();
        let is_packed = module.tensor("_blocks").is_some();
        if is_quantized && !is_packed {
            let (shape, is_known) = weight(model, module);
            add(format!("{}.weight", module.name), shape, "weight", is_known);
        }
        for (suffix, tensor) in &module.tensors {
            let what = match *suffix {
                ".weight" if is_quantized && !is_packed => continue,
                ".weight" => "weight",
                ".bias" | "_bias" => "bias",
                "_blocks" => "blocks",
                "_scales" if is_packed => "scales",
                "" if cache_scale(&tensor.name).is_some() => continue,
                "" => "",
                // Scales beside a plain weight are those of inputs.
                _ if is_quantized || module.tensor(".weight").is_some() => continue,
                _ => "",
            };
            add(tensor.name.clone(), tensor.shape.clone(), what, true);
        }
    }
    (tensors, origins)
}

/// The shape of a quantized module's weight, and whether it is known.
fn weight(model: &Model<'_, '_>, module: &Module<'_>) -> (Vec<u64>, bool) {
    let sizes = model.quantized(module.name).and_then(|quantized| {
        let weight = [quantized.out_features?, quantized.in_features?];
        Some(quantized.experts.into_iter().chain(weight).collect())
    });
    match sizes {
        Some(shape) => (shape, !model.is_faulty(module.name)),
        None => (Vec::new(), false),
    }
}
