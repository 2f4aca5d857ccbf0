//! Files made to harm. Every expected value is worked out by hand from `docs/gguf.md` and ggml's
//! `gguf.cpp`; none comes from this crate's own reader.

mod support;

use std::thread;

use gguf_assay_format::{Limits, Profile, Value, ValueType, diagnose, read, read_within};
use support::look_at_all_of;
use support::raw::Raw;

use Profile::{Ggml, Spec};

/// What the tests ask of a file.
trait Rejected {
    /// Rule, field and offset of the first violation under a profile.
    fn rejected(&self, profile: Profile, rule: &str, field: &str, offset: u64);

    fn rejected_by_both(&self, rule: &str, field: &str, offset: u64) {
        self.rejected(Spec, rule, field, offset);
        self.rejected(Ggml, rule, field, offset);
    }
}

impl Rejected for Raw {
    #[track_caller]
    fn rejected(&self, profile: Profile, rule: &str, field: &str, offset: u64) {
        let violation = read(&self.0, profile).expect_err("accepted");
        let found = (violation.rule().id, violation.field(), violation.offset());
        assert_eq!(found, (rule, field, offset), "{profile}: {violation}");
        let text = violation.to_string();
        assert!(text.len() < 2000, "a message of {} bytes", text.len());
    }
}

/// Runs on a small stack: an overflow ends the test process.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(256 << 10).spawn(work).expect("a thread");
    thread.join().expect("no panic");
}

fn nested(depth: usize) -> Raw {
    let level = Raw::default().array(9, 1).0;
    Raw::named(0, 1).entry("a", 9).repeat(&level, depth - 1).array(0, 0)
}

#[test]
fn arrays_nested_100_000_deep() {
    on_a_small_stack(|| {
        let raw = nested(100_000);
        // The value starts behind 69 bytes and the entry's key (8 + 1) and type (4), at 82; a
        // level is 12 bytes, so the array at depth 65 starts at 82 + 64 * 12.
        let inner = format!("metadata[1].value{}", "[0]".repeat(64));
        raw.rejected(Spec, "META-010", &inner, 850);
        raw.rejected(Ggml, "META-009", "metadata[1].value.type", 82);
        let diagnosis = diagnose(&raw.0);
        let rules: Vec<_> = diagnosis.violations.iter().map(|v| v.rule().id).collect();
        assert_eq!(rules, ["META-009", "META-010"]);
    });
}

#[test]
fn arrays_nested_as_deep_as_allowed() {
    on_a_small_stack(|| {
        let raw = nested(64);
        let gguf = read(&raw.0, Spec).expect("64 levels are allowed");
        look_at_all_of(&gguf);
        let (mut value, mut depth) = (gguf.metadata[1].value, 0);
        while let Value::Array(array) = value {
            depth += 1;
            let Some(element) = array.iter().next() else { break };
            value = element;
        }
        assert_eq!(depth, 64);

        nested(65).rejected(
            Spec,
            "META-010",
            &format!("metadata[1].value{}", "[0]".repeat(64)),
            850,
        );
        let flat = Limits { array_depth: 1, ..Limits::default() };
        let violation = read_within(&raw.0, Spec, &flat).expect_err("one level is allowed");
        assert_eq!((violation.rule().id, violation.offset()), ("META-010", 94));
        let none = Limits { array_depth: 0, ..Limits::default() };
        let violation = read_within(&raw.0, Spec, &none).expect_err("no array is allowed");
        assert_eq!((violation.rule().id, violation.offset()), ("META-010", 82));
    });
}

#[test]
fn counts_in_the_header_beyond_the_file() {
    for count in [u64::MAX, 1 << 63, 1 << 40, 25] {
        Raw::header(count, 0).rejected_by_both("HDR-005", "header.tensor_count", 8);
        Raw::header(0, count).rejected_by_both("HDR-006", "header.kv_count", 16);
        let raw = Raw::header(count, count);
        let rules: Vec<_> = diagnose(&raw.0).violations.iter().map(|v| v.rule().id).collect();
        assert_eq!(rules, ["HDR-005", "HDR-006"]);
    }
    // 24 entries could not fit 24 bytes either, but then it is the first of them that is missing.
    Raw::header(0, 24).rejected_by_both("FILE-002", "metadata[0].key.length", 24);
    Raw::named(24, 0).rejected_by_both("FILE-002", "tensors[0].name.length", 69);

    // Version 1 has counts of 32 bits. No profile of ggml gets beyond the version.
    let one = Raw(b"GGUF".to_vec()).u32(1);
    one.clone().u32(u32::MAX).u32(0).rejected(Spec, "HDR-005", "header.tensor_count", 8);
    one.clone().u32(0).u32(u32::MAX).rejected(Spec, "HDR-006", "header.kv_count", 12);
    let key = one.clone().u32(0).u32(1).u32(u32::MAX);
    key.rejected(Spec, "FILE-002", "metadata[0].key", 20);
    let array = one.u32(0).u32(1).u32(1).bytes(b"a").u32(9).u32(8).u32(u32::MAX);
    array.rejected(Spec, "FILE-002", "metadata[0].value", 33);
}

#[test]
fn lengths_beyond_the_file() {
    for len in [u64::MAX, u64::MAX - 7, 1 << 63, 1 << 32, 2] {
        let key = Raw::header(0, 1).u64(len).bytes(b"a");
        key.rejected_by_both("FILE-002", "metadata[0].key", 32);
        let string = Raw::named(0, 1).entry("a", 8).u64(len).bytes(b"a");
        string.rejected_by_both("FILE-002", "metadata[1].value", 90);
        let name = Raw::named(1, 0).u64(len).bytes(b"a");
        name.rejected_by_both("FILE-002", "tensors[0].name", 77);
        // Strings in an array: the first, and one behind it.
        let element = Raw::named(0, 1).entry("a", 9).array(8, 2).string(b"").u64(len).bytes(b"a");
        element.rejected_by_both("FILE-002", "metadata[1].value[1]", 110);
    }
}

#[test]
fn array_counts_beyond_the_file() {
    for value_type in ValueType::ALL {
        for count in [u64::MAX, u64::MAX / 2, 1 << 61, 1 << 32, 2] {
            // Room for no element of any type.
            let array = Raw::named(0, 1).entry("a", 9).array(value_type.id(), count);
            let nested = value_type == ValueType::Array;
            array.rejected(Spec, "FILE-002", "metadata[1].value", 94);
            match nested {
                true => array.rejected(Ggml, "META-009", "metadata[1].value.type", 82),
                false => array.rejected(Ggml, "FILE-002", "metadata[1].value", 94),
            }
            let inner = Raw::named(0, 1).entry("a", 9).array(9, 1).array(value_type.id(), count);
            inner.rejected(Spec, "FILE-002", "metadata[1].value[0]", 106);
        }
    }
}

#[test]
fn numbers_of_the_tensor_table_at_their_ends() {
    // The record starts at 69, its name's bytes at 77, n_dims at 78, dims at 82.
    let n_dims = Raw::named(1, 0).string(b"a").u32(u32::MAX);
    n_dims.rejected_by_both("TENSOR-005", "tensors[0].n_dims", 78);
    let diagnosis = diagnose(&n_dims.0);
    assert_eq!(diagnosis.violations[1].rule().id, "FILE-002");
    assert_eq!(diagnosis.violations[1].field(), "tensors[0].dims[0]");

    let (f32, q4_0) = (0, 2);
    let record = |dims: &[u64], type_id, offset| {
        Raw::named(1, 1)
            .entry("general.quantization_version", 4)
            .u32(2)
            .tensor(b"a", dims, type_id, offset)
            .data(64)
    };
    // 69 + 8 + 28 + 4 + 4 = 113, where the record starts; dims at 126.
    for dim in [u64::MAX, 1 << 63] {
        record(&[dim], f32, 0).rejected(Ggml, "TENSOR-006", "tensors[0].dims[0]", 126);
        // 4 * 2^63 bytes do not fit 64 bits; to the specification alone, the rest is no fault.
        record(&[dim], f32, 0).rejected(Spec, "TENSOR-011", "tensors[0].dims", 126);
        record(&[1, dim], f32, 0).rejected(Ggml, "TENSOR-006", "tensors[0].dims[1]", 134);
        // A product with 0 is 0 to the specification; ggml looks at each dimension.
        assert!(read(&record(&[0, dim], f32, 0).0, Spec).is_ok());
        record(&[0, dim], f32, 0).rejected(Ggml, "TENSOR-006", "tensors[0].dims[1]", 134);
    }
    // 2^32 * 2^31 = 2^63, one too many for ggml; 2^62 elements of 4 bytes are 2^64 bytes.
    record(&[1 << 32, 1 << 31], f32, 0).rejected(Ggml, "TENSOR-007", "tensors[0].dims", 126);
    record(&[1 << 62], f32, 0).rejected_by_both("TENSOR-011", "tensors[0].dims", 126);
    // 2^62 elements of Q4_0 are 2^57 * 18 bytes, which fit: then it is the data that are missing.
    // The table ends at 113 + 9 + 4 + 8 + 4 + 8 = 146, data start at 160.
    record(&[1 << 62], q4_0, 0).rejected_by_both("DATA-004", "tensors[0].data", 160);
    // 2^63 - 1 = 7 * 1317624576693539401 is the largest product; at a byte an element, it is the
    // data that are missing. The record ends 8 bytes later, at 154, data still start at 160.
    let (largest, i8) = ([7, 1_317_624_576_693_539_401], 24);
    record(&largest, i8, 0).rejected_by_both("DATA-004", "tensors[0].data", 160);
    // ggml goes from left to right: a 0 in front hides what follows, one behind hides nothing.
    assert!(read(&record(&[0, 1 << 62, 1 << 62], f32, 0).0, Ggml).is_ok());
    let behind = record(&[1 << 62, 1 << 62, 0], f32, 0);
    behind.rejected(Ggml, "TENSOR-007", "tensors[0].dims", 126);
    assert!(read(&behind.0, Spec).is_ok());

    // The offset stands in the last 8 bytes of the record: at 138 with one dimension.
    record(&[1], f32, u64::MAX).rejected_by_both("DATA-001", "tensors[0].offset", 138);
    record(&[1], f32, u64::MAX - 31).rejected(Ggml, "DATA-002", "tensors[0].offset", 138);
    // 160 + 2^64 - 32 overflows: the end of the data is beyond any file.
    let far = read(&record(&[1], f32, u64::MAX - 31).0, Spec).expect_err("accepted");
    assert_eq!((far.rule().id, far.field()), ("DATA-004", "tensors[0].data"));
    record(&[1], f32, 1 << 40).rejected(Spec, "DATA-004", "tensors[0].data", 160 + (1 << 40));

    // Blocks do not cross rows, and a tensor without dimensions is a row of one.
    record(&[33], q4_0, 0).rejected_by_both("TENSOR-010", "tensors[0].dims[0]", 126);
    record(&[], q4_0, 0).rejected_by_both("TENSOR-010", "tensors[0].n_dims", 122);
}

#[test]
fn sizes_that_add_up_beyond_64_bits() {
    // 2^61 - 64 elements are 2^56 - 2 blocks of 18 bytes.
    let dims = [(1 << 61) - 64];
    let size: u64 = (dims[0] / 32) * 18;
    let mut raw = Raw::named(16, 1).entry("general.quantization_version", 4).u32(2);
    for i in 0..16u8 {
        let offset = u64::from(i).wrapping_mul(size.next_multiple_of(32));
        raw = raw.tensor(&[b'a' + i], &dims, 2, offset);
    }
    let raw = raw.data(0);
    let diagnosis = diagnose(&raw.0);
    let sum = diagnosis.violations.iter().find(|v| v.rule().id == "DATA-006").expect("DATA-006");
    // 2^64 is 256 * 2^56: 14 tensors, 252 * 2^56 bytes, are below it, 15, 270 * 2^56, are not.
    assert_eq!(sum.field(), "tensors[14].dims");
    // Records of 9 + 4 + 8 + 4 + 8 = 33 bytes start at 113; dims stand 13 bytes into one.
    assert_eq!(sum.offset(), 113 + 14 * 33 + 13);
}

#[test]
fn keys_and_names_that_occur_twice() {
    // An entry of the key "a" and a u8 has 8 + 1 + 4 + 1 = 14 bytes: "b" is at 83, "a" again at 97.
    let entry = |raw: Raw, key: &str| raw.entry(key, 0).bytes(&[7]);
    let raw = ["a", "b", "a"].into_iter().fold(Raw::named(0, 3), entry);
    raw.rejected(Ggml, "META-006", "metadata[3].key", 105);
    assert!(read(&raw.0, Spec).is_ok());

    // A record without dimensions has 9 + 4 + 4 + 8 = 25 bytes.
    let record = |raw: Raw, (i, name): (u64, &[u8])| raw.tensor(name, &[], 24, i * 32);
    let names: [(u64, &[u8]); 3] = [(0, b"a"), (1, b"b"), (2, b"a")];
    let raw = names.into_iter().fold(Raw::named(3, 0), record).data(96);
    raw.rejected(Ggml, "TENSOR-004", "tensors[2].name", 69 + 50 + 8);
    assert!(read(&raw.0, Spec).is_ok());
}

#[test]
fn texts_too_long_for_a_rule_are_named_at_their_length() {
    // The key's length stands at 69.
    let key = "a".repeat(65_536);
    Raw::named(0, 1).entry(&key, 0).bytes(&[0]).rejected(
        Spec,
        "META-002",
        "metadata[1].key.length",
        69,
    );
    assert!(read(&Raw::named(0, 1).entry(&key, 0).bytes(&[0]).0, Ggml).is_ok());
    assert!(read(&Raw::named(0, 1).entry(&key[1..], 0).bytes(&[0]).0, Spec).is_ok());

    let name = |len: usize| Raw::named(1, 0).tensor(&vec![b'a'; len], &[1], 0, 0).data(32);
    assert!(read(&name(63).0, Ggml).is_ok());
    assert!(read(&name(64).0, Spec).is_ok());
    name(64).rejected(Ggml, "TENSOR-002", "tensors[0].name", 77);
    name(65).rejected_by_both("TENSOR-001", "tensors[0].name", 77);
}

#[test]
fn messages_stay_short_whatever_the_file_says() {
    // 100,000 dimensions whose product overflows.
    let dims = vec![1 << 20; 100_000];
    let raw = Raw::named(1, 0).tensor(b"a", &dims, 0, 0).data(64);
    let long = Raw::named(0, 1).entry(&"\u{202e}".repeat(100_000), 0).bytes(&[2]);
    let bad = Raw::named(0, 1).entry("a", 8).string(&[0xff; 100_000]);
    let strings = Raw::named(0, 1)
        .entry("general.alignment", 9)
        .array(8, 2)
        .string(&[0xff; 100_000])
        .string(&[b'\n'; 100_000]);
    for raw in [raw, long, bad, strings] {
        let diagnosis = diagnose(&raw.0);
        assert!(!diagnosis.violations.is_empty());
        for violation in diagnosis.violations {
            let text = violation.to_string();
            assert!(text.len() < 2000, "{} of {} bytes", violation.rule(), text.len());
        }
    }
}

#[test]
fn utf8_in_arrays_is_checked_string_by_string() {
    // A character may not reach from one string into the next, whatever the lengths between look
    // like: those of 128 to 191 bytes have a byte that could continue one.
    let strings = |strings: &[&[u8]]| {
        let raw = Raw::named(0, 1).entry("a", 9).array(8, strings.len() as u64);
        strings.iter().fold(raw, |raw, string| raw.string(string))
    };
    // Strings start at 94 with their lengths.
    let filler = [b'x'; 0xa9];
    strings(&[b"\xc3", &filler]).rejected(Spec, "META-012", "metadata[1].value[0]", 102);
    strings(&[&filler, b"\xc3", &filler]).rejected(
        Spec,
        "META-012",
        "metadata[1].value[1]",
        102 + 0xa9 + 8,
    );
    // Such strings themselves are checked as well.
    let mut cut = [b'x'; 0xa9];
    cut[0xa8] = 0xc3;
    strings(&[b"ok", &cut, b""]).rejected(Spec, "META-012", "metadata[1].value[1]", 112);
    strings(&[b"ok", b"\xa9"]).rejected(Spec, "META-012", "metadata[1].value[1]", 112);
    strings(&[b"ok", b"\xc3"]).rejected(Spec, "META-012", "metadata[1].value[1]", 112);
    strings(&[b"\xe2\x82", b"\xac"]).rejected(Spec, "META-012", "metadata[1].value[0]", 102);
    let fine: [&[u8]; 4] = ["é".as_bytes(), &filler, "€".as_bytes(), b""];
    let raw = strings(&fine);
    let gguf = read(&raw.0, Spec).expect("all UTF-8");
    let Value::Array(array) = gguf.metadata[1].value else { panic!("no array") };
    let read_back: Vec<_> = array
        .iter()
        .map(|value| match value {
            Value::String(text) => text.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(read_back, fine);
    // ggml does not look.
    assert!(read(&strings(&[b"\xc3", &filler]).0, Ggml).is_ok());
}
