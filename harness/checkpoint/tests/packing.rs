//! Words made by hand, and what they mean.

use std::collections::BTreeMap;

use gguf_assay_checkpoint::Dtype;
use gguf_assay_checkpoint::packing::gpt_oss::from_gguf;
use gguf_assay_checkpoint::packing::{
    PackedLayout, Packing, Tensor, codes, explain, pack, quantized, relative_error, repack, unpack,
};

fn words(shape: &[u64], words: &[u32]) -> Tensor<'static> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Tensor::new(Dtype::I32, shape, bytes)
}

fn floats(shape: &[u64], numbers: &[f32]) -> Tensor<'static> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Tensor::new(Dtype::F32, shape, bytes)
}

fn ones(shape: &[u64]) -> Tensor<'static> {
    floats(shape, &vec![1.0; usize::try_from(shape.iter().product::<u64>()).unwrap()])
}

/// AWQ, autoawq 0.2.9 `AWQ_REVERSE_ORDER`: nibble i of a word is the column 0, 2, 4, 6, 1, 3, 5, 7.
#[test]
fn a_word_of_awq() {
    let packing = Packing { symmetric: false, ..Packing::new(PackedLayout::AwqGemm, 4) };
    let tensors = BTreeMap::from([
        ("qweight", words(&[1, 1], &[0x7654_3210])),
        ("qzeros", words(&[1, 1], &[0x0000_0000])),
        ("scales", ones(&[1, 8])),
    ]);
    let columns = [0.0, 4.0, 1.0, 5.0, 2.0, 6.0, 3.0, 7.0];
    assert_eq!(unpack(&packing, 8, 1, &tensors).unwrap(), columns);

    // The zero point is not shifted: 1 in column 4, whose nibble is the third.
    let tensors = BTreeMap::from([
        ("qweight", words(&[1, 1], &[0x7654_3210])),
        ("qzeros", words(&[1, 1], &[0x0000_0100])),
        ("scales", ones(&[1, 8])),
    ]);
    let columns = [0.0, 4.0, 1.0, 5.0, 1.0, 6.0, 3.0, 7.0];
    assert_eq!(unpack(&packing, 8, 1, &tensors).unwrap(), columns);
}

/// compressed-tensors 0.20.1 `pack_to_int32`: a code is the integer plus 8.
#[test]
fn a_word_of_eights_is_zeros() {
    let packing = Packing::new(PackedLayout::CompressedPack, 4);
    let tensors = BTreeMap::from([
        ("weight_packed", words(&[1, 1], &[0x8888_8888])),
        ("weight_scale", ones(&[1, 1])),
    ]);
    assert_eq!(unpack(&packing, 1, 8, &tensors).unwrap(), [0.0; 8]);
}

/// gptqmodel 7.7.0 `convert_gptq_v1_to_v2_format_module`: v1 stores zero points less one.
#[test]
fn both_versions_of_gptq_mean_eight() {
    for (v2, bits, word) in [
        (false, 4, 0x7777_7777),
        (true, 4, 0x8888_8888),
        (false, 8, 0x7F7F_7F7F),
        (true, 8, 0x8080_8080),
        (false, 2, 0x5555_5555),
        (true, 2, 0xAAAA_AAAA),
    ] {
        let packing = Packing::new(PackedLayout::Gptq { v2 }, bits);
        let (input, output) = (u64::from(32 / bits), u64::from(32 / bits));
        let middle = 1 << (bits - 1);
        let ramp: Vec<u32> = (0..output).map(|_| 0x0000_0001 | middle << bits).collect();
        let tensors = BTreeMap::from([
            ("qweight", words(&[1, output], &ramp)),
            ("qzeros", words(&[1, 1], &[word])),
            ("scales", ones(&[1, output])),
        ]);
        let quantized = quantized(&packing, output, input, &tensors).unwrap();
        let middle = i16::try_from(middle).unwrap();
        assert_eq!(quantized.zeros, Some(vec![middle; usize::try_from(output).unwrap()]));
        let numbers = unpack(&packing, output, input, &tensors).unwrap();
        assert_eq!(numbers[..2], [f32::from(1 - middle), 0.0], "{bits} bits, v2 {v2}");
    }
}

/// A stored 15 of v1 is a zero point of 0, by itself.
#[test]
fn a_zero_point_of_0_wraps_in_v1() {
    let packing = Packing::new(PackedLayout::Gptq { v2: false }, 4);
    let tensors = BTreeMap::from([
        ("qweight", words(&[1, 8], &[0x0000_0005; 8])),
        ("qzeros", words(&[1, 1], &[0x7777_77F7])),
        ("scales", ones(&[1, 8])),
    ]);
    let zeros = quantized(&packing, 8, 8, &tensors).unwrap().zeros.unwrap();
    assert_eq!(zeros, [8, 0, 8, 8, 8, 8, 8, 8]);
}

/// 32 codes of 3 bits fill three words; code 10 is bits 30 to 32, code 21 bits 63 to 65.
#[test]
fn three_bits() {
    let packing = Packing::new(PackedLayout::Gptq { v2: true }, 3);
    let mut stream = [0u32; 3];
    for (index, code) in [(0, 1), (10, 5), (21, 6), (31, 7)] {
        for bit in 0..3 {
            let place = 3 * index + bit;
            stream[place / 32] |= (code >> bit & 1) << (place % 32);
        }
    }
    assert_eq!(stream, [0x4000_0001, 0x0000_0001, 0xE000_0003]);
    let columns: Vec<u32> = stream.iter().flat_map(|word| [*word; 32]).collect();
    let tensors = BTreeMap::from([
        ("qweight", words(&[3, 32], &columns)),
        ("qzeros", words(&[1, 3], &[0; 3])),
        ("scales", ones(&[1, 32])),
    ]);
    let codes = codes(&packing, 32, 32, &tensors).unwrap();
    let mut expected = [0; 32];
    (expected[0], expected[10], expected[21], expected[31]) = (1, 5, 6, 7);
    for row in codes.chunks(32) {
        assert_eq!(row, expected);
    }
}

/// The group of an input is what `g_idx` says, with `desc_act`.
#[test]
fn act_order() {
    let packing =
        Packing { group_size: Some(4), ..Packing::new(PackedLayout::Gptq { v2: true }, 4) };
    let mut tensors = BTreeMap::from([
        ("qweight", words(&[1, 8], &[0x1111_1111; 8])),
        ("qzeros", words(&[2, 1], &[0, 0])),
        ("scales", floats(&[2, 8], &[[1.0; 8], [2.0; 8]].concat())),
        ("g_idx", words(&[8], &[1, 0, 1, 0, 1, 0, 1, 0])),
    ]);
    let numbers = unpack(&packing, 8, 8, &tensors).unwrap();
    assert_eq!(numbers[..8], [2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0]);

    tensors.remove("g_idx");
    let numbers = unpack(&packing, 8, 8, &tensors).unwrap();
    assert_eq!(numbers[..8], [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);

    tensors.insert("g_idx", words(&[8], &[0, 1, 2, 0, 0, 0, 0, 0]));
    let error = unpack(&packing, 8, 8, &tensors).unwrap_err();
    assert_eq!(error.to_string(), "g_idx: group 2 of input 2; expected 0 to 1");
}

#[test]
fn e2m1() {
    // By hand: codes 1 to 15, the low nibble first; a group scale of 2 (E4M3 0x40), a factor of 4.
    let bytes = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    let magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let expected: Vec<f32> =
        magnitudes.into_iter().chain(magnitudes.map(|number: f32| -number)).collect();
    for (divide, weight, factor, times) in [
        (true, "weight_packed", "weight_global_scale", 0.5),
        (false, "weight", "weight_scale_2", 8.0),
    ] {
        let packing = Packing::new(PackedLayout::Nvfp4 { divide }, 4);
        let tensors = BTreeMap::from([
            (weight, Tensor::new(Dtype::U8, &[1, 8], &bytes[..])),
            ("weight_scale", Tensor::new(Dtype::F8_E4M3, &[1, 1], &[0x40][..])),
            (factor, floats(&[1], &[4.0])),
        ]);
        let numbers = unpack(&packing, 1, 16, &tensors).unwrap();
        let expected: Vec<f32> = expected.iter().map(|number| number * times).collect();
        let bits = |numbers: &[f32]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&numbers), bits(&expected));
    }
}

#[test]
fn float8_blocks_may_be_partial() {
    // By hand: 3 rows and 5 columns in blocks of 2 by 4; E4M3 0x38 is 1, E5M2 0x40 is 2.
    let packing = Packing { block: Some([2, 4]), ..Packing::new(PackedLayout::Float8, 8) };
    let mut tensors = BTreeMap::from([
        ("weight", Tensor::new(Dtype::F8_E4M3, &[3, 5], vec![0x38; 15])),
        ("weight_scale_inv", floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])),
    ]);
    let of = |tensors: &_| unpack(&packing, 3, 5, tensors);
    let by_hand = [1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 4.0];
    assert_eq!(of(&tensors).unwrap(), by_hand);

    tensors.insert("weight", Tensor::new(Dtype::F8_E5M2, &[3, 5], vec![0x40; 15]));
    assert_eq!(of(&tensors).unwrap(), by_hand.map(|number| number * 2.0));

    // E8M0: 127 is 1, 128 is 2.
    let scales = Tensor::new(Dtype::F8_E8M0, &[2, 2], &[127, 128, 127, 127][..]);
    tensors.insert("weight_scale_inv", scales);
    assert_eq!(of(&tensors).unwrap()[3..5], [2.0, 4.0]);

    // QC-23: a scale for each block of rows, then of columns.
    let packing = Packing { block: Some([128, 128]), ..packing };
    let tensors = BTreeMap::from([
        ("weight", Tensor::new(Dtype::F8_E4M3, &[256, 128], vec![0; 256 * 128])),
        ("weight_scale_inv", floats(&[1, 2], &[1.0, 1.0])),
    ]);
    let error = unpack(&packing, 256, 128, &tensors).unwrap_err();
    let expected =
        "weight_scale_inv: F32 [1, 2]; expected BF16 or F16 or F32 or F8_E8M0 or U8 [2, 1]";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn bitsandbytes() {
    // By hand: the high nibble first, blocks of 4 of the flat weight, which is 2 rows of 3.
    let packing = Packing::new(PackedLayout::Bnb4, 4);
    let map: Vec<f32> = (0..16u8).map(f32::from).collect();
    let state = br#"{"quant_type": "nf4", "blocksize": 4, "dtype": "bfloat16", "shape": [2, 3]}"#;
    let mut tensors = BTreeMap::from([
        ("weight", Tensor::new(Dtype::U8, &[3, 1], &[0x12, 0x34, 0x56][..])),
        ("weight.absmax", floats(&[2], &[1.0, 10.0])),
        ("weight.quant_map", floats(&[16], &map)),
        (
            "weight.quant_state.bitsandbytes__nf4",
            Tensor::new(Dtype::U8, &[state.len() as u64], &state[..]),
        ),
    ]);
    let numbers = unpack(&packing, 2, 3, &tensors).unwrap();
    assert_eq!(numbers, [1.0, 2.0, 3.0, 4.0, 50.0, 60.0]);

    // Double quantization: places in a table, times the scale of 256 blocks, and an offset.
    let state = br#"{"quant_type": "nf4", "blocksize": 4, "dtype": "float16", "shape": [2, 3],
        "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.5}"#;
    let map: Vec<f32> = (0..=255u8).map(f32::from).collect();
    tensors.extend([
        ("weight.absmax", Tensor::new(Dtype::U8, &[2], &[3, 4][..])),
        ("weight.nested_absmax", floats(&[1], &[2.0])),
        ("weight.nested_quant_map", floats(&[256], &map)),
        (
            "weight.quant_state.bitsandbytes__nf4",
            Tensor::new(Dtype::U8, &[state.len() as u64], &state[..]),
        ),
    ]);
    let numbers = unpack(&packing, 2, 3, &tensors).unwrap();
    assert_eq!(numbers, [6.5, 13.0, 19.5, 26.0, 42.5, 51.0]);
    let error = unpack(&packing, 3, 2, &tensors).unwrap_err();
    let expected = "weight.quant_state.bitsandbytes__nf4: shape [2, 3]; expected [3, 2]";
    assert_eq!(error.to_string(), expected);

    let packing = Packing::new(PackedLayout::BnbInt8, 8);
    let tensors = BTreeMap::from([
        ("weight", Tensor::new(Dtype::I8, &[2, 2], &[127, 0x81, 0, 1][..])),
        ("SCB", floats(&[2], &[2.0, 127.0])),
    ]);
    assert_eq!(unpack(&packing, 2, 2, &tensors).unwrap(), [2.0, -2.0, 0.0, 1.0]);
}

#[test]
fn repacked_numbers_stay() {
    let gptq = Packing {
        group_size: Some(32),
        symmetric: false,
        ..Packing::new(PackedLayout::Gptq { v2: false }, 4)
    };
    let random = |seed: u32| (1..).map(move |n: u32| (n ^ seed).wrapping_mul(0x9E37_79B9));
    let take = |seed, len| random(seed).take(len).collect::<Vec<u32>>();
    let scales: Vec<f32> = (1..=128u16).map(|n| f32::from(n) / 64.0).collect();
    let tensors = BTreeMap::from([
        ("qweight", words(&[8, 64], &take(1, 512))),
        ("qzeros", words(&[2, 8], &take(2, 16))),
        ("scales", floats(&[2, 64], &scales)),
    ]);
    let numbers = unpack(&gptq, 64, 64, &tensors).unwrap();
    let awq = Packing { layout: PackedLayout::AwqGemm, ..gptq };
    let there = repack(&gptq, 64, 64, &tensors, &awq).unwrap();
    assert_eq!(there["qweight"].shape, [64, 8]);
    assert_eq!(unpack(&awq, 64, 64, &there).unwrap(), numbers);
    let compressed = Packing { layout: PackedLayout::CompressedPack, ..gptq };
    let there = repack(&awq, 64, 64, &there, &compressed).unwrap();
    assert_eq!(there["weight_zero_point"].shape, [8, 2]);
    assert_eq!(unpack(&compressed, 64, 64, &there).unwrap(), numbers);
    let back = repack(&compressed, 64, 64, &there, &gptq).unwrap();
    assert_eq!(back["qweight"], tensors["qweight"]);
    assert_eq!(back["qzeros"], tensors["qzeros"]);

    // What a layout cannot hold.
    let refuse = |to: Packing, quantized: &gguf_assay_checkpoint::packing::Quantized| {
        pack(&to, quantized).unwrap_err().to_string()
    };
    let mut quantized = quantized(&gptq, 64, 64, &tensors).unwrap();
    assert_eq!(
        refuse(Packing { symmetric: true, ..awq }, &quantized),
        format!(
            "zero point {}; expected 8: awq gemm has no zero points here",
            quantized.zeros.as_ref().unwrap().iter().find(|zero| **zero != 8).unwrap(),
        )
    );
    quantized.groups.swap(0, 63);
    assert_eq!(
        refuse(awq, &quantized),
        "inputs in groups of another order; expected groups of 32 in order: awq gemm has no g_idx",
    );
    assert_eq!(refuse(Packing { bits: 8, ..gptq }, &quantized), "4 bits; expected 8");
    assert_eq!(refuse(Packing { bits: 3, ..awq }, &quantized), "3 bits; expected 4 for awq gemm",);
    assert_eq!(refuse(Packing { group_size: None, ..gptq }, &quantized), "128 scales; expected 64");
    quantized.scale_dtype = Dtype::BF16;
    quantized.scales[0] = 0.1;
    assert_eq!(refuse(gptq, &quantized), "scales: 1e-1; expected a number that BF16 has");
}

#[test]
fn the_rule_is_found() {
    // Zero points of v2 in tensors that are said to be of v1.
    let v1 = Packing::new(PackedLayout::Gptq { v2: false }, 4);
    let tensors = BTreeMap::from([
        ("qweight", words(&[1, 8], &[0x7654_3210; 8])),
        ("qzeros", words(&[1, 1], &[0x3333_3333])),
        ("scales", ones(&[1, 8])),
    ]);
    let source: Vec<f32> = (0..64i16).map(|n| f32::from(n % 8 - 3)).collect();
    let candidates = explain(&v1, 8, 8, &tensors, &source).unwrap();
    assert_eq!((candidates[0].rule, candidates[0].error), ("zero points as stored, as in v2", 0.0));
    let declared = candidates.iter().find(|candidate| candidate.rule == "as declared").unwrap();
    assert_eq!(declared.error, 0.5); // by hand: off by 1 each, a mean of 2
    assert!(explain(&v1, 8, 8, &tensors, &source[1..]).is_err());
}

/// Tensors of one rule that are declared to be of another: the rule is found, and its error is 0.
#[test]
fn every_mistake_is_found() {
    type Pairs = BTreeMap<&'static str, Tensor<'static>>;
    let find =
        |rule: &str, packing: Packing, sizes: (u64, u64), tensors: &Pairs, source: &[f32]| {
            let candidates = explain(&packing, sizes.0, sizes.1, tensors, source).unwrap();
            assert_eq!(candidates[0].rule, rule, "{candidates:?}");
            assert!(candidates[0].error < 1e-7 && candidates[1].error > 1e-3, "{candidates:?}");
            assert!(candidates.iter().any(|candidate| candidate.rule == "as declared"));
        };
    let gptq = |v2| Packing { group_size: Some(4), ..Packing::new(PackedLayout::Gptq { v2 }, 4) };
    let mut tensors = BTreeMap::from([
        ("qweight", words(&[1, 8], &[0x7654_3210; 8])),
        ("qzeros", words(&[2, 1], &[0x7653_4216, 0x1244_3521])),
        ("scales", floats(&[2, 8], &[[1.0; 8], [2.0; 8]].concat())),
        ("g_idx", words(&[8], &[1, 0, 1, 0, 1, 0, 1, 0])),
    ]);
    let of = |packing: Packing, tensors: &Pairs| unpack(&packing, 8, 8, tensors).unwrap();
    let rule = "zero points less one, as in v1";
    find(rule, gptq(true), (8, 8), &tensors, &of(gptq(false), &tensors));
    // By hand: codes 0 to 7 less 8, and less 0, with scales in turn.
    let less = |zero: i16| -> Vec<f32> {
        (0..64i16).map(|n| f32::from((n % 8 - zero) * (2 - n % 2))).collect()
    };
    find("all zero points the middle", gptq(false), (8, 8), &tensors, &less(8));
    find("all zero points 0", gptq(false), (8, 8), &tensors, &less(0));
    let mut without = tensors.clone();
    without.remove("g_idx");
    let rule = "groups in order, without g_idx";
    find(rule, gptq(false), (8, 8), &tensors, &of(gptq(false), &without));
    // By hand: the code of input 0, 4, 1 … is 0, 1, 2 ….
    tensors.remove("g_idx");
    tensors.insert("qzeros", words(&[2, 1], &[0, 0]));
    let row = [0.0, 4.0, 1.0, 5.0, 4.0, 12.0, 6.0, 14.0];
    let rule = "the nibbles of a word in AWQ's order";
    find(rule, gptq(true), (8, 8), &tensors, &[row; 8].concat());
    // By hand: the other way around a byte, inputs 1, 0, 3, 2 ….
    let row = [1.0, 0.0, 3.0, 2.0, 10.0, 8.0, 14.0, 12.0];
    let rule = "the nibbles of a byte the other way around";
    find(rule, gptq(true), (8, 8), &tensors, &[row; 8].concat());
    let columns: Vec<f32> = (0..64).map(|n| of(gptq(true), &tensors)[n % 8 * 8 + n / 8]).collect();
    find("transposed", gptq(true), (8, 8), &tensors, &columns);

    // By hand: the carry of a field of ones goes into the next.
    for (bits, less_one, zeros, middle) in
        [(2, 0x0000_000F, 0x5555_5564, 0xAAAA_AAAA), (8, 0x0304_FF05, 0x0406_0006, 0x8080_8080)]
    {
        let size = u64::from(32 / bits);
        let declared = Packing::new(PackedLayout::Gptq { v2: false }, bits);
        let plain = Packing::new(PackedLayout::Gptq { v2: true }, bits);
        let of = |word| {
            BTreeMap::from([
                ("qweight", words(&[1, size], &vec![0x7654_3210; size as usize])),
                ("qzeros", words(&[1, 1], &[word])),
                ("scales", ones(&[1, size])),
            ])
        };
        for (rule, right) in [
            ("zero points less one in whole words, with carries", zeros),
            ("all zero points the middle", middle),
        ] {
            let source = unpack(&plain, size, size, &of(right)).unwrap();
            find(rule, declared, (size, size), &of(less_one), &source);
        }
    }

    let gpt_oss = Packing::new(PackedLayout::GptOss, 4);
    let bytes: Vec<u8> = (0..16).map(|byte| byte * 13).collect();
    let of = |bytes: Vec<u8>| {
        BTreeMap::from([
            ("blocks", Tensor::new(Dtype::U8, &[1, 1, 1, 16], bytes)),
            ("scales", Tensor::new(Dtype::U8, &[1, 1, 1], &[127][..])),
        ])
    };
    let (gguf, _) = from_gguf(&[&[127][..], &bytes].concat()).unwrap();
    let turned = bytes.iter().map(|byte| byte.rotate_left(4)).collect();
    for (rule, right) in [
        ("the nibbles of a byte the other way around", turned),
        ("low nibbles the first half of a block, as in GGUF", gguf),
    ] {
        let source = unpack(&gpt_oss, 1, 32, &of(right)).unwrap();
        find(rule, gpt_oss, (1, 32), &of(bytes.clone()), &source);
    }

    let awq = Packing { symmetric: false, ..Packing::new(PackedLayout::AwqGemm, 4) };
    let tensors = BTreeMap::from([
        ("qweight", words(&[2, 1], &[0x7654_3210, 0x1234_4321])),
        ("qzeros", words(&[1, 1], &[0x3333_3333])),
        ("scales", ones(&[1, 8])),
    ]);
    let source = unpack(&Packing { symmetric: true, ..awq }, 8, 2, &tensors).unwrap();
    find("all zero points the middle", awq, (8, 2), &tensors, &source);

    let blocks = Packing { block: Some([1, 1]), ..Packing::new(PackedLayout::Float8, 8) };
    let mut tensors = BTreeMap::from([
        ("weight", Tensor::new(Dtype::F8_E4M3, &[2, 2], vec![0x38; 4])),
        ("weight_scale_inv", floats(&[2, 2], &[1.0, 2.0, 4.0, 8.0])),
    ]);
    find("divided by the scale", blocks, (2, 2), &tensors, &[1.0, 0.5, 0.25, 0.125]);
    find("without scales", blocks, (2, 2), &tensors, &[1.0; 4]);
    // By hand: 0x38 is half of 1 as E5M2; the first two numbers here are not the same in turn.
    find("the other 8-bit floating point", blocks, (2, 2), &tensors, &[0.5, 1.0, 2.0, 4.0]);
    tensors.insert("weight", Tensor::new(Dtype::F8_E4M3, &[2, 2], &[0x38, 0x40, 0x38, 0x38][..]));
    find("scales transposed", blocks, (2, 2), &tensors, &[1.0, 8.0, 2.0, 8.0]);

    for (divide, weight, factor, rule, times) in [
        (
            true,
            "weight_packed",
            "weight_global_scale",
            "multiplied by the factor, as modelopt",
            4.0,
        ),
        (false, "weight", "weight_scale_2", "divided by the factor, as compressed-tensors", 0.25),
    ] {
        let tensors = BTreeMap::from([
            (weight, Tensor::new(Dtype::U8, &[1, 8], vec![0x42; 8])),
            ("weight_scale", Tensor::new(Dtype::F8_E4M3, &[1, 1], &[0x38][..])),
            (factor, floats(&[1], &[4.0])),
        ]);
        let source: Vec<f32> = (0..16).map(|n| [1.0, 2.0][n % 2] * times).collect();
        let packing = Packing::new(PackedLayout::Nvfp4 { divide }, 4);
        find(rule, packing, (1, 16), &tensors, &source);
    }

    let tensors = BTreeMap::from([
        ("weight", Tensor::new(Dtype::I8, &[1, 2], &[1, 2][..])),
        ("SCB", floats(&[1], &[2.0])),
    ]);
    let int8 = Packing::new(PackedLayout::BnbInt8, 8);
    find("integers times the largest number", int8, (1, 2), &tensors, &[2.0, 4.0]);
}

#[test]
fn errors_are_relative() {
    assert_eq!(relative_error(&[1.0, -2.0], &[1.0, -4.0]), 0.4);
    assert_eq!(relative_error(&[0.0], &[0.0]), 0.0);
    assert!(relative_error(&[f32::NAN], &[0.0]).is_nan());
    assert!(relative_error(&[1.0], &[]).is_nan());
}

#[test]
fn sizes_that_are_wrong_are_named() {
    let v1 = Packing::new(PackedLayout::Gptq { v2: false }, 4);
    let mut tensors = BTreeMap::from([
        ("qweight", words(&[8, 1], &[0; 8])),
        ("qzeros", words(&[1, 1], &[0])),
        ("scales", ones(&[1, 8])),
    ]);
    let error = |tensors: &_| unpack(&v1, 8, 8, tensors).unwrap_err().to_string();
    assert_eq!(error(&tensors), "qweight: I32 [8, 1]; expected I32 [1, 8]");
    tensors.insert("qweight", Tensor::new(Dtype::I32, &[1, 8], vec![0; 31]));
    assert_eq!(error(&tensors), "qweight: 31 bytes for I32 [1, 8]; expected 32 bytes");
    tensors.insert("qweight", Tensor::new(Dtype::F32, &[1, 8], vec![0; 32]));
    assert_eq!(error(&tensors), "qweight: F32 [1, 8]; expected I32 [1, 8]");
    tensors.insert("qweight", words(&[1; 9], &[0]));
    let found = "qweight: I32 [1, 1, 1, 1, 1, 1, 1, 1] and 1 more; expected I32 [1, 8]";
    assert_eq!(error(&tensors), found);
    tensors.remove("qweight");
    assert_eq!(error(&tensors), "qweight: no such tensor; expected I32 [1, 8]");
    // QC-05: a group size of -1 is one group; QC-04: zero points are packed along the output.
    let one_group = BTreeMap::from([
        ("qweight", words(&[16, 64], &[0; 1024])),
        ("qzeros", words(&[1, 8], &[0; 8])),
        ("scales", ones(&[1, 64])),
    ]);
    assert!(unpack(&v1, 64, 128, &one_group).is_ok());
    let packed = Packing {
        group_size: Some(32),
        symmetric: false,
        ..Packing::new(PackedLayout::CompressedPack, 4)
    };
    let transposed = BTreeMap::from([
        ("weight_packed", words(&[16, 8], &[0; 128])),
        ("weight_scale", ones(&[16, 2])),
        ("weight_zero_point", words(&[16, 1], &[0; 16])),
    ]);
    let error = unpack(&packed, 16, 64, &transposed).unwrap_err();
    assert_eq!(error.to_string(), "weight_zero_point: I32 [16, 1]; expected I32 [2, 2]");
    let error = unpack(&packed, 16, 63, &transposed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "in_features of 63; expected a multiple of 32: the group size of pack-quantized",
    );
    let huge = unpack(&v1, 1 << 60, 1 << 60, &tensors).unwrap_err();
    assert_eq!(
        huge.to_string(),
        "a weight of [1152921504606846976, 1152921504606846976]; \
         expected 1 to 2^32 features, 2^48 numbers at most",
    );
}
