//! `Kernel::dequantize_parallel`: the reference's numbers, for any length and any number of threads.

mod blocks;

use blocks::{Random, difference, ours, types};
use gguf_assay_format::ByteOrder;
use gguf_assay_quant::dequantize;
use gguf_assay_quant::kernel::{Engine, STREAM_FROM, fill_streamed};
use rayon::ThreadPoolBuilder;

/// What a task has, which the lengths here are around.
const TASK: usize = 1 << 16;

fn in_pools(check: impl Fn(usize) + Sync) {
    for threads in [1, 2, 3, 7] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check(threads));
    }
}

#[test]
fn any_number_of_rows_and_threads() {
    let engine = Engine::best();
    for t in types() {
        let (kernel, len) = (engine.kernel(t).unwrap(), t.block_len as usize);
        for row in [1, 3] {
            for rows in [0, 1, 2, TASK / len / row, TASK / len / row + 1, 2 * TASK / len + 1] {
                let blocks = Random::of(t).blocks(t, row * rows);
                let expected = ours(t, &blocks);
                in_pools(|threads| {
                    let mut out = vec![f32::MAX; expected.len()];
                    kernel.dequantize_parallel(&blocks, ByteOrder::Little, &mut out).unwrap();
                    assert_eq!(
                        difference(&out, &expected),
                        None,
                        "{kernel}: {rows} rows of {row} blocks, {threads} threads"
                    );
                });
            }
        }
    }
}

/// So long that it is written around the caches, from an address that is no cache line.
#[test]
fn a_streamed_output() {
    let engine = Engine::best();
    for t in types().filter(|t| ["Q4_0", "F16"].contains(&t.name)) {
        let kernel = engine.kernel(t).unwrap();
        let blocks = STREAM_FROM / 4 / t.block_len as usize + 3;
        let blocks = Random::of(t).blocks(t, blocks);
        let expected = ours(t, &blocks);
        in_pools(|threads| {
            let mut out = vec![f32::MAX; expected.len() + 1];
            kernel.dequantize_parallel(&blocks, ByteOrder::Little, &mut out[1..]).unwrap();
            assert_eq!(out[0], f32::MAX);
            assert_eq!(difference(&out[1..], &expected), None, "{kernel}, {threads} threads");
        });
    }
}

#[test]
fn big_endian() {
    for t in types() {
        let kernel = Engine::best().kernel(t).unwrap();
        let blocks = Random::of(t).blocks(t, TASK / t.block_len as usize + 1);
        let mut expected = vec![0.0; TASK + t.block_len as usize];
        let mut out = expected.clone();
        dequantize(t, &blocks, ByteOrder::Big, &mut expected).unwrap();
        kernel.dequantize_parallel(&blocks, ByteOrder::Big, &mut out).unwrap();
        assert_eq!(difference(&out, &expected), None, "{kernel}");
    }
}

/// Refused, with the output as it was.
#[test]
fn wrong_lengths() {
    for t in types() {
        let kernel = Engine::best().kernel(t).unwrap();
        let len = t.block_len as usize;
        let blocks = vec![0; 2 * TASK / len * t.block_bytes as usize];
        let mut out = vec![1.0; 2 * TASK - len];
        assert!(kernel.dequantize_parallel(&blocks, ByteOrder::Little, &mut out).is_err());
        assert!(out.iter().all(|number| *number == 1.0), "{kernel}");
    }
}

/// From any address, to any other, and not beyond.
#[test]
fn filling() {
    for start in 0..20 {
        for len in [0, 1, 3, 15, 16, 17, 40, 100] {
            let mut out = vec![1.0; start + len + 20];
            fill_streamed(&mut out[start..][..len], 2.0);
            let is_filled = |(place, number): (usize, &f32)| {
                *number == if (start..start + len).contains(&place) { 2.0 } else { 1.0 }
            };
            assert!(out.iter().enumerate().all(is_filled), "{len} from {start}");
        }
    }
}
