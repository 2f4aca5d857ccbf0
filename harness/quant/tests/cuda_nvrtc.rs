//! The CUDA kernels as NVRTC compiles them: what each takes of a GPU, and that no thread needs memory
//! besides its registers. Needs no GPU and no driver.
//!
//! Where NVRTC is not to be found, the trials show as ignored; `GGUF_ASSAY_REQUIRE_NVRTC=1` makes
//! that a failure.

use std::env;
use std::fmt::Write;
use std::process::ExitCode;

use gguf_assay_quant::cuda::source::{Output, PROGRAMS, Program, kernel_name};
use gguf_assay_quant::cuda::{Device, compile, nvrtc_version};
use libtest_mimic::{Arguments, Failed, Trial};

/// Those of the A100 and the H100 and H200.
const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];

const REQUIRE: &str = "GGUF_ASSAY_REQUIRE_NVRTC";

fn main() -> ExitCode {
    let nvrtc = nvrtc_version();
    let is_required = env::var_os(REQUIRE).is_some_and(|value| value == "1");
    let mut trials = vec![];
    for architecture in ARCHITECTURES {
        for program in PROGRAMS {
            let name = format!("cuda-nvrtc/{architecture}/{}", program.name);
            trials.push(Trial::test(name, move || no_spills(program, architecture)));
        }
    }
    trials.push(Trial::test("cuda-nvrtc/errors/architecture", unknown_architecture));
    if let Err(error) = &nvrtc {
        let ignored =
            |trial: Trial| trial.with_kind(error.to_string()).with_ignored_flag(!is_required);
        trials = trials.into_iter().map(ignored).collect();
    }
    trials.push(Trial::test("cuda/errors/no_driver", no_driver));
    if let Ok((major, minor)) = nvrtc {
        println!("NVRTC {major}.{minor}");
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Prints what kernels take: registers of `f32`, `f16` and `bf16`, bytes of shared memory.
fn no_spills(program: &'static Program, architecture: &str) -> Result<(), Failed> {
    let binary = compile(program, architecture)?;
    if binary.image.is_empty() {
        return Err("no machine code".into());
    }
    let usage = binary.usage();
    let (mut table, mut spills) = (String::new(), String::new());
    for t in program.types() {
        let mut registers = vec![];
        let mut shared = 0;
        for output in Output::ALL {
            let name = kernel_name(t, output);
            let kernel = usage.iter().find(|kernel| kernel.kernel == name);
            let kernel = kernel.ok_or_else(|| format!("no kernel {name} in\n{}", binary.log))?;
            if kernel.registers == 0 {
                return Err(format!("no registers of {name} in\n{}", binary.log).into());
            }
            if kernel.stack != 0 {
                writeln!(spills, "{name}: {} bytes of a thread in memory", kernel.stack)?;
            }
            registers.push(kernel.registers.to_string());
            shared = kernel.shared;
        }
        let registers = registers.join(" ");
        writeln!(table, "{architecture} {:8} registers {registers}  shared {shared}", t.name)?;
    }
    print!("{table}");
    if spills.is_empty() { Ok(()) } else { Err(spills.into()) }
}

fn unknown_architecture() -> Result<(), Failed> {
    let Err(error) = compile(&PROGRAMS[0], "sm_1") else { return Err("compiled".into()) };
    let words = error.to_string();
    if words.starts_with("plain.cu for sm_1: ") && words.contains("architecture") {
        Ok(())
    } else {
        Err(words.into())
    }
}

/// Without a driver there is an error that says so; with one, a GPU or the driver's own words.
fn no_driver() -> Result<(), Failed> {
    let Err(error) = Device::open(0) else { return Ok(()) };
    let words = error.to_string();
    let known = [
        "GPU 0: NVIDIA's driver (libcuda.so.1) was not found where the system looks",
        "GPU 0: the driver says ",
        "GPU 0: it is sm_",
    ];
    if known.iter().any(|start| words.starts_with(start)) { Ok(()) } else { Err(words.into()) }
}
