//! The functions and the one struct of ggml that this crate uses, written by hand from `gguf.h` and
//! `ggml.h`. `shim.c` checks the layouts when it compiles.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

/// `struct gguf_context` (`gguf.h`): the parsed header. Opaque.
#[repr(C)]
pub(crate) struct GgufContext {
    _opaque: [u8; 0],
}

/// `struct ggml_context` (`ggml.h`): a pool that holds tensors. Opaque.
#[repr(C)]
pub(crate) struct GgmlContext {
    _opaque: [u8; 0],
}

/// `struct ggml_tensor` (`ggml.h`). Opaque: its layout differs between versions.
#[repr(C)]
pub(crate) struct GgmlTensor {
    _opaque: [u8; 0],
}

/// `struct gguf_init_params` (`gguf.h`).
#[repr(C)]
pub(crate) struct GgufInitParams {
    /// Leave the tensor data in the file.
    pub(crate) no_alloc: bool,
    /// Where to put a new pool with one tensor per entry; null for no pool.
    pub(crate) ctx: *mut *mut GgmlContext,
}

/// `GGML_LOG_LEVEL_ERROR` of `enum ggml_log_level` (`ggml.h`).
pub(crate) const LOG_LEVEL_ERROR: c_int = 4;

/// `GGUF_TYPE_*` of `enum gguf_type` (`gguf.h`).
pub(crate) mod gguf_type {
    use std::ffi::c_int;

    pub(crate) const UINT8: c_int = 0;
    pub(crate) const INT8: c_int = 1;
    pub(crate) const UINT16: c_int = 2;
    pub(crate) const INT16: c_int = 3;
    pub(crate) const UINT32: c_int = 4;
    pub(crate) const INT32: c_int = 5;
    pub(crate) const FLOAT32: c_int = 6;
    pub(crate) const BOOL: c_int = 7;
    pub(crate) const STRING: c_int = 8;
    pub(crate) const ARRAY: c_int = 9;
    pub(crate) const UINT64: c_int = 10;
    pub(crate) const INT64: c_int = 11;
    pub(crate) const FLOAT64: c_int = 12;
}

/// `ggml_log_callback` (`ggml.h`).
pub(crate) type LogCallback = unsafe extern "C" fn(c_int, *const c_char, *mut c_void);

/// `ggml_abort_callback_t` (`ggml.h`).
pub(crate) type AbortCallback = unsafe extern "C" fn(*const c_char);

/// `ggml_to_float_t` (`ggml.h`): reads that many elements, which are whole blocks, from a row that
/// is aligned as its block's C struct, and writes them. Aborts if they are not whole blocks.
pub(crate) type ToFloat = unsafe extern "C" fn(*const c_void, *mut f32, i64);

// A C++ exception may leave these: not every allocation in `gguf.cpp` is guarded.
unsafe extern "C-unwind" {
    /// `gguf.h`
    pub(crate) fn gguf_init_from_file(
        path: *const c_char,
        params: GgufInitParams,
    ) -> *mut GgufContext;
    /// `gguf.h`
    pub(crate) fn gguf_init_from_buffer(
        data: *const c_void,
        size: usize,
        params: GgufInitParams,
    ) -> *mut GgufContext;
    /// `guard.cpp`: as `gguf_init_from_buffer`, which writes to `gguf` what it would return; true
    /// if it would have aborted instead, with nothing written.
    pub(crate) fn gguf_assay_init_guarded(
        data: *const c_void,
        size: usize,
        params: GgufInitParams,
        gguf: *mut *mut GgufContext,
    ) -> bool;
}

unsafe extern "C" {
    /// `gguf.h`
    pub(crate) fn gguf_free(ctx: *mut GgufContext);
    /// `gguf.h`
    pub(crate) fn gguf_get_version(ctx: *const GgufContext) -> u32;
    /// `gguf.h`
    pub(crate) fn gguf_get_alignment(ctx: *const GgufContext) -> usize;
    /// `gguf.h`
    pub(crate) fn gguf_get_data_offset(ctx: *const GgufContext) -> usize;

    /// `gguf.h`
    pub(crate) fn gguf_get_n_kv(ctx: *const GgufContext) -> i64;
    /// `gguf.h`
    pub(crate) fn gguf_get_key(ctx: *const GgufContext, key: i64) -> *const c_char;
    /// `gguf.h`
    pub(crate) fn gguf_get_kv_type(ctx: *const GgufContext, key: i64) -> c_int;
    /// `gguf.h`. Aborts unless the value is an array.
    pub(crate) fn gguf_get_arr_type(ctx: *const GgufContext, key: i64) -> c_int;
    /// `gguf.h`. Aborts on an array and on a string.
    pub(crate) fn gguf_get_val_data(ctx: *const GgufContext, key: i64) -> *const c_void;
    /// `gguf.h`. Aborts unless the value is a string.
    pub(crate) fn gguf_get_val_str(ctx: *const GgufContext, key: i64) -> *const c_char;
    /// `gguf.h`
    pub(crate) fn gguf_get_arr_n(ctx: *const GgufContext, key: i64) -> usize;
    /// `gguf.h`. Aborts on an array of strings.
    pub(crate) fn gguf_get_arr_data(ctx: *const GgufContext, key: i64) -> *const c_void;
    /// `gguf.h`. Aborts unless the value is made of strings; does not check `i`.
    pub(crate) fn gguf_get_arr_str(ctx: *const GgufContext, key: i64, i: usize) -> *const c_char;

    /// `gguf.h`
    pub(crate) fn gguf_get_n_tensors(ctx: *const GgufContext) -> i64;
    /// `gguf.h`
    pub(crate) fn gguf_get_tensor_name(ctx: *const GgufContext, tensor: i64) -> *const c_char;
    /// `gguf.h`
    pub(crate) fn gguf_get_tensor_type(ctx: *const GgufContext, tensor: i64) -> c_int;
    /// `gguf.h`. Points to `GGML_MAX_DIMS` numbers.
    pub(crate) fn gguf_get_tensor_ne(ctx: *const GgufContext, tensor: i64) -> *const [i64; 4];
    /// `gguf.h`
    pub(crate) fn gguf_get_tensor_offset(ctx: *const GgufContext, tensor: i64) -> usize;
    /// `gguf.h`
    pub(crate) fn gguf_get_tensor_size(ctx: *const GgufContext, tensor: i64) -> usize;

    /// `ggml.h`
    pub(crate) fn ggml_free(ctx: *mut GgmlContext);
    /// `ggml.h`
    pub(crate) fn ggml_get_first_tensor(ctx: *const GgmlContext) -> *mut GgmlTensor;
    /// `ggml.h`
    pub(crate) fn ggml_get_data(tensor: *const GgmlTensor) -> *mut c_void;
    /// `ggml.h`
    pub(crate) fn ggml_nbytes(tensor: *const GgmlTensor) -> usize;

    /// `ggml.h`. Aborts on an id out of range, as do the three below.
    pub(crate) fn ggml_type_name(id: c_int) -> *const c_char;
    /// `ggml.h`
    pub(crate) fn ggml_blck_size(id: c_int) -> i64;
    /// `ggml.h`
    pub(crate) fn ggml_type_size(id: c_int) -> usize;
    /// `ggml.h`
    pub(crate) fn ggml_is_quantized(id: c_int) -> bool;
    /// `shim.c`: `GGML_TYPE_COUNT` of `ggml.h`.
    pub(crate) safe fn gguf_assay_type_count() -> c_int;
    /// `shim.c`: `to_float` of the type's traits, or `dequantize_row_q8_K`; null if there is none
    /// or `id` is no type.
    pub(crate) safe fn gguf_assay_to_float(id: c_int) -> Option<ToFloat>;
    /// The same function of the second copy.
    #[cfg(feature = "native")]
    pub(crate) safe fn native_gguf_assay_to_float(id: c_int) -> Option<ToFloat>;

    /// `ggml.h`
    pub(crate) fn ggml_log_set(callback: Option<LogCallback>, user_data: *mut c_void);
    /// `guard.cpp`: as `ggml_set_abort_callback` (`ggml.h`), for aborts that are not guarded.
    pub(crate) fn gguf_assay_set_abort_callback(callback: Option<AbortCallback>);
}
