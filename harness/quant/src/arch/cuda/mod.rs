//! CUDA: the same numbers from a GPU, as `f32`, `f16` or `bf16` (feature `cuda`).
//!
//! A [`Device`] is a GPU, a [`Kernel`] its code for a type and an output. The code is compiled when
//! it is first asked for, by NVRTC, for the GPU that is there. Neither the driver nor NVRTC is
//! needed to build this: they are looked for when they are used, and an error names the one that is
//! not there.
//!
//! ```no_run
//! # #[cfg(feature = "cuda")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use gguf_assay_format::TensorType;
//! use gguf_assay_quant::cuda::{Device, Output};
//!
//! let device = Device::open(0)?;
//! let kernel = device.kernel(TensorType::by_name("Q4_0").unwrap(), Output::F16)?;
//!
//! let blocks = device.stream().clone_htod(&[[0x00, 0x38].as_slice(), &[0xF0; 16]].concat())?;
//! let mut out = device.stream().alloc_zeros::<u8>(32 * 2)?;
//! kernel.dequantize(&blocks, &mut out)?;
//! let numbers = device.stream().clone_dtoh(&out)?; // of f16: -4.0 first
//! assert_eq!(numbers[..2], [0x00, 0xC4]);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "cuda"))]
//! # fn main() {}
//! ```
//!
//! # Numbers
//!
//! `f32` outputs are those of [`dequantize`](fn@crate::dequantize) bit for bit, but for the payloads
//! of NaNs. The others are those numbers, rounded to the nearest, ties to even; a NaN stays one.
//!
//! # Where what is tested
//!
//! `tests/cuda.rs` runs the source on any machine, compiled as C++ over a model of a GPU, and on a
//! GPU if there is one. `tests/cuda_nvrtc.rs` compiles it as NVRTC does and refuses spills.
//! `benches/cuda.sh` checks and measures on a GPU.

pub mod source;

#[cfg(feature = "cuda")]
mod compile;
#[cfg(feature = "cuda")]
mod device;

#[cfg(feature = "cuda")]
pub use compile::{Binary, Usage, compile, nvrtc_version};
/// The bindings that the types of [`Device`] and [`Kernel`] come from.
#[cfg(feature = "cuda")]
pub use cudarc;
#[cfg(feature = "cuda")]
pub use device::{Device, Kernel};
pub use source::Output;
