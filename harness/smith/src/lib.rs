//! Makes GGUF files: valid ones of any shape, and the same with one named fault.
//!
//! [`Smith::forge`] turns bytes, from a fuzzer or from a seed, into the [`Description`] of a valid
//! file; [`plant`] spoils one thing in it, so that it breaks the rule that was asked for and no
//! other; [`shrink`](shrink::shrink) makes a file that fails smaller for as long as it still fails.
//!
//! ```
//! use gguf_assay_format::{Profile, Rule, lay_out, read};
//! use gguf_assay_smith::{Reach, Smith, plant};
//!
//! let smith = Smith::new(Reach::Both);
//! let description = smith.forge_seed(7);
//! assert!(read(&lay_out(&description).to_bytes(), Profile::Ggml).is_ok());
//!
//! let rule = Rule::find("META-006").unwrap(); // no key occurs twice
//! let planted = plant(rule, &description, 7).unwrap();
//! let file = planted.lay_out().to_bytes();
//! assert_eq!(read(&file, Profile::Ggml).unwrap_err().rule(), rule);
//! ```
//!
//! What is made is deterministic: the same bytes or seed give the same file in every run of one
//! version of this crate. Versions may differ; keep the file, not the seed.

#![forbid(unsafe_code)]

mod check;
mod choices;
mod file;
mod plant;
mod roundtrip;
mod shards;
pub mod shrink;
#[cfg(feature = "proptest")]
pub mod strategy;

pub use check::check;
pub use file::{Kind, Reach, Smith};
pub use plant::{Planted, plant, plant_from, small_rules};
pub use roundtrip::roundtrip;
pub use shards::split;

#[cfg(doc)]
use gguf_assay_format::Description;
