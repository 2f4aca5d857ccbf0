//! What the protocol loop of every language reports as it is. The test of each drives a reader made
//! for it, which does the same things.

use std::path::Path;

use gguf_assay::process::Process;
use gguf_assay::{Answer, Channel, Failure, FileValue, OwnedValue, Profile, ReadRequest};

pub(crate) fn read(process: &mut Process, case: &str) -> Answer {
    let path = Path::new("/no/such/folder").join(case);
    process.read(&ReadRequest { path, profile: Profile::Ggml, large: false })
}

pub(crate) fn rejected(kind: &str, message: &str) -> Answer {
    Answer::Failure(Failure::Rejected { message: message.into(), kind: kind.into() })
}

pub(crate) fn value<'a>(file: &'a FileValue, key: &str) -> &'a OwnedValue {
    let metadata = file.metadata.as_ref().unwrap();
    &metadata.iter().find(|(k, _)| k == key.as_bytes()).unwrap().1
}

/// What is the same in every language, but for what errors are called: `odd` that of a module, and
/// `recursion` that of a function that calls itself without end. Returns the file of `values`.
pub(crate) fn hold(process: &mut Process, odd: &str, recursion: &str) -> FileValue {
    let Answer::Value(file) = read(process, "values") else { panic!("a value") };
    assert_eq!(*value(&file, "text"), OwnedValue::String("é".into()));
    assert!(matches!(value(&file, "f32"), OwnedValue::F32(zero) if zero.to_bits() == 1 << 31));
    assert_eq!(*value(&file, "f64"), OwnedValue::F64(f64::INFINITY));
    assert_eq!(*value(&file, "u64"), OwnedValue::U64(u64::MAX));
    assert_eq!(file.tensors.as_ref().unwrap()[0].dims, Some(vec![4, 2]));

    assert_eq!(read(process, "odd"), rejected(odd, "of a module"));
    let Answer::Failure(Failure::Rejected { kind, .. }) = read(process, "recursion") else {
        panic!("a refusal")
    };
    assert_eq!(kind, recursion);
    let unimplemented = Failure::Unimplemented("big-endian".into());
    assert_eq!(read(process, "unimplemented"), Answer::Failure(unimplemented));
    assert!(matches!(read(process, "exit"), Answer::Crashed(how) if how.contains("status 3")));
    assert!(matches!(read(process, "values"), Answer::Value(_)), "it is started again");
    *file
}
