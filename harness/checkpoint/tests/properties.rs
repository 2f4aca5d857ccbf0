//! Packing and unpacking undo each other, sizes that do not fit are refused, and nothing panics.

use std::collections::BTreeMap;

use gguf_assay_checkpoint::Dtype;
use gguf_assay_checkpoint::packing::{
    NotUnpacked, PackedLayout, Packing, Quantized, Tensor, Tensors, codes, explain, gpt_oss, pack,
    pack_codes, quantized, unpack,
};
use gguf_assay_format::{ByteOrder, TensorType};
use gguf_assay_quant::dequantize;
use half::f16;
use proptest::prelude::*;

use PackedLayout::{
    AwqGemm, AwqGemv, AwqGemvFast, AwqMarlin, Bnb4, BnbInt8, CompressedInt, CompressedPack, Float8,
    GptOss, Gptq, Mxfp4, Nvfp4,
};

const LAYOUTS: [PackedLayout; 15] = [
    Gptq { v2: false },
    Gptq { v2: true },
    AwqGemm,
    AwqGemv,
    AwqGemvFast,
    AwqMarlin,
    CompressedPack,
    CompressedInt,
    Float8,
    Nvfp4 { divide: true },
    Nvfp4 { divide: false },
    Mxfp4,
    Bnb4,
    BnbInt8,
    GptOss,
];

/// What `Packing` and sizes a layout of integers has: of features, by how much they grow.
fn integers() -> impl Strategy<Value = (Packing, usize, usize)> {
    let layout = prop::sample::select(&LAYOUTS[..8]);
    let sizes = (layout, 0usize..8, any::<bool>(), any::<bool>(), 1usize..4, 1usize..4);
    sizes.prop_map(|(layout, width, symmetric, whole_row, rows, cols)| {
        let widths: &[u32] = match layout {
            Gptq { .. } => &[2, 3, 4, 8],
            CompressedPack | CompressedInt => &[1, 2, 3, 4, 5, 6, 7, 8],
            _ => &[4],
        };
        let bits = widths[width % widths.len()];
        let (group, out_step) = match layout {
            // Words that are not full, too.
            Gptq { .. } | CompressedPack | CompressedInt => (5 + 7 * width, 5),
            AwqGemm => (3 + width, 8),
            AwqGemv => ([16, 32, 64, 128][width % 4], 8),
            AwqGemvFast => (64, 8),
            _ => (16, 64),
        };
        let symmetric = match layout {
            Gptq { .. } | AwqGemvFast => false,
            AwqMarlin => true,
            _ => symmetric,
        };
        let cols = group * cols;
        // Of a whole row gemv has 128 inputs at least.
        let cols = if whole_row && layout == AwqGemv { cols.max(128) } else { cols };
        let cols = if whole_row && layout == AwqGemvFast { cols.max(128) } else { cols };
        let group_size = (!whole_row).then_some(group as u64);
        let packing = Packing { group_size, symmetric, ..Packing::new(layout, bits) };
        (packing, out_step * rows, cols)
    })
}

fn weight() -> impl Strategy<Value = (Packing, Quantized)> {
    let seeded = (integers(), any::<u64>(), any::<bool>());
    seeded.prop_map(|((packing, out_features, in_features), seed, act_order)| {
        let mut state = seed;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let Packing { layout, bits, group_size, symmetric, .. } = packing;
        let group = group_size.map_or(in_features, |group| group as usize);
        let groups = in_features.div_ceil(group);
        let mut of_inputs: Vec<u32> =
            (0..in_features).map(|input| (input / group) as u32).collect();
        if act_order && matches!(layout, Gptq { .. } | CompressedPack | CompressedInt) {
            for input in (1..in_features).rev() {
                of_inputs.swap(input, random(input + 1));
            }
        }
        let codes = (0..out_features * in_features).map(|_| random(1 << bits) as u8).collect();
        // Positive, and different enough that a product tells the zero point of gemv_fast.
        let scale = |_| f16::from_bits(0x2000 + random(0x1000) as u16).to_f32();
        let scales: Vec<f32> = (0..groups * out_features).map(scale).collect();
        let zeros = scales.iter().map(|_| random(1 << bits) as i16).collect();
        let quantized = Quantized {
            out_features,
            in_features,
            bits,
            codes,
            groups: of_inputs,
            scale_dtype: Dtype::F16,
            scales,
            zeros: (!symmetric).then_some(zeros),
        };
        (packing, quantized)
    })
}

fn sizes(quantized: &Quantized) -> (u64, u64) {
    (quantized.out_features as u64, quantized.in_features as u64)
}

fn read(
    packing: &Packing,
    quantized: &Quantized,
    tensors: &Tensors<'_>,
) -> Result<Vec<f32>, NotUnpacked> {
    let (out_features, in_features) = sizes(quantized);
    unpack(packing, out_features, in_features, tensors)
}

proptest! {
    #[test]
    fn integers_come_back((packing, weight) in weight()) {
        let tensors = pack(&packing, &weight).unwrap();
        let (out_features, in_features) = sizes(&weight);
        let back = quantized(&packing, out_features, in_features, &tensors).unwrap();
        prop_assert_eq!(&back, &weight);
        let numbers = read(&packing, &weight, &tensors).unwrap();
        if packing.layout != AwqGemvFast {
            prop_assert_eq!(numbers, weight.numbers());
        }
        prop_assert_eq!(&codes(&packing, out_features, in_features, &tensors).unwrap(), &back.codes);
        // Whoever declares fewer or more features is refused.
        let step = if packing.layout == AwqMarlin { 64 } else { 40 };
        for sizes in [(out_features + step, in_features), (out_features, in_features + 128)] {
            prop_assert!(unpack(&packing, sizes.0, sizes.1, &tensors).is_err());
        }
    }

    #[test]
    fn a_tensor_that_does_not_fit_is_named((packing, weight) in weight(), which: prop::sample::Index, how in 0..5) {
        let mut tensors = pack(&packing, &weight).unwrap();
        let names: Vec<&str> = tensors.keys().copied().collect();
        let name = *which.get(&names);
        let tensor = tensors.get_mut(name).unwrap();
        match how {
            0 => tensor.shape[0] += 1,
            1 => tensor.shape.push(2),
            2 => tensor.dtype = Dtype::C64,
            3 => { tensor.bytes.to_mut().pop(); }
            // It may be missing: groups are then in order, and the shape is declared.
            _ if ["g_idx", "weight_g_idx", "weight_shape"].contains(&name) => return Ok(()),
            _ => { tensors.remove(name); }
        }
        let error = read(&packing, &weight, &tensors).unwrap_err();
        prop_assert_eq!(error.tensor.as_deref(), Some(name));
    }

    #[test]
    fn other_codes_come_back(
        layout in prop::sample::select(&LAYOUTS[8..]),
        rows in 1u64..5,
        groups in 1u64..4,
        bytes: [u8; 32],
    ) {
        let bits = if matches!(layout, Float8 | BnbInt8) { 8 } else { 4 };
        let packing = Packing::new(layout, bits);
        let in_features = groups * 32;
        let there: Vec<u8> = bytes.iter().map(|byte| byte >> (8 - bits)).cycle()
            .take((rows * in_features) as usize).collect();
        let dtype = Dtype::F8_E4M3;
        let pair = pack_codes(&packing, dtype, rows, in_features, &there).unwrap();
        let tensors = BTreeMap::from([pair]);
        prop_assert_eq!(codes(&packing, rows, in_features, &tensors).unwrap(), there.clone());
        prop_assert!(codes(&packing, rows + 1, in_features, &tensors).is_err());
        prop_assert!(pack_codes(&packing, dtype, rows, in_features, &there[1..]).is_err());
        if bits == 4 {
            let wide = vec![16; there.len()];
            prop_assert!(pack_codes(&packing, dtype, rows, in_features, &wide).is_err());
        }
    }

    #[test]
    fn gpt_oss_and_gguf_agree(
        blocks in prop::collection::vec(any::<[u8; 16]>(), 1..20),
        scales in prop::collection::vec(any::<u8>(), 20),
    ) {
        let scales = &scales[..blocks.len()];
        let rows = blocks.len() as u64;
        let blocks = blocks.concat();
        let packing = Packing::new(GptOss, 4);
        let tensors = BTreeMap::from([
            ("blocks", Tensor::new(Dtype::U8, &[1, rows, 1, 16], &blocks[..])),
            ("scales", Tensor::new(Dtype::U8, &[1, rows, 1], scales)),
        ]);
        let ours = unpack(&packing, rows, 32, &tensors).unwrap();
        let gguf = gpt_oss::to_gguf(&blocks, scales).unwrap();
        prop_assert_eq!(gpt_oss::from_gguf(&gguf).unwrap(), (blocks, scales.to_vec()));
        let mut theirs = vec![0.0; ours.len()];
        let mxfp4 = TensorType::by_name("MXFP4").unwrap();
        dequantize(mxfp4, &gguf, ByteOrder::Little, &mut theirs).unwrap();
        for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            if scales[index / 32] == 255 {
                // By the OCP text a NaN; ggml has 2^128, and 0 times it is 0.
                prop_assert!(ours.is_nan() && !theirs.is_nan());
            } else {
                // The code of -0 is 0 in ggml.
                let ours = if *ours == 0.0 { 0.0 } else { *ours };
                prop_assert_eq!(ours.to_bits(), theirs.to_bits());
            }
        }
    }

    #[test]
    fn nothing_panics(
        layout in prop::sample::select(&LAYOUTS[..]),
        bits in 0u32..10,
        sizes in (size(), size()),
        group_size in prop::option::of(size()),
        block in prop::option::of([size(), size()]),
        symmetric: bool,
        tensors in prop::collection::btree_map(prop::sample::select(NAMES), tensor(), 0..8),
    ) {
        let packing = Packing { layout, bits, group_size, symmetric, block };
        let (out_features, in_features) = sizes;
        let unpacked = unpack(&packing, out_features, in_features, &tensors);
        let _ = codes(&packing, out_features, in_features, &tensors);
        let _ = quantized(&packing, out_features, in_features, &tensors);
        if let Ok(numbers) = unpacked {
            explain(&packing, out_features, in_features, &tensors, &numbers).unwrap();
        }
    }
}

/// At the edges, and small.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..3, Just(8), Just(16), Just(32), Just(64), Just(u64::MAX), 1u64 << 31..1 << 33]
}

const NAMES: &[&str] = &[
    "SCB",
    "blocks",
    "g_idx",
    "qweight",
    "qzeros",
    "scales",
    "weight",
    "weight.absmax",
    "weight.nested_absmax",
    "weight.nested_quant_map",
    "weight.quant_map",
    "weight.quant_state.bitsandbytes__nf4",
    "weight_packed",
    "weight_global_scale",
    "weight_scale",
    "weight_scale_2",
    "weight_scale_inv",
    "weight_shape",
    "weight_zero_point",
];

fn tensor() -> impl Strategy<Value = Tensor<'static>> {
    let shape = prop::collection::vec(prop_oneof![0u64..3, Just(8), Just(u64::MAX)], 0..5);
    let dtype = prop::sample::select(Dtype::ALL);
    (dtype, shape, any::<u8>(), any::<bool>()).prop_map(|(dtype, shape, byte, whole)| {
        let len = dtype.byte_len(&shape).filter(|len| *len <= 1 << 16).unwrap_or(7);
        let bytes = vec![byte; len as usize + usize::from(!whole)];
        Tensor::new(dtype, &shape, bytes)
    })
}

/// By hand: gate and up in turn.
#[test]
fn rows_of_gate_and_up() {
    let rows = [1, 2, 11, 12, 3, 4, 13, 14];
    let [gate, up] = gpt_oss::deinterleave(&rows, 2);
    assert_eq!((&gate[..], &up[..]), (&[1, 2, 3, 4][..], &[11, 12, 13, 14][..]));
    assert_eq!(gpt_oss::interleave(&gate, &up, 2), rows);
}

/// By hand: bytes 0x10, 0x32 … are elements 0, 1, 2, 3 …; ggml pairs 0 with 16.
#[test]
fn a_block_of_gpt_oss_in_gguf() {
    let block: Vec<u8> = (0..16).map(|byte: u8| 0x10 + byte % 8 * 0x22).collect();
    assert_eq!((block[0], block[1]), (0x10, 0x32));
    let gguf = gpt_oss::to_gguf(&block, &[127]).unwrap();
    let halves: Vec<u8> = (0..16).map(|code: u8| code | code << 4).collect();
    assert_eq!(gguf, [&[127][..], &halves].concat());
    assert!(gpt_oss::to_gguf(&block, &[127, 127]).is_err());
    assert!(gpt_oss::from_gguf(&gguf[1..]).is_err());
}
