//! What a model needs beyond single modules: layers, fused parts, the output layer, the cache.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use gguf_assay_format::printable;
use serde_json::Value as Json;

use crate::checkpoint::Checkpoint;
use crate::config::NESTED;
use crate::experts::{self, Experts};
use crate::files::Files;
use crate::finding::{Finding, Refusal};
use crate::judge::{Judgement, Options, QuantizedModule};
use crate::module::{Module, kind};
use crate::{architecture, parallel, rule};

/// How many of several are listed.
pub(crate) const LISTED: usize = 8;

/// The first of several, and how many more there are.
pub(crate) fn listed(first: &[String], count: u64) -> String {
    let more = count.saturating_sub(first.len().try_into().unwrap_or(u64::MAX));
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", first.join(", "))
}

/// The modules of a checkpoint, and what its config says of the model.
pub(crate) struct Model<'m, 'a> {
    pub(crate) modules: &'m [Module<'a>],
    pub(crate) config: Option<&'a Json>,
    /// `model_type` of the text model.
    pub(crate) model_type: Option<&'a str>,
    /// Whether there are experts, which are judged apart.
    pub(crate) has_experts: bool,
    quantized: HashMap<&'m str, &'m QuantizedModule>,
    /// Modules of which something is wrong already.
    faulty: HashSet<&'m str>,
}

/// Judges what is beyond single modules. `found` are findings so far.
pub(crate) fn judge<F: Files>(
    checkpoint: &Checkpoint<F>,
    modules: &[Module<'_>],
    judgement: &Judgement,
    options: &Options,
    found: &[Finding],
) -> (Option<Experts>, Vec<Finding>) {
    let mut findings = Vec::new();
    let push = &mut |finding| findings.push(finding);
    let faulty = found.iter().filter(|finding| finding.is_fault());
    let faulty = faulty.flat_map(|finding| finding.module.iter().chain(&finding.others));
    let config = checkpoint.config("config.json");
    let quantized = judgement.modules.iter().map(|module| (module.name.as_str(), module));
    let mut model = Model {
        modules,
        config,
        model_type: None,
        has_experts: false,
        quantized: quantized.collect(),
        faulty: faulty.map(String::as_str).collect(),
    };
    // That of the text model, if it is one of several.
    model.model_type = NESTED
        .iter()
        .find_map(|name| config?.get(name)?.get("model_type")?.as_str())
        .or_else(|| config?.get("model_type")?.as_str());
    let experts = experts::judge(&model, push);
    let layers = model.layers();
    model.fused(push);
    model.output(checkpoint, push);
    if judgement.method.is_some_and(|method| method.name == "mxfp4") {
        model.compute_type(push);
    }
    model.cache(push);
    model.has_experts = experts.is_some();
    let of_architecture = architecture::judge(&model, &layers.told, push);
    // An architecture that is known counts its layers better.
    for finding in layers.findings {
        let is_told = of_architecture.as_ref().is_none_or(|found| {
            if finding.is_fault() { found.is_missing } else { found.is_unmapped }
        });
        if is_told {
            push(finding);
        }
    }
    if let Some(ranks) = options.tp.filter(|ranks| *ranks > 1) {
        parallel::judge(&model, ranks, push);
    }
    (experts, findings)
}

/// What is wrong with the layers.
#[derive(Default)]
struct Layers {
    findings: Vec<Finding>,
    told: Told,
}

/// The layers of which it is said that they are missing, or too many.
#[derive(Default)]
pub(crate) struct Told {
    stack: String,
    layers: BTreeSet<u64>,
}

impl Told {
    /// Whether a parameter or module is in one of them.
    pub(crate) fn has(&self, name: &str) -> bool {
        layer(name)
            .is_some_and(|(stack, layer)| stack == self.stack && self.layers.contains(&layer))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
}

/// The fields that count layers.
const LAYERS: [&str; 4] = ["num_hidden_layers", "n_layer", "n_layers", "num_layers"];
/// The fields that count layers of next-token prediction, behind the others.
const NEXT_TOKEN: [&str; 3] =
    ["num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers"];

/// What loaders make one layer of: its name, and its parts (vllm 0.33.0, `packed_modules_mapping` of
/// the models).
const FUSED: [(&str, &[&str]); 4] = [
    ("qkv_proj", &["q_proj", "k_proj", "v_proj"]),
    ("gate_up_proj", &["gate_proj", "up_proj"]),
    ("w13", &["w1", "w3"]),
    ("fused_qkv_a_proj", &["q_a_proj", "kv_a_proj_with_mqa"]),
];

/// Names of output layers.
const OUTPUTS: [&str; 4] = ["lm_head", "embed_out", "output", "output_layer"];
/// Names of embeddings.
const EMBEDDINGS: [&str; 5] =
    ["embed_tokens", "wte", "word_embeddings", "embed_in", "tok_embeddings"];

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl<'m, 'a> Model<'m, 'a> {
    /// A module that is quantized, by name.
    pub(crate) fn quantized(&self, name: &str) -> Option<&'m QuantizedModule> {
        self.quantized.get(name).copied()
    }

    /// Whether something is wrong with the module, so that its sizes say little.
    pub(crate) fn is_faulty(&self, name: &str) -> bool {
        self.faulty.contains(name)
    }

    /// The first field of these that the config, or that of the text model within it, has: its path
    /// and value.
    pub(crate) fn get(&self, names: &[&str]) -> Option<(String, &'a Json)> {
        let config = self.config?;
        let of = |object: &'a Json, before: &str| {
            let mut found = names.iter().filter_map(|name| Some((*name, object.get(*name)?)));
            let (name, value) = found.find(|(_, value)| !value.is_null())?;
            Some((format!("{before}{name}"), value))
        };
        of(config, "")
            .or_else(|| NESTED.iter().find_map(|name| of(config.get(name)?, &format!("{name}."))))
    }

    /// The path of a field.
    pub(crate) fn field(&self, name: &str) -> String {
        self.get(&[name]).map_or_else(|| name.to_owned(), |(path, _)| path)
    }

    /// A whole number of the config, and its field.
    pub(crate) fn integer(&self, names: &[&str]) -> Option<(String, u64)> {
        let (path, value) = self.get(names)?;
        Some((path, value.as_u64()?))
    }

    /// The hidden size, and its field.
    pub(crate) fn hidden_size(&self) -> Option<(String, u64)> {
        self.integer(&["hidden_size", "n_embd", "d_model"])
    }

    /// Whether the output layer is declared to be the embedding.
    fn is_tied(&self) -> Option<(String, bool)> {
        let (path, value) = self.get(&["tie_word_embeddings"])?;
        Some((path, value.as_bool()?))
    }

    /// Layers that are missing, or beyond the count.
    fn layers(&self) -> Layers {
        let mut layers = Layers::default();
        let mut stacks: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for module in self.modules {
            if let Some((stack, layer)) = layer(module.name) {
                stacks.entry(stack).or_default().insert(layer);
            }
        }
        let Some((stack, there)) = stacks.iter().max_by_key(|(_, layers)| layers.len()) else {
            return layers;
        };
        let decoder = stack.contains("decoder").then_some(["num_decoder_layers", "decoder_layers"]);
        let of_decoder = decoder.and_then(|names| self.integer(&names));
        let Some((field, count)) = of_decoder.or_else(|| self.integer(&LAYERS)) else {
            return layers;
        };
        layers.told.stack = (*stack).to_owned();
        let beyond = there.range(count..);
        let next_token = self.integer(&NEXT_TOKEN).map_or(0, |(_, layers)| layers);
        let allowed = count.saturating_add(next_token);
        let extra: Vec<u64> = beyond.filter(|layer| **layer >= allowed).copied().collect();
        let finding = |rule, found: String, expected: String| {
            let finding = Finding::new(rule, found, expected);
            finding.in_file("config.json").of_field(field.clone())
        };
        if let Some(first) = extra.first() {
            let found = format!("{count} layers, and tensors of {stack}.{first}");
            let expected = match next_token {
                0 => format!("layers below {count}"),
                more => format!("layers below {count}, and {more} of next-token prediction"),
            };
            layers.findings.push(finding(&rule::MODEL_007, found, expected));
            layers.told.layers.extend(&extra);
        }
        let inside = there.range(..count).count().try_into().unwrap_or(u64::MAX);
        let missing = count.saturating_sub(inside);
        if missing == 0 {
            return layers;
        }
        // No more are looked at than there are, and a few.
        let gaps = (0..count).filter(|layer| !there.contains(layer));
        let gaps: Vec<u64> = gaps.take(self.modules.len().min(4096)).collect();
        let first: Vec<String> =
            gaps.iter().take(LISTED).map(|layer| format!("{stack}.{layer}")).collect();
        let found = format!("{count} layers, of which {inside} are there");
        let expected = format!("tensors of {}", listed(&first, missing));
        layers.findings.push(finding(&rule::MODEL_006, found, expected));
        layers.told.layers.extend(gaps);
        layers
    }

    /// Parts that loaders make one layer of.
    fn fused(&self, push: &mut dyn FnMut(Finding)) {
        let mut groups: BTreeMap<(&str, &str), Vec<&Module<'_>>> = BTreeMap::new();
        for module in self.modules {
            let Some((before, part)) = module.name.rsplit_once('.') else { continue };
            // Experts of a layer are one, whatever the part.
            if before.contains(".experts.") {
                continue;
            }
            for (fused, parts) in FUSED {
                if parts.contains(&part) {
                    groups.entry((before, fused)).or_default().push(module);
                }
            }
        }
        for ((before, fused), parts) in groups {
            self.shards(&format!("{before}.{fused}"), &parts, push);
        }
    }

    /// Parts of one layer: all plain, or all quantized alike. Each form that there is counts once.
    pub(crate) fn shards(&self, layer: &str, parts: &[&Module<'_>], push: &mut dyn FnMut(Finding)) {
        const REFUSED: Refusal = Refusal {
            loader: "vLLM 0.33.0",
            says: "Detected some but not all shards of … are quantized. All shards of fused layers \
                   to have the same precision.",
        };
        let weights = parts.iter().filter(|module| {
            module.is_quantized()
                || module.tensors.keys().any(|suffix| ["", ".weight"].contains(suffix))
        });
        let (quantized, plain): (Vec<&&Module<'_>>, Vec<_>) =
            weights.partition(|module| module.is_quantized());
        let names = |modules: &[&&Module<'_>]| {
            let names: Vec<String> = modules
                .iter()
                .take(LISTED)
                .map(|module| {
                    let before = layer.rsplit_once('.').map_or("", |(before, _)| before);
                    let short = module.name.strip_prefix(before).unwrap_or(module.name);
                    printable(short.trim_start_matches('.'), 80)
                })
                .collect();
            listed(&names, modules.len().try_into().unwrap_or(u64::MAX))
        };
        if !quantized.is_empty() && !plain.is_empty() {
            let found = format!("{} quantized, {} plain", names(&quantized), names(&plain));
            let finding = Finding::new(&rule::MODEL_008, found, "all quantized, or all plain");
            push(finding.of_module(layer).refused_by(&[REFUSED]));
            return;
        }
        let mut forms: BTreeMap<String, Vec<&&Module<'_>>> = BTreeMap::new();
        for module in quantized {
            let Some(form) = self.quantized(module.name) else { continue };
            // Of a faulty one the sizes are a guess.
            if self.is_faulty(module.name) {
                continue;
            }
            let block = form.block.map(|(rows, cols)| format!(", block [{rows}, {cols}]"));
            let text = format!(
                "{} of {} bits, group {}{}",
                form.layout.name,
                form.bits,
                form.group,
                block.unwrap_or_default()
            );
            forms.entry(text).or_default().push(module);
        }
        if forms.len() > 1 {
            let found: Vec<String> = forms
                .iter()
                .take(LISTED)
                .map(|(form, modules)| format!("{}: {form}", names(modules)))
                .collect();
            let finding = Finding::new(&rule::MODEL_009, found.join("; "), "all alike");
            push(finding.of_module(layer).refused_by(&[REFUSED]));
        }
    }

    /// The output layer and the embedding.
    fn output<F: Files>(&self, checkpoint: &Checkpoint<F>, push: &mut dyn FnMut(Finding)) {
        let named = |names: &[&str]| {
            let mut modules = self.modules.iter();
            modules
                .find(|module| layer(module.name).is_none() && names.contains(&last(module.name)))
        };
        let tied = self.is_tied();
        let embedding = named(&EMBEDDINGS);
        let Some(output) = named(&OUTPUTS) else {
            let is_causal = self.config.and_then(|config| {
                let class = config.get("architectures")?.get(0)?.as_str()?;
                Some(class.ends_with("ForCausalLM") || class.ends_with("LMHeadModel"))
            });
            if let (Some((field, false)), Some(embedding), None | Some(true)) =
                (&tied, embedding, is_causal)
            {
                let found = format!("false, and no lm_head.weight beside {}", embedding.name);
                let expected = "lm_head.weight, or tie_word_embeddings true";
                let finding = Finding::new(&rule::MODEL_012, found, expected);
                push(finding.in_file("config.json").of_field(field.clone()));
            }
            return;
        };
        let is_tied = tied.filter(|(_, tied)| *tied).map(|(field, _)| field);
        if output.is_quantized() {
            if let Some(field) = is_tied {
                let found = format!("true, and {} is quantized", output.name);
                let finding =
                    Finding::new(&rule::MODEL_011, found, "false, or no tensors of its own");
                push(finding.in_file("config.json").of_field(field).of_module(output.name));
            } else {
                let form = self.quantized(output.name);
                let found = match form {
                    Some(form) => format!("{} of {} bits", form.layout.name, form.bits),
                    None => "packed".into(),
                };
                let finding = Finding::new(&rule::MODEL_010, found, "a plain weight");
                push(finding.of_module(output.name));
            }
            let rows = self.quantized(output.name).and_then(|quantized| quantized.out_features);
            if let Some(rows) = rows.filter(|rows| !rows.is_multiple_of(64)) {
                let padded = rows.checked_next_multiple_of(64).unwrap_or(u64::MAX);
                let finding = Finding::new(
                    &rule::MODEL_014,
                    format!("{rows} rows, quantized"),
                    format!("a multiple of 64: {padded}"),
                );
                push(finding.of_module(output.name));
            }
        } else if let (Some(field), Some(embedding)) = (is_tied, embedding)
            && let (Some(one), Some(two)) = (output.tensor(".weight"), embedding.tensor(".weight"))
        {
            let differ = if (one.dtype, &one.shape) != (two.dtype, &two.shape) {
                Some(format!("{} {:?} and {} {:?}", one.dtype, one.shape, two.dtype, two.shape))
            } else {
                let read = |name: &str| checkpoint.read_part(name, 0, 1 << 16).ok();
                let differ = read(&one.name) != read(&two.name);
                differ.then(|| "other numbers".to_owned())
            };
            if let Some(differ) = differ {
                let found = format!("true, and {} is not {}: {differ}", one.name, two.name);
                let finding = Finding::new(&rule::MODEL_013, found, "the same numbers in both");
                push(finding.in_file("config.json").of_field(field).of_tensor(one.name.clone()));
            }
        }
    }

    /// The type that numbers are computed in, with MXFP4.
    fn compute_type(&self, push: &mut dyn FnMut(Finding)) {
        let Some((field, value)) = self.get(&["dtype", "torch_dtype"]) else { return };
        if value.as_str() == Some("float16") {
            let finding = Finding::new(&rule::MODEL_015, "float16, with mxfp4", "bfloat16");
            push(finding.in_file("config.json").of_field(field));
        }
    }

    /// The scales of cached keys and values.
    fn cache(&self, push: &mut dyn FnMut(Finding)) {
        /// Which scales a layer has.
        #[derive(Default, PartialEq, Eq, Clone, Copy)]
        struct Scales {
            key: bool,
            value: bool,
            both: bool,
        }
        let mut layers: BTreeMap<&str, Scales> = BTreeMap::new();
        for module in self.modules {
            for tensor in module.tensors.values() {
                let Some((attention, which)) = cache_scale(&tensor.name) else { continue };
                let scales = layers.entry(attention).or_default();
                match which {
                    CacheScale::Key => scales.key = true,
                    CacheScale::Value => scales.value = true,
                    CacheScale::Both => scales.both = true,
                }
            }
        }
        for (attention, scales) in &layers {
            let (missing, there) = match *scales {
                Scales { key: true, value: false, .. } => ("v_scale", "k_scale"),
                Scales { key: false, value: true, .. } => ("k_scale", "v_scale"),
                Scales { key: false, value: false, .. } => {
                    let finding = Finding::new(&rule::MODEL_017, "kv_scale", "k_scale and v_scale");
                    push(finding.of_module(*attention));
                    continue;
                }
                _ => continue,
            };
            let finding =
                Finding::new(&rule::MODEL_016, format!("{there} and no {missing}"), "both");
            push(finding.of_module(*attention));
        }
        // Modules of attention that have none where others do.
        if !layers.is_empty() {
            let mut attention: BTreeSet<&str> = BTreeSet::new();
            for module in self.modules {
                let before = module.name.strip_suffix(".k_proj");
                attention.extend(before.or_else(|| module.name.strip_suffix(".qkv_proj")));
            }
            let shown = layers.keys().next().copied().unwrap_or_default();
            let of = kind(shown);
            let without =
                attention.iter().filter(|name| !layers.contains_key(*name) && kind(name) == of);
            for name in without {
                let found = format!("no scales, unlike {}", printable(shown, 120));
                push(Finding::new(&rule::MODEL_016, found, "both").of_module(*name));
            }
        } else if let Some((file, field)) = self.static_cache() {
            let finding = Finding::new(
                &rule::MODEL_018,
                "static scales, and no k_scale or v_scale in any layer",
                "both in each layer",
            );
            push(finding.in_file(file).of_field(field));
        }
    }

    /// The field that declares scales of the cache that are not found at run time.
    fn static_cache(&self) -> Option<(&'static str, String)> {
        let quantization = self.config?.get("quantization_config")?;
        let scheme = quantization.get("kv_cache_scheme").filter(|scheme| scheme.is_object())?;
        let is_dynamic = scheme.get("dynamic").and_then(Json::as_bool).unwrap_or(false);
        (!is_dynamic).then(|| ("config.json", "quantization_config.kv_cache_scheme".to_owned()))
    }
}

/// What a scale of the cache is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheScale {
    Key,
    Value,
    Both,
}

/// The attention and kind of a cache's scale, by the names that vllm 0.33.0 knows
/// (`maybe_remap_kv_scale_name`): `self_attn.k_scale`, `self_attn.attn.k_scale`,
/// `self_attn.k_proj.k_scale`, `self_attn.k_proj.output_scale`, `self_attn.qkv_proj.k_scale`,
/// `self_attn.kv_scale`.
pub(crate) fn cache_scale(name: &str) -> Option<(&str, CacheScale)> {
    let (before, scale) = name.rsplit_once('.')?;
    let (outer, inner) = before.rsplit_once('.').unwrap_or(("", before));
    let which = match (scale, inner) {
        ("k_scale", _) | ("output_scale", "k_proj") => CacheScale::Key,
        ("v_scale", _) | ("output_scale", "v_proj") => CacheScale::Value,
        ("kv_scale", _) => CacheScale::Both,
        _ => return None,
    };
    let within =
        ["attn", "k_proj", "v_proj", "qkv_proj"].contains(&inner) && layer(outer).is_some();
    // `layers.0.attn.k_scale` is attention's own.
    let is_own = last(outer).parse::<u64>().is_ok();
    Some((if within && !is_own { outer } else { before }, which))
}

/// The stack and number of the decoder layer that a module is of.
fn layer(name: &str) -> Option<(&str, u64)> {
    let mut end = 0usize;
    let mut before = "";
    for part in name.split('.') {
        let is_stack = ["layers", "h", "blocks", "block"].contains(&before);
        if is_stack && let Ok(number) = part.parse::<u64>() {
            let stack = name.get(..end.saturating_sub(1))?;
            let others = ["vision", "visual", "audio", "image", "encoder", "mtp", "mm_"];
            return (!others.iter().any(|other| stack.contains(other))).then_some((stack, number));
        }
        before = part;
        end = end.saturating_add(part.len()).saturating_add(1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_of_the_cache_have_many_names() {
        // By hand, after the names in vLLM's `maybe_remap_kv_scale_name` (issues 1559 of sglang and
        // 6761 of vllm).
        use CacheScale::{Both, Key, Value};
        let attention = "model.layers.3.self_attn";
        for (name, which) in [
            ("k_scale", Key),
            ("v_scale", Value),
            ("kv_scale", Both),
            ("attn.k_scale", Key),
            ("k_proj.k_scale", Key),
            ("v_proj.v_scale", Value),
            ("k_proj.output_scale", Key),
            ("v_proj.output_scale", Value),
            ("qkv_proj.v_scale", Value),
        ] {
            let name = format!("{attention}.{name}");
            assert_eq!(cache_scale(&name), Some((attention, which)), "{name}");
        }
        assert_eq!(cache_scale("model.layers.3.attn.k_scale"), Some(("model.layers.3.attn", Key)));
        assert_eq!(cache_scale("model.layers.3.mlp.up_proj.output_scale"), None);
        assert_eq!(cache_scale("k_scale"), None);
    }

    #[test]
    fn a_layer_is_one_of_the_text_model() {
        for (name, expected) in [
            ("model.layers.12.mlp.gate_proj", Some(("model.layers", 12))),
            ("transformer.h.0.attn", Some(("transformer.h", 0))),
            ("decoder.block.1.layer.0", Some(("decoder.block", 1))),
            ("model.visual.blocks.1.mlp", None),
            ("encoder.block.1", None),
            ("lm_head", None),
            ("layers.x.1", None),
        ] {
            assert_eq!(layer(name), expected, "{name}");
        }
    }
}
