//! The source text of the kernels.
//!
//! What the `.cu` files have in common with the reference they get from it: the places of the
//! fields, the grids and the levels are written in front of them, from the same declarations.

use core::fmt::{self, Write};

use gguf_assay_format::TensorType;

use crate::block::{self, FP4_TWICE, IQ4_LEVELS};
use crate::grid::{self, Grid};
use crate::layout::{Layout, fields};

/// Threads in a thread block.
pub const THREADS: u32 = 256;

/// Elements that a thread block takes at a time.
///
/// All lengths of blocks divide it. More would make the last tiles of a tensor wait for each other,
/// less would have threads wait more often than they compute.
pub const TILE: u32 = 8192;

/// [`device.cuh`](Program::source): the machine is a GPU.
pub const DEVICE: &str = include_str!("device.cuh");

/// What kernels write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Single precision: the numbers of the reference.
    F32,
    /// Half precision: those numbers, rounded to the nearest, ties to even.
    F16,
    /// bfloat16: those numbers, rounded to the nearest, ties to even.
    BF16,
}

impl Output {
    /// All of them.
    pub const ALL: [Output; 3] = [Output::F32, Output::F16, Output::BF16];

    /// The name: `f32`, `f16` or `bf16`.
    pub const fn name(self) -> &'static str {
        match self {
            Output::F32 => "f32",
            Output::F16 => "f16",
            Output::BF16 => "bf16",
        }
    }

    /// How long a number is, in bytes.
    pub const fn byte_len(self) -> usize {
        match self {
            Output::F32 => 4,
            Output::F16 | Output::BF16 => 2,
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of the kernel that turns a type into an output.
pub fn kernel_name(tensor_type: &TensorType, output: Output) -> String {
    format!("{}_{output}", tensor_type.name)
}

/// The kernels of a family of types, which are compiled together.
#[derive(Debug)]
pub struct Program {
    /// The name of its file.
    pub name: &'static str,
    text: &'static str,
    ids: &'static [u32],
    tables: &'static [Table],
}

#[derive(Debug)]
enum Table {
    Eight(&'static str, &'static Grid<8>),
    Four(&'static str, &'static Grid<4>),
    Levels(&'static str, &'static [i8; 16]),
}

macro_rules! programs {
    ($($name:literal: $($t:ident)+ $(, $kind:ident $table:literal $value:expr)*;)+) => {
        /// All of them.
        pub static PROGRAMS: &[Program] = &[$(Program {
            name: $name,
            text: include_str!($name),
            ids: &[$(<block::$t as Layout>::ID),+],
            tables: &[$(Table::$kind($table, &$value)),*],
        }),+];
    };
}

programs! {
    "plain.cu": F32 F16 BF16 F64 I8 I16 I32 I64 F8_E4M3;
    "legacy.cu": Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1;
    "k.cu": Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K;
    "iq1.cu": IQ1_S IQ1_M, Eight "IQ1S" grid::IQ1S;
    "iq2.cu": IQ2_XXS IQ2_XS IQ2_S,
        Eight "IQ2XXS" grid::IQ2XXS, Eight "IQ2XS" grid::IQ2XS, Eight "IQ2S" grid::IQ2S;
    "iq3.cu": IQ3_XXS IQ3_S, Four "IQ3XXS" grid::IQ3XXS, Four "IQ3S" grid::IQ3S;
    "iq4.cu": IQ4_NL IQ4_XS, Levels "IQ4_LEVELS" IQ4_LEVELS;
    "fp4.cu": MXFP4 NVFP4, Levels "FP4_TWICE" FP4_TWICE;
    "ternary.cu": TQ1_0 TQ2_0;
    "bits.cu": Q1_0 Q2_0;
}

impl Program {
    /// The one that has a type's kernels; none if files may not use the type.
    pub fn of(tensor_type: &TensorType) -> Option<&'static Program> {
        block::format(tensor_type)?;
        PROGRAMS.iter().find(|program| program.ids.contains(&tensor_type.id))
    }

    /// The types that it has kernels of.
    pub fn types(&self) -> impl Iterator<Item = &'static TensorType> {
        self.ids.iter().map(|id| TensorType::by_id(*id).expect("blocks are of types that exist"))
    }

    /// The whole text, for a machine: [`DEVICE`], or a model of it.
    pub fn source(&self, machine: &str) -> String {
        let mut source = String::new();
        self.write(machine, &mut source).expect("strings take everything");
        source
    }

    fn write(&self, machine: &str, out: &mut String) -> fmt::Result {
        writeln!(out, "#line 1 \"machine\"\n{machine}")?;
        writeln!(out, "#line 1 \"source.rs\"")?;
        writeln!(
            out,
            "constexpr unsigned THREADS = {THREADS};\nconstexpr unsigned TILE = {TILE};"
        )?;
        writeln!(out, "namespace layout {{")?;
        for t in self.types() {
            let TensorType { name, block_len, block_bytes, .. } = t;
            write!(out, "struct {name} {{ static constexpr unsigned ")?;
            write!(out, "LEN = {block_len}, BYTES = {block_bytes}")?;
            for field in fields(t) {
                write!(out, ", {} = {}", field.name, field.offset)?;
            }
            writeln!(out, "; }};")?;
        }
        writeln!(out, "}}\nnamespace table {{")?;
        for table in self.tables {
            match table {
                Table::Eight(name, grid) => write_grid(out, name, grid)?,
                Table::Four(name, grid) => write_grid(out, name, grid)?,
                Table::Levels(name, levels) => write_levels(out, name, "", *levels)?,
            }
        }
        writeln!(out, "}}\n#line 1 \"frame.cuh\"\n{}", include_str!("frame.cuh"))?;
        writeln!(out, "#line 1 \"{}\"\n{}", self.name, self.text)
    }
}

/// The digits of each entry, four bits an element, the first lowest; and the levels that they are.
fn write_grid<const N: usize>(out: &mut String, name: &str, grid: &Grid<N>) -> fmt::Result {
    let entries = || (0..grid.len()).map(|index| grid.entry(index));
    let mut levels: Vec<i8> = entries().flatten().collect();
    levels.sort_unstable();
    levels.dedup();
    write!(out, "__device__ const __align__(16) unsigned {name}_DIGITS[{}] = {{", grid.len())?;
    for entry in entries() {
        let digit = |level| levels.iter().position(|l| l == level).expect("one of the levels");
        let digits = entry.iter().rev().fold(0, |digits, level| digits << 4 | digit(level));
        write!(out, "{digits:#x},")?;
    }
    writeln!(out, "}};")?;
    let members = format!(
        "static constexpr unsigned LEN = {}; static __device__ __forceinline__ const unsigned \
         *digits() {{ return {name}_DIGITS; }}",
        grid.len()
    );
    levels.resize(8, 0);
    write_levels(out, name, &members, &levels)
}

/// Levels as bytes of words, four in each, with 128 added so that none is negative.
fn write_levels(out: &mut String, name: &str, members: &str, levels: &[i8]) -> fmt::Result {
    write!(out, "struct {name} {{ {members} static constexpr unsigned ")?;
    for (i, levels) in levels.as_chunks::<4>().0.iter().enumerate() {
        let word = u32::from_le_bytes(levels.map(|level| (i16::from(level) + 128) as u8));
        let comma = if i == 0 { "" } else { ", " };
        write!(out, "{comma}w{i} = {word:#x}")?;
    }
    writeln!(out, "; }};")
}

#[cfg(test)]
mod tests {
    use gguf_assay_format::{Status, TENSOR_TYPES};

    use super::*;

    /// Each type that files may use is in one program, and no other is in any.
    #[test]
    fn all_types() {
        for t in TENSOR_TYPES {
            let programs = PROGRAMS.iter().filter(|program| program.ids.contains(&t.id));
            assert_eq!(programs.count(), usize::from(t.status != Status::Removed), "{t}");
            assert_eq!(Program::of(t).is_some(), t.status != Status::Removed, "{t}");
        }
    }

    /// By hand: the places of Q5_1, and the first entries of a grid in digits.
    #[test]
    fn generated() {
        let source =
            |name: &str| Program::of(TensorType::by_name(name).unwrap()).unwrap().source(DEVICE);
        let q5_1 = "struct Q5_1 { static constexpr unsigned LEN = 32, BYTES = 24, d = 0, m = 2, \
                    qh = 4, qs = 8; };";
        assert!(source("Q5_1").contains(q5_1));
        // ggml's first two entries of iq1s_grid: 0xffffffffffffffff and 0xffffffffffffff01, whose
        // levels -1, 0 and 1 are 0x7f, 0x80 and 0x81 with 128 added.
        let iq1_s = source("IQ1_S");
        assert!(iq1_s.contains("IQ1S_DIGITS[2048] = {0x0,0x2,"), "{iq1_s}");
        assert!(iq1_s.contains("w0 = 0x8081807f,"), "{iq1_s}");
        // -127, -104, -83, -65
        assert!(source("IQ4_NL").contains("w0 = 0x3f2d1801,"));
    }
}
