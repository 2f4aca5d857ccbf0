//! Blocks whose numbers were worked out by hand or are on public record, most of them from bugs of
//! other readers. Where ggml has a function, it has to agree.

mod blocks;

use blocks::{ggmls, is_same, ours, type_named, types_of_ggml};
use gguf_assay_format::ByteOrder;
use gguf_assay_quant::dequantize;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// Bytes from pieces of hex, each of which may be repeated: `"00 3C"`, `"F0*16"`.
fn bytes(text: &str) -> Vec<u8> {
    let piece = |piece: &str| {
        let (byte, count) = piece.split_once('*').unwrap_or((piece, "1"));
        vec![u8::from_str_radix(byte, 16).unwrap(); count.parse().unwrap()]
    };
    text.split_whitespace().flat_map(piece).collect()
}

/// The elements of `block` are these, each so many times.
#[track_caller]
fn check(type_name: &str, block: &str, runs: &[(f32, usize)]) {
    let t = type_named(type_name);
    let block = bytes(block);
    let expected: Vec<f32> =
        runs.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count)).collect();
    let agree = |ours: &[f32]| {
        ours.len() == expected.len() && ours.iter().zip(&expected).all(|(a, b)| is_same(*a, *b))
    };
    let found = ours(t, &block);
    assert!(agree(&found), "{t}: {found:?}, by hand {expected:?}");
    if types_of_ggml().any(|u| u == t) {
        let ggmls = ggmls(t, &block);
        assert!(agree(&ggmls), "{t} in ggml: {ggmls:?}, by hand {expected:?}");
    }
}

/// Low nibbles are elements 0 to 15; the offset is 8 (aprender #2069, 1bit-MONSTER #572).
#[test]
fn q4_0() {
    check("Q4_0", "00 3C F0*16", &[(-8.0, 16), (7.0, 16)]);
    // A quant of 8 is a zero with the sign of the scale.
    check("Q4_0", "00 BC 98*16", &[(-0.0, 16), (-1.0, 16)]);
}

/// The min stands behind the scale (gguf-tools commit 55d6267).
#[test]
fn q4_1() {
    check("Q4_1", "00 3C 00 40 00*16", &[(2.0, 32)]);
    check("Q4_1", "00 3C 00 C0 F1*16", &[(-1.0, 16), (13.0, 16)]);
}

/// The fifth bits (aprender #1621, #1656).
#[test]
fn q5() {
    let runs = [(0.0, 1), (-16.0, 15), (1.0, 1), (-15.0, 14), (1.0, 1)];
    check("Q5_0", "00 3C 01 00 01 80 10*16", &runs);
    let runs = [(16.5, 1), (0.5, 15), (17.5, 1), (1.5, 14), (17.5, 1)];
    check("Q5_1", "00 3C 00 38 01 00 01 80 10*16", &runs);
}

/// A subnormal scale (kekzl/imp #808), a NaN and an infinite one (aprender #2187, llama.cpp #6884).
#[test]
fn q8_0() {
    check("Q8_0", "01 00 01*32", &[(1.0 / 16_777_216.0, 32)]); // 2^-24
    check("Q8_0", "00 7E 01*32", &[(NAN, 32)]);
    check("Q8_0", "00 7C 00 01*31", &[(NAN, 1), (INF, 31)]);
    check("Q8_0", "00 3C 80 7F FF*30", &[(-128.0, 1), (127.0, 1), (-1.0, 30)]);
}

/// ggml has no function for it. The sum, here a NaN, does not matter.
#[test]
fn q8_1() {
    check("Q8_1", "00 38 00 7E 02*16 FE*16", &[(1.0, 16), (-1.0, 16)]);
    check("Q8_1", "00 B8 00 00 80 00*30 7F", &[(64.0, 1), (-0.0, 30), (-63.5, 1)]);
}

/// Scales in lo, mins in hi (aprender #1924).
#[test]
fn q2_k() {
    let scales = "10 11 12 13 14 15 16 17 18 19 1A 1B 1C 1D 1E 1F";
    let runs = [
        (-1.0, 32),
        (1.0, 16),
        (2.0, 16),
        (7.0, 16),
        (9.0, 16),
        (17.0, 16),
        (20.0, 16),
        (-1.0, 32),
        (9.0, 16),
        (10.0, 16),
        (23.0, 16),
        (25.0, 16),
        (41.0, 16),
        (44.0, 16),
    ];
    check("Q2_K", &format!("{scales} E4*64 00 3C 00 3C"), &runs);
}

/// Scales of six bits, 32 subtracted (aprender #2115).
#[test]
fn q3_k() {
    // hmask and quants 0: q is -4. Scales: 0, 1, 2 and 3 sixteens, minus 32. The zero is one of
    // 0 · -4.
    let block = "00*32 00*64 00*8 E4*4 00 3C";
    check("Q3_K", block, &[(128.0, 64), (64.0, 64), (-0.0, 64), (-64.0, 64)]);
    let block = "FF*32 FF*64 00*8 E4*4 00 3C";
    check("Q3_K", block, &[(-96.0, 64), (-48.0, 64), (0.0, 64), (48.0, 64)]);
}

/// The six bits of sub-blocks 4 to 7 are spread over two bytes.
#[test]
fn q4_k() {
    let block = "00 3C 00 3C C1 01 01 01 C2 02 02 02 31 00 00 00 10*128";
    check("Q4_K", block, &[(-2.0, 32), (-1.0, 32), (-2.0, 32), (-1.0, 32), (-51.0, 32), (0.0, 96)]);
}

/// Halves of a byte, the fifth bit (aprender #2127; candle #1569, commit 41915184b).
#[test]
fn q5_k() {
    let scales = "00 3C 00 00 01 01 01 01 00*8";
    let runs = [(16.0, 32), (31.0, 32), (0.0, 32), (15.0, 32), (0.0, 128)];
    check("Q5_K", &format!("{scales} 03*32 F0*128"), &runs);
    check("Q5_K", &format!("{scales} 00*32 00*128"), &[(0.0, 256)]);
    check("Q5_K", &format!("{scales} 01*32 00*128"), &[(16.0, 32), (0.0, 224)]);
}

/// Sizes, the second super-block (1bit-MONSTER #734, #488).
#[test]
fn q6_k() {
    let block = "10*128 E4*64 01*8 FF*8 00 3C";
    let runs = [
        (-32.0, 32),
        (-16.0, 32),
        (1.0, 32),
        (17.0, 32),
        (32.0, 32),
        (16.0, 32),
        (-1.0, 32),
        (-17.0, 32),
    ];
    check("Q6_K", block, &runs);
    check("Q6_K", &format!("{block} {block}"), &[runs, runs].concat());
}

/// The only type with a scale of 32 bits; the sums do not matter.
#[test]
fn q8_k() {
    check("Q8_K", "00 00 00 3F 02*128 80*128 FF*32", &[(1.0, 128), (-64.0, 128)]);
}

/// The table (llama.cpp #7311).
#[test]
fn iq4_nl() {
    check("IQ4_NL", "00 3C 10*16", &[(-127.0, 16), (-104.0, 16)]);
    check("IQ4_NL", "00 00 00*16", &[(-0.0, 32)]);
    check("IQ4_NL", "00 00 F8*16", &[(0.0, 32)]);
}

/// Scales of six bits, 32 subtracted: here 33, 30, and -32 six times.
#[test]
fn iq4_xs() {
    let runs = [(1.0, 16), (13.0, 16), (-2.0, 16), (-26.0, 16)];
    let rest = [(-32.0, 16), (-416.0, 16)];
    let runs = [&runs[..], &rest, &rest, &rest, &rest, &rest, &rest].concat();
    check("IQ4_XS", "00 3C 06 00 E1 00*3 98*128", &runs);
}

/// Low nibbles are elements 0 to 15, not every other one (kekzl/imp #567); the table has each value
/// twice, and the scale is halved (tinygrad #14850).
#[test]
fn mxfp4() {
    let runs = [
        (0.5, 1),
        (1.5, 1),
        (3.0, 1),
        (6.0, 1),
        (-0.5, 1),
        (-1.5, 1),
        (-3.0, 1),
        (-6.0, 1),
        (0.0, 8),
        (1.0, 1),
        (2.0, 1),
        (4.0, 1),
        (0.0, 1),
        (-1.0, 1),
        (-2.0, 1),
        (-4.0, 1),
        (0.0, 9),
    ];
    check("MXFP4", "7F 21 43 65 87 A9 CB ED 0F 00*8", &runs);
    // 2^-127 times a half, and times six; no NaN at 255, but an infinity for six.
    let tiny = f32::from_bits(1 << 21);
    check("MXFP4", "00 71*16", &[(tiny, 16), (12.0 * tiny, 16)]);
    check("MXFP4", "FF 72*16", &[(2.0f32.powi(127) * 2.0, 16), (INF, 16)]);
}

/// Scales of 16 elements each: 1, 2^-9, none, 480.
#[test]
fn nvfp4() {
    let runs = [
        (0.5, 8),
        (-6.0, 8),
        (0.5 / 512.0, 8),
        (-6.0 / 512.0, 8),
        (0.0, 8),
        (-0.0, 8),
        (240.0, 8),
        (-2880.0, 8),
    ];
    check("NVFP4", "38 01 7F FF F1*32", &runs);
}

/// Subnormal numbers are not flushed (llama.cpp #7843, commit e59cf541).
#[test]
fn bf16() {
    let block = "80 3F C0 7F 80 7F 80 FF 01 00 00 80";
    let tiny = f32::from_bits(0x10000);
    check("BF16", block, &[(1.0, 1), (NAN, 1), (INF, 1), (-INF, 1), (tiny, 1), (-0.0, 1)]);
}

/// Not to be mistaken for BF16 (1bit-MONSTER #677).
#[test]
fn f16() {
    let tiny = 1.0 / 16_777_216.0;
    let block = "00 3C 80 3F FF 7B 01 00 00 80 00 FC 00 7E";
    let runs = [(1.0, 1), (1.875, 1), (65504.0, 1), (tiny, 1), (-0.0, 1), (-INF, 1), (NAN, 1)];
    check("F16", block, &runs);
}

/// Subnormal codes, and NaN instead of 480 (MLX #4135, tilelang #2702, ram-coffers #716).
#[test]
fn f8_e4m3() {
    let least = 1.0 / 512.0;
    let block = "01 07 08 7E 7F FF 80";
    let runs =
        [(least, 1), (7.0 * least, 1), (8.0 * least, 1), (448.0, 1), (NAN, 1), (NAN, 1), (-0.0, 1)];
    check("F8_E4M3", block, &runs);
}

/// The code 3, which no quantizer writes, is 2 in ggml (and in gguf-py).
#[test]
fn ternary() {
    let runs = [(-1.0, 32), (0.0, 32), (1.0, 32), (2.0, 32)];
    check("TQ2_0", "E4*64 00 3C", &[runs, runs].concat());
    // 2·81 + 0·27 + 1·9 + 2·3 + 1 = 178 of 243, so 178·256/243 = 187.5 rounded up: digits 2, 0, 1,
    // 2, 1.
    let digits = |count| [(1.0, count), (-1.0, count), (0.0, count), (1.0, count), (0.0, count)];
    let runs = [&digits(32)[..], &digits(16), &digits(4)[..4]].concat();
    check("TQ1_0", "BC*48 BC*4 00 3C", &runs);
}

#[test]
fn one_and_two_bits() {
    // 0x35 has bits 0, 2, 4 and 5.
    let byte = [(1.5, 1), (-1.5, 1), (1.5, 1), (-1.5, 1), (1.5, 2), (-1.5, 2)];
    check("Q1_0", "00 3E 35*16", &byte.repeat(16));
    let byte = [(-1.5, 1), (0.0, 1), (1.5, 1), (3.0, 1)];
    check("Q2_0", "00 3E E4*16", &byte.repeat(16));
}

/// ggml has no function for these: the conversion of Rust is IEEE's, to nearest, ties to even.
#[test]
fn plain() {
    let block = "00 00 80 3F 01 00 00 00 00 00 80 7F 00 00 C0 7F 00 00 00 80";
    check("F32", block, &[(1.0, 1), (f32::from_bits(1), 1), (INF, 1), (NAN, 1), (-0.0, 1)]);
    check("I8", "00 7F 80 FF", &[(0.0, 1), (127.0, 1), (-128.0, 1), (-1.0, 1)]);
    check("I16", "FF 7F 00 80 FE FF", &[(32767.0, 1), (-32768.0, 1), (-2.0, 1)]);
    // 2^24 + 1 and 2^24 + 3 lie in the middle: to the even one. 2^31 - 1 goes up.
    let block = "01 00 00 01 03 00 00 01 FF FF FF 7F 00 00 00 80";
    let top = 2_147_483_648.0;
    check("I32", block, &[(16_777_216.0, 1), (16_777_220.0, 1), (top, 1), (-top, 1)]);
    // 2^53 + 2^29 + 1 is just above a tie, in f32 but not in f64: rounding once, not twice.
    let block = "01 00 00 20 00 00 20 00 FF FF FF FF FF FF FF 7F FF*8";
    let up = 9_007_199_254_740_992.0 + 1_073_741_824.0;
    check("I64", block, &[(up, 1), (9_223_372_036_854_775_807.0, 1), (-1.0, 1)]);
    // 1 + 2^-24, a tie; the number after it; 2^128; the largest f32; 2^-150, a tie; -0.
    let block = "00 00 00 10 00 00 F0 3F 01 00 00 10 00 00 F0 3F 00 00 00 00 00 00 F0 47 \
                 00 00 00 E0 FF FF EF 47 00 00 00 00 00 00 90 36 00*7 80";
    let next = f32::from_bits(0x3F80_0001);
    let runs = [(1.0, 1), (next, 1), (INF, 1), (f32::MAX, 1), (0.0, 1), (-0.0, 1)];
    check("F64", block, &runs);
}

/// Big-endian, by hand.
#[test]
fn big_endian() {
    let check = |name: &str, block: &str, expected: &[f32]| {
        let t = type_named(name);
        let block = bytes(block);
        let mut out = vec![0.0; block.len() / t.block_bytes as usize * t.block_len as usize];
        dequantize(t, &block, ByteOrder::Big, &mut out).unwrap();
        assert_eq!(out[..expected.len()], *expected, "{t}");
    };
    check("F32", "3F 80 00 00", &[1.0]);
    check("F64", "3F F0 00 00 00 00 00 00", &[1.0]);
    check("F16", "3C 00", &[1.0]);
    check("BF16", "3F 80", &[1.0]);
    check("I16", "00 01", &[1.0]);
    check("I64", "00 00 00 00 00 00 00 01", &[1.0]);
    check("Q4_0", "3C 00 F0*16", &[-8.0; 16]);
    check("Q4_K", "3C 00 40 00 01 00*3 01 00*7 11*128", &[-1.0; 32]);
    check("Q5_0", "3C 00 80 01 00 01 10*16", &[0.0, -16.0]);
    check("Q6_K", "10*128 E4*64 01*8 FF*8 3C 00", &[-32.0; 32]);
    check("Q8_K", "3F 00 00 00 02*256 00*32", &[1.0; 256]);
    check("MXFP4", "7F 01*16", &[0.5; 16]);
}
