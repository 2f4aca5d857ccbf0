//! What a reader cannot have wrong without failing a block case. It is found in the blocks and the
//! numbers of the cases; which bits do what is asked of `gguf-assay-quant`.
//!
//! The other half of `corpus/STRENGTH.md`: tables of hundreds of entries are looked at here, the rest
//! of the reference is changed and run.

use std::collections::BTreeSet;

use gguf_assay_cases::Corpus;
use gguf_assay_format::{ByteOrder, TENSOR_TYPES, TensorType};
use gguf_assay_quant::{Feed, RawBlock, Role, dequantize, feeds, fields, grid};

/// Each block of that type in the cases, and its numbers.
fn blocks<'a>(
    corpus: &'a Corpus,
    t: &'a TensorType,
) -> impl Iterator<Item = (RawBlock<'a>, Vec<f32>)> {
    corpus.blocks.iter().filter(move |case| case.tensor_type == t).flat_map(move |case| {
        case.values.chunks(t.block_len as usize).enumerate().map(|(index, numbers)| {
            let block = RawBlock::at(case.tensor_type, &case.bytes, ByteOrder::Little, index);
            let numbers = numbers.iter().map(|bits| f32::from_bits(*bits)).collect();
            (block.expect("the corpus is clean"), numbers)
        })
    })
}

fn type_named(name: &str) -> &'static TensorType {
    TensorType::by_name(name).unwrap()
}

/// A number in which the entry and the sign show: any other would be another number.
fn tells(number: f32) -> bool {
    number.is_finite() && number != 0.0
}

/// Every entry of every grid is, in each of its places, a number of a case.
#[test]
fn every_grid_entry() {
    let corpus = Corpus::embedded();
    for (name, entries, len) in [
        ("IQ1_S", grid::IQ1S.len(), 8), // and IQ1_M
        ("IQ2_XXS", grid::IQ2XXS.len(), 8),
        ("IQ2_XS", grid::IQ2XS.len(), 8),
        ("IQ2_S", grid::IQ2S.len(), 8),
        ("IQ3_XXS", grid::IQ3XXS.len(), 4),
        ("IQ3_S", grid::IQ3S.len(), 4),
    ] {
        let mut unseen: BTreeSet<(u64, usize)> =
            (0..entries as u64).flat_map(|entry| (0..len).map(move |k| (entry, k))).collect();
        for (block, numbers) in blocks(&corpus, type_named(name)) {
            for (j, _) in numbers.iter().enumerate().filter(|(_, number)| tells(**number)) {
                unseen.remove(&(block.part(Role::Index, j).unwrap(), j % len));
            }
        }
        assert!(unseen.is_empty(), "{name}: entries and places of no number: {unseen:?}");
    }
}

/// Every code of 7 bits for the signs of 8 elements is, for each of the 8, in a number of a case.
#[test]
fn every_code_of_signs() {
    let corpus = Corpus::embedded();
    for name in ["IQ2_XXS", "IQ2_XS", "IQ3_XXS"] {
        let mut unseen: BTreeSet<(u64, usize)> =
            (0..128).flat_map(|code| (0..8).map(move |k| (code, k))).collect();
        for (block, numbers) in blocks(&corpus, type_named(name)) {
            for (j, _) in numbers.iter().enumerate().filter(|(_, number)| tells(**number)) {
                // The eighth sign comes from all of them.
                unseen.remove(&(block.part(Role::Sign, j / 8 * 8 + 7).unwrap(), j % 8));
            }
        }
        assert!(unseen.is_empty(), "{name}: codes and places of no number: {unseen:?}");
    }
}

/// Where the bits of `feed` are in a little-endian block: byte, and bit of the byte.
fn places(t: &TensorType, feed: &Feed) -> Vec<(usize, u32)> {
    let field = fields(t).iter().find(|field| field.name == feed.field).unwrap();
    let first = field.offset + feed.index * field.kind.byte_len();
    feed.bits.clone().map(|bit| (first + bit as usize / 8, bit % 8)).collect()
}

/// Every bit that feeds an element changes it when it is turned over in some case's block; a bit of
/// a grid index changes an element of the entry.
#[test]
fn every_bit_for_every_element() {
    let corpus = Corpus::embedded();
    for t in TENSOR_TYPES {
        let len = t.block_len as usize;
        let mut unseen = BTreeSet::new();
        for j in 0..len {
            for feed in feeds(t, j) {
                let element = (feed.role != Role::Index).then_some(j);
                unseen.extend(places(t, &feed).into_iter().map(|place| (place, element)));
            }
        }
        let mut out = vec![0.0; len];
        for (block, numbers) in blocks(&corpus, t) {
            let mut bytes = block.bytes().to_vec();
            let waiting: BTreeSet<(usize, u32)> = unseen.iter().map(|(place, _)| *place).collect();
            for (byte, bit) in waiting {
                bytes[byte] ^= 1 << bit;
                dequantize(t, &bytes, ByteOrder::Little, &mut out).unwrap();
                bytes[byte] ^= 1 << bit;
                for (j, (a, b)) in numbers.iter().zip(&out).enumerate() {
                    if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
                        unseen.remove(&((byte, bit), Some(j)));
                        unseen.remove(&((byte, bit), None));
                    }
                }
            }
        }
        assert!(unseen.is_empty(), "{t}: bits that change nothing: {unseen:?}");
    }
}
