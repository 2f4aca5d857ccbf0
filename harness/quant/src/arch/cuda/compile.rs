//! From source text to the machine code of a GPU.

#![allow(unsafe_code, reason = "calls NVRTC")]

use core::ffi::CStr;
use std::ffi::CString;

use cudarc::nvrtc::{result, sys};

use super::source::{DEVICE, Program};
use crate::error::{Error, Fault};

/// Machine code for one kind of GPU.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The code, as the driver loads it.
    pub image: Vec<u8>,
    /// What the compiler said.
    pub log: String,
}

/// What a kernel takes of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its name: [`kernel_name`](super::source::kernel_name).
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of a thread that did not fit into registers, in memory: spills and arrays.
    pub stack: u32,
    /// Bytes of shared memory of a thread block.
    pub shared: u32,
}

impl Binary {
    /// What each kernel takes, as the compiler says.
    pub fn usage(&self) -> Vec<Usage> {
        let mut found: Vec<Usage> = vec![];
        for line in self.log.lines() {
            if let Some((_, name)) = line.split_once("Compiling entry function '") {
                let kernel = name.split('\'').next().unwrap_or_default().into();
                found.push(Usage { kernel, registers: 0, stack: 0, shared: 0 });
            }
            let Some(last) = found.last_mut() else { continue };
            for part in line.split(',') {
                // Spills count in none of the sizes of stack frames, and the other way round.
                if part.contains("spill") || part.contains("bytes stack frame") {
                    last.stack += first_number(part);
                } else if part.contains("registers") {
                    last.registers = first_number(part);
                } else if part.contains("bytes smem") {
                    last.shared = first_number(part);
                }
            }
        }
        found
    }
}

fn first_number(text: &str) -> u32 {
    text.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0)
}

fn fault(subject: &str, reason: impl Into<String>) -> Error {
    Fault::Cuda { subject: subject.into(), reason: reason.into() }.into()
}

fn check_nvrtc(subject: &str) -> Result<(), Error> {
    // SAFETY: NVRTC is made to be loaded.
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    let reason = "NVIDIA's compiler (libnvrtc.so, .13 or .12) was not found where the system looks";
    Err(fault(subject, reason))
}

/// The version of NVRTC that is there.
///
/// # Errors
///
/// If there is none.
pub fn nvrtc_version() -> Result<(i32, i32), Error> {
    check_nvrtc("NVRTC")?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are there to be written to.
    let status = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    status.result().map_err(|error| fault("NVRTC", format!("{error}")))?;
    Ok((major, minor))
}

/// Compiles a program for the GPUs of an architecture: `sm_80`, `sm_90`.
///
/// # Errors
///
/// If NVRTC is not there, does not know the architecture, or does not take the program.
pub fn compile(program: &Program, architecture: &str) -> Result<Binary, Error> {
    let subject = format!("{} for {architecture}", program.name);
    check_nvrtc(&subject)?;
    let options = [
        &format!("--gpu-architecture={architecture}"),
        "--std=c++17",
        // The reference multiplies and adds in two steps, and keeps subnormal numbers.
        "--fmad=false",
        "--ftz=false",
        "--ptxas-options=-v",
    ];
    let nul_free = |text: String| CString::new(text).expect("no text here has a NUL in it");
    let source = nul_free(program.source(DEVICE));
    let name = nul_free(program.name.into());
    let handle = result::create_program(&source, Some(&name))
        .map_err(|error| fault(&subject, error.to_string()))?;
    let handle = Handle(handle);
    // SAFETY: the handle is one until it is dropped.
    let status = unsafe { result::compile_program(handle.0, &options) };
    let log = handle.log();
    if let Err(error) = status {
        return Err(fault(&subject, format!("{error}\n{}", log.trim_end())));
    }
    let image = handle.image().map_err(|error| fault(&subject, error.to_string()))?;
    Ok(Binary { image, log })
}

/// A program of NVRTC's.
struct Handle(sys::nvrtcProgram);

impl Handle {
    fn log(&self) -> String {
        // SAFETY: the handle is one until it is dropped.
        let Ok(log) = (unsafe { result::get_program_log(self.0) }) else { return String::new() };
        let bytes: Vec<u8> = log.iter().map(|c| c.cast_unsigned()).collect();
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }

    fn image(&self) -> Result<Vec<u8>, result::NvrtcError> {
        let mut len = 0;
        // SAFETY: the handle is one until it is dropped, and the length is there to be written to.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &mut len) }.result()?;
        let mut image = vec![0u8; len];
        // SAFETY: there is room for as many bytes as NVRTC has just said.
        unsafe { sys::nvrtcGetCUBIN(self.0, image.as_mut_ptr().cast()) }.result()?;
        Ok(image)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it is a handle, and nobody has it any more. There is nothing to do about an error.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ptxas 13.0 writes it.
    #[test]
    fn usage() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'Q4_0_f16' for 'sm_90'
ptxas info    : Function properties for Q4_0_f16
ptxas         .     256 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 256 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 128.421 ms
ptxas info    : Compiling entry function 'F32_f32' for 'sm_90'
ptxas info    : Function properties for F32_f32
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers
";
        let binary = Binary { image: vec![], log: log.into() };
        let usage = |kernel: &str, registers, stack, shared| Usage {
            kernel: kernel.into(),
            registers,
            stack,
            shared,
        };
        let expected = [usage("Q4_0_f16", 32, 268, 1024), usage("F32_f32", 18, 0, 0)];
        assert_eq!(binary.usage(), expected);
    }
}
