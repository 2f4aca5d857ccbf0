//! One number everywhere, around the caches: what kernels that stream are measured against.

use core::arch::x86_64::{_mm_set1_ps, _mm_sfence, _mm_stream_ps};

use super::CacheLine;

/// Writes the number to every place, past the caches where there are whole cache lines.
///
/// Four stores of 16 bytes fill a line as well as one of 64 does.
#[target_feature(enable = "sse")]
pub(crate) fn fill_streamed(out: &mut [f32], number: f32) {
    // SAFETY: a cache line is `f32` and nothing else, and any are valid.
    let (before, lines, after) = unsafe { out.align_to_mut::<CacheLine>() };
    before.fill(number);
    let numbers = _mm_set1_ps(number);
    for to in lines.iter_mut().flat_map(|line| line.0.as_chunks_mut::<4>().0) {
        // SAFETY: there is room for four, at a multiple of 16 bytes from the start of a line.
        unsafe { _mm_stream_ps(to.as_mut_ptr(), numbers) };
    }
    after.fill(number);
    // Such stores are ordered with later ones by nothing else.
    _mm_sfence();
}
