//! Which compiler this is, for the records.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().ok();
    let version = version.and_then(|run| String::from_utf8(run.stdout).ok()).unwrap_or_default();
    // What the compiler takes for granted without asking the machine: more than the least of the
    // architecture if there is a `target-cpu`.
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let level = env::var("OPT_LEVEL").unwrap_or_default();
    println!(
        "cargo::rustc-env=GGUF_ASSAY_RUSTC={}, opt-level {level}, target features {features}",
        version.trim()
    );
}
