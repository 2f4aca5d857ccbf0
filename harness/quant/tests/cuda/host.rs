//! Kernels on the model of a GPU.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs, process};

use gguf_assay_format::TensorType;
use gguf_assay_quant::cuda::source::{Output, PROGRAMS, Program, kernel_name};
use libloading::Library;
use libtest_mimic::{Failed, Trial};

use crate::blocks::{Random, types};
use crate::{Kernel, SHAPE, Shape, THREADS, TILE, UNTOUCHED};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = crate::trials("cuda-host", kernel);
    for t in types() {
        for output in Output::ALL {
            let name = format!("cuda-host/{}/{output}/order_of_threads", t.name);
            trials.push(Trial::test(name, move || order_of_threads(&kernel(t, output)?)));
        }
    }
    trials.push(Trial::test("cuda-host/model/barriers_matter", barriers_matter));
    trials
}

fn kernel(t: &'static TensorType, output: Output) -> Result<Kernel, Failed> {
    static LIBRARIES: OnceLock<Vec<OnceLock<Result<Library, String>>>> = OnceLock::new();
    let libraries = LIBRARIES.get_or_init(|| PROGRAMS.iter().map(|_| OnceLock::new()).collect());
    let program = Program::of(t).ok_or("no program has the type")?;
    let index = PROGRAMS.iter().position(|p| p.name == program.name).unwrap();
    let library = libraries[index].get_or_init(|| compile(program, "", &[])).as_ref()?;
    Ok(kernel_of(library, t, output))
}

fn kernel_of(library: &'static Library, t: &'static TensorType, output: Output) -> Kernel {
    let name = kernel_name(t, output);
    let run = move |blocks: &[u8], shape| {
        let written = Kernel::written(t, output, blocks);
        run(library, &name, blocks, blocks.len() / t.block_bytes as usize, written, shape)
    };
    Kernel { t, output, run: Box::new(run) }
}

type Launch = unsafe extern "C" fn(
    extern "C" fn(*const u8, *mut u8, u64),
    *const u8,
    usize,
    *mut u8,
    u64,
    u32,
    u32,
    u32,
) -> c_int;

/// The output of a kernel, and a few bytes behind it.
fn run(
    library: &Library,
    name: &str,
    blocks: &[u8],
    count: usize,
    written: usize,
    shape: Shape,
) -> Result<Vec<u8>, Failed> {
    // The end of the memory is a multiple of 16; so far from it is the end of the blocks.
    let behind = (16 - (blocks.len() + shape.shift) % 16) % 16;
    let mut input = Guarded::new(library, blocks.len() + behind)?;
    input.bytes_mut().fill(0xA5);
    input.bytes_mut()[..blocks.len()].copy_from_slice(blocks);
    let mut out = Guarded::new(library, written.next_multiple_of(16))?;
    out.bytes_mut().fill(UNTOUCHED);

    // SAFETY: all kernels have this type (`frame.cuh`).
    let kernel = unsafe { library.get::<extern "C" fn(*const u8, *mut u8, u64)>(name.as_bytes()) }?;
    // SAFETY: so it has in `host.h`.
    let launch = unsafe { library.get::<Launch>(b"launch") }?;
    let (from, to) = (input.bytes().as_ptr(), out.bytes_mut().as_mut_ptr());
    assert_eq!(from.addr() % 16, shape.shift % 16);
    // SAFETY: `from` has `count` blocks, and `to` room for their numbers.
    let status = unsafe {
        launch(*kernel, from, blocks.len(), to, count as u64, shape.grid, THREADS, shape.order)
    };
    if status != 0 {
        return Err(format!("{shape:?}: the model of the machine says {status}").into());
    }
    Ok(out.bytes().to_vec())
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
    let source = program.source(include_str!("host.h"));
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

/// Threads and thread blocks in other orders, more and fewer thread blocks than tiles.
fn order_of_threads(kernel: &Kernel) -> Result<(), Failed> {
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

/// The model is honest: without barriers, threads read what others have not written yet.
fn barriers_matter() -> Result<(), Failed> {
    let t = TensorType::by_name("Q8_0").unwrap();
    let program = Program::of(t).unwrap();
    let library = compile(program, "-without-barriers", &["-DWITHOUT_BARRIERS"])?;
    let kernel = kernel_of(Box::leak(Box::new(library)), t, Output::F32);
    let blocks = Random::of(t).blocks(t, 2 * (TILE / t.block_len) as usize);
    match kernel.assert_as_reference(&blocks, SHAPE, "") {
        Err(_) => Ok(()),
        Ok(()) => Err("the kernel does without its barriers".into()),
    }
}
