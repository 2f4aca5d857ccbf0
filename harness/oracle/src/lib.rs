//! ggml itself, as an oracle: the code of llama.cpp that reads GGUF files, compiled from a pinned
//! source by `build.rs` and behind a safe interface.
//!
//! This is the library whose verdicts the profile `ggml` is about. It is the wrong crate for
//! *reading* models: ggml answers some files with `abort`, which ends the process. Whoever gives it
//! files from elsewhere does so in a child process.
//!
//! ```
//! use gguf_assay_oracle::{File, Mode};
//!
//! let empty = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
//! let file = File::from_bytes(empty, Mode::Header)?;
//! assert_eq!((file.version(), file.alignment(), file.data_offset()), (3, 32, 24));
//!
//! let rejected = File::from_bytes(b"GGML", Mode::Header).unwrap_err();
//! assert!(rejected.message.contains("invalid magic characters: 'GGML'"));
//! # Ok::<(), gguf_assay_oracle::Rejected>(())
//! ```
//!
//! To compile from another source than the pinned one, set `GGUF_ASSAY_GGML_SOURCE` to the absolute
//! path of a llama.cpp or ggml checkout when building.

mod dequantize;
mod file;
mod log;
mod subject;
mod sys;
mod types;

#[cfg(feature = "native")]
pub use dequantize::dequantize_native;
pub use dequantize::{NotDequantized, dequantize};
pub use file::{Aborted, Array, Entry, File, Mode, Rejected, Tensor, Value};
pub use subject::Ggml;
pub use types::{TypeInfo, type_count, type_info};

/// The version of ggml, such as `0.28.0`.
pub fn version() -> &'static str {
    env!("GGUF_ASSAY_GGML_VERSION")
}

/// Where the source came from, such as `llama-cpp-sys-4 0.11.0` or `local checkout 0123456789ab`.
pub fn source() -> &'static str {
    env!("GGUF_ASSAY_GGML_LABEL")
}

/// What compiled it, such as `gcc (Debian 12.2.0-14+deb12u1) 12.2.0`; always with `-O3` and
/// `-ffp-contract=off`.
pub fn compiler() -> &'static str {
    env!("GGUF_ASSAY_C_COMPILER")
}
