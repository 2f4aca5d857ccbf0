//! Blocks to try, and ggml's numbers for them.

#![allow(dead_code, reason = "no test uses all of it")]

use std::{env, thread};

use gguf_assay_format::{ByteOrder, Status, TENSOR_TYPES, TensorType};
use gguf_assay_quant::{Feed, Role, dequantize, feeds, fields};

/// The types that files may use.
pub(crate) fn types() -> impl Iterator<Item = &'static TensorType> {
    TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed)
}

/// Those of them that ggml has a function for.
pub(crate) fn types_of_ggml() -> impl Iterator<Item = &'static TensorType> {
    types().filter(|t| {
        let (block, mut out) = (vec![0; t.block_bytes as usize], vec![0.0; t.block_len as usize]);
        gguf_assay_oracle::dequantize(t.id, &block, &mut out).is_ok()
    })
}

pub(crate) fn type_named(name: &str) -> &'static TensorType {
    TensorType::by_name(name).unwrap()
}

/// Whether the tests that take minutes were asked for.
pub(crate) fn is_long() -> bool {
    env::var_os("GGUF_ASSAY_LONG").is_some_and(|value| value == "1")
}

/// Runs `check` for each type, on as many threads as there are cores.
pub(crate) fn for_each_type(
    types: impl Iterator<Item = &'static TensorType>,
    check: impl Fn(&'static TensorType) + Sync,
) {
    let types: Vec<_> = types.collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(t) =
                    types.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    check(t);
                }
            });
        }
    });
}

/// Random numbers that are the same in every run (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(t: &TensorType) -> Random {
        Random(u64::from(t.id) << 32)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    /// So many blocks, every pattern of bytes as likely as any other.
    pub(crate) fn blocks(&mut self, t: &TensorType, count: usize) -> Vec<u8> {
        let mut blocks = vec![0; count * t.block_bytes as usize];
        self.fill(&mut blocks);
        blocks
    }
}

fn room(t: &TensorType, blocks: &[u8]) -> Vec<f32> {
    vec![0.0; blocks.len() / t.block_bytes as usize * t.block_len as usize]
}

pub(crate) fn ours(t: &TensorType, blocks: &[u8]) -> Vec<f32> {
    let mut out = room(t, blocks);
    dequantize(t, blocks, ByteOrder::Little, &mut out).unwrap();
    out
}

pub(crate) fn ggmls(t: &TensorType, blocks: &[u8]) -> Vec<f32> {
    let mut out = room(t, blocks);
    gguf_assay_oracle::dequantize(t.id, blocks, &mut out).unwrap();
    out
}

/// The same number: NaNs are one class, `-0.0` is not `0.0`.
pub(crate) fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Where the numbers differ, if they do.
pub(crate) fn difference(a: &[f32], b: &[f32]) -> Option<usize> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).position(|(a, b)| !is_same(*a, *b))
}

/// Our numbers are ggml's.
#[track_caller]
pub(crate) fn assert_as_ggml(t: &TensorType, blocks: &[u8], what: &str) {
    assert_ours_are(&ggmls(t, blocks), t, blocks, what);
}

/// Our numbers are these, which some ggml has.
#[track_caller]
pub(crate) fn assert_ours_are(ggmls: &[f32], t: &TensorType, blocks: &[u8], what: &str) {
    let ours = ours(t, blocks);
    if let Some(at) = difference(&ours, ggmls) {
        let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
        let block = &blocks[at / len * bytes..][..bytes];
        panic!(
            "{t}, {what}: element {} of block {block:02x?} is {:?} ({:#010x}) and in ggml {:?} \
             ({:#010x}); it comes from {}",
            at % len,
            ours[at],
            ours[at].to_bits(),
            ggmls[at],
            ggmls[at].to_bits(),
            feeds(t, at % len).iter().map(Feed::to_string).collect::<Vec<_>>().join(", "),
        );
    }
}

/// So many blocks at a time.
const BATCH: usize = 1024;

/// Random blocks, every pattern of bytes as likely as any other; `count` is a multiple of 1024.
pub(crate) fn each_random(t: &TensorType, count: usize, mut check: impl FnMut(&[u8])) {
    let mut random = Random::of(t);
    for _ in 0..count / BATCH {
        check(&random.blocks(t, BATCH));
    }
}

/// Every half-precision number as the scale, and as the min, of blocks that are otherwise random.
/// IQ1_M's is the one that is spread over four words.
pub(crate) fn each_half_scale(t: &TensorType, mut check: impl FnMut(&[u8])) {
    let mut random = Random::of(t);
    for place in half_scales(t) {
        for first in (0..=u16::MAX).step_by(BATCH) {
            let mut blocks = random.blocks(t, BATCH);
            for (i, block) in blocks.chunks_mut(t.block_bytes as usize).enumerate() {
                put(block, &place, u64::from(first) + i as u64);
            }
            check(&blocks);
        }
    }
}

/// Every value of every byte that has a scale or a part of one.
pub(crate) fn each_scale_byte(t: &TensorType, mut check: impl FnMut(&[u8])) {
    let mut random = Random::of(t);
    for at in scale_bytes(t) {
        for _ in 0..16 {
            let mut blocks = random.blocks(t, 256);
            for (byte, block) in blocks.chunks_mut(t.block_bytes as usize).enumerate() {
                block[at] = byte as u8;
            }
            check(&blocks);
        }
    }
}

/// A place for a number in a block: offset and length in bytes, bits from the lowest on.
pub(crate) type Place = Vec<(usize, u32)>;

/// Every 16-bit float that scales a whole block: for each bit of it, from the lowest on, the byte
/// of the block and the bit of that byte.
pub(crate) fn half_scales(t: &TensorType) -> Vec<Place> {
    let places = [Role::Scale, Role::Min].map(|role| {
        feeds(t, 0).iter().filter(|feed| feed.role == role).flat_map(|f| bits(t, f)).collect()
    });
    places.into_iter().filter(|place: &Place| place.len() == 16).collect()
}

/// Every byte that has a scale or a part of one, but those of whole-block scales of more bits.
pub(crate) fn scale_bytes(t: &TensorType) -> Vec<usize> {
    let mut bytes: Vec<usize> = (0..t.block_len as usize)
        .flat_map(|element| feeds(t, element))
        .filter(|feed| match feed.role {
            Role::Scale => feed.bits == (0..8),
            Role::SubScale | Role::SubMin => true,
            _ => false,
        })
        .flat_map(|feed| bits(t, &feed))
        .map(|(byte, _)| byte)
        .collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

/// Where the bits of `feed` are in a little-endian block: byte, and bit of that byte.
pub(crate) fn bits(t: &TensorType, feed: &Feed) -> Place {
    let field = fields(t).iter().find(|field| field.name == feed.field).unwrap();
    assert!(feed.index < field.count, "{t}: {feed}");
    let start = field.offset + feed.index * field.kind.byte_len();
    assert!(feed.bits.end as usize <= 8 * field.kind.byte_len(), "{t}: {feed}");
    feed.bits.clone().map(|bit| (start + bit as usize / 8, bit % 8)).collect()
}

/// Writes `value` to the bits at `place`.
fn put(block: &mut [u8], place: &[(usize, u32)], value: u64) {
    for (i, &(byte, bit)) in place.iter().enumerate() {
        block[byte] = block[byte] & !(1 << bit) | ((value >> i & 1) as u8) << bit;
    }
}
