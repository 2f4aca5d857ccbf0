//! Our numbers against ggml's, bit for bit, for every type that ggml has a function for.
//!
//! With `GGUF_ASSAY_LONG=1` there are 2^22 random blocks of each type, which takes minutes.

mod blocks;

use blocks::{
    Random, assert_as_ggml, difference, each_half_scale, each_random, each_scale_byte,
    for_each_type, ggmls, half_scales, is_long, scale_bytes, type_named, types, types_of_ggml,
};
use gguf_assay_format::ByteOrder;
use gguf_assay_quant::{dequantize_rows, fields, grid};

#[test]
fn which_types_ggml_has() {
    let missing: Vec<_> =
        types().filter(|t| types_of_ggml().all(|u| u != *t)).map(|t| t.name).collect();
    assert_eq!(missing, ["F32", "Q8_1", "I8", "I16", "I32", "I64", "F64"]);
}

/// Every pattern of bytes.
#[test]
fn random_blocks() {
    let count = if is_long() { 1 << 22 } else { 1 << 16 };
    for_each_type(types_of_ggml(), |t| {
        each_random(t, count, |blocks| assert_as_ggml(t, blocks, "random"));
    });
}

/// The same byte everywhere: no bits, all bits, every other one, and the rest.
#[test]
fn even_blocks() {
    for_each_type(types_of_ggml(), |t| {
        for byte in 0..=255 {
            assert_as_ggml(t, &vec![byte; t.block_bytes as usize], "even");
        }
    });
}

/// Every half-precision number as a scale or a min.
#[test]
fn half_precision_scales() {
    for_each_type(types_of_ggml(), |t| {
        each_half_scale(t, |blocks| assert_as_ggml(t, blocks, "every scale"));
    });
}

/// The types that have such a scale, so that none is left out above without a word.
#[test]
fn which_types_have_half_precision_scales() {
    let with = |count| {
        let types = types_of_ggml().filter(move |t| half_scales(t).len() == count);
        types.map(|t| t.name).collect::<Vec<_>>()
    };
    assert_eq!(with(0), ["F16", "Q8_K", "BF16", "MXFP4", "NVFP4", "F8_E4M3"]);
    assert_eq!(with(2), ["Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"]);
    assert_eq!(with(0).len() + with(1).len() + with(2).len(), types_of_ggml().count());
}

/// Every value of every byte that has a scale or a part of one.
#[test]
fn scales_in_bytes() {
    for_each_type(types_of_ggml(), |t| {
        each_scale_byte(t, |blocks| {
            assert_as_ggml(t, blocks, "every value of a byte with a scale")
        });
    });
}

#[test]
fn which_bytes_have_scales() {
    let bytes = |name| scale_bytes(type_named(name));
    assert_eq!(bytes("Q4_K"), (4..16).collect::<Vec<_>>());
    assert_eq!(bytes("Q6_K"), (192..208).collect::<Vec<_>>());
    assert_eq!(bytes("Q3_K"), (96..108).collect::<Vec<_>>());
    assert_eq!(bytes("IQ3_S"), (106..110).collect::<Vec<_>>());
    assert_eq!(bytes("IQ2_XXS"), (0..8).map(|i| 9 + 8 * i).collect::<Vec<_>>());
    assert_eq!(bytes("IQ4_XS"), (2..8).collect::<Vec<_>>());
    assert_eq!((bytes("MXFP4"), bytes("NVFP4")), (vec![0], vec![0, 1, 2, 3]));
}

/// All plain numbers of 8 and 16 bits.
#[test]
fn small_numbers() {
    let every: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for name in ["F16", "BF16", "F8_E4M3"] {
        assert_as_ggml(type_named(name), &every, "every number");
    }
}

/// Rows in odd numbers, of one block and of several.
#[test]
fn rows() {
    for_each_type(types_of_ggml(), |t| {
        for (rows, blocks) in [(1, 1), (1, 3), (3, 1), (5, 2), (7, 3), (31, 5)] {
            let bytes = Random::of(t).blocks(t, rows * blocks);
            let row_len = blocks * t.block_len as usize;
            let mut out = vec![0.0; rows * row_len];
            dequantize_rows(t, row_len, &bytes, ByteOrder::Little, &mut out).unwrap();
            assert_eq!(difference(&out, &ggmls(t, &bytes)), None, "{t}: {rows} rows of {row_len}");
        }
    });
}

/// Every entry of every grid, from a block of ggml that selects it. By hand: with these scales, the
/// factor of a block is 1, or 8 for the entries that are shifted by 1/8.
#[test]
fn grids() {
    // A block whose first elements are the entry: its scale, then where the index has its low and
    // its high bits, and what else is not zero.
    let first = |name: &str, d: &[u8], low: &str, high: (&str, u8), index: usize| {
        let t = type_named(name);
        let at = |field: &str| fields(t).iter().find(|f| f.name == field).map(|f| f.offset);
        let mut block = vec![0; t.block_bytes as usize];
        if let Some(at) = at("d") {
            block[at..at + 2].copy_from_slice(d);
        }
        block[at(low).unwrap()] = index as u8;
        block[at(high.0).unwrap() + usize::from(high.1)] |= (index >> 8) as u8;
        (t, block)
    };
    // Halves: 8 is 0x4800, 4 is 0x4400, 1 is 0x3C00.
    for index in 0..grid::IQ2XXS.len() {
        let (t, block) = first("IQ2_XXS", &[0x00, 0x48], "qs", ("qs", 0), index);
        assert_eq!(ggmls(t, &block)[..8], grid::IQ2XXS.entry(index).map(f32::from), "{index}");
    }
    for index in 0..grid::IQ2XS.len() {
        let (t, block) = first("IQ2_XS", &[0x00, 0x48], "qs", ("qs", 1), index);
        assert_eq!(ggmls(t, &block)[..8], grid::IQ2XS.entry(index).map(f32::from), "{index}");
    }
    for index in 0..grid::IQ2S.len() {
        let (t, block) = first("IQ2_S", &[0x00, 0x48], "qs", ("qh", 0), index);
        assert_eq!(ggmls(t, &block)[..8], grid::IQ2S.entry(index).map(f32::from), "{index}");
    }
    for index in 0..grid::IQ3XXS.len() {
        let (t, block) = first("IQ3_XXS", &[0x00, 0x44], "qs", ("qs", 0), index);
        assert_eq!(ggmls(t, &block)[..4], grid::IQ3XXS.entry(index).map(f32::from), "{index}");
    }
    for index in 0..grid::IQ3S.len() {
        let (t, block) = first("IQ3_S", &[0x00, 0x3C], "qs", ("qh", 0), index);
        assert_eq!(ggmls(t, &block)[..4], grid::IQ3S.entry(index).map(f32::from), "{index}");
    }
    for index in 0..grid::IQ1S.len() {
        let shifted = grid::IQ1S.entry(index).map(|g| f32::from(g) * 8.0 + 1.0);
        let (t, block) = first("IQ1_S", &[0x00, 0x48], "qs", ("qh", 0), index);
        assert_eq!(ggmls(t, &block)[..8], shifted, "{index}");
        let (t, mut block) = first("IQ1_M", &[], "qs", ("qh", 0), index);
        // The digits of 0x4800 in the top bits of four words, the lowest first.
        block[48..].copy_from_slice(&[0, 0x00, 0, 0x00, 0, 0x80, 0, 0x40]);
        assert_eq!(ggmls(t, &block)[..8], shifted, "{index}");
    }
    let lens = [grid::IQ2XXS.len(), grid::IQ2XS.len(), grid::IQ2S.len(), grid::IQ1S.len()];
    assert_eq!(lens, [256, 512, 1024, 2048]);
    assert_eq!([grid::IQ3XXS.len(), grid::IQ3S.len()], [256, 512]);
}
