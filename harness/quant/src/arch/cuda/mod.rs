//! CUDA.

pub mod source;
