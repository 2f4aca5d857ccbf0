//! Reads and writes the GGUF container, and knows every rule of it.
//!
//! [`read`] is the strict reader: it stops at the first violation that the chosen [`Profile`]
//! forbids. [`diagnose`] goes on as far as it safely can and returns every violation with its
//! rule, byte offset, field path, what was found and what was expected. [`lay_out`] writes any
//! [`Description`], valid or not, and says where each field ended up; a [`Fault`] spoils one thing.
//!
//! The reader borrows everything from the input, does no I/O, allocates in proportion to the
//! records that it has really seen (never by a count that a header claims), recurses to a fixed
//! depth, and takes time linear in the input. No input makes it panic.
//!
//! This is not a loader: tensor data are found and bounded, not decoded.
//!
//! ```
//! use gguf_assay_format::{Profile, Value, lay_out, read, Description};
//!
//! let file = lay_out(&Description {
//!     metadata: vec![("general.architecture".into(), "llama".into())],
//!     ..Description::default()
//! });
//! let bytes = file.to_bytes();
//! let gguf = read(&bytes, Profile::Spec)?;
//! assert_eq!(gguf.version, 3);
//! assert_eq!(gguf.metadata[0].value, Value::String(b"llama".into()));
//!
//! let error = read(&bytes[..20], Profile::Spec).unwrap_err();
//! assert_eq!(error.rule().id, "FILE-002");
//! assert_eq!(error.field(), "header.kv_count");
//! # Ok::<(), gguf_assay_format::Violation>(())
//! ```

#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::as_conversions,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod cursor;
mod description;
mod fault;
mod limits;
mod path;
mod profile;
mod reader;
pub mod rule;
mod segments;
mod tensor_type;
mod text;
mod value;
mod violation;
mod walk;
mod writer;

pub use cursor::ByteOrder;
pub use description::{Data, Description, OwnedArray, OwnedValue, TensorDescription};
pub use fault::{Fault, Misplaced};
pub use limits::Limits;
pub use profile::Profile;
pub use reader::{
    Diagnosis, Dims, Entry, Gguf, Tensor, diagnose, diagnose_within, read, read_within,
};
pub use rule::{RULES, Requirement, Rule};
pub use segments::{Segment, Segments};
pub use tensor_type::{Status, TENSOR_TYPES, TensorType};
pub use text::{Text, escape, printable};
pub use value::{Array, Elements, Value, ValueType};
pub use violation::Violation;
pub use writer::{Field, Layout, lay_out};

/// The four bytes that every GGUF file starts with.
pub const MAGIC: [u8; 4] = *b"GGUF";

/// The alignment of a file that does not have the key `general.alignment`
/// (docs/gguf.md, General, Required).
pub const DEFAULT_ALIGNMENT: u32 = 32;
