//! What ggml says while it works: its reasons for a rejection, and its last words.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::{Write, stderr};
use std::ptr;
use std::sync::Once;

use crate::sys;

/// Enough for every message of one call; names in them are bounded only by the file.
const LIMIT: usize = 16 * 1024;

thread_local! {
    /// Bytes logged as errors since `capture` began; `None` outside of it.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Runs `f`, and returns what ggml logged as errors on this thread meanwhile.
pub(crate) fn capture<T>(f: impl FnOnce() -> T) -> (T, String) {
    install();
    CAPTURED.set(Some(Vec::new()));
    let value = f();
    let bytes = CAPTURED.take().unwrap_or_default();
    (value, String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `on_log` has the signature of `ggml_log_callback`, needs no user data, and lives
        // as long as the program. `call_once` keeps other threads of this crate from logging or
        // setting it at the same time.
        unsafe { sys::ggml_log_set(Some(on_log), ptr::null_mut()) };
        // ggml's own way to die starts a debugger and attaches it to this process.
        // SAFETY: `on_abort` has the signature of `ggml_abort_callback_t` and lives as long as the
        // program; `call_once` as above.
        unsafe { sys::gguf_assay_set_abort_callback(Some(on_abort)) };
    });
}

/// # Safety
///
/// `text` points to a NUL-terminated string, as `ggml_log_callback` has it.
unsafe extern "C" fn on_log(level: c_int, text: *const c_char, _user_data: *mut c_void) {
    if level != sys::LOG_LEVEL_ERROR {
        return;
    }
    // SAFETY: the caller's promise; ggml's buffer outlives this call.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    // No panic may unwind into C, hence the `try_` forms.
    let _ = CAPTURED.try_with(|captured| {
        if let Ok(mut captured) = captured.try_borrow_mut()
            && let Some(captured) = captured.as_mut()
        {
            let room = LIMIT - captured.len();
            captured.extend_from_slice(&text[..text.len().min(room)]);
        }
    });
}

/// # Safety
///
/// `message` points to a NUL-terminated string, as `ggml_abort_callback_t` has it.
unsafe extern "C" fn on_abort(message: *const c_char) {
    // SAFETY: the caller's promise; ggml's buffer outlives this call.
    let message = unsafe { CStr::from_ptr(message) }.to_bytes();
    let captured = CAPTURED.try_with(|captured| captured.try_borrow_mut().ok()?.take());
    let captured = captured.ok().flatten().unwrap_or_default();
    let mut stderr = stderr().lock();
    for line in captured.split(|&b| b == b'\n').chain([message]).filter(|line| !line.is_empty()) {
        // Names out of the file stand in these lines: nothing raw reaches a terminal.
        let _ = writeln!(stderr, "{}", line.escape_ascii());
    }
}
