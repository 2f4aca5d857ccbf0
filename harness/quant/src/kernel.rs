//! The same numbers, faster: kernels for the instruction sets of the machine.
//!
//! An [`Engine`] is one way to compute: portable code, AVX2, AVX-512. A [`Kernel`] is an engine's
//! code for one type. Each of them gives the numbers of [`dequantize`](fn@crate::dequantize), bit
//! for bit but for the payloads of NaNs, and can be asked for by name, so that a test of one never
//! runs another. [`dequantize`] takes the best one that the machine has.
//!
//! ```
//! use gguf_assay_format::{ByteOrder, TensorType};
//! use gguf_assay_quant::kernel::{self, Engine};
//!
//! let q4_0 = TensorType::by_name("Q4_0").unwrap();
//! let blocks = [&[0x00, 0x38][..], &[0xF0; 16]].concat();
//! let mut out = [0.0; 32];
//! kernel::dequantize(q4_0, &blocks, ByteOrder::Little, &mut out)?;
//! assert_eq!((out[0], out[31]), (-4.0, 3.5));
//!
//! if Engine::Avx2.is_available() {
//!     let kernel = Engine::Avx2.kernel(q4_0)?;
//!     assert_eq!(kernel.to_string(), "avx2/Q4_0");
//!     kernel.dequantize(&blocks, ByteOrder::Little, &mut out)?;
//! }
//! # Ok::<(), gguf_assay_quant::Error>(())
//! ```
//!
//! # Rounding
//!
//! Kernels multiply and add in one step where the reference takes two. The product is exact in all
//! of these places, so that both round once.
//!
//! # Large outputs
//!
//! An output of [`STREAM_FROM`] bytes or more does not stay in the caches. Kernels write it around
//! them, which saves reading from memory what is about to be overwritten.

#![allow(unsafe_code, reason = "calls code for instructions that the machine was found to have")]

use core::fmt;
use std::env;

use gguf_assay_format::{ByteOrder, TensorType};

use crate::arch::Entry;
use crate::block::Format;
use crate::dequantize::{check_lengths, find_format};
use crate::error::{Error, Fault};

/// The environment variable that forces an engine on [`Engine::chosen`]: its name.
pub const VARIABLE: &str = "GGUF_ASSAY_KERNEL";

/// From so many bytes of output on, [`Kernel::dequantize`] writes around the caches.
pub const STREAM_FROM: usize = 32 << 20;

/// A way to compute the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Portable code: the reference.
    Scalar,
    /// x86-64 with AVX2, FMA, F16C and BMI2.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL, and BMI2.
    Avx512,
}

impl Engine {
    /// All of them, from the slowest to the fastest.
    pub const ALL: [Engine; 3] = [Engine::Scalar, Engine::Avx2, Engine::Avx512];

    /// The name: `scalar`, `avx2` or `avx512`.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Scalar => "scalar",
            Engine::Avx2 => "avx2",
            Engine::Avx512 => "avx512",
        }
    }

    /// The engine with this name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn by_name(name: &str) -> Result<Engine, Error> {
        let found = Engine::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| Fault::Engine { name: name.into() }.into())
    }

    /// Whether the machine has the instructions.
    pub fn is_available(self) -> bool {
        self.missing().is_empty()
    }

    /// What the machine lacks: names of instruction sets, or of the architecture.
    pub fn missing(self) -> Vec<&'static str> {
        match self {
            Engine::Scalar => vec![],
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => crate::arch::x86_64::avx2::missing(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512 => crate::arch::x86_64::avx512::missing(),
            #[cfg(not(target_arch = "x86_64"))]
            Engine::Avx2 | Engine::Avx512 => vec!["x86-64"],
        }
    }

    /// The fastest one that the machine has.
    pub fn best() -> Engine {
        let available = Engine::ALL.into_iter().rev().find(|engine| engine.is_available());
        available.unwrap_or(Engine::Scalar)
    }

    /// The one that [`VARIABLE`] names, or else the best.
    ///
    /// # Errors
    ///
    /// If the variable names no engine, or one that the machine does not have.
    pub fn chosen() -> Result<Engine, Error> {
        let Some(name) = env::var_os(VARIABLE) else { return Ok(Engine::best()) };
        let engine = Engine::by_name(&name.to_string_lossy())?;
        if engine.is_available() { Ok(engine) } else { Err(Fault::Missing { engine }.into()) }
    }

    /// The engine's kernel for a type.
    ///
    /// # Errors
    ///
    /// Those of [`find_type`](crate::find_type); if the machine does not have the instructions.
    pub fn kernel(self, tensor_type: &TensorType) -> Result<Kernel, Error> {
        let format = find_format(tensor_type)?;
        if !self.is_available() {
            return Err(Fault::Missing { engine: self }.into());
        }
        let entry = self.entries().iter().find(|entry| entry.id == tensor_type.id);
        Ok(Kernel { engine: self, tensor_type: *tensor_type, format, entry })
    }

    fn entries(self) -> &'static [Entry] {
        match self {
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => crate::arch::x86_64::avx2::ENTRIES,
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512 => crate::arch::x86_64::avx512::ENTRIES,
            _ => &[],
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An engine's code for a type. To have one is to have the instructions that it needs.
#[derive(Clone, Copy)]
pub struct Kernel {
    engine: Engine,
    tensor_type: TensorType,
    format: &'static Format,
    /// None of [`Engine::Scalar`], whose code is that of `format`.
    entry: Option<&'static Entry>,
}

impl Kernel {
    /// Whose it is.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The type that it is for.
    pub fn tensor_type(&self) -> &TensorType {
        &self.tensor_type
    }

    /// As [`dequantize`](fn@crate::dequantize): blocks in the byte order of the file, and as many
    /// numbers as they have, at any address. Blocks of a big-endian file go to the portable code.
    ///
    /// # Errors
    ///
    /// Those of [`dequantize`](fn@crate::dequantize); `out` is not touched then.
    pub fn dequantize(&self, bytes: &[u8], order: ByteOrder, out: &mut [f32]) -> Result<(), Error> {
        let streamed = size_of_val(out) >= STREAM_FROM;
        self.write(bytes, order, out, streamed)
    }

    /// [`dequantize`](Self::dequantize) by stores that stay in the caches, however large the output.
    ///
    /// # Errors
    ///
    /// Those of [`dequantize`](Self::dequantize).
    pub fn dequantize_cached(
        &self,
        bytes: &[u8],
        order: ByteOrder,
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.write(bytes, order, out, false)
    }

    /// [`dequantize`](Self::dequantize) by stores around the caches, however small the output.
    ///
    /// # Errors
    ///
    /// Those of [`dequantize`](Self::dequantize).
    pub fn dequantize_streamed(
        &self,
        bytes: &[u8],
        order: ByteOrder,
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.write(bytes, order, out, true)
    }

    /// [`dequantize`](Self::dequantize) by all threads of the current pool of rayon.
    ///
    /// A thread takes whole blocks at a time, as many as stay in its cache. Where `out` starts at
    /// a cache line, no two threads write to the same one.
    ///
    /// # Errors
    ///
    /// Those of [`dequantize`](Self::dequantize).
    #[cfg(feature = "rayon")]
    pub fn dequantize_parallel(
        &self,
        bytes: &[u8],
        order: ByteOrder,
        out: &mut [f32],
    ) -> Result<(), Error> {
        use rayon::prelude::*;

        /// 256 KiB of output: a multiple of every block and of a cache line.
        const TASK: usize = 1 << 16;

        check_lengths(&self.tensor_type, bytes, out)?;
        // What stays in the caches is the whole, not a task.
        let streamed = size_of_val(out) >= STREAM_FROM;
        bytes
            .par_chunks(TASK / self.format.len * self.format.bytes)
            .zip(out.par_chunks_mut(TASK))
            .try_for_each(|(bytes, out)| self.write(bytes, order, out, streamed))
    }

    fn write(
        &self,
        bytes: &[u8],
        order: ByteOrder,
        out: &mut [f32],
        streamed: bool,
    ) -> Result<(), Error> {
        check_lengths(&self.tensor_type, bytes, out)?;
        match self.entry {
            Some(entry) if order == ByteOrder::Little => {
                let whole = out.len() / entry.step * entry.step;
                let (bytes, rest) = bytes.split_at(whole / self.format.len * self.format.bytes);
                let (out, out_rest) = out.split_at_mut(whole);
                let write = if streamed { entry.streamed } else { entry.cached };
                // SAFETY: there is no `Kernel` of an engine that the machine does not have.
                unsafe { write(bytes, out) };
                (self.format.decode)(rest, order, out_rest);
            }
            _ => (self.format.decode)(bytes, order, out),
        }
        Ok(())
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.engine, self.tensor_type.name)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// [`Kernel::dequantize`] with the kernel of [`Engine::chosen`].
///
/// # Errors
///
/// Those of [`Engine::chosen`] and of [`Kernel::dequantize`].
pub fn dequantize(
    tensor_type: &TensorType,
    bytes: &[u8],
    order: ByteOrder,
    out: &mut [f32],
) -> Result<(), Error> {
    Engine::chosen()?.kernel(tensor_type)?.dequantize(bytes, order, out)
}

/// Writes one number everywhere around the caches, where the machine can: no kernel, but what a
/// bench holds kernels with large outputs against.
pub fn fill_streamed(out: &mut [f32], number: f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions are part of every x86-64.
    unsafe {
        crate::arch::x86_64::fill::fill_streamed(out, number);
    }
    #[cfg(not(target_arch = "x86_64"))]
    out.fill(number);
}

#[cfg(test)]
mod tests {
    use gguf_assay_format::{Status, TENSOR_TYPES};

    use super::*;

    /// No engine leaves a type to the portable code.
    #[test]
    fn engines_have_every_type() {
        for engine in Engine::ALL.into_iter().filter(|engine| !engine.entries().is_empty()) {
            for t in TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed) {
                let entries = engine.entries().iter().filter(|entry| entry.id == t.id);
                assert_eq!(entries.count(), 1, "{engine}/{t}");
            }
        }
    }
}
