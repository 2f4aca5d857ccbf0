//! Proves a GGUF reader right.
//!
//! Give the suite your reader and every conformance case becomes a named test of *your* code. Ten
//! lines in `tests/gguf.rs`, with `harness = false` for that target in `Cargo.toml`:
//!
//! ```no_run
//! use gguf_assay::{About, Failure, FileValue, Harness, ReadRequest, Subject};
//! # mod my_loader { pub fn load(_: &std::path::Path) -> Result<Model, std::io::Error> { todo!() }
//! #   pub struct Model { pub version: u32 } }
//!
//! struct MyLoader;
//!
//! impl Subject for MyLoader {
//!     fn about(&self) -> About {
//!         About::new("my-loader", env!("CARGO_PKG_VERSION"))
//!     }
//!     fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure> {
//!         let model = my_loader::load(&request.path)?;
//!         Ok(FileValue { version: Some(model.version), ..FileValue::default() })
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Harness::new(MyLoader).main()
//! }
//! ```
//!
//! What a reader leaves out of its [`FileValue`] is not compared, so that a reader that only accepts
//! or refuses can take part; the more it says, the more is tested.
//!
//! A reader that also dequantizes blocks, maps names between GGUF and transformers, or judges and unpacks
//! quantized checkpoints, says so in [`About::ops`] and answers [`Subject::dequantize`],
//! [`Subject::map_names`], [`Subject::judge_checkpoint`] and [`Subject::unpack`].
//!
//! A reader in another language is a program that answers one JSON object per line
//! (`PROTOCOL.md`); the command `gguf-assay run --adapter` drives it. In this crate that is
//! [`process::Process`], and [`serve`] makes such a program of a Rust [`Subject`].
//!
//! This crate judges; it does not read models for you. The reader that it carries
//! ([`Reference`]) is a subject like any other.

#![forbid(unsafe_code)]

pub mod capability;
mod checkpoint;
mod compare;
mod expectations;
mod files;
mod harness;
mod judge;
mod names;
mod numbers;
pub mod process;
pub mod protocol;
mod reference;
pub mod report;
mod run;
mod serve;
mod subject;

pub use compare::difference;
pub use expectations::{Entry, Expectations, matches};
pub use files::CaseFiles;
pub use gguf_assay_cases::{
    AnyCase, CheckpointValue, Corpus, FileValue, MappedName, ModuleValue, NamesValue, TensorValue,
    WeightValue, sha256,
};
pub use gguf_assay_format::{ByteOrder, OwnedArray, OwnedValue, Profile, ValueType};
pub use harness::Harness;
pub use judge::{CaseResult, Outcome, Unclear, Verdict};
pub use reference::Reference;
pub use run::{Options, Run, run};
pub use serve::serve;
pub use subject::{
    About, Answer, Channel, CheckpointQuestion, CheckpointRequest, DequantizeRequest, Failure,
    InProcess, NamesGiven, NamesRequest, ReadRequest, Subject, UnpackRequest,
};
