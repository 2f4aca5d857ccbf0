//! ggml's table of tensor types.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use crate::sys;

/// What ggml knows about one tensor type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// ggml's name, such as `q4_K`; `DEPRECATED` or the like for an id that was removed.
    pub name: &'static str,
    /// Elements in a block: 1 for plain numbers, 0 for an id that was removed.
    pub block_len: u64,
    /// Bytes in a block: 0 for an id that was removed.
    pub block_bytes: u64,
    /// Whether ggml counts the type as quantized.
    pub is_quantized: bool,
}

/// The number of type ids, removed ones included: `GGML_TYPE_COUNT`.
pub fn type_count() -> i32 {
    sys::gguf_assay_type_count()
}

/// What ggml knows about the type `id`; `None` for a negative one and from [`type_count`] on.
pub fn type_info(id: i32) -> Option<TypeInfo> {
    if !(0..type_count()).contains(&id) {
        return None;
    }
    // SAFETY: `id` is in range, all that this function asks for.
    let name = unsafe { sys::ggml_type_name(id) };
    // SAFETY: `id` is in range.
    let block_len = unsafe { sys::ggml_blck_size(id) };
    // SAFETY: `id` is in range.
    let block_bytes = unsafe { sys::ggml_type_size(id) };
    // SAFETY: `id` is in range.
    let is_quantized = unsafe { sys::ggml_is_quantized(id) };
    Some(TypeInfo {
        // SAFETY: the table holds string literals, or null where an id was left out.
        name: unsafe { literal(name) },
        block_len: block_len.unsigned_abs(),
        block_bytes: block_bytes as u64,
        is_quantized,
    })
}

/// # Safety
///
/// `text` is null, or a NUL-terminated string that is never freed or changed.
unsafe fn literal(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: not null, so the caller promised the rest.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}
