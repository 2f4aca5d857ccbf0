//! What the benches of gguf-assay measure, and how.
//!
//! [`dequantize`], [`read`] and [`check`] each have the engines of one operation and see to it that
//! they do the same; [`rounds`] lets them take turns. How that is meant: `METHODOLOGY.md`. Results
//! by date and machine: `record/`.

pub mod check;
pub mod dequantize;
pub mod model;
pub mod read;
pub mod rounds;

use gguf_assay_record::Engine;

/// Whether times are asked for: without `--bench`, as in `cargo test`, and with `--test` each part
/// runs once, on small inputs.
pub fn is_measuring() -> bool {
    let given = |option: &str| std::env::args().any(|argument| argument == option);
    given("--bench") && !given("--test") && !given("--list")
}

/// Everything that takes part, in the order of the reports.
pub fn engines() -> Vec<Engine> {
    let parts = [dequantize::about(), read::about(), check::about()];
    let all = parts.concat().into_iter();
    all.map(|(name, about)| Engine { name: name.into(), about }).collect()
}

/// What compiled this crate and the Rust code that it measures.
pub fn rustc() -> &'static str {
    env!("GGUF_ASSAY_RUSTC")
}
