//! The rule table: every requirement that the specification or ggml makes of a container.
//!
//! The table below is the only list of rules. Errors, the linter of the cases, `gguf-assay
//! explain` and the reports are all made from it. Ids are never reused: a rule that is withdrawn
//! leaves a gap.
//!
//! Clauses of the specification are named by the C declaration or heading of ggml's
//! `docs/gguf.md` (copy of 2026-08-21, ggml commit d99724f). Clauses of ggml are named by function
//! and source file in llama.cpp b12032 (ggml 0.28.0); `gguf.cpp` without a function means
//! `gguf_init_from_reader`.

use core::fmt;

use crate::Profile;

/// How firmly an authority asks for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A file that breaks the rule is refused.
    Must(&'static str),
    /// The text asks for it, but asks no reader to refuse a file for it: reported as a note.
    Should(&'static str),
    /// Says nothing, or allows it.
    Silent,
}

impl Requirement {
    /// The clause or function that asks, if any does.
    pub fn clause(self) -> Option<&'static str> {
        match self {
            Requirement::Must(clause) | Requirement::Should(clause) => Some(clause),
            Requirement::Silent => None,
        }
    }
}

/// One numbered requirement. Rules are compared by their [`id`](Rule::id).
#[derive(Debug)]
pub struct Rule {
    /// Stable id, such as `META-006`.
    pub id: &'static str,
    /// The requirement in one sentence.
    pub title: &'static str,
    /// What the specification asks.
    pub spec: Requirement,
    /// What ggml, with llama.cpp's model loader on top, enforces.
    pub ggml: Requirement,
    /// What this project asks of a careful reader, where both authorities leave a hole.
    pub policy: Requirement,
    /// What goes wrong when a reader does not look.
    pub effect: &'static str,
    /// What somebody who holds such a file can do.
    pub advice: &'static str,
    /// Public vulnerabilities that came of not checking it.
    pub cves: &'static [&'static str],
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl Rule {
    /// The rule with this id.
    pub fn find(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id == id)
    }

    /// Whether a file that breaks the rule is refused under `profile`: its authority says *must*,
    /// or this project's own policy does.
    pub fn binds(&self, profile: Profile) -> bool {
        let authority = match profile {
            Profile::Spec => self.spec,
            Profile::Ggml => self.ggml,
        };
        matches!(authority, Requirement::Must(_)) || matches!(self.policy, Requirement::Must(_))
    }

    /// Who refuses a file for breaking it: `spec`, `ggml`, `both`, `policy`, or `nobody` for notes.
    pub fn required_by(&self) -> &'static str {
        match (self.spec, self.ggml, self.policy) {
            (Requirement::Must(_), Requirement::Must(_), _) => "both",
            (Requirement::Must(_), _, _) => "spec",
            (_, Requirement::Must(_), _) => "ggml",
            (_, _, Requirement::Must(_)) => "policy",
            _ => "nobody",
        }
    }
}

macro_rules! rules {
    ($($name:ident = $id:literal {
        title: $title:literal,
        spec: $spec:expr,
        ggml: $ggml:expr,
        $(policy: $policy:expr,)?
        effect: $effect:literal,
        advice: $advice:literal,
        $(cves: [$($cve:literal),+ $(,)?],)?
    })+) => {
        $(
            #[doc = concat!("`", $id, "`: ", $title, ".")]
            pub static $name: Rule = Rule {
                id: $id,
                title: $title,
                spec: $spec,
                ggml: $ggml,
                policy: policy!($($policy)?),
                effect: $effect,
                advice: $advice,
                cves: &[$($($cve),+)?],
            };
        )+

        /// Every rule, in the order of the table.
        pub static RULES: &[&Rule] = &[$(&$name),+];
    };
}

macro_rules! policy {
    () => {
        Requirement::Silent
    };
    ($policy:expr) => {
        $policy
    };
}

use Requirement::{Must, Should, Silent};

rules! {
    FILE_001 = "FILE-001" {
        title: "the file is not empty",
        spec: Must("gguf_header_t"),
        ggml: Must("gguf.cpp: failed to read magic"),
        effect: "readers that map the file first fail with an error about mapping",
        advice: "the download failed before its first byte: download it again",
    }
    FILE_002 = "FILE-002" {
        title: "every field of the header, the metadata and the tensor table ends within the file",
        spec: Must("gguf_file_t"),
        ggml: Must("gguf.cpp: gguf_reader::read"),
        effect: "out-of-bounds reads, low-level errors such as \"unpack requires a buffer of 4 \
                 bytes\", or zeros taken for content",
        advice: "either the file is cut off or a length in it is wrong; compare its size with the \
                 publisher's and download it again",
        cves: ["CVE-2024-23496", "CVE-2024-21825", "CVE-2024-41130", "CVE-2025-66960"],
    }
    FILE_003 = "FILE-003" {
        title: "nothing follows the tensor data",
        spec: Silent,
        ggml: Silent,
        policy: Should("bytes that no tensor owns are read by nobody"),
        effect: "a second file glued on, or a wrong tensor table, goes unnoticed",
        advice: "if the tail is not zeros, the file may be several files joined: use a merge tool \
                 for shards instead of cat",
    }
    HDR_001 = "HDR-001" {
        title: "the file starts with the bytes GGUF",
        spec: Must("gguf_header_t.magic"),
        ggml: Must("gguf.cpp: invalid magic characters"),
        effect: "another kind of file is read as a model",
        advice: "this is not a GGUF file; see what it is and fetch the right one",
    }
    HDR_002 = "HDR-002" {
        title: "the version is one that exists (1, 2 or 3)",
        spec: Must("gguf_header_t.version, Version History"),
        ggml: Must("gguf.cpp: bad GGUF version / only supports up to version"),
        effect: "a layout that nobody knows is read by guesswork",
        advice: "a newer reader may know this version; otherwise the header is damaged",
    }
    HDR_003 = "HDR-003" {
        title: "the version is not 1",
        spec: Silent,
        ggml: Must("gguf.cpp: GGUFv1 is no longer supported"),
        effect: "32-bit counts and lengths are read as 64-bit ones",
        advice: "convert the model again with a current tool; version 1 lasted for weeks in 2023",
    }
    HDR_004 = "HDR-004" {
        title: "the file is in the byte order of the host (little-endian)",
        spec: Silent,
        ggml: Must("gguf.cpp: version is extremely large, mismatch between the host and model \
                    endianness"),
        effect: "byte-swapped values are returned as weights",
        advice: "convert it with gguf-py's gguf_convert_endian on a machine that has the original",
    }
    HDR_005 = "HDR-005" {
        title: "tensor_count is one that the file can hold",
        spec: Must("gguf_header_t.tensor_count"),
        ggml: Must("gguf.cpp: number of tensors is … but must be in"),
        effect: "allocation by a header's claim: memory exhaustion or heap overflow",
        advice: "the header is damaged, or made to harm: do not load it",
        cves: ["CVE-2024-21836"],
    }
    HDR_006 = "HDR-006" {
        title: "metadata_kv_count is one that the file can hold",
        spec: Must("gguf_header_t.metadata_kv_count"),
        ggml: Must("gguf.cpp: number of key value pairs is … but must be in"),
        effect: "allocation by a header's claim: memory exhaustion or heap overflow",
        advice: "the header is damaged, or made to harm: do not load it",
        cves: ["CVE-2024-23605"],
    }
    META_001 = "META-001" {
        title: "a key is not empty",
        spec: Must("gguf_metadata_kv_t.key: hierarchical key"),
        ggml: Must("gguf.cpp: key is empty"),
        effect: "an assertion in readers that take a key for granted",
        advice: "the writer of this file is at fault; report it there",
    }
    META_002 = "META-002" {
        title: "a key is at most 65,535 bytes long",
        spec: Must("gguf_metadata_kv_t.key: at most 2^16-1"),
        ggml: Silent,
        effect: "readers with 16-bit key lengths cut it",
        advice: "the writer of this file is at fault; report it there",
    }
    META_003 = "META-003" {
        title: "a key is ASCII",
        spec: Must("gguf_metadata_kv_t.key: valid ASCII string"),
        ggml: Silent,
        effect: "readers that decode keys fail late, or in another encoding",
        advice: "the writer of this file is at fault; report it there",
    }
    META_004 = "META-004" {
        title: "a key is made of lower_snake_case segments joined by '.'",
        spec: Must("gguf_metadata_kv_t.key: lower_snake_case"),
        ggml: Silent,
        effect: "none known; the keys of some real architectures (gpt-oss, command-r) break it",
        advice: "harmless where the architecture's own name has a hyphen",
    }
    META_005 = "META-005" {
        title: "a string is at most 2^30 bytes long",
        spec: Silent,
        ggml: Must("gguf.cpp: GGUF_MAX_STRING_LENGTH"),
        effect: "ggml refuses the file",
        advice: "store such data as a tensor",
        cves: ["CVE-2025-49847"],
    }
    META_006 = "META-006" {
        title: "no key occurs twice",
        spec: Silent,
        ggml: Must("gguf.cpp: duplicate key"),
        effect: "two readers see two values: some keep the first, some the last",
        advice: "the writer of this file is at fault; gguf-py's gguf_new_metadata can rewrite it",
    }
    META_007 = "META-007" {
        title: "a value's type is one of the 13 that exist",
        spec: Must("gguf_metadata_value_type"),
        ggml: Must("gguf.cpp: key has invalid GGUF type"),
        effect: "the rest of the file is read out of step; a crash where the id indexes a table",
        advice: "the file is damaged at this key, or written by a tool with types of its own",
    }
    META_008 = "META-008" {
        title: "an array's element type is one of the 13 that exist",
        spec: Must("gguf_metadata_value_t.array.type"),
        ggml: Must("gguf.cpp: key has invalid GGUF type"),
        effect: "the rest of the file is read out of step; a crash where the id indexes a table",
        advice: "the file is damaged at this key, or written by a tool with types of its own",
    }
    META_009 = "META-009" {
        title: "an array's elements are not arrays",
        spec: Silent,
        ggml: Must("gguf.cpp: key has invalid GGUF type 9"),
        effect: "ggml refuses what the text allows; some readers flatten it",
        advice: "llama.cpp cannot load this file; flatten the array in the writer",
    }
    META_010 = "META-010" {
        title: "arrays are nested no deeper than a reader's limit",
        spec: Silent,
        ggml: Silent,
        policy: Must("Limits::array_depth"),
        effect: "unbounded recursion: stack overflow",
        advice: "the file is made to harm, or damaged: do not load it",
    }
    META_011 = "META-011" {
        title: "a bool is the byte 0 or 1",
        spec: Must("GGUF_METADATA_VALUE_TYPE_BOOL"),
        ggml: Silent,
        effect: "undefined behaviour where the byte is read as a C or Rust bool",
        advice: "the writer of this file is at fault, or the file is damaged at this key",
    }
    META_012 = "META-012" {
        title: "a string is UTF-8",
        spec: Must("gguf_string_t.string"),
        ggml: Silent,
        effect: "readers fail late, replace bytes, or decode it in another encoding",
        advice: "the writer of this file is at fault; report it there",
    }
    META_013 = "META-013" {
        title: "an array has at most 2^30 elements",
        spec: Silent,
        ggml: Must("gguf.cpp: GGUF_MAX_ARRAY_ELEMENTS"),
        effect: "ggml refuses the file",
        advice: "store such data as a tensor",
    }
    META_014 = "META-014" {
        title: "the key general.architecture is there",
        spec: Must("General, Required: general.architecture"),
        ggml: Silent,
        effect: "no loader can tell what the model is",
        advice: "a file without it is a shard, an adapter of old, or incomplete",
    }
    META_015 = "META-015" {
        title: "general.architecture is a string of the characters a-z and 0-9",
        spec: Must("General, Required: general.architecture"),
        ggml: Silent,
        effect: "none known; the names of some real architectures (gpt-oss, nemotron_h) break it",
        advice: "harmless where llama.cpp's own name for the architecture has '-' or '_'",
    }
    META_016 = "META-016" {
        title: "a file with quantized tensors has general.quantization_version, a u32",
        spec: Must("General, Required: general.quantization_version"),
        ggml: Silent,
        effect: "a reader cannot tell which layout of the blocks is meant",
        advice: "current llama.cpp ignores it; set it to 2 with gguf-py's gguf_set_metadata",
    }
    META_017 = "META-017" {
        title: "general.file_type, if it is there, is a u32 that ggml lists",
        spec: Should("General metadata: general.file_type: uint32 (the text's list ends at 18)"),
        ggml: Should("llama.h: enum llama_ftype (ends at 42)"),
        effect: "a label that readers show or trust; the types of the tensors are what counts",
        advice: "harmless: every tensor states its own type",
    }
    META_018 = "META-018" {
        title: "the separator token has the key that readers look for: \"seperator_token_id\"",
        spec: Silent,
        ggml: Silent,
        policy: Should(
            "llama-arch.cpp: LLM_KV_TOKENIZER_SEP_ID is misspelt, the text's spelling is not",
        ),
        effect: "a separator token that no reader finds",
        advice: "write the id under tokenizer.ggml.seperator_token_id as well",
    }
    ALIGN_001 = "ALIGN-001" {
        title: "general.alignment is a u32",
        spec: Must("General, Required: general.alignment"),
        ggml: Must("gguf.cpp: key must be of type"),
        effect: "a reader that looks for a u32 falls back to 32 and reads tensors from the wrong \
                 place",
        advice: "the writer of this file is at fault; rewrite the key as u32",
    }
    ALIGN_002 = "ALIGN-002" {
        title: "general.alignment is not 0",
        spec: Must("General, Required: general.alignment; align_offset divides by it"),
        ggml: Must("gguf.cpp: alignment is not a power of 2"),
        effect: "division by zero",
        advice: "the file is damaged, or made to harm: do not load it",
    }
    ALIGN_003 = "ALIGN-003" {
        title: "general.alignment is a power of two",
        spec: Silent,
        ggml: Must("gguf.cpp: alignment is not a power of 2"),
        effect: "readers that round with a mask read tensors from the wrong place",
        advice: "write the file again with an alignment of 32",
    }
    ALIGN_004 = "ALIGN-004" {
        title: "general.alignment is a multiple of 8",
        spec: Must("General, Required: general.alignment"),
        ggml: Silent,
        effect: "tensors of 64-bit elements are misaligned",
        advice: "write the file again with an alignment of 32",
    }
    TENSOR_001 = "TENSOR-001" {
        title: "a tensor's name is at most 64 bytes long",
        spec: Must("gguf_tensor_info_t.name"),
        ggml: Must("gguf.cpp: tensor name is too long"),
        effect: "readers with fixed buffers cut it or overflow",
        advice: "shorten the name in the converter",
    }
    TENSOR_002 = "TENSOR-002" {
        title: "a tensor's name is at most 63 bytes long",
        spec: Silent,
        ggml: Must("gguf.cpp: tensor name is too long (GGML_MAX_NAME)"),
        effect: "ggml refuses a name of 64 bytes, which the text allows",
        advice: "shorten the name in the converter",
    }
    TENSOR_003 = "TENSOR-003" {
        title: "a tensor's name is UTF-8",
        spec: Must("gguf_tensor_info_t.name: standard GGUF string"),
        ggml: Silent,
        effect: "readers that decode names fail, or look up another name",
        advice: "the writer of this file is at fault, or the file is damaged here",
    }
    TENSOR_004 = "TENSOR-004" {
        title: "no tensor name occurs twice",
        spec: Silent,
        ggml: Must("gguf.cpp: duplicate tensor name"),
        effect: "one of the two tensors silently wins",
        advice: "the tool that merged or wrote this file is at fault; write it again",
    }
    TENSOR_005 = "TENSOR-005" {
        title: "a tensor has at most 4 dimensions",
        spec: Must("gguf_tensor_info_t.n_dimensions: currently at most 4"),
        ggml: Must("gguf.cpp: invalid number of dimensions (GGML_MAX_DIMS)"),
        effect: "writes past a fixed array",
        advice: "reshape the tensor in the converter",
        cves: ["CVE-2024-21802"],
    }
    TENSOR_006 = "TENSOR-006" {
        title: "a dimension is below 2^63",
        spec: Silent,
        ggml: Must("gguf.cpp: invalid number of elements … < 0"),
        effect: "negative sizes",
        advice: "the tensor table is damaged, or made to harm: do not load it",
    }
    TENSOR_007 = "TENSOR-007" {
        title: "the product of the dimensions, taken from left to right, is below 2^63",
        spec: Silent,
        ggml: Must("gguf.cpp: incorrect shape … may cause overflow errors"),
        effect: "a product that wraps to a small number: heap overflow",
        advice: "the tensor table is damaged, or made to harm: do not load it",
        cves: ["CVE-2026-33298"],
    }
    TENSOR_008 = "TENSOR-008" {
        title: "a tensor's type is one that exists",
        spec: Must("ggml_type"),
        ggml: Must("gguf.cpp: invalid ggml type"),
        effect: "reads before or past the type table",
        advice: "a newer reader, or the fork that wrote the file, may know the type",
    }
    TENSOR_009 = "TENSOR-009" {
        title: "a tensor's type is not one of those removed from the format",
        spec: Must("ggml_type: support has been removed"),
        ggml: Must("gguf.cpp: not a multiple of block size (0)"),
        effect: "division by a block size of zero",
        advice: "quantize the model again; an old file of a fork may use the id for a type of its \
                 own",
    }
    TENSOR_010 = "TENSOR-010" {
        title: "a row is a whole number of blocks: the first dimension divides by the block size",
        spec: Must("ggml_type: the types are ggml's, whose blocks do not cross rows"),
        ggml: Must("gguf.cpp: not a multiple of block size"),
        effect: "rows start inside a block: wrong values for all rows but the first",
        advice: "quantize this tensor to a type with a block that divides its rows",
    }
    TENSOR_011 = "TENSOR-011" {
        title: "a tensor's size in bytes fits 64 bits",
        spec: Must("gguf_file_t.tensor_data"),
        ggml: Must("gguf.cpp: has a size in bytes >"),
        effect: "a size that wraps to a small number: heap overflow",
        advice: "the tensor table is damaged, or made to harm: do not load it",
        cves: ["CVE-2026-33298"],
    }
    TENSOR_012 = "TENSOR-012" {
        title: "a tensor's type is listed in the text (which ends at 39, MXFP4)",
        spec: Should("ggml_type"),
        ggml: Silent,
        effect: "readers written from the text refuse NVFP4, Q1_0, Q2_0",
        advice: "use a reader that is newer than the type",
    }
    DATA_001 = "DATA-001" {
        title: "a tensor's offset is a multiple of the alignment",
        spec: Must("gguf_tensor_info_t.offset"),
        ggml: Must("gguf.cpp: tensor has offset …, expected"),
        effect: "misaligned loads; data read from the wrong place",
        advice: "the writer of this file is at fault, or the tensor table is damaged",
    }
    DATA_002 = "DATA-002" {
        title: "tensors follow each other in the order of the table, with no gap but padding",
        spec: Silent,
        ggml: Must("gguf.cpp: tensor has offset …, expected"),
        effect: "ggml refuses what the text allows",
        advice: "llama.cpp cannot load this file; write it again with gguf-py",
        cves: ["CVE-2026-27940", "CVE-2025-53630"],
    }
    DATA_003 = "DATA-003" {
        title: "no two tensors share bytes",
        spec: Silent,
        ggml: Silent,
        policy: Should("each tensor's data is its own"),
        effect: "one tensor's weights are another's",
        advice: "the writer of this file is at fault, or the tensor table is damaged",
    }
    DATA_004 = "DATA-004" {
        title: "a tensor's data lie within the file",
        spec: Must("gguf_file_t.tensor_data"),
        ggml: Must("llama-model-loader.h: data is not within the file bounds"),
        effect: "reads past the end: crash, or memory of the process taken for weights",
        advice: "the file is cut off: compare its size with the publisher's and download it again",
        cves: ["CVE-2026-7482", "CVE-2025-62609"],
    }
    DATA_005 = "DATA-005" {
        title: "a file with tensors reaches the start of its data section",
        spec: Must("gguf_file_t._padding"),
        ggml: Must("gguf.cpp: failed to seek to beginning of data section"),
        effect: "a data section that starts behind the end of the file",
        advice: "the file is cut off: compare its size with the publisher's and download it again",
    }
    DATA_006 = "DATA-006" {
        title: "the padded sizes of all tensors add up to less than 2^64",
        spec: Silent,
        ggml: Must("gguf.cpp: size overflow, cannot accumulate size"),
        effect: "a sum that wraps to a small number: heap overflow",
        advice: "the tensor table is damaged, or made to harm: do not load it",
        cves: ["CVE-2025-53630"],
    }
    DATA_007 = "DATA-007" {
        title: "padding is zero bytes",
        spec: Should("File Structure: padded with 0x00 bytes"),
        ggml: Silent,
        effect: "hidden content, or tensors placed wrongly",
        advice: "harmless to readers; it may tell that offsets are wrong",
    }
    DATA_008 = "DATA-008" {
        title: "the last tensor is padded to the alignment",
        spec: Silent,
        ggml: Should("gguf.cpp: failed to read tensor data binary blob (only when data are loaded)"),
        effect: "ggml's own data loading refuses the file; llama.cpp's does not",
        advice: "append zero bytes up to the alignment",
    }
    SPLIT_001 = "SPLIT-001" {
        title: "split.no and split.count are u16, split.tensors.count is an i32",
        spec: Silent,
        ggml: Silent,
        policy: Should("llama-model-loader.cpp: get_key(LLM_KV_SPLIT_COUNT) asks for a u16"),
        effect: "the loader of a shard set refuses the file, or panics",
        advice: "split the model again with llama.cpp's gguf-split",
    }
    SPLIT_002 = "SPLIT-002" {
        title: "split.no is below split.count",
        spec: Silent,
        ggml: Silent,
        policy: Should("llama-model-loader.cpp: illegal split file idx"),
        effect: "the shard cannot be placed in its set",
        advice: "split the model again with llama.cpp's gguf-split",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_well_formed() {
        for (i, rule) in RULES.iter().enumerate() {
            let (area, number) = rule.id.split_once('-').expect(rule.id);
            assert!(area.chars().all(|c| c.is_ascii_uppercase()), "{rule}");
            assert!(number.len() == 3 && number.chars().all(|c| c.is_ascii_digit()), "{rule}");
            assert!(RULES.iter().skip(i + 1).all(|other| other.id != rule.id), "{rule} twice");
        }
    }

    #[test]
    fn somebody_asks_for_each_rule() {
        for rule in RULES {
            assert!(
                [rule.spec, rule.ggml, rule.policy].iter().any(|r| r.clause().is_some()),
                "{rule} is asked for by nobody"
            );
        }
    }
}
