//! Every kernel of every engine, by name, against the reference: bit for bit, NaNs as one class.
//!
//! A kernel that the machine cannot run shows as ignored. `GGUF_ASSAY_REQUIRE_KERNELS=avx2,avx512`
//! makes that a failure for the engines that it names.

mod blocks;

use std::env;
use std::process::ExitCode;

use blocks::{Random, difference, half_scales, is_long, ours, put, scale_bytes, types};
use gguf_assay_format::{ByteOrder, TensorType};
use gguf_assay_quant::kernel::{Engine, Kernel};
use gguf_assay_quant::{dequantize, feeds};
use libtest_mimic::{Arguments, Failed, Trial};

type Property = (&'static str, fn(Kernel) -> Result<(), Failed>);

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
                let trial = Trial::test(name, move || check(engine.kernel(t)?));
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
fn assert_as_reference(kernel: Kernel, blocks: &[u8], what: &str) -> Result<(), Failed> {
    let t = kernel.tensor_type();
    let expected = ours(t, blocks);
    let mut out = vec![f32::MAX; expected.len()];
    kernel.dequantize_cached(blocks, ByteOrder::Little, &mut out)?;
    assert_same(t, &expected, &out, blocks, what)?;
    out.fill(f32::MAX);
    kernel.dequantize_streamed(blocks, ByteOrder::Little, &mut out)?;
    assert_same(t, &expected, &out, blocks, what)
}

fn assert_same(
    t: &TensorType,
    expected: &[f32],
    found: &[f32],
    blocks: &[u8],
    what: &str,
) -> Result<(), Failed> {
    let Some(at) = difference(found, expected) else { return Ok(()) };
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    Err(format!(
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
    )
    .into())
}

/// Every pattern of bytes; of plain types every one of 16 bits.
fn random_blocks(kernel: Kernel) -> Result<(), Failed> {
    const BATCH: usize = 1024;
    let count = if is_long() { 1 << 22 } else { 1 << 16 };
    let t = kernel.tensor_type();
    let mut random = Random::of(t);
    for _ in 0..count / BATCH {
        assert_as_reference(kernel, &random.blocks(t, BATCH), "random")?;
    }
    if t.block_bytes <= 2 {
        let numbers: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        assert_as_reference(kernel, &numbers, "every pattern")?;
    }
    Ok(())
}

/// Every half-precision number where there is one as a scale, every byte where there is a scale of
/// so many bits or a part of one; the other bits are random.
fn every_scale(kernel: Kernel) -> Result<(), Failed> {
    const BATCH: usize = 1024;
    let t = kernel.tensor_type();
    let mut random = Random::of(t);
    for place in half_scales(t) {
        for first in (0..=u16::MAX).step_by(BATCH) {
            let mut blocks = random.blocks(t, BATCH);
            for (i, block) in blocks.chunks_mut(t.block_bytes as usize).enumerate() {
                put(block, &place, u64::from(first) + i as u64);
            }
            assert_as_reference(kernel, &blocks, "every scale")?;
        }
    }
    for byte in scale_bytes(t) {
        let mut blocks = random.blocks(t, 256);
        for (value, block) in (0..=u8::MAX).zip(blocks.chunks_mut(t.block_bytes as usize)) {
            block[byte] = value;
        }
        assert_as_reference(kernel, &blocks, "every byte of a scale")?;
    }
    Ok(())
}

/// The same byte everywhere.
fn even_blocks(kernel: Kernel) -> Result<(), Failed> {
    let t = kernel.tensor_type();
    for byte in 0..=u8::MAX {
        assert_as_reference(kernel, &vec![byte; 16 * t.block_bytes as usize], "even")?;
    }
    Ok(())
}

/// Whole blocks of every small count, read from and written to every address there is within a
/// cache line, and nothing written beside them.
fn counts_and_addresses(kernel: Kernel) -> Result<(), Failed> {
    const GUARD: f32 = 12_345.0;
    const LINE: usize = 16;
    let t = kernel.tensor_type();
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    let mut random = Random::of(t);
    let counts = (0..=40).chain([63, 64, 65, 129, 1027]);
    for count in counts {
        let blocks = random.blocks(t, count);
        let expected = ours(t, &blocks);
        for shift in 0..=LINE {
            let mut input = vec![0; shift];
            input.extend_from_slice(&blocks);
            for streamed in [false, true] {
                let mut out = vec![GUARD; shift + count * len + LINE];
                let place = &mut out[shift..][..count * len];
                let input = &input[shift..][..count * bytes];
                if streamed {
                    kernel.dequantize_streamed(input, ByteOrder::Little, place)?;
                } else {
                    kernel.dequantize_cached(input, ByteOrder::Little, place)?;
                }
                assert_same(t, &expected, place, input, &format!("{count} blocks at {shift}"))?;
                let beside = out[..shift].iter().chain(&out[shift + count * len..]);
                if beside.into_iter().any(|number| *number != GUARD) {
                    return Err(format!("{count} blocks at {shift}: written beside").into());
                }
            }
        }
    }
    Ok(())
}

fn big_endian(kernel: Kernel) -> Result<(), Failed> {
    let t = kernel.tensor_type();
    let blocks = Random::of(t).blocks(t, 64);
    let mut expected = vec![0.0; 64 * t.block_len as usize];
    let mut out = expected.clone();
    dequantize(t, &blocks, ByteOrder::Big, &mut expected)?;
    kernel.dequantize(&blocks, ByteOrder::Big, &mut out)?;
    assert_same(t, &expected, &out, &blocks, "big-endian")
}

/// Refused, with the output as it was.
fn wrong_lengths(kernel: Kernel) -> Result<(), Failed> {
    let t = kernel.tensor_type();
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    let blocks = vec![0; 5 * bytes];
    let mut out = vec![1.0; 5 * len];
    let wrong = [(4 * bytes, 5 * len), (5 * bytes, 4 * len), (5 * bytes - 1, 5 * len), (0, len)];
    let wrong = wrong.into_iter().chain((len > 1).then_some((5 * bytes, 5 * len - 1)));
    for (bytes, len) in wrong {
        for write in [Kernel::dequantize_cached, Kernel::dequantize_streamed] {
            let result = write(&kernel, &blocks[..bytes], ByteOrder::Little, &mut out[..len]);
            if result.is_ok() || out.iter().any(|number| *number != 1.0) {
                return Err(format!("{bytes} bytes taken for {len} elements").into());
            }
        }
    }
    Ok(())
}
