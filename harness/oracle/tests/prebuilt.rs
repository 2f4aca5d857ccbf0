//! Our numbers against those of another ggml, bit for bit: another version than the pinned one, out of
//! another compiler, as it is shipped to users. Where both agree with ours, neither the version nor
//! the compiler makes the numbers.
//!
//! `GGUF_ASSAY_PREBUILT_GGML` is the path of its `libggml-base.so`, which `.ci/run` fetches from the
//! package that `prebuilt/package.json` names. Without it, the tests are ignored, by name.

#![allow(unsafe_code)]

#[path = "../../quant/tests/blocks/mod.rs"]
mod blocks;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use blocks::{
    assert_ours_are, each_half_scale, each_random, each_scale_byte, for_each_type, types,
};
use gguf_assay_format::TensorType;
use gguf_assay_oracle::type_info;
use libloading::Library;
use libtest_mimic::{Arguments, Trial};

const LIBRARY: &str = "GGUF_ASSAY_PREBUILT_GGML";

/// What no ggml has a function for, and what the package's version does not have yet.
const LACKING: [&str; 8] = ["F32", "Q8_1", "I8", "I16", "I32", "I64", "F64", "F8_E4M3"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let path = std::env::var_os(LIBRARY).filter(|path| !path.is_empty()).map(PathBuf::from);
    // A library that is named and cannot be loaded is a failure, not a reason to skip.
    let ggml = match path.as_ref().map(Prebuilt::open).transpose() {
        Ok(ggml) => ggml.map(Arc::new),
        Err(error) => {
            eprintln!("{LIBRARY}: {error}");
            return ExitCode::FAILURE;
        }
    };
    if !arguments.list {
        match &ggml {
            Some(ggml) => eprintln!("ggml {} lacks {}", ggml.version(), ggml.lacking().join(", ")),
            None => eprintln!("skipped: {LIBRARY} names no library (.ci/run fetches one)"),
        }
    }
    let mut trials = Vec::new();
    let mut test = |name: &str, test: fn(&Prebuilt)| {
        let shared = ggml.clone();
        let trial = Trial::test(format!("prebuilt-ggml/{name}"), move || {
            let ggml = shared.ok_or_else(|| format!("{LIBRARY} names no library"))?;
            test(&ggml);
            Ok(())
        });
        trials.push(trial.with_ignored_flag(ggml.is_none()));
    };
    test("is-another-ggml", is_another_ggml);
    test("same-types", same_types);
    test("random-blocks", random_blocks);
    test("half-precision-scales", half_precision_scales);
    test("scales-in-bytes", scales_in_bytes);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// `ggml_to_float_t` of `ggml.h`, which is also what `dequantize_row_*` are.
type ToFloat = unsafe extern "C" fn(*const c_void, *mut f32, i64);

/// A `libggml-base.so`, loaded.
struct Prebuilt {
    library: Library,
}

impl Prebuilt {
    fn open(path: &PathBuf) -> Result<Prebuilt, libloading::Error> {
        // SAFETY: what runs on loading are the initializers of ggml and of the C++ library, which
        // ask for nothing.
        let library = unsafe { Library::new(path) }?;
        Ok(Prebuilt { library })
    }

    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `F` is a function pointer of the C function's type.
    unsafe fn get<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller promised the type.
        unsafe { self.library.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    fn text(&self, name: &str) -> String {
        // SAFETY: the type in `ggml.h` of the two functions that this is asked for.
        let function = unsafe { self.get::<unsafe extern "C" fn() -> *const c_char>(name) };
        let function = function.unwrap_or_else(|| panic!("the library has no {name}"));
        // SAFETY: it asks for nothing.
        let text = unsafe { function() };
        // SAFETY: a string literal of the library.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    fn version(&self) -> String {
        format!("{} ({})", self.text("ggml_version"), self.text("ggml_commit"))
    }

    /// The function that dequantizes a type; it has the type's name.
    fn to_float(&self, t: &TensorType) -> Option<ToFloat> {
        let name = match type_info(t.id as i32)?.name {
            "f16" => "ggml_fp16_to_fp32_row".into(),
            "bf16" => "ggml_bf16_to_fp32_row".into(),
            name => format!("dequantize_row_{name}"),
        };
        // SAFETY: the type of all these functions, but that their first pointer is one to blocks.
        unsafe { self.get(&name) }
    }

    fn types(&self) -> impl Iterator<Item = &'static TensorType> {
        types().filter(|t| self.to_float(t).is_some())
    }

    fn lacking(&self) -> Vec<&'static str> {
        types().filter(|t| self.to_float(t).is_none()).map(|t| t.name).collect()
    }

    fn numbers(&self, t: &TensorType, blocks: &[u8]) -> Vec<f32> {
        let (count, rest) =
            (blocks.len() / t.block_bytes as usize, blocks.len() % t.block_bytes as usize);
        assert_eq!(rest, 0, "{t}: whole blocks");
        // Words, since every block struct of ggml is made of numbers of at most 4 bytes.
        let mut row = vec![0u64; blocks.len().div_ceil(8)];
        for (word, chunk) in row.iter_mut().zip(blocks.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_ne_bytes(bytes);
        }
        let mut out = vec![0.0; count * t.block_len as usize];
        let to_float = self.to_float(t).unwrap();
        // SAFETY: `row` has the bytes of `count` blocks, aligned as their struct asks, and `out` is
        // as long as their elements; `same_types` sees that the library's blocks are as long. Any
        // bytes are a value of those structs.
        unsafe { to_float(row.as_ptr().cast(), out.as_mut_ptr(), out.len() as i64) };
        out
    }

    fn check(&self, t: &TensorType, blocks: &[u8], what: &str) {
        assert_ours_are(&self.numbers(t, blocks), t, blocks, what);
    }
}

/// It is of another version than ours, and has a function for each type that a version has so far.
fn is_another_ggml(ggml: &Prebuilt) {
    assert_ne!(ggml.text("ggml_version"), gguf_assay_oracle::version());
    assert_eq!(ggml.lacking(), LACKING);
}

/// The ids mean the same there, and the blocks are as long.
fn same_types(ggml: &Prebuilt) {
    // SAFETY: the types in `ggml.h`, as for the next two.
    let name =
        unsafe { ggml.get::<unsafe extern "C" fn(c_int) -> *const c_char>("ggml_type_name") };
    // SAFETY: see above.
    let len = unsafe { ggml.get::<unsafe extern "C" fn(c_int) -> i64>("ggml_blck_size") };
    // SAFETY: see above.
    let bytes = unsafe { ggml.get::<unsafe extern "C" fn(c_int) -> usize>("ggml_type_size") };
    let (name, len, bytes) = (name.unwrap(), len.unwrap(), bytes.unwrap());
    for t in ggml.types() {
        let id = t.id as c_int;
        // SAFETY: the library has a function for the type, so the id is one of its own, which is
        // all that these three ask for.
        let name = unsafe { name(id) };
        // SAFETY: a string literal of the library.
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
        // SAFETY: see above.
        let len = unsafe { len(id) };
        // SAFETY: see above.
        let bytes = unsafe { bytes(id) };
        let found = (name.to_ascii_uppercase(), len as u64, bytes as u64);
        assert_eq!(found, (t.name.into(), t.block_len.into(), t.block_bytes.into()), "id {id}");
    }
}

fn random_blocks(ggml: &Prebuilt) {
    for_each_type(ggml.types(), |t| {
        each_random(t, 1 << 16, |blocks| ggml.check(t, blocks, "random"));
    });
}

fn half_precision_scales(ggml: &Prebuilt) {
    for_each_type(ggml.types(), |t| {
        each_half_scale(t, |blocks| ggml.check(t, blocks, "every scale"));
    });
}

fn scales_in_bytes(ggml: &Prebuilt) {
    for_each_type(ggml.types(), |t| {
        each_scale_byte(t, |blocks| ggml.check(t, blocks, "every value of a byte with a scale"));
    });
}
