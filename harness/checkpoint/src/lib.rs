//! Quantized checkpoints: what a publisher ships, judged before anything is loaded.
//!
//! [`Checkpoint::open`] reads the configs and the headers of the safetensors files of a folder, and
//! says what is wrong with those. [`judge`] holds what is declared against the tensors that are there,
//! by the tables of [`method`]; [`Checkpoint::unpack`] gives the numbers of a module, and [`compare`]
//! holds them against their source. Size does not matter: of tensors a little is read, and all of one
//! only to unpack it.
//!
//! This is no loader: it makes no model.
//!
//! ```
//! use gguf_assay_checkpoint::{Checkpoint, MemoryFiles, Options, judge};
//!
//! let config = br#"{"quantization_config": {"quant_method": "zzz"}}"#;
//! let header = br#"{"a.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
//! let file = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat();
//! let files = [("config.json".into(), config.to_vec()), ("model.safetensors".into(), file)];
//! let checkpoint = Checkpoint::open(MemoryFiles(files.into()))?;
//! let judgement = judge(&checkpoint, &Options::default());
//! assert_eq!(judgement.findings[0].rule.id, "METHOD-001");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! No input makes it panic; time and memory are in proportion to the headers that are really there,
//! whatever they claim.

#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod architecture;
mod checkpoint;
mod compare;
mod config;
mod describe;
mod dtype;
mod experts;
mod files;
mod finding;
mod fit;
mod header;
mod index;
mod json;
mod judge;
pub mod method;
mod model;
mod module;
pub mod packing;
mod parallel;
pub mod rule;
mod scheme;
mod unpack;
mod values;

pub use checkpoint::{Checkpoint, ConfigFile, Shard};
pub use compare::{Compared, compare};
pub use dtype::Dtype;
pub use experts::{ExpertLayout, Experts};
pub use files::{Files, Folder, MemoryFiles};
pub use finding::{Finding, Refusal};
pub use header::{Header, TensorRecord};
pub use judge::{Judgement, Options, QuantizedModule, judge};
pub use module::Module;
pub use scheme::{Declaration, Entry, Group, Pattern, Scheme};
pub use unpack::Matrix;
