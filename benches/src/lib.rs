//! Benches of gguf-assay beside its peers; the library itself is empty.
//!
//! What is measured and how: `METHODOLOGY.md`. Results by date and machine: `record/`.
