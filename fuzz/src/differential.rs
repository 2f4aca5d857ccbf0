//! The reference as ggml reads, and ggml.

use gguf_assay_format::{Gguf, Profile, Tensor, Text, Value, ValueType, diagnose, read};
use gguf_assay_oracle::{self as ggml, File, Mode};

/// Reads the bytes with the reference, by the profile `ggml`, and with ggml: both accept them or
/// neither does, and what they read is the same.
///
/// Passed over are keys with a zero byte, which ggml looks up as C strings (`Profile::Ggml` says
/// so), and tensors larger than any memory, which cases of the corpus are for.
pub fn differential(bytes: &[u8]) {
    let ours = read(bytes, Profile::Ggml);
    let theirs = File::from_bytes_guarded(bytes, Mode::Header);
    let theirs = theirs.expect("ggml does not abort while it reads a header");
    let accepted = theirs.as_ref().is_ok_and(|file| file.has_data_within(bytes.len() as u64));
    match (&ours, &theirs) {
        (Err(_), _) if !accepted => {}
        (Ok(gguf), _) if is_passed_over(gguf) => {}
        (Ok(gguf), Ok(file)) if accepted => compare(gguf, file),
        (Ok(_), Ok(_)) => panic!("the loader of llama.cpp finds data beyond the end"),
        (Ok(_), Err(rejected)) => panic!("ggml refuses what the reference accepts: {rejected}"),
        (Err(violation), _) => assert!(
            diagnose(bytes).gguf.as_ref().is_some_and(is_passed_over),
            "ggml accepts what the reference refuses: {violation}"
        ),
    }
}

/// ggml, with the check of llama.cpp's loader that data lie within the file.
pub(crate) fn is_accepted_by_ggml(bytes: &[u8]) -> bool {
    let file = File::from_bytes_guarded(bytes, Mode::Header);
    file.is_ok_and(|file| file.is_ok_and(|file| file.has_data_within(bytes.len() as u64)))
}

fn is_passed_over(gguf: &Gguf<'_>) -> bool {
    let has_key_with_nul = gguf.metadata.iter().any(|entry| entry.key.0.contains(&0));
    // More elements than any machine has memory for.
    let is_beyond_reach = |tensor: &Tensor<'_>| tensor.dims.elements().is_none_or(|n| n >= 1 << 55);
    has_key_with_nul || gguf.tensors.iter().any(is_beyond_reach)
}

fn compare(ours: &Gguf<'_>, theirs: &File) {
    assert_eq!(ours.version, theirs.version(), "version");
    assert_eq!(ours.data_offset, theirs.data_offset(), "data offset");
    assert_eq!(ours.metadata.len(), theirs.metadata().len(), "count of keys");
    for (ours, theirs) in ours.metadata.iter().zip(theirs.metadata()) {
        assert_eq!(up_to_nul(ours.key), theirs.key, "key");
        assert!(is_same(&ours.value, &theirs.value), "{}: {:?}", ours.key, theirs.value);
    }
    assert_eq!(ours.tensors.len(), theirs.tensors().len(), "count of tensors");
    for (ours, theirs) in ours.tensors.iter().zip(theirs.tensors()) {
        assert_eq!(up_to_nul(ours.name), theirs.name, "name");
        assert_eq!(i64::from(ours.type_id), i64::from(theirs.type_id), "{}: type", ours.name);
        let mut dims = [1; 4];
        for (to, dim) in dims.iter_mut().zip(ours.dims.iter()) {
            *to = i64::try_from(dim).expect("below 2^63");
        }
        assert_eq!(dims, theirs.dims, "{}: dimensions", ours.name);
        assert_eq!(ours.offset, theirs.offset, "{}: offset", ours.name);
        assert_eq!(ours.byte_len, Some(theirs.size), "{}: size", ours.name);
    }
}

/// What C makes of a text.
fn up_to_nul(text: Text<'_>) -> &[u8] {
    let text = text.0;
    let end = text.iter().position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len())]
}

fn is_same(ours: &Value<'_>, theirs: &ggml::Value<'_>) -> bool {
    use ggml::Value as V;
    match (ours, theirs) {
        (Value::U8(a), V::U8(b)) => a == b,
        (Value::I8(a), V::I8(b)) => a == b,
        (Value::U16(a), V::U16(b)) => a == b,
        (Value::I16(a), V::I16(b)) => a == b,
        (Value::U32(a), V::U32(b)) => a == b,
        (Value::I32(a), V::I32(b)) => a == b,
        (Value::U64(a), V::U64(b)) => a == b,
        (Value::I64(a), V::I64(b)) => a == b,
        (Value::F32(a), V::F32(b)) => a.to_bits() == b.to_bits(),
        (Value::F64(a), V::F64(b)) => a.to_bits() == b.to_bits(),
        (Value::Bool(a), V::Bool(b)) => a == b,
        (Value::String(a), V::String(b)) => up_to_nul(*a) == *b,
        (Value::Array(a), V::Array(b)) => is_same_array(a, b),
        _ => false,
    }
}

fn is_same_array(ours: &gguf_assay_format::Array<'_>, theirs: &ggml::Array<'_>) -> bool {
    use ggml::Array as A;
    macro_rules! compare {
        ($($t:ident: $same:expr),+) => {
            match (ours.element_type(), theirs) {
                $((ValueType::$t, A::$t(theirs)) => {
                    ours.len() == theirs.len() as u64
                        && ours.iter().zip(theirs).all(|(ours, theirs)| {
                            matches!(ours, Value::$t(ours) if $same(ours, theirs))
                        })
                })+
                _ => false,
            }
        };
    }
    fn eq<T: PartialEq>(a: T, b: &T) -> bool {
        a == *b
    }
    compare! {
        U8: eq, I8: eq, U16: eq, I16: eq, U32: eq, I32: eq, U64: eq, I64: eq, Bool: eq,
        F32: |a: f32, b: &f32| a.to_bits() == b.to_bits(),
        F64: |a: f64, b: &f64| a.to_bits() == b.to_bits(),
        String: |a, b: &&[u8]| up_to_nul(a) == *b
    }
}
