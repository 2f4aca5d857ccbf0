//! Every kernel of every engine, by name, against the reference: bit for bit, NaNs as one class.
//!
//! A kernel that the machine cannot run shows as ignored. `GGUF_ASSAY_REQUIRE_KERNELS=avx2,avx512`
//! makes that a failure for the engines that it names.

mod blocks;

use std::env;
use std::process::ExitCode;

use blocks::{
    Random, difference, each_half_scale, each_random, each_scale_byte, is_long, ours, types,
};
use gguf_assay_format::{ByteOrder, TensorType};
use gguf_assay_quant::kernel::{Engine, Kernel};
use gguf_assay_quant::{dequantize, feeds};
use libtest_mimic::{Arguments, Trial};

type Property = (&'static str, fn(Kernel));

const PROPERTIES: [Property; 6] = [
    ("random_blocks", random_blocks),
    ("every_scale", every_scale),
    ("even_blocks", even_blocks),
    ("counts_and_addresses", counts_and_addresses),
    ("big_endian", big_endian),
    ("wrong_lengths", wrong_lengths),
];

const REQUIRE: &str = "GGUF_ASSAY_REQUIRE_KERNELS";

fn main() -> ExitCode {
    let required = env::var(REQUIRE).unwrap_or_default();
    let required: Vec<Engine> = required
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| Engine::by_name(name).unwrap_or_else(|error| panic!("{REQUIRE}: {error}")))
        .collect();
    let mut trials = vec![];
    for engine in Engine::ALL {
        for t in types() {
            for (property, check) in PROPERTIES {
                let missing = engine.missing();
                let name = format!("{engine}/{}/{property}", t.name);
                let trial = Trial::test(name, move || {
                    check(engine.kernel(t)?);
                    Ok(())
                });
                let is_ignored = !missing.is_empty() && !required.contains(&engine);
                trials.push(if is_ignored {
                    trial
                        .with_kind(format!("this machine lacks {}", missing.join(", ")))
                        .with_ignored_flag(true)
                } else {
                    trial
                });
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The kernel's numbers by both kinds of stores are the reference's.
fn assert_as_reference(kernel: Kernel, blocks: &[u8], what: &str) {
    let expected = ours(kernel.tensor_type(), blocks);
    let mut out = vec![f32::MAX; expected.len()];
    for write in [Kernel::dequantize_cached, Kernel::dequantize_streamed] {
        write(&kernel, blocks, ByteOrder::Little, &mut out).unwrap();
        assert_same(kernel.tensor_type(), &expected, &out, blocks, what);
        out.fill(f32::MAX);
    }
}

fn assert_same(t: &TensorType, expected: &[f32], found: &[f32], blocks: &[u8], what: &str) {
    let Some(at) = difference(found, expected) else { return };
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    panic!(
        "{what}: element {} of block {}, {:02x?}, is {:?} ({:#010x}), not {:?} ({:#010x}); it \
         comes from {}",
        at % len,
        at / len,
        &blocks[at / len * bytes..][..bytes],
        found[at],
        found[at].to_bits(),
        expected[at],
        expected[at].to_bits(),
        feeds(t, at % len).iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    );
}

/// Every pattern of bytes; of plain types every one of 16 bits.
fn random_blocks(kernel: Kernel) {
    let count = if is_long() { 1 << 22 } else { 1 << 16 };
    let t = kernel.tensor_type();
    each_random(t, count, |blocks| assert_as_reference(kernel, blocks, "random"));
    if t.block_bytes <= 2 {
        let numbers: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        assert_as_reference(kernel, &numbers, "every pattern");
    }
}

fn every_scale(kernel: Kernel) {
    let t = kernel.tensor_type();
    each_half_scale(t, |blocks| assert_as_reference(kernel, blocks, "every scale"));
    each_scale_byte(t, |blocks| assert_as_reference(kernel, blocks, "every byte of a scale"));
}

/// The same byte everywhere.
fn even_blocks(kernel: Kernel) {
    let t = kernel.tensor_type();
    for byte in 0..=u8::MAX {
        assert_as_reference(kernel, &vec![byte; 16 * t.block_bytes as usize], "even");
    }
}

/// Whole blocks of every small count, read from and written to every address there is within a
/// cache line, and nothing written beside them.
fn counts_and_addresses(kernel: Kernel) {
    const GUARD: f32 = 12_345.0;
    const LINE: usize = 16;
    let t = kernel.tensor_type();
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    let mut random = Random::of(t);
    for count in (0..=40).chain([63, 64, 65, 129, 1027]) {
        let blocks = random.blocks(t, count);
        let expected = ours(t, &blocks);
        for shift in 0..=LINE {
            let what = format!("{count} blocks at {shift}");
            let input = [vec![0; shift], blocks.clone()].concat();
            let input = &input[shift..][..count * bytes];
            for write in [Kernel::dequantize_cached, Kernel::dequantize_streamed] {
                let mut out = vec![GUARD; shift + count * len + LINE];
                let place = &mut out[shift..][..count * len];
                write(&kernel, input, ByteOrder::Little, place).unwrap();
                assert_same(t, &expected, place, input, &what);
                let beside = out[..shift].iter().chain(&out[shift + count * len..]);
                assert!(beside.into_iter().all(|number| *number == GUARD), "{what}: beside");
            }
        }
    }
}

fn big_endian(kernel: Kernel) {
    let t = kernel.tensor_type();
    let blocks = Random::of(t).blocks(t, 64);
    let mut expected = vec![0.0; 64 * t.block_len as usize];
    let mut out = expected.clone();
    dequantize(t, &blocks, ByteOrder::Big, &mut expected).unwrap();
    kernel.dequantize(&blocks, ByteOrder::Big, &mut out).unwrap();
    assert_same(t, &expected, &out, &blocks, "big-endian");
}

/// Refused, with the output as it was.
fn wrong_lengths(kernel: Kernel) {
    let t = kernel.tensor_type();
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    let blocks = vec![0; 5 * bytes];
    let mut out = vec![1.0; 5 * len];
    let wrong = [(4 * bytes, 5 * len), (5 * bytes, 4 * len), (5 * bytes - 1, 5 * len), (0, len)];
    let wrong = wrong.into_iter().chain((len > 1).then_some((5 * bytes, 5 * len - 1)));
    for (bytes, len) in wrong {
        for write in [Kernel::dequantize_cached, Kernel::dequantize_streamed] {
            let result = write(&kernel, &blocks[..bytes], ByteOrder::Little, &mut out[..len]);
            assert!(result.is_err(), "{bytes} bytes taken for {len} elements");
            assert!(out.iter().all(|number| *number == 1.0), "written in spite of an error");
        }
    }
}
