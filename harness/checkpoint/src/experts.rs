//! How the experts of a mixture are laid down, told by names and shapes.

use std::collections::{BTreeMap, BTreeSet};

use gguf_assay_format::printable;

use crate::finding::Finding;
use crate::header::TensorRecord;
use crate::model::{LISTED, Model, listed};
use crate::module::Module;
use crate::rule;

/// How experts are laid down. Shapes are in torch's order: E experts, H hidden features, I features
/// within an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExpertLayout {
    /// `experts.E.gate_proj`, `up_proj` [I, H] and `down_proj` [H, I]: DeepSeek, Qwen, GLM, OLMoE.
    PerExpert,
    /// `experts.E.w1` (gate), `w3` (up) [I, H] and `w2` (down) [H, I]: Mixtral, MiniMax, LFM2.
    PerExpertW1W2W3,
    /// `experts.gate_up_proj` [E, 2I, H], gate rows first, and `down_proj` [E, H, I]: transformers 5.
    FusedQwen,
    /// `experts.gate_up_proj` [E, H, 2I], gate columns first, and `down_proj` [E, I, H]: Llama 4.
    FusedLlama4,
    /// `experts.gate_up_proj` [E, H, 2I], gate and up columns in turn, and `down_proj` [E, I, H].
    FusedGptOss,
    /// `experts.gate_up_proj_blocks` [E, 2I, H/32, 16], gate and up rows in turn, and `_scales`.
    PackedGptOss,
    /// `blk.N.ffn_gate_exps.E.numa.K.weight`: KTransformers, a part for each memory node.
    Numa,
    /// `experts.gate_up_proj` of which neither shapes nor config tell the axis of the input.
    Ambiguous,
    /// Something else below `experts`.
    Other,
}

impl ExpertLayout {
    /// For machines: `per-expert`, `fused-qwen` …
    pub fn name(self) -> &'static str {
        match self {
            ExpertLayout::PerExpert => "per-expert",
            ExpertLayout::PerExpertW1W2W3 => "per-expert-w1w2w3",
            ExpertLayout::FusedQwen => "fused-qwen",
            ExpertLayout::FusedLlama4 => "fused-llama4",
            ExpertLayout::FusedGptOss => "fused-gpt-oss",
            ExpertLayout::PackedGptOss => "packed-gpt-oss",
            ExpertLayout::Numa => "numa",
            ExpertLayout::Ambiguous => "ambiguous",
            ExpertLayout::Other => "other",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            ExpertLayout::PerExpert => "gate_proj, up_proj and down_proj of each expert",
            ExpertLayout::PerExpertW1W2W3 => "w1 (gate), w3 (up) and w2 (down) of each expert",
            ExpertLayout::FusedQwen => "all experts in one, outputs before inputs, gate rows first",
            ExpertLayout::FusedLlama4 => {
                "all experts in one, inputs before outputs, gate columns first"
            }
            ExpertLayout::FusedGptOss => {
                "all experts in one, inputs before outputs, gate and up columns in turn"
            }
            ExpertLayout::PackedGptOss => "all experts in one, MXFP4, gate and up rows in turn",
            ExpertLayout::Numa => "a part of each expert for each memory node",
            ExpertLayout::Ambiguous => "all experts in one, by either axis",
            ExpertLayout::Other => "not one that is known",
        }
    }
}

/// The experts of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How they are laid down, in most layers.
    pub layout: ExpertLayout,
    /// What that was told by.
    pub evidence: Vec<String>,
    /// How many a layer has: the most that any has.
    pub count: u64,
    /// How many layers have experts.
    pub layers: u64,
    /// How many layers have shared experts beside them, which are counted apart.
    pub shared_layers: u64,
    /// How the weights of the experts are quantized, if they are.
    pub quantized: Option<&'static str>,
    /// What the router is called, after the layer: `mlp.gate`.
    pub router: Option<&'static str>,
}

/// The names of routers, after the layer's (transformers 5.24.0).
const ROUTERS: [&str; 4] =
    ["mlp.gate", "block_sparse_moe.gate", "mlp.router", "feed_forward.router"];

/// The matrices of an expert, as bits.
const GATE: u8 = 1;
const UP: u8 = 2;
const DOWN: u8 = 4;

/// What the experts of one layer are.
#[derive(Default)]
struct Layer<'m, 'a> {
    /// The matrices of each expert, by its number.
    each: BTreeMap<u64, u8>,
    gate_up: Option<&'m Module<'a>>,
    down: Option<&'m Module<'a>>,
    layouts: BTreeSet<ExpertLayout>,
    parts: Vec<&'m Module<'a>>,
    evidence: Vec<String>,
}

/// A module of a layer's experts.
enum Part {
    /// A matrix of one expert.
    One(ExpertLayout, u64, u8),
    GateUp,
    Down,
    Other,
}

/// The layer's part before the experts, and which part of them it is.
fn part(name: &str) -> Option<(&str, Part)> {
    if let Some((before, rest)) = name.split_once(".experts.") {
        return Some((before, of_experts(rest)));
    }
    if let Some((before, rest)) = name.split_once(".block_sparse_moe.") {
        let part = match rest {
            "input_linear" => Part::GateUp,
            "output_linear" => Part::Down,
            _ => return None,
        };
        return Some((before, part));
    }
    let (before, rest) = name.split_once(".ffn_")?;
    let (which, rest) = rest.split_once("_exps.")?;
    let (expert, _) = rest.split_once(".numa.")?;
    let which = matrix(&format!("{which}_proj"))?.1;
    Some((before, Part::One(ExpertLayout::Numa, expert.parse().ok()?, which)))
}

/// Whether a module or parameter is a matrix of the experts of a layer.
pub(crate) fn is_matrix(name: &str) -> bool {
    let name = name.strip_suffix(".weight").unwrap_or(name);
    part(name).is_some_and(|(_, part)| !matches!(part, Part::Other))
}

fn of_experts(rest: &str) -> Part {
    match rest {
        "gate_up_proj" => return Part::GateUp,
        "down_proj" => return Part::Down,
        _ => {}
    }
    let of_one = || {
        let (expert, which) = rest.split_once('.')?;
        let (layout, which) = matrix(which)?;
        Some(Part::One(layout, expert.parse().ok()?, which))
    };
    of_one().unwrap_or(Part::Other)
}

fn matrix(name: &str) -> Option<(ExpertLayout, u8)> {
    Some(match name {
        "gate_proj" => (ExpertLayout::PerExpert, GATE),
        "up_proj" => (ExpertLayout::PerExpert, UP),
        "down_proj" => (ExpertLayout::PerExpert, DOWN),
        "w1" => (ExpertLayout::PerExpertW1W2W3, GATE),
        "w3" => (ExpertLayout::PerExpertW1W2W3, UP),
        "w2" => (ExpertLayout::PerExpertW1W2W3, DOWN),
        _ => return None,
    })
}

fn matrices(set: u8) -> String {
    let all = [(GATE, "gate"), (UP, "up"), (DOWN, "down")];
    let names: Vec<&str> =
        all.iter().filter(|(bit, _)| set & bit != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "none".into() } else { names.join(" and ") }
}

/// The experts, and what is wrong with them.
pub(crate) fn judge(model: &Model<'_, '_>, push: &mut dyn FnMut(Finding)) -> Option<Experts> {
    routers(model, push);
    let mut layers: BTreeMap<&str, Layer<'_, '_>> = BTreeMap::new();
    for module in model.modules {
        let Some((before, part)) = part(module.name) else { continue };
        let layer = layers.entry(before).or_default();
        match part {
            Part::One(layout, expert, which) => {
                layer.layouts.insert(layout);
                let matrices = layer.each.entry(expert).or_default();
                *matrices |= which;
            }
            Part::GateUp => layer.gate_up = Some(module),
            Part::Down => layer.down = Some(module),
            Part::Other => continue,
        }
        layer.parts.push(module);
    }
    for layer in layers.values_mut() {
        layer.fused(model, push);
        if layer.layouts.is_empty() {
            layer.layouts.insert(ExpertLayout::Other);
        }
    }
    if layers.is_empty() {
        return None;
    }
    let layout = one_layout(&layers, push);
    of_model(model, layout, &layers, push);
    let (count, numbers) = counts(model, &layers, push);
    whole(&layers, push);
    alike(model, &layers, push);
    let first = layers.values().find(|layer| layer.layouts.contains(&layout));
    let mut evidence = first.map(|layer| layer.evidence.clone()).unwrap_or_default();
    if evidence.is_empty()
        && let Some(module) = first.and_then(|layer| layer.parts.first())
    {
        evidence.push(format!("the name {}", printable(module.name, 160)));
    }
    evidence.push(numbers);
    let has_shared = |module: &&Module<'_>| {
        let part = |part: &str| part.starts_with("shared_expert") || part == "shared_mlp";
        module.name.split('.').any(part)
    };
    let shared = model.modules.iter().filter(has_shared);
    let shared: BTreeSet<&str> = shared
        .filter_map(|module| module.name.split_once(".shared_").map(|(before, _)| before))
        .collect();
    let quantized = first.and_then(|layer| {
        let mut parts = layer.parts.iter();
        parts.find_map(|module| Some(model.quantized(module.name)?.layout.name))
    });
    let router = ROUTERS
        .into_iter()
        .find(|router| model.modules.iter().any(|module| is_router(module.name) == Some(*router)));
    Some(Experts {
        layout,
        evidence,
        count,
        layers: number(layers.len()),
        shared_layers: number(shared.len()),
        quantized,
        router,
    })
}

fn number(count: usize) -> u64 {
    count.try_into().unwrap_or(u64::MAX)
}

/// Which router a module is.
fn is_router(name: &str) -> Option<&'static str> {
    ROUTERS
        .into_iter()
        .find(|router| name.strip_suffix(router).is_some_and(|before| before.ends_with('.')))
}

fn routers(model: &Model<'_, '_>, push: &mut dyn FnMut(Finding)) {
    for module in model.modules {
        if is_router(module.name).is_some() && module.is_quantized() {
            let found = match model.quantized(module.name) {
                Some(quantized) => {
                    format!("a router whose tensors are those of {}", quantized.layout.name)
                }
                None => "a router whose tensors are packed".into(),
            };
            push(Finding::new(&rule::MODEL_026, found, "a plain weight").of_module(module.name));
        }
    }
}

/// The weight of a fused module, if it is one tensor of three dimensions.
fn fused_weight<'a>(module: &Module<'a>) -> Option<(&'a TensorRecord, [u64; 3])> {
    let tensor = module.tensor("").or_else(|| module.tensor(".weight"))?;
    Some((tensor, tensor.shape.as_slice().try_into().ok()?))
}

impl Layer<'_, '_> {
    /// Tells how fused experts are laid down.
    fn fused(&mut self, model: &Model<'_, '_>, push: &mut dyn FnMut(Finding)) {
        let parts = [self.gate_up, self.down];
        if parts.iter().all(Option::is_none) {
            return;
        }
        if parts.into_iter().flatten().any(|module| module.tensor("_blocks").is_some()) {
            self.layouts.insert(ExpertLayout::PackedGptOss);
            self.evidence.push("tensors _blocks and _scales".into());
            return;
        }
        let shape = |module: Option<&Module<'_>>| {
            let (tensor, shape) = fused_weight(module?)?;
            Some((tensor.name.clone(), shape))
        };
        let (gate_up, down) = (shape(self.gate_up), shape(self.down));
        for (name, shape) in gate_up.iter().chain(&down) {
            self.evidence.push(format!("{} is {shape:?}", printable(name, 160)));
        }
        let rows = self.outputs_first(model, &gate_up, &down, push);
        let has_bias = self.gate_up.is_some_and(|module| module.tensor("_bias").is_some());
        let layout = match rows {
            None => return,
            Some(None) => ExpertLayout::Ambiguous,
            Some(Some(true)) => ExpertLayout::FusedQwen,
            Some(Some(false)) if model.model_type == Some("gpt_oss") => {
                self.evidence.push("model_type gpt_oss: gate and up in turn".into());
                ExpertLayout::FusedGptOss
            }
            Some(Some(false)) if has_bias => {
                self.evidence
                    .push("gate_up_proj_bias, which only gpt-oss has: gate and up in turn".into());
                ExpertLayout::FusedGptOss
            }
            Some(Some(false)) => {
                self.evidence.push("neither model_type gpt_oss nor a bias: gate first".into());
                ExpertLayout::FusedLlama4
            }
        };
        self.layouts.insert(layout);
    }

    /// Whether outputs stand before inputs; `Some(None)` if that cannot be told, `None` if shapes
    /// are not those of fused experts.
    #[allow(clippy::option_option)] // The two reasons for not knowing differ.
    fn outputs_first(
        &mut self,
        model: &Model<'_, '_>,
        gate_up: &Option<(String, [u64; 3])>,
        down: &Option<(String, [u64; 3])>,
        push: &mut dyn FnMut(Finding),
    ) -> Option<Option<bool>> {
        let twice = |width: u64| width.checked_mul(2);
        if let (Some((of, [_, a, b])), Some((_, [_, c, d]))) = (gate_up, down) {
            if b == c && Some(*a) == twice(*d) {
                self.evidence.push(format!(
                    "down_proj gives {c}, which gate_up_proj takes by its last axis"
                ));
                return Some(Some(true));
            }
            if a == d && Some(*b) == twice(*c) {
                self.evidence.push(format!(
                    "down_proj gives {d}, which gate_up_proj takes by its middle axis"
                ));
                return Some(Some(false));
            }
            let found = format!("gate_up_proj [{a}, {b}] and down_proj [{c}, {d}] of an expert");
            let expected = "[2 * width, hidden] and [hidden, width], or [hidden, 2 * width] and \
                            [width, hidden]";
            let finding = Finding::new(&rule::MODEL_023, found, expected);
            push(finding.of_module(of.strip_suffix(".weight").unwrap_or(of).to_owned()));
            return None;
        }
        // One of both alone: twice the width may be the hidden size.
        let (_, [_, first, second]) = gate_up.as_ref().or(down.as_ref())?;
        let is_down = gate_up.is_none();
        if let Some((field, hidden)) = model.hidden_size() {
            let by_last = second == &hidden;
            let by_middle = first == &hidden;
            if by_last != by_middle {
                let axis = if by_last { "last" } else { "middle" };
                self.evidence.push(format!("{field} {hidden} is the {axis} axis"));
                return Some(Some(by_last != is_down));
            }
        }
        let by_type = match model.model_type {
            Some("gpt_oss" | "llama4" | "llama4_text") => Some(false),
            Some(name) if OUTPUTS_FIRST.contains(&name) => Some(true),
            _ => None,
        };
        if let (Some(outputs_first), Some(name)) = (by_type, model.model_type) {
            self.evidence.push(format!("both axes fit: settled by model_type {name}"));
            return Some(Some(outputs_first));
        }
        let other = if is_down { "gate_up_proj" } else { "down_proj" };
        self.evidence.push(format!(
            "either axis may be the input: {other} beside it, or a model_type that is known, would \
             settle it"
        ));
        Some(None)
    }
}

/// Model types whose classes in transformers 5.24.0 hold `gate_up_proj` as [E, 2I, H]
/// (`conversion_mapping.py`, those of the groups `mixtral` and `qwen2_moe`).
const OUTPUTS_FIRST: [&str; 22] = [
    "deepseek_v2",
    "deepseek_v3",
    "dots1",
    "ernie4_5_moe",
    "glm4_moe",
    "glm4_moe_lite",
    "glm4v_moe",
    "glm_moe_dsa",
    "hunyuan_v1_moe",
    "jamba",
    "lfm2_moe",
    "minimax",
    "minimax_m2",
    "mixtral",
    "olmoe",
    "phimoe",
    "qwen2_moe",
    "qwen3_5_moe",
    "qwen3_moe",
    "qwen3_next",
    "solar_open",
    "flex_olmo",
];

/// The layout of most layers; those of others are a fault.
fn one_layout(
    layers: &BTreeMap<&str, Layer<'_, '_>>,
    push: &mut dyn FnMut(Finding),
) -> ExpertLayout {
    let mut count: BTreeMap<ExpertLayout, u64> = BTreeMap::new();
    for layout in layers.values().flat_map(|layer| &layer.layouts) {
        let count = count.entry(*layout).or_default();
        *count = count.saturating_add(1);
    }
    let most = count.iter().max_by_key(|(layout, count)| (**count, std::cmp::Reverse(**layout)));
    let most = most.map_or(ExpertLayout::Other, |(layout, _)| *layout);
    for (name, layer) in layers {
        let others: Vec<&str> = layer
            .layouts
            .iter()
            .filter(|layout| **layout != most && **layout != ExpertLayout::Ambiguous)
            .map(|layout| layout.name())
            .collect();
        if !others.is_empty() {
            let expected = format!("{}, as in most layers", most.name());
            let finding = Finding::new(&rule::MODEL_022, others.join(" and "), expected);
            push(finding.of_module(format!("{name}.experts")));
        }
    }
    most
}

/// Whether the layout is one of the model that is declared.
fn of_model(
    model: &Model<'_, '_>,
    layout: ExpertLayout,
    layers: &BTreeMap<&str, Layer<'_, '_>>,
    push: &mut dyn FnMut(Finding),
) {
    let Some(model_type) = model.model_type else { return };
    let expected = match (model_type, layout) {
        ("gpt_oss", ExpertLayout::PackedGptOss | ExpertLayout::FusedGptOss) => return,
        // Tools that quantize take the experts apart.
        ("gpt_oss", ExpertLayout::PerExpert) => return,
        ("gpt_oss", _) => "packed-gpt-oss or fused-gpt-oss, which a gpt_oss model has",
        ("llama4" | "llama4_text", ExpertLayout::FusedQwen) => {
            "fused-llama4, which a llama4 model has"
        }
        (_, ExpertLayout::PackedGptOss | ExpertLayout::FusedGptOss) => "model_type gpt_oss",
        _ => return,
    };
    let shown = printable(model_type, 80);
    let found = format!("experts laid down as {}, in a model of type {shown}", layout.name());
    let finding = Finding::new(&rule::MODEL_025, found, expected);
    let finding = finding.in_file("config.json").of_field(model.field("model_type"));
    let first = layers.keys().next().map(|name| format!("{name}.experts"));
    push(finding.of_module(first.unwrap_or_default()));
}

/// The fields that count experts.
const COUNTS: [&str; 5] =
    ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"];

/// How many experts there are, whether that is what the config says, and where some are missing.
fn counts(
    model: &Model<'_, '_>,
    layers: &BTreeMap<&str, Layer<'_, '_>>,
    push: &mut dyn FnMut(Finding),
) -> (u64, String) {
    let count = |layer: &Layer<'_, '_>| -> u64 {
        let fused = layer.gate_up.or(layer.down).and_then(|module| {
            let tensor = module.tensors.values().find(|tensor| tensor.shape.len() > 2)?;
            tensor.shape.first().copied()
        });
        fused.unwrap_or_else(|| {
            layer.each.keys().next_back().map_or(0, |last| last.saturating_add(1))
        })
    };
    let most = layers.values().map(count).max().unwrap_or(0);
    let declared = model.integer(&COUNTS);
    let numbers = match &declared {
        Some((field, declared)) => format!("{most} experts in a layer; {field} is {declared}"),
        None => format!("{most} experts in a layer"),
    };
    if let Some((field, declared)) = &declared
        && *declared != most
        && most > 0
    {
        let found = format!("{declared}");
        let expected = format!("{most}, as many as the layers have");
        let finding = Finding::new(&rule::MODEL_019, found, expected);
        push(finding.in_file("config.json").of_field(field.clone()));
    }
    for (name, layer) in layers {
        let there = if layer.each.is_empty() { count(layer) } else { number(layer.each.len()) };
        if there == 0 || there >= most {
            continue;
        }
        let gaps = || (0..most).filter(|expert| !layer.each.contains_key(expert));
        let missing = most.saturating_sub(there);
        let gaps: Vec<String> = match layer.each.is_empty() {
            true => Vec::new(),
            false => gaps().take(LISTED).map(|expert| expert.to_string()).collect(),
        };
        let found = match gaps.as_slice() {
            [] => format!("{there} experts"),
            gaps => format!("{there} experts, without {}", listed(gaps, missing)),
        };
        let finding = Finding::new(&rule::MODEL_020, found, format!("{most} experts"));
        push(finding.of_module(format!("{name}.experts")));
    }
    (most, numbers)
}

/// Whether each expert has all of its matrices.
fn whole(layers: &BTreeMap<&str, Layer<'_, '_>>, push: &mut dyn FnMut(Finding)) {
    let all = layers.values().flat_map(|layer| layer.each.values()).fold(0, |all, set| all | set);
    // Some models have no gate.
    let all = if all & GATE != 0 { GATE | UP | DOWN } else { UP | DOWN };
    for (name, layer) in layers {
        for (expert, set) in &layer.each {
            if set & all != all {
                let found = format!("no {}", matrices(all & !set));
                let finding = Finding::new(&rule::MODEL_021, found, matrices(all));
                push(finding.of_module(format!("{name}.experts.{expert}")));
            }
        }
        let missing = match (layer.gate_up, layer.down) {
            (Some(_), None) => "no down_proj",
            (None, Some(_)) => "no gate_up_proj",
            _ => continue,
        };
        let finding = Finding::new(&rule::MODEL_021, missing, "gate_up_proj and down_proj");
        push(finding.of_module(format!("{name}.experts")));
    }
}

/// Whether all experts of a layer are quantized alike: loaders make one layer of them.
fn alike(
    model: &Model<'_, '_>,
    layers: &BTreeMap<&str, Layer<'_, '_>>,
    push: &mut dyn FnMut(Finding),
) {
    for (name, layer) in layers {
        model.shards(&format!("{name}.experts"), &layer.parts, push);
    }
}
