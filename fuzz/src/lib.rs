//! What the fuzz targets try, as functions that any input may be given to.
//!
//! A function panics if something does not hold; that is the finding. `cargo fuzz run parse` gives
//! them inputs; `cargo test -p gguf-assay-fuzz` gives them the corpus and what fuzzing has found
//! before, on stable Rust; `cargo run -p gguf-assay-fuzz --bin parse FILE…` gives them a file.

#![forbid(unsafe_code)]

mod dequantize;
mod diagnose;
mod differential;
mod parse;
mod roundtrip;
mod smith;

pub use dequantize::{dequantize, dequantize_input};
pub use diagnose::diagnose;
pub use differential::differential;
pub use parse::parse;
pub use roundtrip::roundtrip;
pub use smith::smith;

/// What a target tries; it panics if something does not hold.
pub type Target = fn(&[u8]);

/// Every target, by the name of its binary.
pub const TARGETS: [(&str, Target); 6] = [
    ("parse", parse),
    ("diagnose", diagnose),
    ("roundtrip", roundtrip),
    ("differential", differential),
    ("dequantize", dequantize),
    ("smith", smith),
];

/// Gives a target the files that are named on the command line.
///
/// # Errors
///
/// If a file cannot be read.
pub fn replay(target: Target) -> std::io::Result<()> {
    for path in std::env::args_os().skip(1) {
        target(&std::fs::read(&path)?);
        println!("{}: nothing found", path.display());
    }
    Ok(())
}
