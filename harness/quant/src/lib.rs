//! What the blocks of a GGUF file mean: a scalar reference for every tensor type of ggml.
//!
//! [`dequantize`] turns blocks into numbers, bit for bit as ggml does (its `to_float` functions,
//! ggml 0.28.0), for every type that ggml has a function for; the others (F32, F64, the integers
//! and Q8_1) have one meaning only. [`fields`] is the layout of a type's blocks as data, [`feeds`]
//! says which bits of a block an element comes from, and [`RawBlock`] reads them: all that a report
//! on a wrong number has to say. The types of [`block`](mod@block) are the same layouts as Rust
//! structs.
//!
//! ```
//! use gguf_assay_format::{ByteOrder, TensorType};
//! use gguf_assay_quant::{RawBlock, dequantize};
//!
//! // Q4_0: a scale of 0.5, then 16 bytes of two quants each: 0 (low) and 15 (high).
//! let q4_0 = TensorType::by_name("Q4_0").unwrap();
//! let bytes = [&[0x00, 0x38][..], &[0xF0; 16]].concat();
//! let mut out = [0.0; 32];
//! dequantize(q4_0, &bytes, ByteOrder::Little, &mut out)?;
//! assert_eq!((out[0], out[15], out[16], out[31]), (-4.0, -4.0, 3.5, 3.5));
//!
//! let block = RawBlock::at(q4_0, &bytes, ByteOrder::Little, 0)?;
//! assert_eq!(block.field("d", 0).unwrap().to_string(), "0.5 (0x3800)");
//!
//! let error = dequantize(q4_0, &bytes[..17], ByteOrder::Little, &mut out).unwrap_err();
//! assert_eq!(error.to_string(), "Q4_0: 32 elements take 18 bytes, found 17");
//! # Ok::<(), gguf_assay_quant::Error>(())
//! ```
//!
//! This is the code that faster code is held to: it is written to be read beside the description of
//! a format, not to be fast. The faster code is in [`kernel`].
//!
//! # Byte order
//!
//! In a big-endian file the bytes of every number are reversed, and a number is what ggml's code
//! loads in one go: the scales, but also `qh` of Q5_0 and Q5_1 (32 bits), the words of IQ3_XXS (32
//! bits) and the scales of IQ1_M (16 bits), which its structs declare as bytes. [`fields`] has
//! these units. The tool that turns files around, `gguf_convert_endian.py` of gguf-py 0.19.0, knows
//! F32, F16, BF16, Q4_0, Q8_0, Q4_K, Q6_K, MXFP4 and NVFP4, and this agrees with it; for the other
//! types nothing outside says what is right. gguf-py's writer turns around whole arrays only, so
//! that blocks, which are arrays of bytes to it, stay little-endian in a big-endian file.

mod arch;
mod dequantize;
mod error;
mod feed;
mod layout;
mod raw_block;

pub mod block;
pub mod grid;
pub mod kernel;
pub mod number;
pub mod rule;

#[cfg(feature = "cuda-source")]
pub use arch::cuda;
pub use dequantize::{dequantize, dequantize_rows, find_type, row_bytes};
pub use error::Error;
pub use feed::{Feed, Role, feeds};
pub use layout::{Field, Kind, Layout, fields};
pub use raw_block::{FieldValue, RawBlock};
