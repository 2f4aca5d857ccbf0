//! Reader and writer.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| gguf_assay_fuzz::roundtrip(data));

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    gguf_assay_fuzz::main("roundtrip")
}
