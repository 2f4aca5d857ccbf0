//! Which bits an element comes from: ggml is asked, by turning them over one by one.

mod blocks;

use std::collections::{BTreeMap, BTreeSet};

use blocks::{Random, bits, for_each_type, ggmls, is_same, ours, type_named, types, types_of_ggml};
use gguf_assay_format::ByteOrder;
use gguf_assay_quant::{Feed, RawBlock, Role, dequantize, feeds, fields};

/// Bits make a difference to the elements that they feed in some block, and to no other in any.
/// Bits of an index make one to some element of the grid's entry.
#[test]
fn every_bit() {
    let with_ggml: Vec<_> = types_of_ggml().collect();
    // The other plain numbers have no bits but their own, the lowest of which a rounding may hide.
    let types = types().filter(|t| t.is_quantized() || with_ggml.contains(t));
    for_each_type(types, |t| {
        let numbers = if with_ggml.contains(&t) { ggmls } else { ours };
        let len = t.block_len as usize;
        let claims: Vec<BTreeMap<(usize, u32), Role>> = (0..len)
            .map(|j| {
                let feeds = feeds(t, j).into_iter();
                feeds.flat_map(|feed| bits(t, &feed).into_iter().map(move |b| (b, feed.role)))
            })
            .map(Iterator::collect)
            .collect();
        // Pairs of bit and element, and all bits of indices that did anything.
        let (mut seen, mut seen_index_bits) = (BTreeSet::new(), BTreeSet::new());

        let mut random = Random::of(t);
        for round in 0.. {
            let mut block = random.blocks(t, 1);
            match round {
                // The scales that only a few patterns reach.
                0 => block.fill(0xFF),
                1 => block.fill(0x7F),
                _ => {}
            }
            let before = numbers(t, &block);
            for bit in (0..block.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
                block[bit.0] ^= 1 << bit.1;
                for (j, (a, b)) in before.iter().zip(numbers(t, &block)).enumerate() {
                    if !is_same(*a, b) {
                        match claims[j].get(&bit) {
                            Some(Role::Index) => seen_index_bits.insert(bit),
                            Some(_) => seen.insert((bit, j)),
                            None => panic!("{t}: {bit:?} feeds element {j}"),
                        };
                    }
                }
                block[bit.0] ^= 1 << bit.1;
            }
            let unseen = claims
                .iter()
                .enumerate()
                .flat_map(|(j, claims)| claims.iter().map(move |(bit, role)| (*bit, j, *role)));
            let unseen = unseen.filter(|(bit, j, role)| match role {
                Role::Index => !seen_index_bits.contains(bit),
                _ => !seen.contains(&(*bit, *j)),
            });
            match unseen.collect::<Vec<_>>() {
                // Not before random blocks: in blocks of NaN, no bit is missed.
                unseen if unseen.is_empty() && round > 1 => break,
                unseen => assert!(round < 3000, "{t}: never seen: {unseen:?}"),
            }
        }
    });
}

/// The lengths of the fields add up to the block, names occur once, every feed is in a field and
/// has bits.
#[test]
fn layouts() {
    for t in types() {
        let end = fields(t).iter().fold(0, |end, field| {
            assert_eq!(field.offset, end, "{t}: {}", field.name);
            assert!(!field.meaning.is_empty());
            end + field.byte_len()
        });
        assert_eq!(end, t.block_bytes as usize, "{t}");
        let names: BTreeSet<_> = fields(t).iter().map(|field| field.name).collect();
        assert_eq!(names.len(), fields(t).len(), "{t}");
        assert_eq!(feeds(t, t.block_len as usize), [], "{t}");
        let mut all = (0..t.block_len as usize).flat_map(|j| feeds(t, j));
        assert!(all.all(|feed| !feed.bits.is_empty()), "{t}");
    }
}

/// A big-endian block is the little-endian one with the bytes of every number turned around.
#[test]
fn big_endian() {
    for t in types() {
        let little = Random::of(t).blocks(t, 512);
        let mut big = little.clone();
        for block in big.chunks_mut(t.block_bytes as usize) {
            for field in fields(t) {
                let numbers = &mut block[field.offset..][..field.byte_len()];
                numbers.chunks_mut(field.kind.byte_len()).for_each(<[u8]>::reverse);
            }
        }
        let expected = ours(t, &little);
        let mut out = vec![0.0; expected.len()];
        dequantize(t, &big, ByteOrder::Big, &mut out).unwrap();
        assert_eq!(blocks::difference(&out, &expected), None, "{t}");
        // The fields that nothing comes from, too.
        let value = |bytes, order| {
            let block = RawBlock::at(t, bytes, order, 511).unwrap();
            block.values().map(|(_, _, value)| value.bits).collect::<Vec<_>>()
        };
        assert_eq!(value(&little, ByteOrder::Little), value(&big, ByteOrder::Big), "{t}");
    }
}

/// By hand: `gguf_convert_endian.py` of gguf-py 0.19.0 turns around d in Q4_0 and Q8_0, d and dmin in
/// Q4_K, d in Q6_K, and nothing in MXFP4 and NVFP4.
#[test]
fn units_of_gguf_py() {
    let wide = |name| -> Vec<(usize, usize)> {
        let fields = fields(type_named(name)).iter().filter(|field| field.kind.byte_len() > 1);
        fields.map(|field| (field.offset, field.byte_len())).collect()
    };
    assert_eq!(wide("Q4_0"), [(0, 2)]);
    assert_eq!(wide("Q8_0"), [(0, 2)]);
    assert_eq!(wide("Q4_K"), [(0, 2), (2, 2)]);
    assert_eq!(wide("Q6_K"), [(208, 2)]);
    assert_eq!((wide("MXFP4"), wide("NVFP4")), (vec![], vec![]));
}

/// By hand, from the block of Q4_K in `vectors.rs`: sub-block 4 has scale 1 + 3·16 and min 3 +
/// 3·16, sub-block 0 scale 1 and min 2.
#[test]
fn parts() {
    let t = type_named("Q4_K");
    let mut bytes = vec![0x00, 0x3C, 0x00, 0xBC];
    bytes.extend([0xC1, 1, 1, 1, 0xC2, 2, 2, 2, 0x31, 0, 0, 0]);
    bytes.extend([0x52; 128]);
    let block = RawBlock::at(t, &bytes, ByteOrder::Little, 0).unwrap();
    assert_eq!(block.part(Role::SubScale, 0), Some(1));
    assert_eq!(block.part(Role::SubMin, 31), Some(2));
    assert_eq!(block.part(Role::SubScale, 128), Some(49));
    assert_eq!(block.part(Role::SubMin, 159), Some(51));
    assert_eq!((block.part(Role::Quant, 0), block.part(Role::Quant, 32)), (Some(2), Some(5)));
    assert_eq!(block.part(Role::Min, 0), Some(0xBC00));
    assert_eq!((block.part(Role::Sign, 0), block.part(Role::Scale, 256)), (None, None));

    assert_eq!(block.field("dmin", 0).unwrap().to_string(), "-1.0 (0xbc00)");
    assert_eq!(block.field("scales", 4).unwrap().to_string(), "194");
    assert_eq!((block.field("scales", 12), block.field("nope", 0)), (None, None));
    let sub_mins = feeds(t, 128).into_iter().filter(|feed| feed.role == Role::SubMin);
    let shown: Vec<_> = sub_mins.map(|feed| feed.to_string()).collect();
    assert_eq!(
        shown,
        ["sub-block min from scales[8] bits 4 to 7", "sub-block min from scales[4] bits 6 to 7"]
    );
    let fifth = feeds(type_named("Q5_0"), 5).pop().unwrap();
    assert_eq!(fifth.to_string(), "quant from qh[0] bit 5");
    let beyond = Feed { role: Role::Min, field: "d", index: 0, bits: 8..17 };
    assert_eq!(block.bits(&beyond), None);
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = Feed { bits: 3..1, ..beyond.clone() };
    assert_eq!(block.bits(&reversed), None);
    let empty = Feed { bits: 3..3, ..beyond };
    assert_eq!(block.bits(&empty), None);
}

/// How numbers of each kind are shown.
#[test]
fn values() {
    let show = |name: &str, bytes: &[u8], field: &str| {
        let t = type_named(name);
        let mut block = bytes.to_vec();
        block.resize(t.block_bytes as usize, 0);
        let block = RawBlock::at(t, &block, ByteOrder::Little, 0).unwrap();
        block.field(field, 0).unwrap().to_string()
    };
    assert_eq!(show("I8", &[0xFD], "value"), "-3");
    assert_eq!(show("I64", &[0, 0, 0, 0, 0, 0, 0, 0x80], "value"), "-9223372036854775808");
    assert_eq!(show("IQ1_S", &[0; 50], "qh"), "0");
    assert_eq!(show("F64", &[0, 0, 0, 0, 0, 0, 0xE0, 0x3F], "value"), "0.5 (0x3fe0000000000000)");
    assert_eq!(show("Q8_0", &[1, 0], "d"), "5.960464477539063e-8 (0x0001)");
    assert_eq!(show("Q8_0", &[0, 0x7E], "d"), "NaN (0x7e00)");
    assert_eq!(show("BF16", &[0x80, 0xFF], "value"), "-inf (0xff80)");
    assert_eq!(show("Q8_K", &[0, 0, 0x80, 0x3F], "d"), "1.0 (0x3f800000)");
    assert_eq!(show("MXFP4", &[126], "e"), "0.5 (0x7e)");
    assert_eq!(show("NVFP4", &[0x7E], "d"), "448.0 (0x7e)");
    assert_eq!(show("F8_E4M3", &[0xFE], "value"), "-448.0 (0xfe)");
    let block = RawBlock::at(type_named("Q8_1"), &[1; 36], ByteOrder::Little, 0).unwrap();
    let all: Vec<_> = block.values().map(|(field, i, value)| (field.name, i, value.bits)).collect();
    assert_eq!(all[..3], [("d", 0, 0x0101), ("s", 0, 0x0101), ("qs", 0, 1)]);
    assert_eq!((all.len(), all[33]), (34, ("qs", 31, 1)));
    let block = RawBlock::at(type_named("I16"), &[1, 2], ByteOrder::Big, 0).unwrap();
    assert_eq!(format!("{block:?}"), "RawBlock { type_id: 25, bytes: [1, 2], order: Big }");
}
