//! The kernels, by instruction set; [`kernel`](crate::kernel) is the way to those of this machine's
//! processor.

#[cfg(feature = "cuda-source")]
pub mod cuda;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

/// A function that writes the numbers of blocks: as many whole steps as both arguments have.
///
/// It may be called where the instructions of its engine are available.
pub(crate) type Write = unsafe fn(&[u8], &mut [f32]);

/// An engine's code for a type.
pub(crate) struct Entry {
    /// The type's id.
    pub(crate) id: u32,
    /// How many numbers a step has: those of a block, or 16.
    pub(crate) step: usize,
    /// By ordinary stores.
    pub(crate) cached: Write,
    /// By stores that go around the caches.
    pub(crate) streamed: Write,
}
