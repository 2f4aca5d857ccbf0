//! Checkpoints: configs, an index and safetensors files.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gguf_assay_fuzz::checkpoint(data));

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    gguf_assay_fuzz::main("checkpoint")
}
