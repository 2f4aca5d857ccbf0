//! Files that ggml answers with `abort`. Each is read in a child process, which is this test again.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::{env, process, thread};

use gguf_assay_oracle::{Aborted, File, Mode};

const CHILD: &str = "GGUF_ASSAY_ORACLE_TEST_CHILD";
const SIGABRT: i32 = 6;

/// One tensor of type i8 with these three dimensions, and no data.
fn one_tensor(dims: [u64; 3]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(b"\x01\0\0\0\0\0\0\0t\x03\0\0\0");
    file.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    file.extend([24, 0, 0, 0]);
    file.extend([0; 8]);
    file.resize(file.len().next_multiple_of(32), 0);
    file
}

/// Runs `read` in a child process and returns what that wrote to stderr as it aborted.
fn aborts(test: &str, read: impl FnOnce()) -> String {
    if env::var_os(CHILD).is_some() {
        read();
        process::exit(0);
    }
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8(child.stderr).unwrap();
    assert_eq!(child.status.signal(), Some(SIGABRT), "{stderr}");
    stderr
}

/// As many elements as an i64 may count: the parser lets them be, the tensor's maker does not.
#[test]
fn element_count_at_the_limit() {
    let file = one_tensor([i64::MAX as u64 / 2, 2, 1]);
    let stderr = aborts("element_count_at_the_limit", || {
        assert!(File::from_bytes(&file, Mode::Header).is_ok());
        let _ = File::from_bytes(&file, Mode::Tensors);
    });
    assert!(stderr.contains("GGML_ASSERT(INT64_MAX / ne[i] > current_nelements)"), "{stderr}");
    // Where it stands, without the path on this machine.
    assert!(stderr.contains("ggml/src/ggml.c:"), "{stderr}");
}

/// The same, and the process goes on; and the next file is read as ever.
#[test]
fn a_guarded_abort_is_told_apart() {
    let file = one_tensor([i64::MAX as u64 / 2, 2, 1]);
    for _ in 0..3 {
        assert_eq!(File::from_bytes_guarded(&file, Mode::Tensors).err(), Some(Aborted));
        let header = File::from_bytes_guarded(&file, Mode::Header).unwrap();
        assert_eq!(header.unwrap().tensors().len(), 1);
        let rejected = File::from_bytes_guarded(b"GGML", Mode::Header).unwrap().unwrap_err();
        assert!(rejected.message.contains("invalid magic"), "{rejected}");
    }
}

/// No elements at all, which the parser sees and the tensor's maker overlooks.
#[test]
fn zero_among_large_dimensions() {
    let file = one_tensor([i64::MAX as u64, 0, 2]);
    let stderr = aborts("zero_among_large_dimensions", || {
        assert!(File::from_bytes(&file, Mode::Header).is_ok());
        let _ = File::from_bytes(&file, Mode::Tensors);
    });
    assert!(stderr.contains("GGML_ASSERT(INT64_MAX / ne[i] > current_nelements)"), "{stderr}");
}

/// More data than there is address space. What was logged before the end comes with it.
#[test]
fn data_beyond_the_address_space() {
    let file = one_tensor([1 << 60, 1, 1]);
    let stderr = aborts("data_beyond_the_address_space", || {
        assert!(File::from_bytes(&file, Mode::Tensors).is_ok());
        // Off the main thread, as a host with several would do it.
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = File::from_bytes(&file, Mode::Data);
            });
        });
    });
    assert!(stderr.contains("insufficient memory"), "{stderr}");
    assert!(stderr.contains("GGML_ASSERT(ctx->mem_buffer != NULL)"), "{stderr}");
}
