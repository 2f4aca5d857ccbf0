//! The shape formulas of the methods: what packing lays down for random legal sizes follows from them,
//! and no other shape does.
//!
//! Packing is held to the tools' own vectors, and has its sizes from them and not from the formulas.

mod support;

use gguf_assay_checkpoint::packing::{PackedLayout, Packing, Quantized, pack};
use gguf_assay_checkpoint::{Checkpoint, Dtype, Judgement, Options, judge};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use support::{Made, Model};

const MODULE: &str = "layers.0.proj";

#[derive(Clone, Copy, Debug)]
struct Sizes {
    layout: PackedLayout,
    bits: u32,
    out_features: usize,
    in_features: usize,
    /// None: one for the whole row.
    group: Option<usize>,
}

/// Legal sizes: groups divide the input, and words come out even.
fn sizes() -> impl Strategy<Value = Sizes> {
    let layouts = [
        PackedLayout::Gptq { v2: false },
        PackedLayout::Gptq { v2: true },
        PackedLayout::AwqGemm,
        PackedLayout::AwqGemv,
        PackedLayout::CompressedPack,
        PackedLayout::CompressedInt,
    ];
    let layout = prop::sample::select(layouts.to_vec());
    let group = prop::sample::select(&[32usize, 64, 128][..]);
    (layout, 0usize..8, 1usize..5, 1usize..5, group, any::<bool>()).prop_map(
        |(layout, width, rows, groups, group, whole_row)| {
            let widths: &[u32] = match layout {
                PackedLayout::Gptq { .. } => &[2, 3, 4, 8],
                PackedLayout::CompressedPack => &[1, 2, 3, 4, 5, 6, 7, 8],
                PackedLayout::CompressedInt => &[8],
                _ => &[4],
            };
            // autoawq has groups of 64 and 128 at least for gemv.
            let in_features = group * groups.max(2);
            Sizes {
                layout,
                bits: widths[width % widths.len()],
                out_features: 32 * rows,
                in_features,
                group: (!whole_row || layout == PackedLayout::AwqGemv).then_some(group),
            }
        },
    )
}

/// The tensors that packing lays down for codes of 1, with zero points in the middle.
fn model(sizes: Sizes) -> Model {
    let Sizes { layout, bits, out_features, in_features, group } = sizes;
    let size = group.unwrap_or(in_features);
    let groups = in_features.div_ceil(size);
    let middle = 1i16 << (bits - 1);
    let symmetric = matches!(layout, PackedLayout::CompressedPack | PackedLayout::CompressedInt);
    let quantized = Quantized {
        out_features,
        in_features,
        bits,
        codes: vec![1; out_features * in_features],
        groups: (0..in_features).map(|input| (input / size) as u32).collect(),
        scale_dtype: Dtype::F16,
        scales: vec![0.5; groups * out_features],
        zeros: (!symmetric).then(|| vec![middle; groups * out_features]),
    };
    let group_size = group.map(|group| group as u64);
    let packing = Packing { group_size, symmetric, ..Packing::new(layout, bits) };
    let tensors = pack(&packing, &quantized).unwrap();
    let tensors = tensors.into_iter().map(|(suffix, tensor)| Made {
        name: format!("{MODULE}.{suffix}"),
        dtype: tensor.dtype.name.into(),
        shape: tensor.shape,
        bytes: tensor.bytes.into_owned(),
    });
    let group_size: i64 = group.map_or(-1, |group| group as i64);
    let compressed = |format: &str| {
        let strategy = if group.is_some() { "group" } else { "channel" };
        let mut weights = json!({
            "num_bits": bits, "type": "int", "symmetric": true, "strategy": strategy,
        });
        if group.is_some() {
            weights["group_size"] = group_size.into();
        }
        json!({
            "quant_method": "compressed-tensors", "format": format,
            "config_groups": { "group_0": { "targets": ["Linear"], "weights": weights } },
        })
    };
    let quantization = match layout {
        PackedLayout::Gptq { v2 } => json!({
            "quant_method": "gptq", "bits": bits, "group_size": group_size, "sym": true,
            "desc_act": false, "checkpoint_format": if v2 { "gptq_v2" } else { "gptq" },
        }),
        PackedLayout::AwqGemm | PackedLayout::AwqGemv => json!({
            "quant_method": "awq", "bits": bits, "group_size": group_size, "zero_point": true,
            "version": if layout == PackedLayout::AwqGemm { "gemm" } else { "gemv" },
        }),
        PackedLayout::CompressedPack => compressed("pack-quantized"),
        _ => compressed("int-quantized"),
    };
    Model { config: json!({ "quantization_config": quantization }), tensors: tensors.collect() }
}

fn judged(model: &Model) -> Judgement {
    judge(&Checkpoint::open(model.files()).unwrap(), &Options::default())
}

/// A tensor whose bytes are as many as its shape says.
fn resize(tensor: &mut Made, shape: Vec<u64>) {
    let len = Dtype::find(&tensor.dtype).unwrap().byte_len(&shape).unwrap();
    let fill = tensor.bytes.first().copied().unwrap_or(0);
    tensor.bytes.resize(len as usize, fill);
    tensor.shape = shape;
}

fn faults(judgement: &Judgement) -> Vec<String> {
    let faults = judgement.findings.iter().filter(|finding| finding.is_fault());
    faults.map(ToString::to_string).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// All that is laid down follows, and the weight has the lengths that it was made of.
    #[test]
    fn legal_sizes_follow(sizes in sizes()) {
        let judgement = judged(&model(sizes));
        prop_assert!(judgement.is_accepted(), "{sizes:?}: {:?}", faults(&judgement));
        let [module] = judgement.modules.as_slice() else { panic!("{sizes:?}") };
        let (rows, cols) = (sizes.out_features as u64, sizes.in_features as u64);
        prop_assert_eq!((module.out_features, module.in_features), (Some(rows), Some(cols)));
        prop_assert_eq!(module.bits, u64::from(sizes.bits));
    }

    /// One tensor has a row more or less, or is transposed: they are not the tensors of that weight.
    /// Those of another they may be, where its codes alone say how long a row is.
    #[test]
    fn other_shapes_do_not(sizes in sizes(), which in any::<prop::sample::Index>(), how in 0usize..5) {
        let mut model = model(sizes);
        // A bias, or a shape that is stated, is no matter of formulas.
        let shaped: Vec<usize> = (0..model.tensors.len())
            .filter(|place| !model.tensors[*place].name.ends_with(".weight_shape"))
            .collect();
        let tensor = &mut model.tensors[shaped[which.index(shaped.len())]];
        let mut shape = tensor.shape.clone();
        let last = shape.len() - 1;
        match how {
            0 => shape[0] += 1,
            1 => shape[0] -= 1,
            2 => shape[last] += 1,
            3 => shape[last] -= 1,
            _ => shape.reverse(),
        }
        prop_assume!(shape != tensor.shape && !shape.contains(&0));
        let name = tensor.name.clone();
        resize(tensor, shape.clone());
        let judgement = judged(&model);
        if judgement.is_accepted() {
            let [module] = judgement.modules.as_slice() else { panic!("{sizes:?}") };
            let (rows, cols) = (sizes.out_features as u64, sizes.in_features as u64);
            let same = (module.out_features, module.in_features) == (Some(rows), Some(cols));
            prop_assert!(!same, "{sizes:?}: {name} {shape:?} is accepted");
            prop_assert!(sizes.group.is_none(), "{sizes:?}: {name} {shape:?} is accepted");
        }
    }
}

/// Sizes that the methods do not have.
#[test]
fn illegal_sizes_are_refused() {
    let gptq = Sizes {
        layout: PackedLayout::Gptq { v2: false },
        bits: 4,
        out_features: 32,
        in_features: 128,
        group: Some(64),
    };
    for (edit, rule) in [
        // 96 inputs are 1.5 groups of 64; 36 outputs of 4 bits are 4.5 words.
        ((96, 32), "METHOD-014"),
        ((128, 36), "METHOD-015"),
    ] {
        let (in_features, out_features) = edit;
        let mut model = model(gptq);
        let (inputs, outputs) = (in_features as u64, out_features as u64);
        for tensor in &mut model.tensors {
            let groups = inputs.div_ceil(64);
            let shape = match tensor.name.rsplit('.').next().unwrap() {
                "qweight" => vec![inputs / 8, outputs],
                "qzeros" => vec![groups, (outputs * 4).div_ceil(32)],
                "scales" => vec![groups, outputs],
                _ => vec![inputs],
            };
            resize(tensor, shape);
        }
        let judgement = judged(&model);
        let rules: Vec<&str> = judgement.findings.iter().map(|finding| finding.rule.id).collect();
        assert!(rules.contains(&rule), "{rules:?}: {:?}", faults(&judgement));
    }
    let config: &mut Json = &mut model(gptq).config;
    config["quantization_config"]["group_size"] = 0.into();
    let judgement = judged(&Model { config: config.clone(), ..model(gptq) });
    assert!(faults(&judgement).iter().any(|fault| fault.starts_with("METHOD-003")));
}
