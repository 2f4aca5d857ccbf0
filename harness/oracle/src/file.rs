//! A GGUF file as ggml reads it.

#![allow(unsafe_code)]

use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::{self, Write};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use crate::sys::{self, gguf_type};
use crate::{log, types};

/// How much of a file ggml is made to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The header alone: metadata and tensor descriptions.
    Header,
    /// The header, and from it empty tensors, which is what llama.cpp does to load a model. ggml
    /// asserts more here than it checked while parsing, so a few files that [`Mode::Header`]
    /// accepts end the process.
    Tensors,
    /// The tensors with their data, all of it. The memory for it is taken before the file's length
    /// is looked at: a description of a tensor beyond the address space ends the process.
    Data,
}

/// ggml would not read the file. Shown with control characters escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The lines that ggml logged as errors, at most 16 KiB, and bytes that are not UTF-8 replaced.
    /// Not escaped: names out of the file stand in it. Empty if ggml gave no reason.
    pub message: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            return f.write_str("rejected by ggml without a reason");
        }
        f.write_str("rejected by ggml: ")?;
        self.message.chars().try_for_each(|c| match c {
            '\'' | '"' => f.write_char(c),
            _ => write!(f, "{}", c.escape_debug()),
        })
    }
}

impl Error for Rejected {}

/// ggml would have ended the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

impl fmt::Display for Aborted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an assertion of ggml failed")
    }
}

impl Error for Aborted {}

/// A file that ggml accepted.
///
/// Names and strings are C strings to ggml. What it returns ends before the first NUL byte, though
/// it compares the whole when it looks for duplicates.
pub struct File {
    gguf: NonNull<sys::GgufContext>,
    /// The pool with the tensors; none with [`Mode::Header`].
    ggml: Option<NonNull<sys::GgmlContext>>,
    mode: Mode,
}

/// One pair of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// The key, up to its first NUL byte.
    pub key: &'a [u8],
    /// The value.
    pub value: Value<'a>,
}

/// A metadata value, of the type that the file gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Type 0.
    U8(u8),
    /// Type 1.
    I8(i8),
    /// Type 2.
    U16(u16),
    /// Type 3.
    I16(i16),
    /// Type 4.
    U32(u32),
    /// Type 5.
    I32(i32),
    /// Type 6.
    F32(f32),
    /// Type 7. ggml takes any byte but 0 for true.
    Bool(bool),
    /// Type 8, up to its first NUL byte.
    String(&'a [u8]),
    /// Type 9.
    Array(Array<'a>),
    /// Type 10.
    U64(u64),
    /// Type 11.
    I64(i64),
    /// Type 12.
    F64(f64),
}

/// The elements of an array in the metadata. ggml knows no arrays of arrays.
#[derive(Clone, Debug, PartialEq)]
pub enum Array<'a> {
    /// Type 0.
    U8(Vec<u8>),
    /// Type 1.
    I8(Vec<i8>),
    /// Type 2.
    U16(Vec<u16>),
    /// Type 3.
    I16(Vec<i16>),
    /// Type 4.
    U32(Vec<u32>),
    /// Type 5.
    I32(Vec<i32>),
    /// Type 6.
    F32(Vec<f32>),
    /// Type 7. ggml takes any byte but 0 for true.
    Bool(Vec<bool>),
    /// Type 8, each up to its first NUL byte.
    String(Vec<&'a [u8]>),
    /// Type 10.
    U64(Vec<u64>),
    /// Type 11.
    I64(Vec<i64>),
    /// Type 12.
    F64(Vec<f64>),
}

/// The description of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// The name, up to its first NUL byte, so that two tensors may seem to have the same.
    pub name: &'a [u8],
    /// The type's id, which [`type_info`](crate::type_info) knows.
    pub type_id: i32,
    /// ggml's name for the type.
    pub type_name: &'static str,
    /// The dimensions, the contiguous one first, filled up with ones: ggml does not keep how many
    /// the file gave.
    pub dims: [i64; 4],
    /// Where the data starts, in bytes from [`File::data_offset`].
    pub offset: u64,
    /// The length of the data in bytes, without padding.
    pub size: u64,
}

impl File {
    /// Has ggml read the file at `path`, which it opens itself. A file that cannot be opened counts
    /// as rejected, with the reason; a path that cannot be handed to C too.
    pub fn open(path: &Path, mode: Mode) -> Result<File, Rejected> {
        let Some(path) = c_path(path) else {
            let message = "the path cannot be handed to ggml".to_owned();
            return Err(Rejected { message });
        };
        init(mode, |params| {
            // SAFETY: `path` is a C string that outlives the call, and `init` makes `params` valid.
            unsafe { sys::gguf_init_from_file(path.as_ptr(), params) }
        })
    }

    /// Has ggml read a file that is in memory. It keeps no reference to `bytes`. ggml rejects an
    /// empty slice without a message.
    pub fn from_bytes(bytes: &[u8], mode: Mode) -> Result<File, Rejected> {
        init(mode, |params| {
            // SAFETY: `bytes` has that many bytes and outlives the call, and `init` makes `params`
            // valid.
            unsafe { sys::gguf_init_from_buffer(bytes.as_ptr().cast(), bytes.len(), params) }
        })
    }

    /// [`from_bytes`](File::from_bytes), but a failed assertion of ggml does not end the process. It
    /// leaves what ggml had allocated until then unreachable, so this is for fuzzing, where every
    /// file would otherwise need a process.
    ///
    /// # Errors
    ///
    /// If ggml would have aborted.
    pub fn from_bytes_guarded(bytes: &[u8], mode: Mode) -> Result<Result<File, Rejected>, Aborted> {
        let mut aborted = false;
        let file = init(mode, |params| {
            let mut gguf = ptr::null_mut();
            let data = bytes.as_ptr().cast();
            // SAFETY: `bytes` has that many bytes and outlives the call, `init` makes `params`
            // valid, and there is room for the result.
            aborted =
                unsafe { sys::gguf_assay_init_guarded(data, bytes.len(), params, &raw mut gguf) };
            gguf
        });
        if aborted { Err(Aborted) } else { Ok(file) }
    }

    /// The version in the header: 2 or 3.
    pub fn version(&self) -> u32 {
        // SAFETY: `gguf` is valid until `self` drops.
        unsafe { sys::gguf_get_version(self.gguf()) }
    }

    /// The alignment of the data section and of each tensor in it.
    pub fn alignment(&self) -> u64 {
        // SAFETY: `gguf` is valid until `self` drops.
        unsafe { sys::gguf_get_alignment(self.gguf()) as u64 }
    }

    /// Where the data section starts, in bytes from the start of the file. Not aligned if there are
    /// no tensors.
    pub fn data_offset(&self) -> u64 {
        // SAFETY: `gguf` is valid until `self` drops.
        unsafe { sys::gguf_get_data_offset(self.gguf()) as u64 }
    }

    /// The metadata, in the file's order.
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        // SAFETY: `gguf` is valid until `self` drops.
        let len = unsafe { sys::gguf_get_n_kv(self.gguf()) };
        (0..index(len)).map(|i| self.entry(i as i64))
    }

    /// The tensors, in the file's order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        (0..self.tensor_count()).map(|i| self.tensor(i as i64))
    }

    /// Whether every tensor's data are within a file of this length: the check of llama.cpp's model
    /// loader (`llama-model-loader.h`, `llama_tensor_weight`), which `gguf.cpp` leaves to its caller.
    pub fn has_data_within(&self, len: u64) -> bool {
        self.tensors().all(|tensor| {
            let start = self.data_offset().checked_add(tensor.offset);
            start.and_then(|start| start.checked_add(tensor.size)).is_some_and(|end| end <= len)
        })
    }

    /// The data of tensor `i`. `None` unless the file was read with [`Mode::Data`] and has that
    /// many tensors.
    pub fn tensor_data(&self, i: usize) -> Option<&[u8]> {
        if self.mode != Mode::Data || i >= self.tensor_count() {
            return None;
        }
        // SAFETY: `gguf` is valid, `i` in range.
        let offset = unsafe { sys::gguf_get_tensor_offset(self.gguf(), i as i64) };
        // SAFETY: as above.
        let size = unsafe { sys::gguf_get_tensor_size(self.gguf(), i as i64) };
        self.data_section()?.get(offset..)?.get(..size)
    }

    /// The whole data section, which ggml keeps in the first tensor of its pool.
    fn data_section(&self) -> Option<&[u8]> {
        let ggml = self.ggml?;
        // SAFETY: the pool is valid until `self` drops.
        let all = NonNull::new(unsafe { sys::ggml_get_first_tensor(ggml.as_ptr()) })?;
        // SAFETY: a tensor lives as long as its pool.
        let data = unsafe { sys::ggml_get_data(all.as_ptr()) };
        // SAFETY: as above.
        let len = unsafe { sys::ggml_nbytes(all.as_ptr()) };
        // SAFETY: with `Mode::Data`, ggml made this tensor of `len` bytes in the pool, and accepted
        // the file only after it had read all of them. Nothing writes to them afterwards.
        Some(unsafe { bytes(data, len) })
    }

    fn tensor_count(&self) -> usize {
        // SAFETY: `gguf` is valid until `self` drops.
        index(unsafe { sys::gguf_get_n_tensors(self.gguf()) })
    }

    fn tensor(&self, i: i64) -> Tensor<'_> {
        let gguf = self.gguf();
        // SAFETY: `gguf` is valid; ggml itself asserts that `i` is in range, here and below.
        let name = unsafe { sys::gguf_get_tensor_name(gguf, i) };
        // SAFETY: as above.
        let type_id = unsafe { sys::gguf_get_tensor_type(gguf, i) };
        // SAFETY: as above.
        let dims = unsafe { sys::gguf_get_tensor_ne(gguf, i) };
        // SAFETY: as above.
        let offset = unsafe { sys::gguf_get_tensor_offset(gguf, i) };
        // SAFETY: as above.
        let size = unsafe { sys::gguf_get_tensor_size(gguf, i) };
        Tensor {
            // SAFETY: a C string in `gguf`, which is valid and unchanged until `self` drops.
            name: unsafe { text(name) },
            type_id,
            type_name: types::type_info(type_id).map_or("", |info| info.name),
            // SAFETY: points to `GGML_MAX_DIMS` numbers in `gguf`; `shim.c` checks that it is 4.
            dims: unsafe { *dims },
            offset: offset as u64,
            size: size as u64,
        }
    }

    fn entry(&self, i: i64) -> Entry<'_> {
        // SAFETY: `gguf` is valid; ggml itself asserts that `i` is in range, here and below.
        let key = unsafe { sys::gguf_get_key(self.gguf(), i) };
        // SAFETY: as above.
        let value = match unsafe { sys::gguf_get_kv_type(self.gguf(), i) } {
            gguf_type::UINT8 => Value::U8(self.scalar(i, u8::from_ne_bytes)),
            gguf_type::INT8 => Value::I8(self.scalar(i, i8::from_ne_bytes)),
            gguf_type::UINT16 => Value::U16(self.scalar(i, u16::from_ne_bytes)),
            gguf_type::INT16 => Value::I16(self.scalar(i, i16::from_ne_bytes)),
            gguf_type::UINT32 => Value::U32(self.scalar(i, u32::from_ne_bytes)),
            gguf_type::INT32 => Value::I32(self.scalar(i, i32::from_ne_bytes)),
            gguf_type::FLOAT32 => Value::F32(self.scalar(i, f32::from_ne_bytes)),
            gguf_type::BOOL => Value::Bool(self.scalar(i, to_bool)),
            gguf_type::STRING => {
                // SAFETY: `gguf` is valid, and value `i` is a string.
                let string = unsafe { sys::gguf_get_val_str(self.gguf(), i) };
                // SAFETY: a C string in `gguf`, which is valid and unchanged until `self` drops.
                Value::String(unsafe { text(string) })
            }
            gguf_type::ARRAY => Value::Array(self.array(i)),
            gguf_type::UINT64 => Value::U64(self.scalar(i, u64::from_ne_bytes)),
            gguf_type::INT64 => Value::I64(self.scalar(i, i64::from_ne_bytes)),
            gguf_type::FLOAT64 => Value::F64(self.scalar(i, f64::from_ne_bytes)),
            other => unknown(other),
        };
        // SAFETY: a C string in `gguf`, which is valid and unchanged until `self` drops.
        let key = unsafe { text(key) };
        Entry { key, value }
    }

    /// The value at `i`, which must be a scalar of `N` bytes.
    fn scalar<T, const N: usize>(&self, i: i64, from: fn([u8; N]) -> T) -> T {
        // SAFETY: `gguf` is valid, and value `i` neither an array nor a string.
        let data = unsafe { sys::gguf_get_val_data(self.gguf(), i) };
        // SAFETY: ggml stores a scalar as so many bytes, in `gguf`, which is valid and unchanged
        // until `self` drops.
        let bytes = unsafe { bytes(data, N) };
        from(*bytes.first_chunk().expect("that many were asked for"))
    }

    fn array(&self, i: i64) -> Array<'_> {
        // SAFETY: `gguf` is valid, and value `i` an array.
        match unsafe { sys::gguf_get_arr_type(self.gguf(), i) } {
            gguf_type::UINT8 => Array::U8(self.numbers(i, u8::from_ne_bytes)),
            gguf_type::INT8 => Array::I8(self.numbers(i, i8::from_ne_bytes)),
            gguf_type::UINT16 => Array::U16(self.numbers(i, u16::from_ne_bytes)),
            gguf_type::INT16 => Array::I16(self.numbers(i, i16::from_ne_bytes)),
            gguf_type::UINT32 => Array::U32(self.numbers(i, u32::from_ne_bytes)),
            gguf_type::INT32 => Array::I32(self.numbers(i, i32::from_ne_bytes)),
            gguf_type::FLOAT32 => Array::F32(self.numbers(i, f32::from_ne_bytes)),
            gguf_type::BOOL => Array::Bool(self.numbers(i, to_bool)),
            gguf_type::STRING => Array::String(self.strings(i)),
            gguf_type::UINT64 => Array::U64(self.numbers(i, u64::from_ne_bytes)),
            gguf_type::INT64 => Array::I64(self.numbers(i, i64::from_ne_bytes)),
            gguf_type::FLOAT64 => Array::F64(self.numbers(i, f64::from_ne_bytes)),
            other => unknown(other),
        }
    }

    /// The elements of the value at `i`, which must be an array of scalars of `N` bytes.
    fn numbers<T, const N: usize>(&self, i: i64, from: fn([u8; N]) -> T) -> Vec<T> {
        // SAFETY: `gguf` is valid; ggml itself asserts that `i` is in range.
        let len = unsafe { sys::gguf_get_arr_n(self.gguf(), i) };
        // SAFETY: `gguf` is valid, and value `i` no array of strings.
        let data = unsafe { sys::gguf_get_arr_data(self.gguf(), i) };
        // SAFETY: ggml stores `len` elements of so many bytes in a row, in `gguf`, which is valid
        // and unchanged until `self` drops. The product cannot overflow: ggml made `len` by
        // dividing the length in bytes.
        elements(unsafe { bytes(data, len * N) }, from)
    }

    /// The elements of the value at `i`, which must be an array of strings.
    fn strings(&self, i: i64) -> Vec<&[u8]> {
        // SAFETY: `gguf` is valid; ggml itself asserts that `i` is in range.
        let len = unsafe { sys::gguf_get_arr_n(self.gguf(), i) };
        let string = |at| {
            // SAFETY: `gguf` is valid, value `i` an array of strings, `at` less than its length.
            let string = unsafe { sys::gguf_get_arr_str(self.gguf(), i, at) };
            // SAFETY: a C string in `gguf`, which is valid and unchanged until `self` drops.
            unsafe { text(string) }
        };
        (0..len).map(string).collect()
    }

    fn gguf(&self) -> *const sys::GgufContext {
        self.gguf.as_ptr()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(ggml) = self.ggml {
            // SAFETY: `init` took sole ownership of the pool, and nothing uses it after this.
            unsafe { sys::ggml_free(ggml.as_ptr()) };
        }
        // SAFETY: `init` took sole ownership of the context, and nothing uses it after this.
        unsafe { sys::gguf_free(self.gguf.as_ptr()) };
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("mode", &self.mode)
            .field("version", &self.version())
            .field("metadata", &self.metadata().len())
            .field("tensors", &self.tensors().len())
            .finish_non_exhaustive()
    }
}

/// Calls `read`, one of ggml's `gguf_init_from_…`, and owns what comes of it.
fn init(
    mode: Mode,
    read: impl FnOnce(sys::GgufInitParams) -> *mut sys::GgufContext,
) -> Result<File, Rejected> {
    let mut ggml = ptr::null_mut();
    let params = sys::GgufInitParams {
        no_alloc: mode != Mode::Data,
        ctx: if mode == Mode::Header { ptr::null_mut() } else { &raw mut ggml },
    };
    let (gguf, message) = log::capture(|| read(params));
    match NonNull::new(gguf) {
        Some(gguf) => Ok(File { gguf, ggml: NonNull::new(ggml), mode }),
        // ggml has freed the pool in that case.
        None => Err(Rejected { message }),
    }
}

#[cfg(unix)]
fn c_path(path: &Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// ggml takes paths for UTF-8 where they are not bytes.
#[cfg(not(unix))]
fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.to_str()?).ok()
}

/// # Safety
///
/// `text` is a C string that stays valid and unchanged for `'a`.
unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// # Safety
///
/// If `len` is not 0, `data` points to that many bytes, valid and unchanged for `'a`.
unsafe fn bytes<'a>(data: *const c_void, len: usize) -> &'a [u8] {
    // C++ keeps null for an empty vector, and a Rust slice must not.
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; what is allocated is never longer than `isize::MAX`.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}

fn elements<T, const N: usize>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&chunk| from(chunk)).collect()
}

fn to_bool([byte]: [u8; 1]) -> bool {
    byte != 0
}

fn index(len: i64) -> usize {
    usize::try_from(len).expect("ggml counts what is in memory")
}

fn unknown(value_type: c_int) -> ! {
    panic!("ggml accepted the value type {value_type}, which is newer than this crate")
}
