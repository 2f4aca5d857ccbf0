//! The CUDA kernels against the reference: bit for bit, NaNs as one class.
//!
//! `cuda-host/…` needs no GPU: it is their source, compiled for this machine over a model of a GPU
//! (`cuda/host.h`) by a C++ compiler, the one that `CXX` names or else `c++`. `cuda-gpu/…` is there
//! with the feature `cuda`, and shows as ignored without a GPU; `GGUF_ASSAY_REQUIRE_GPU=1` makes
//! that a failure.

#![allow(unsafe_code, reason = "calls what it has just compiled")]

mod blocks;
#[cfg(feature = "cuda")]
#[path = "cuda/gpu.rs"]
mod gpu;
#[path = "cuda/host.rs"]
mod host;

use std::process::ExitCode;

use blocks::{Random, each_half_scale, is_long, ours, scale_bytes, types};
use gguf_assay_format::TensorType;
use gguf_assay_quant::cuda::source::{Output, THREADS, TILE};
use gguf_assay_quant::feeds;
use half::{bf16, f16};
use libtest_mimic::{Arguments, Failed, Trial};

type Property = (&'static str, fn(&Kernel) -> Result<(), Failed>);

const PROPERTIES: [Property; 4] = [
    ("random_blocks", random_blocks),
    ("every_scale", every_scale),
    ("even_blocks", even_blocks),
    ("counts_and_addresses", counts_and_addresses),
];

fn main() -> ExitCode {
    let trials = host::trials();
    #[cfg(feature = "cuda")]
    let trials = trials.into_iter().chain(gpu::trials()).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The properties of all kernels of a machine, which `get` gives.
fn trials(
    machine: &str,
    get: fn(&'static TensorType, Output) -> Result<Kernel, Failed>,
) -> Vec<Trial> {
    let mut trials = vec![];
    for t in types() {
        for output in Output::ALL {
            let rounding: Property = ("rounding", rounding);
            for (property, check) in PROPERTIES.into_iter().chain((t.id == 0).then_some(rounding)) {
                let name = format!("{machine}/{}/{output}/{property}", t.name);
                trials.push(Trial::test(name, move || check(&get(t, output)?)));
            }
        }
    }
    trials
}

/// A kernel, wherever it runs.
struct Kernel {
    t: &'static TensorType,
    output: Output,
    run: Run,
}

/// Gives the bytes of the output for blocks, and some behind them.
type Run = Box<dyn Fn(&[u8], Shape) -> Result<Vec<u8>, Failed>>;

/// How a kernel is launched. The numbers do not depend on it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Thread blocks; the model's choice, a GPU has its own.
    grid: u32,
    /// The step from one thread to the next, odd; in the model.
    order: u32,
    /// By how many bytes the input misses a multiple of 16.
    shift: usize,
}

const SHAPE: Shape = Shape { grid: 3, order: 1, shift: 0 };

/// What an output has in it before a kernel writes: a NaN that no kernel makes.
const UNTOUCHED: u8 = 0xFB;

impl Kernel {
    /// How many bytes it writes for blocks.
    fn written(t: &TensorType, output: Output, blocks: &[u8]) -> usize {
        blocks.len() / t.block_bytes as usize * t.block_len as usize * output.byte_len()
    }

    /// The numbers of blocks, each in the bits of the output.
    fn run(&self, blocks: &[u8], shape: Shape) -> Result<Vec<u32>, Failed> {
        let out = (self.run)(blocks, shape)?;
        let (numbers, beside) = out.split_at(Kernel::written(self.t, self.output, blocks));
        if beside.iter().any(|byte| *byte != UNTOUCHED) {
            return Err(format!("{shape:?}: written behind {} bytes", numbers.len()).into());
        }
        Ok(match self.output {
            Output::F32 => numbers.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect(),
            Output::F16 | Output::BF16 => {
                numbers.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b).into()).collect()
            }
        })
    }

    /// What it has to make of a number of the reference.
    fn expected(&self, number: f32) -> u32 {
        match self.output {
            Output::F32 => number.to_bits(),
            Output::F16 => f16::from_f32(number).to_bits().into(),
            Output::BF16 => bf16::from_f32(number).to_bits().into(),
        }
    }

    fn is_nan(&self, bits: u32) -> bool {
        match self.output {
            Output::F32 => f32::from_bits(bits).is_nan(),
            Output::F16 => f16::from_bits(bits as u16).is_nan(),
            Output::BF16 => bf16::from_bits(bits as u16).is_nan(),
        }
    }

    fn assert_as_reference(&self, blocks: &[u8], shape: Shape, what: &str) -> Result<(), Failed> {
        let numbers = self.run(blocks, shape)?;
        let reference = ours(self.t, blocks);
        assert_eq!(numbers.len(), reference.len());
        let differs = |(bits, number): (&u32, &f32)| {
            let expected = self.expected(*number);
            *bits != expected && !(self.is_nan(*bits) && self.is_nan(expected))
        };
        let Some(at) = numbers.iter().zip(&reference).position(differs) else { return Ok(()) };
        let (len, bytes) = (self.t.block_len as usize, self.t.block_bytes as usize);
        Err(format!(
            "{what}, {shape:?}: element {} of block {}, {:02x?}, is {:#x}, not {:#x} ({:?}); it \
             comes from {}",
            at % len,
            at / len,
            &blocks[at / len * bytes..][..bytes],
            numbers[at],
            self.expected(reference[at]),
            reference[at],
            feeds(self.t, at % len).iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        )
        .into())
    }
}

/// Every pattern of bytes; of plain types every one of 16 bits.
fn random_blocks(kernel: &Kernel) -> Result<(), Failed> {
    let t = kernel.t;
    // More tiles than thread blocks, and a last one that is not full.
    let batch = 7 * TILE as usize / t.block_len as usize + 3;
    let batches = if is_long() { 1 << 6 } else { 1 };
    let mut random = Random::of(t);
    for _ in 0..batches {
        kernel.assert_as_reference(&random.blocks(t, batch), SHAPE, "random")?;
    }
    if t.block_bytes <= 2 {
        let numbers: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        kernel.assert_as_reference(&numbers, SHAPE, "every pattern")?;
    }
    Ok(())
}

/// Every half-precision number where there is one as a scale, every byte where there is a scale of
/// so many bits or a part of one; the other bits are random.
fn every_scale(kernel: &Kernel) -> Result<(), Failed> {
    let t = kernel.t;
    let mut halves = Ok(());
    each_half_scale(t, |blocks| {
        if halves.is_ok() {
            halves = kernel.assert_as_reference(blocks, SHAPE, "every scale");
        }
    });
    halves?;
    let mut random = Random::of(t);
    for byte in scale_bytes(t) {
        let mut blocks = random.blocks(t, 256);
        for (value, block) in (0..=u8::MAX).zip(blocks.chunks_mut(t.block_bytes as usize)) {
            block[byte] = value;
        }
        kernel.assert_as_reference(&blocks, SHAPE, "every byte of a scale")?;
    }
    Ok(())
}

/// The same byte everywhere.
fn even_blocks(kernel: &Kernel) -> Result<(), Failed> {
    for byte in 0..=u8::MAX {
        let blocks = vec![byte; 9 * kernel.t.block_bytes as usize];
        kernel.assert_as_reference(&blocks, Shape { grid: 1, ..SHAPE }, "even")?;
    }
    Ok(())
}

/// Whole blocks of every small count and of those around a tile, from every address, and nothing
/// read or written beside them.
fn counts_and_addresses(kernel: &Kernel) -> Result<(), Failed> {
    let t = kernel.t;
    let mut random = Random::of(t);
    let tile = (TILE / t.block_len) as usize;
    for count in (0..=33).chain([tile - 1, tile, tile + 1]) {
        let blocks = random.blocks(t, count);
        for shift in 0..16 {
            let shape = Shape { grid: 1, shift, ..SHAPE };
            kernel.assert_as_reference(&blocks, shape, &format!("{count} blocks"))?;
        }
    }
    Ok(())
}

/// Numbers around all places where rounding to 16 bits decides, in every binade.
fn rounding(kernel: &Kernel) -> Result<(), Failed> {
    let numbers: Vec<u8> = (0..=u16::MAX)
        .flat_map(|high| {
            // Half a place of bfloat16; half a place of half precision, and of its neighbours.
            let lows =
                [0u16, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001];
            lows.map(|low| u32::from(high) << 16 | u32::from(low))
        })
        .flat_map(u32::to_le_bytes)
        .collect();
    kernel.assert_as_reference(&numbers, SHAPE, "rounding")
}
