//! Tensor names, value transforms and configs of each architecture: GGUF and transformers.
//!
//! [`Map::of`] says what a GGUF file stands for: for each tensor the parameters of transformers,
//! for the metadata the fields of `config.json`, and everything that does not fit: unmapped,
//! missing and duplicated tensors, wrong shapes. [`Map::read`] applies the transforms backwards and
//! gives the numbers of a parameter. [`CheckpointMap::of`] goes the other way.
//!
//! What is known of an architecture is data: `architectures/NAME.toml`, with what several share in
//! `shared/`. `README.md` says how to read and write one.
//!
//! No input makes it panic; time and memory are in proportion to the records of the input, whatever
//! its counts claim.

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
mod config;
mod data;
mod describe;
mod expression;
mod hyperparameters;
mod lint;
mod map;
mod pattern;
pub mod rule;
mod style;
mod values;
mod view;

pub use architecture::{Architecture, Class, Level, SourceTable, UnknownArchitecture};
pub use checkpoint::{CheckpointMap, CheckpointTensor, GgufSource, GgufTensor};
pub use config::get as config_field;
pub use data::Change;
pub use expression::Value;
pub use lint::lint;
pub use map::{
    Finding, MISSING_LISTED, Map, MappedTensor, MissingTensor, NotMapped, Parameter, Source,
};
pub use pattern::{Numbers, Pattern};
pub use style::ExpertStyle;
pub use values::{Exported, NotExported, NotRead, Values};
