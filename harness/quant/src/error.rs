//! Why there are no numbers.

use core::fmt;

use gguf_assay_format::{Rule, TENSOR_TYPES, TensorType, rule};

#[cfg(feature = "cuda")]
use crate::cuda::source::Output;
use crate::kernel::Engine;

/// Why blocks were not dequantized: names the type, the numbers and, where the format has one, the
/// rule.
///
/// A word wide, so that results stay small. The wording may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Unknown {
        id: u32,
    },
    Altered {
        tensor_type: TensorType,
    },
    Removed {
        tensor_type: TensorType,
    },
    Row {
        tensor_type: TensorType,
        elements: u64,
    },
    Rows {
        tensor_type: TensorType,
        row_len: u64,
        elements: u64,
    },
    Size {
        tensor_type: TensorType,
        elements: u64,
    },
    Bytes {
        tensor_type: TensorType,
        elements: u64,
        expected: u64,
        found: u64,
    },
    Blocks {
        tensor_type: TensorType,
        found: u64,
    },
    Block {
        tensor_type: TensorType,
        index: usize,
        blocks: usize,
    },
    Engine {
        name: String,
    },
    Missing {
        engine: Engine,
    },
    #[cfg(feature = "cuda")]
    Output {
        tensor_type: TensorType,
        output: Output,
        found: u64,
    },
    #[cfg(feature = "cuda")]
    Cuda {
        subject: String,
        reason: String,
    },
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        Error(Box::new(fault))
    }
}

impl Error {
    /// The rule of the format that is broken, if it is not only the caller's numbers that do not
    /// fit each other: `TENSOR-008` (no such type), `TENSOR-009` (a removed type), `TENSOR-010` (a
    /// row that is no whole number of blocks) or `TENSOR-011` (a size beyond 64 bits).
    pub fn rule(&self) -> Option<&'static Rule> {
        match *self.0 {
            Fault::Unknown { .. } | Fault::Altered { .. } => Some(&rule::TENSOR_008),
            Fault::Removed { .. } => Some(&rule::TENSOR_009),
            Fault::Row { .. } => Some(&rule::TENSOR_010),
            Fault::Size { .. } => Some(&rule::TENSOR_011),
            Fault::Rows { .. }
            | Fault::Bytes { .. }
            | Fault::Blocks { .. }
            | Fault::Block { .. }
            | Fault::Engine { .. }
            | Fault::Missing { .. } => None,
            #[cfg(feature = "cuda")]
            Fault::Output { .. } | Fault::Cuda { .. } => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            Fault::Unknown { id } => {
                let last = TENSOR_TYPES.len() - 1;
                write!(f, "type {id}: no tensor type has this id; the last one is {last}")
            }
            Fault::Altered { tensor_type: t } => {
                let TensorType { id, block_len, block_bytes, .. } = t;
                write!(
                    f,
                    "{t} (type {id}): not the type that has this id, with {block_len} elements and \
                     {block_bytes} bytes in a block"
                )
            }
            Fault::Removed { tensor_type: t } => {
                write!(f, "{t} (type {}): removed from the format", t.id)
            }
            Fault::Row { tensor_type: t, elements } => {
                let len = t.block_len;
                write!(f, "{t}: {elements} elements are no whole number of blocks of {len}")
            }
            Fault::Rows { tensor_type: t, row_len, elements } => {
                write!(f, "{t}: {elements} elements are no whole number of rows of {row_len}")
            }
            Fault::Size { tensor_type: t, elements } => {
                write!(f, "{t}: {elements} elements take more bytes than 64 bits can count")
            }
            Fault::Bytes { tensor_type: t, elements, expected, found } => {
                write!(f, "{t}: {elements} elements take {expected} bytes, found {found}")
            }
            Fault::Blocks { tensor_type: t, found } => {
                let len = t.block_bytes;
                write!(f, "{t}: {found} bytes are no whole number of blocks of {len} bytes")
            }
            Fault::Block { tensor_type: t, index, blocks } => {
                write!(f, "{t}: there is no block {index} among {blocks}")
            }
            Fault::Engine { ref name } => {
                let names = Engine::ALL.map(Engine::name).join(", ");
                write!(f, "{name:?} is no engine; there are {names}")
            }
            Fault::Missing { engine } => {
                write!(f, "{engine}: this machine lacks {}", engine.missing().join(", "))
            }
            #[cfg(feature = "cuda")]
            Fault::Output { tensor_type: t, output, found } => {
                write!(f, "{t}: {found} bytes are no whole number of {output} numbers")
            }
            #[cfg(feature = "cuda")]
            Fault::Cuda { ref subject, ref reason } => write!(f, "{subject}: {reason}"),
        }?;
        match self.rule() {
            Some(rule) => write!(f, " ({rule}: {})", rule.title),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
