//! What is refused, and in which words.

mod blocks;

use blocks::{type_named, types};
use gguf_assay_format::{ByteOrder, Status, TENSOR_TYPES, TensorType};
use gguf_assay_quant::block::{Block, Q8_0};
use gguf_assay_quant::{
    Layout, RawBlock, dequantize, dequantize_rows, feeds, fields, find_type, row_bytes,
};

const LITTLE: ByteOrder = ByteOrder::Little;

fn rule(error: &gguf_assay_quant::Error) -> Option<&'static str> {
    error.rule().map(|rule| rule.id)
}

#[test]
fn unknown_types() {
    for id in [44, 1000, u32::MAX] {
        let error = find_type(id).unwrap_err();
        assert_eq!(rule(&error), Some("TENSOR-008"));
        assert_eq!(
            error.to_string(),
            format!(
                "type {id}: no tensor type has this id; the last one is 43 (TENSOR-008: a tensor's \
                 type is one that exists)"
            )
        );
    }
    let made_up = TensorType { block_bytes: 1, ..*type_named("Q4_0") };
    let error = dequantize(&made_up, &[0], LITTLE, &mut [0.0; 32]).unwrap_err();
    assert_eq!(rule(&error), Some("TENSOR-008"));
    let words =
        "Q4_0 (type 2): not the type that has this id, with 32 elements and 1 bytes in a block";
    assert!(error.to_string().starts_with(words), "{error}");
    assert_eq!((fields(&made_up).len(), feeds(&made_up, 0).len()), (0, 0));
}

#[test]
fn removed_types() {
    let mut seen = 0;
    for t in TENSOR_TYPES.iter().filter(|t| t.status == Status::Removed) {
        let errors = [
            find_type(t.id).unwrap_err(),
            row_bytes(t, 0).unwrap_err(),
            dequantize(t, &[], LITTLE, &mut []).unwrap_err(),
            dequantize_rows(t, 32, &[], LITTLE, &mut []).unwrap_err(),
            RawBlock::at(t, &[], LITTLE, 0).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(rule(&error), Some("TENSOR-009"), "{t}");
            let words = format!("{t} (type {}): removed from the format (TENSOR-009: ", t.id);
            assert!(error.to_string().starts_with(&words), "{error}");
        }
        assert_eq!((fields(t).len(), feeds(t, 0).len()), (0, 0));
        seen += 1;
    }
    assert_eq!(seen, 8);
}

/// Lengths in bytes that are off by any amount, for every type; nothing is written.
#[test]
fn wrong_lengths_in_bytes() {
    for t in types() {
        let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
        for found in [0, 1, bytes - 1, bytes, 2 * bytes - 1, 2 * bytes + 1, 3 * bytes] {
            let mut out = vec![7.0; 2 * len];
            let error = dequantize(t, &vec![0xFF; found], LITTLE, &mut out).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{t}: {} elements take {} bytes, found {found}", 2 * len, 2 * bytes)
            );
            assert_eq!(rule(&error), None);
            assert!(out.iter().all(|y| *y == 7.0));
        }
        assert!(dequantize(t, &[0], LITTLE, &mut []).is_err());
        assert!(dequantize(t, &[], LITTLE, &mut []).is_ok());
    }
}

#[test]
fn rows_that_are_no_whole_blocks() {
    let q4_k = type_named("Q4_K");
    let error = dequantize(q4_k, &[0; 288], LITTLE, &mut [0.0; 300]).unwrap_err();
    assert_eq!(rule(&error), Some("TENSOR-010"));
    assert_eq!(
        error.to_string(),
        "Q4_K: 300 elements are no whole number of blocks of 256 (TENSOR-010: a row is a whole \
         number of blocks: the first dimension divides by the block size)"
    );
    // Four rows of 192 are three blocks, but the second row would start inside the first block.
    let error = dequantize_rows(q4_k, 192, &[0; 3 * 144], LITTLE, &mut [0.0; 768]).unwrap_err();
    assert_eq!(rule(&error), Some("TENSOR-010"));
    assert!(error.to_string().starts_with("Q4_K: 192 elements"), "{error}");
}

#[test]
fn rows_that_do_not_fit() {
    let q4_0 = type_named("Q4_0");
    let error = dequantize_rows(q4_0, 64, &[0; 54], LITTLE, &mut [0.0; 96]).unwrap_err();
    assert_eq!(error.to_string(), "Q4_0: 96 elements are no whole number of rows of 64");
    let error = dequantize_rows(q4_0, 0, &[0; 54], LITTLE, &mut [0.0; 96]).unwrap_err();
    assert_eq!(error.to_string(), "Q4_0: 96 elements are no whole number of rows of 0");
    let error = dequantize_rows(q4_0, 32, &[0; 53], LITTLE, &mut [0.0; 96]).unwrap_err();
    assert_eq!(error.to_string(), "Q4_0: 96 elements take 54 bytes, found 53");
    assert!(dequantize_rows(q4_0, 0, &[], LITTLE, &mut []).is_ok());
    assert!(dequantize_rows(q4_0, 96, &[], LITTLE, &mut []).is_ok());
}

#[test]
fn sizes_beyond_64_bits() {
    let f64 = type_named("F64");
    assert_eq!(row_bytes(f64, 1 << 60), Ok(1 << 63));
    let error = row_bytes(f64, 1 << 61).unwrap_err();
    assert_eq!(rule(&error), Some("TENSOR-011"));
    assert_eq!(
        error.to_string(),
        "F64: 2305843009213693952 elements take more bytes than 64 bits can count (TENSOR-011: a \
         tensor's size in bytes fits 64 bits)"
    );
    // By hand: 2880 elements are 90 blocks of 17 bytes.
    assert_eq!(row_bytes(type_named("MXFP4"), 2880), Ok(1530));
}

#[test]
fn blocks_that_are_not_there() {
    let q4_0 = type_named("Q4_0");
    let error = RawBlock::at(q4_0, &[0; 36], LITTLE, 2).unwrap_err();
    assert_eq!(error.to_string(), "Q4_0: there is no block 2 among 2");
    let error = RawBlock::at(q4_0, &[0; 35], LITTLE, 0).unwrap_err();
    assert_eq!(error.to_string(), "Q4_0: 35 bytes are no whole number of blocks of 18 bytes");
    let bytes: Vec<u8> = (0..54).collect();
    let block = RawBlock::at(q4_0, &bytes, LITTLE, 2).unwrap();
    assert_eq!((block.bytes(), block.field("qs", 15).unwrap().bits), (&bytes[36..], 53));
}

/// A block that is used by itself does not truncate either.
#[test]
fn single_blocks() {
    let block = Q8_0::parse(&[0; 34], LITTLE).unwrap();
    block.dequantize(&mut [7.0; 32]);
    for len in [31, 33] {
        let write = || block.dequantize(&mut vec![7.0; len]);
        assert!(std::panic::catch_unwind(write).is_err(), "{len} elements");
    }
    for len in [33, 35] {
        assert_eq!(Q8_0::parse(&vec![0; len], LITTLE), None, "{len} bytes");
    }
}
