//! Checkpoints that quantizers made of two models of random weights, against those weights: the
//! slices in `packing/slices`, which `slice.py` there made, and the whole checkpoints where they
//! are at hand.
//!
//! Expected errors are those of `slice.py`, whose unpacking is written apart from ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gguf_assay_checkpoint::Dtype;
use gguf_assay_checkpoint::packing::{
    PackedLayout, Packing, Tensor, explain, pack, quantized, relative_error, repack, unpack,
};
use half::bf16;
use libtest_mimic::{Arguments, Failed, Trial};
use safetensors::SafeTensors;
use serde::Deserialize;

/// A folder with the whole checkpoints, each with `model.safetensors`.
const VARIABLE: &str = "GGUF_ASSAY_CHECKPOINTS";

#[derive(Clone, Deserialize)]
struct Figures {
    source: String,
    /// By rule.
    slice: BTreeMap<String, f64>,
    /// By module and rule.
    modules: BTreeMap<String, BTreeMap<String, f64>>,
}

/// What the config of each declares.
fn packing(name: &str) -> Packing {
    let of = |layout, bits| Packing { group_size: Some(32), ..Packing::new(layout, bits) };
    match name {
        "qwen3-gptq-w4g32-autoround" | "qwen3moe-gptq-w4g32-autoround" => {
            of(PackedLayout::Gptq { v2: false }, 4)
        }
        "qwen3-gptq-w2g32-autoround" => of(PackedLayout::Gptq { v2: false }, 2),
        "qwen3-awq-w4g32-autoround" => Packing { symmetric: false, ..of(PackedLayout::AwqGemm, 4) },
        "qwen3-ct-w4a16-asym-g32" => {
            Packing { symmetric: false, ..of(PackedLayout::CompressedPack, 4) }
        }
        "qwen3-ct-mxfp4a16" => of(PackedLayout::Mxfp4, 4),
        "qwen3-ct-fp8-dynamic" => Packing::new(PackedLayout::Float8, 8),
        "qwen3-fp8block-autoround" => {
            Packing { block: Some([128, 128]), ..Packing::new(PackedLayout::Float8, 8) }
        }
        "qwen3-bnb-nf4" => Packing::new(PackedLayout::Bnb4, 4),
        _ => panic!("{name}"),
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packing/slices");
    let figures = fs::read(here.join("figures.json")).unwrap();
    let figures: BTreeMap<String, Figures> = serde_json::from_slice(&figures).unwrap();
    let mut trials = Vec::new();
    for (name, figures) in &figures {
        let (here, name, figures) = (here.clone(), name.clone(), figures.clone());
        trials.push(Trial::test(format!("{name}::slice"), move || {
            let of = |name: &str| here.join(format!("{name}.safetensors"));
            let (packed, source) = (fs::read(of(&name))?, fs::read(of(&figures.source))?);
            let [module] = &modules(&SafeTensors::deserialize(&packed)?)[..] else {
                panic!("a slice is of one module")
            };
            check(&name, module, &packed, &source, &figures.slice)
        }));
    }
    let whole = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match whole {
        Some(whole) => {
            for (name, figures) in figures {
                let whole = whole.clone();
                trials.push(Trial::test(format!("{name}::whole"), move || {
                    let of = |name: &str| whole.join(name).join("model.safetensors");
                    let (packed, source) = (fs::read(of(&name))?, fs::read(of(&figures.source))?);
                    let modules = modules(&SafeTensors::deserialize(&packed)?);
                    let expected: Vec<&String> = figures.modules.keys().collect();
                    assert_eq!(modules.iter().collect::<Vec<_>>(), expected);
                    for module in &modules {
                        check(&name, module, &packed, &source, &figures.modules[module])?;
                    }
                    Ok(())
                }));
            }
        }
        None => {
            // Shown as ignored, by the name of what is missing.
            let trial = Trial::test(format!("whole checkpoints from ${VARIABLE}"), || Ok(()));
            trials.push(trial.with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The modules whose scales are there, in order of their names.
fn modules(file: &SafeTensors<'_>) -> Vec<String> {
    let scales = [".scales", ".weight_scale", ".weight_scale_inv", ".weight.absmax"];
    let names = file.names().into_iter();
    let mut modules: Vec<String> = names
        .filter_map(|name| scales.iter().find_map(|suffix| name.strip_suffix(suffix)))
        .map(String::from)
        .collect();
    modules.sort();
    modules
}

fn tensors<'a>(file: &SafeTensors<'a>, module: &str) -> BTreeMap<String, Tensor<'a>> {
    let of_module = |(name, view): (String, safetensors::tensor::TensorView<'a>)| {
        let suffix = name.strip_prefix(module)?.strip_prefix('.')?.to_owned();
        let shape: Vec<u64> = view.shape().iter().map(|dim| *dim as u64).collect();
        let dtype = Dtype::find(&view.dtype().to_string()).unwrap();
        Some((suffix, Tensor::new(dtype, &shape, view.data())))
    };
    file.tensors().into_iter().filter_map(of_module).collect()
}

fn check(
    name: &str,
    module: &str,
    packed: &[u8],
    source: &[u8],
    expected: &BTreeMap<String, f64>,
) -> Result<(), Failed> {
    let (file, source) = (SafeTensors::deserialize(packed)?, SafeTensors::deserialize(source)?);
    let source = source.tensor(&format!("{module}.weight"))?;
    let [output, input] = [0, 1].map(|dim| source.shape()[dim] as u64);
    let source: Vec<f32> = source
        .data()
        .chunks_exact(2)
        .map(|bytes| bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32())
        .collect();
    let tensors = tensors(&file, module);
    let tensors: BTreeMap<&str, Tensor<'_>> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let packing = packing(name);

    let candidates = explain(&packing, output, input, &tensors, &source)?;
    for (rule, expected) in expected {
        let found = candidates.iter().find(|candidate| candidate.rule == rule);
        let found = found.unwrap_or_else(|| panic!("{rule} was not tried")).error;
        // Divisions by a scale round otherwise in torch, by a last place.
        assert!((found / expected - 1.0).abs() < 1e-6, "{module}: {rule}: {found}, not {expected}");
    }
    let [best, second, ..] = &candidates[..] else { panic!("no other rule was tried") };
    assert_eq!(best.rule, "as declared", "{module}: {candidates:?}");
    assert!(second.error > best.error, "{module}: {candidates:?}");

    // Integers go to every layout that has room for them, and mean the same there.
    let Ok(integers) = quantized(&packing, output, input, &tensors) else { return Ok(()) };
    let numbers = unpack(&packing, output, input, &tensors)?;
    for (bits, layout) in [
        (2, PackedLayout::Gptq { v2: true }),
        (4, PackedLayout::Gptq { v2: true }),
        (4, PackedLayout::AwqGemm),
        (4, PackedLayout::CompressedPack),
    ] {
        let to = Packing { layout, symmetric: false, ..packing };
        if bits != packing.bits {
            continue;
        }
        let there = repack(&packing, output, input, &tensors, &to)?;
        assert_eq!(relative_error(&unpack(&to, output, input, &there)?, &numbers), 0.0);
    }
    for (name, tensor) in pack(&packing, &integers)? {
        if let Some(before) = tensors.get(name) {
            assert_eq!(&tensor, before, "{module}.{name}");
        }
    }
    Ok(())
}
