//! The conformance cases of gguf-assay: the case format, its loader and linter, and the corpus.
//!
//! A case describes a valid GGUF file, spoils at most one thing, and says what each
//! [`Profile`](gguf_assay_format::Profile) expects of a reader. `corpus/README.md` documents the
//! format for people who write cases. This crate is data and the code that builds files from it;
//! to run a reader over the cases, use the crate `gguf-assay`.
//!
//! ```
//! use gguf_assay_cases::{Corpus, Verdict};
//! use gguf_assay_format::Profile;
//!
//! let corpus = Corpus::embedded();
//! let case = corpus.get("read/metadata/duplicate-key").unwrap();
//! assert_eq!(*case.verdict(Profile::Ggml), Verdict::Reject);
//! let bytes = case.build()?.to_bytes();
//! assert_eq!(&bytes[..4], b"GGUF");
//! # Ok::<(), gguf_assay_cases::CaseError>(())
//! ```

#![forbid(unsafe_code)]

mod any;
mod block;
mod case;
mod checkpoint;
mod corpus;
mod expected;
mod fault;
mod file;
pub mod files;
mod folder;
mod lint;
mod names;
mod new_case;
mod pair;
mod syntax;

pub use any::AnyCase;
pub use block::BlockCase;
pub use case::{Case, CaseError, Flag, Verdict};
pub use checkpoint::{
    CheckpointCase, CheckpointValue, ExpectedCheckpoint, ModuleValue, WeightValue,
};
pub use corpus::{Corpus, MAX_COMMITTED};
pub use expected::{FileValue, TensorValue, sha256};
pub use file::BuiltFile;
pub use folder::BuiltFolder;
pub use lint::lint;
pub use names::{ExpectedName, ExpectedNames, MappedName, NamesCase, NamesInput, NamesValue, Side};
pub use new_case::NewCase;
pub use pair::{Pair, PairNumbers, PairParameter};

use gguf_assay_format::{RULES, Rule};

/// Every rule: those of the container, of the meaning of types, of names, and of checkpoints.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let of_types = gguf_assay_quant::rule::RULES.iter();
    let of_files = RULES.iter().chain(of_types).chain(gguf_assay_names::rule::RULES).copied();
    of_files.chain(gguf_assay_checkpoint::rule::rules())
}

/// The rule with this id.
pub fn find_rule(id: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.id == id)
}
