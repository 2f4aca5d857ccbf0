//! What the fuzz targets try, as functions that any input may be given to.
//!
//! A function panics if something does not hold; that is the finding. `cargo fuzz run parse` gives
//! them inputs; `cargo test -p gguf-assay-fuzz` gives them the corpus and what fuzzing has found
//! before, on stable Rust; `cargo run -p gguf-assay-fuzz --bin parse FILE…` gives them a file, and
//! makes a regression of it ([`replay`]).

#![forbid(unsafe_code)]

mod checkpoint;
mod dequantize;
mod diagnose;
mod differential;
mod names;
mod parse;
mod replay;
mod roundtrip;
mod smith;

use std::process::ExitCode;

use gguf_assay_format::Profile;

pub use checkpoint::{checkpoint, checkpoint_input};
pub use dequantize::{dequantize, dequantize_input};
pub use diagnose::diagnose;
pub use differential::differential;
pub use names::names;
pub use parse::parse;
pub use replay::replay;
pub use roundtrip::roundtrip;
pub use smith::smith;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its binary.
    pub name: &'static str,
    /// What it tries; panics if something does not hold.
    pub run: fn(&[u8]),
    /// What an input is about: a rule, for people.
    pub rule: fn(&[u8]) -> String,
    /// What it takes inputs for, which says what to start from.
    pub input: Input,
}

/// What a target takes inputs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File,
    /// A type, and blocks of it ([`dequantize_input`]).
    Blocks,
    /// The files of a checkpoint ([`checkpoint_input`]).
    Folder,
    /// Choices of the generator, which makes something of any bytes.
    Choices,
}

/// Every target.
pub const TARGETS: [Target; 8] = [
    Target { name: "parse", run: parse, rule: rule_of_file, input: Input::File },
    Target { name: "diagnose", run: diagnose, rule: rule_of_file, input: Input::File },
    Target { name: "roundtrip", run: roundtrip, rule: rule_of_file, input: Input::File },
    Target { name: "differential", run: differential, rule: rule_of_file, input: Input::File },
    Target { name: "names", run: names, rule: rule_of_file, input: Input::File },
    Target { name: "checkpoint", run: checkpoint, rule: checkpoint::rule, input: Input::Folder },
    Target { name: "dequantize", run: dequantize, rule: dequantize::rule, input: Input::Blocks },
    Target { name: "smith", run: smith, rule: smith::rule, input: Input::Choices },
];

/// The `main` of a target's binary without the fuzzer: [`replay`] with the command line.
///
/// # Panics
///
/// If there is no such target.
pub fn main(name: &str) -> ExitCode {
    let target = TARGETS.into_iter().find(|target| target.name == name).expect("a target's name");
    replay(target, std::env::args_os())
}

/// The first rule that a file breaks, by any profile.
fn rule_of_file(bytes: &[u8]) -> String {
    let diagnosis = gguf_assay_format::diagnose(bytes);
    let binds = |profile| diagnosis.violations.iter().find(|violation| violation.binds(profile));
    match Profile::ALL.into_iter().find_map(binds).or(diagnosis.violations.first()) {
        Some(violation) => violation.to_string(),
        None => "none: the file is valid".into(),
    }
}
