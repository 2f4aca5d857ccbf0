//! A case of any operation.

use gguf_assay_format::{Profile, Rule};

use crate::{BlockCase, Case, CheckpointCase, NamesCase, Verdict};

/// A case, whatever it asks of a subject.
#[derive(Clone, Copy, Debug)]
pub enum AnyCase<'a> {
    /// Read a file.
    Read(&'a Case),
    /// Dequantize blocks.
    Dequantize(&'a BlockCase),
    /// Say what names are on the other side.
    MapNames(&'a NamesCase),
    /// Judge a checkpoint, or unpack a module of it.
    Checkpoint(&'a CheckpointCase),
}

impl<'a> AnyCase<'a> {
    /// The id: operation, area, slug.
    pub fn id(self) -> &'a str {
        match self {
            AnyCase::Read(case) => &case.id,
            AnyCase::Dequantize(case) => &case.id,
            AnyCase::MapNames(case) => &case.id,
            AnyCase::Checkpoint(case) => &case.id,
        }
    }

    /// The operation that it asks for: `read`, `dequantize`, `map_names`, `judge_checkpoint` or `unpack`.
    pub fn operation(self) -> &'static str {
        match self {
            AnyCase::Read(_) => "read",
            AnyCase::Dequantize(_) => "dequantize",
            AnyCase::MapNames(_) => "map_names",
            AnyCase::Checkpoint(case) => case.operation(),
        }
    }

    /// The first part of its id, and its folder in the corpus: `read`, `dequantize`, `names` or
    /// `checkpoint`.
    pub fn folder(self) -> &'static str {
        match self {
            AnyCase::Read(_) => "read",
            AnyCase::Dequantize(_) => "dequantize",
            AnyCase::MapNames(_) => "names",
            AnyCase::Checkpoint(_) => "checkpoint",
        }
    }

    /// The rule that it probes.
    pub fn rule(self) -> &'static Rule {
        match self {
            AnyCase::Read(case) => case.rule,
            AnyCase::Dequantize(case) => case.rule,
            AnyCase::MapNames(case) => case.rule,
            AnyCase::Checkpoint(case) => case.rule,
        }
    }

    /// What is special about it.
    pub fn summary(self) -> &'a str {
        match self {
            AnyCase::Read(case) => &case.summary,
            AnyCase::Dequantize(case) => &case.summary,
            AnyCase::MapNames(case) => &case.summary,
            AnyCase::Checkpoint(case) => &case.summary,
        }
    }

    /// Where anyone can look it up.
    pub fn source(self) -> &'a str {
        match self {
            AnyCase::Read(case) => &case.source,
            AnyCase::Dequantize(case) => &case.source,
            AnyCase::MapNames(case) => &case.source,
            AnyCase::Checkpoint(case) => &case.source,
        }
    }

    /// What `profile` expects.
    pub fn verdict(self, profile: Profile) -> &'a Verdict {
        match self {
            AnyCase::Read(case) => case.verdict(profile),
            AnyCase::Dequantize(case) => case.verdict(profile),
            // Names are a matter of llama.cpp's converter; the container's profiles do not part here.
            AnyCase::MapNames(case) => case.verdict(),
            // Nor do they in what loaders of checkpoints ask.
            AnyCase::Checkpoint(case) => case.verdict(),
        }
    }

    /// Whether it is only run when asked for.
    pub fn is_large(self) -> bool {
        match self {
            AnyCase::Read(case) => case.is_large(),
            AnyCase::Dequantize(_) | AnyCase::MapNames(_) | AnyCase::Checkpoint(_) => false,
        }
    }
}
