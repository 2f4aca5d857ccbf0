//! The CUDA kernels without a GPU: their source, compiled for the host over a model of the machine
//! (`cuda/host.h`), against the reference. Bit for bit, NaNs as one class.
//!
//! Needs a C++ compiler: the one that `CXX` names, or else `c++`.

#![allow(unsafe_code, reason = "calls what it has just compiled")]

mod blocks;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::{env, fs, process};

use blocks::{Random, half_scales, is_long, ours, put, scale_bytes, types};
use gguf_assay_format::TensorType;
use gguf_assay_quant::cuda::source::{Output, PROGRAMS, Program, THREADS, TILE, kernel_name};
use gguf_assay_quant::feeds;
use half::{bf16, f16};
use libloading::Library;
use libtest_mimic::{Arguments, Failed, Trial};

type Property = (&'static str, fn(Kernel) -> Result<(), Failed>);

const PROPERTIES: [Property; 5] = [
    ("random_blocks", random_blocks),
    ("every_scale", every_scale),
    ("even_blocks", even_blocks),
    ("counts_and_addresses", counts_and_addresses),
    ("order_of_threads", order_of_threads),
];

fn main() -> ExitCode {
    let mut trials = vec![];
    for t in types() {
        for output in Output::ALL {
            for (property, check) in PROPERTIES {
                let name = format!("cuda-host/{}/{output}/{property}", t.name);
                trials.push(Trial::test(name, move || check(Kernel::of(t, output)?)));
            }
        }
    }
    for output in Output::ALL {
        let name = format!("cuda-host/F32/{output}/rounding");
        let f32 = TensorType::by_id(0).unwrap();
        trials.push(Trial::test(name, move || rounding(Kernel::of(f32, output)?)));
    }
    trials.push(Trial::test("cuda-host/model/barriers_matter", barriers_matter));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Launch = unsafe extern "C" fn(
    extern "C" fn(*const u8, *mut u8, u64),
    *const u8,
    *mut u8,
    u64,
    u32,
    u32,
    u32,
) -> c_int;

/// A kernel, compiled for the host.
#[derive(Clone, Copy)]
struct Kernel {
    library: &'static Library,
    t: &'static TensorType,
    output: Output,
}

/// How a kernel is launched. The numbers do not depend on it.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Thread blocks.
    grid: u32,
    /// The step from one thread to the next; odd.
    order: u32,
    /// By how many bytes the input misses a multiple of 16.
    shift: usize,
}

const SHAPE: Shape = Shape { grid: 3, order: 1, shift: 0 };

/// What an output has in it before a kernel writes: a NaN that no kernel makes.
const UNTOUCHED: u8 = 0xFB;

impl Kernel {
    fn of(t: &'static TensorType, output: Output) -> Result<Kernel, Failed> {
        static LIBRARIES: OnceLock<Vec<OnceLock<Result<Library, String>>>> = OnceLock::new();
        let libraries =
            LIBRARIES.get_or_init(|| PROGRAMS.iter().map(|_| OnceLock::new()).collect());
        let program = Program::of(t).ok_or("no program has the type")?;
        let index = PROGRAMS.iter().position(|p| p.name == program.name).unwrap();
        let library = libraries[index].get_or_init(|| compile(program, "", &[])).as_ref()?;
        Ok(Kernel { library, t, output })
    }

    /// The numbers of blocks, each in the bits of the output.
    fn run(self, blocks: &[u8], shape: Shape) -> Result<Vec<u32>, Failed> {
        let (len, bytes) = (self.t.block_len as usize, self.t.block_bytes as usize);
        let count = blocks.len() / bytes;
        let written = count * len * self.output.byte_len();
        // Nothing may be read after the blocks, nor before them where that is as easy to see.
        let behind = (16 - (blocks.len() + shape.shift) % 16) % 16;
        let mut input = Guarded::new(self.library, blocks.len() + behind)?;
        if behind != 0 {
            // The end of the memory is a multiple of 16; so far from it is the end of the blocks.
            input.bytes_mut().fill(0xA5);
        }
        input.bytes_mut()[..blocks.len()].copy_from_slice(blocks);
        let mut out = Guarded::new(self.library, written.next_multiple_of(16))?;
        out.bytes_mut().fill(UNTOUCHED);

        let name = kernel_name(self.t, self.output);
        // SAFETY: all kernels have this type (`frame.cuh`).
        let kernel =
            unsafe { self.library.get::<extern "C" fn(*const u8, *mut u8, u64)>(name.as_bytes()) }?;
        // SAFETY: so it has in `host.h`.
        let launch = unsafe { self.library.get::<Launch>(b"launch") }?;
        let (from, to) = (input.bytes().as_ptr(), out.bytes_mut().as_mut_ptr());
        assert_eq!(from.addr() % 16, shape.shift % 16);
        let Shape { grid, order, .. } = shape;
        // SAFETY: `from` has `count` blocks, and `to` room for their numbers.
        let status = unsafe { launch(*kernel, from, to, count as u64, grid, THREADS, order) };
        if status != 0 {
            return Err(format!("{shape:?}: the model of the machine says {status}").into());
        }
        let (numbers, beside) = out.bytes().split_at(written);
        if beside.iter().any(|byte| *byte != UNTOUCHED) {
            return Err(format!("{shape:?}: written behind {count} blocks").into());
        }
        Ok(match self.output {
            Output::F32 => numbers.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect(),
            Output::F16 | Output::BF16 => {
                numbers.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b).into()).collect()
            }
        })
    }

    /// What it has to make of a number of the reference.
    fn expected(self, number: f32) -> u32 {
        match self.output {
            Output::F32 => number.to_bits(),
            Output::F16 => f16::from_f32(number).to_bits().into(),
            Output::BF16 => bf16::from_f32(number).to_bits().into(),
        }
    }

    fn is_nan(self, bits: u32) -> bool {
        match self.output {
            Output::F32 => f32::from_bits(bits).is_nan(),
            Output::F16 => f16::from_bits(bits as u16).is_nan(),
            Output::BF16 => bf16::from_bits(bits as u16).is_nan(),
        }
    }

    fn assert_as_reference(self, blocks: &[u8], shape: Shape, what: &str) -> Result<(), Failed> {
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

/// Memory of the model: there is a page behind it that nobody may touch.
struct Guarded<'a> {
    library: &'a Library,
    start: *mut u8,
    len: usize,
}

impl<'a> Guarded<'a> {
    fn new(library: &'a Library, len: usize) -> Result<Guarded<'a>, Failed> {
        // SAFETY: so it has in `host.h`.
        let guarded = unsafe { library.get::<unsafe extern "C" fn(usize) -> *mut u8>(b"guarded") }?;
        // SAFETY: any length will do.
        let start = unsafe { guarded(len) };
        if start.is_null() {
            return Err("no memory".into());
        }
        Ok(Guarded { library, start, len })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: it was given so many bytes, which are zeros at first, for as long as it is there.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // SAFETY: so it has in `host.h`.
        let release =
            unsafe { self.library.get::<unsafe extern "C" fn(*mut u8, usize)>(b"release") };
        // SAFETY: it is what `guarded` gave.
        unsafe { release.expect("part of the model")(self.start, self.len) };
    }
}

/// Compiles a program, unless the same was compiled before.
fn compile(program: &Program, suffix: &str, options: &[&str]) -> Result<Library, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let stem = format!("{}{suffix}", program.name.trim_end_matches(".cu"));
    let source = program.source(include_str!("cuda/host.h"));
    let (text, library) = (folder.join(format!("{stem}.cc")), folder.join(format!("{stem}.so")));
    if !library.exists() || fs::read_to_string(&text).ok().as_ref() != Some(&source) {
        build(&source, &text, &library, options)?;
    }
    // SAFETY: the library is the one compiled here, and runs nothing when it is loaded.
    unsafe { Library::new(&library) }.map_err(|error| error.to_string())
}

fn build(source: &str, text: &Path, library: &Path, options: &[&str]) -> Result<(), String> {
    // Under names of this process until they are whole.
    let own = |path: &Path| -> PathBuf { path.with_extension(format!("{}.cc", process::id())) };
    let (own_text, own_library) = (own(text), library.with_extension(process::id().to_string()));
    let words = |error: std::io::Error| error.to_string();
    fs::write(&own_text, source).map_err(words)?;
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".into());
    let output = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-ffp-contract=off", "-shared", "-fPIC"])
        // `#pragma unroll` is CUDA's.
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"])
        .args(options)
        .arg("-o")
        .args([&own_library, &own_text])
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{compiler}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    fs::rename(&own_library, library).map_err(words)?;
    fs::rename(&own_text, text).map_err(words)
}

/// Every pattern of bytes; of plain types every one of 16 bits.
fn random_blocks(kernel: Kernel) -> Result<(), Failed> {
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
fn every_scale(kernel: Kernel) -> Result<(), Failed> {
    const BATCH: usize = 1024;
    let t = kernel.t;
    let mut random = Random::of(t);
    for place in half_scales(t) {
        for first in (0..=u16::MAX).step_by(BATCH) {
            let mut blocks = random.blocks(t, BATCH);
            for (i, block) in blocks.chunks_mut(t.block_bytes as usize).enumerate() {
                put(block, &place, u64::from(first) + i as u64);
            }
            kernel.assert_as_reference(&blocks, SHAPE, "every scale")?;
        }
    }
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
fn even_blocks(kernel: Kernel) -> Result<(), Failed> {
    for byte in 0..=u8::MAX {
        let blocks = vec![byte; 9 * kernel.t.block_bytes as usize];
        kernel.assert_as_reference(&blocks, Shape { grid: 1, ..SHAPE }, "even")?;
    }
    Ok(())
}

/// Whole blocks of every small count and of those around a tile, from every address, and nothing
/// read or written beside them.
fn counts_and_addresses(kernel: Kernel) -> Result<(), Failed> {
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

/// Threads and thread blocks in other orders, more and fewer thread blocks than tiles.
fn order_of_threads(kernel: Kernel) -> Result<(), Failed> {
    let t = kernel.t;
    let blocks = Random::of(t).blocks(t, 3 * (TILE / t.block_len) as usize + 1);
    for grid in [1, 2, 5] {
        // Forwards, backwards, and each warp's threads far from each other.
        for order in [1, THREADS - 1, 33, 101] {
            let shape = Shape { grid, order, ..SHAPE };
            kernel.assert_as_reference(&blocks, shape, "order")?;
        }
    }
    Ok(())
}

/// Numbers around all places where rounding to 16 bits decides, in every binade.
fn rounding(kernel: Kernel) -> Result<(), Failed> {
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

/// The model is honest: without barriers, threads read what others have not written yet.
fn barriers_matter() -> Result<(), Failed> {
    let t = TensorType::by_name("Q8_0").unwrap();
    let program = Program::of(t).unwrap();
    let library = compile(program, "-without-barriers", &["-DWITHOUT_BARRIERS"])?;
    let kernel = Kernel { library: Box::leak(Box::new(library)), t, output: Output::F32 };
    let blocks = Random::of(t).blocks(t, 2 * (TILE / t.block_len) as usize);
    match kernel.assert_as_reference(&blocks, SHAPE, "") {
        Err(_) => Ok(()),
        Ok(()) => Err("the kernel does without its barriers".into()),
    }
}
