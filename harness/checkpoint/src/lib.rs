//! Quantized checkpoints: what a publisher ships, judged before anything is loaded.
//!
//! [`Checkpoint::open`] reads the configs and the headers of the safetensors files of a folder, and
//! whatever is wrong with those. No tensor is read for that, so that size does not matter.
//!
//! [`packing`] says what the tensors of a quantized weight mean: numbers, codes, other layouts.
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
