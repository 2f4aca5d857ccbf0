//! Files of a few bytes, written by hand after `docs/gguf.md`, through ggml.

use std::path::Path;
use std::{env, fs, process};

use gguf_assay_oracle::{Array, Entry, File, Mode, Tensor, Value};

const MODES: [Mode; 3] = [Mode::Header, Mode::Tensors, Mode::Data];

/// The first 24 bytes of a version 3 file.
fn header(tensors: u8, pairs: u8) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend([tensors, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([pairs, 0, 0, 0, 0, 0, 0, 0]);
    file
}

/// A string shorter than 256 bytes.
fn string(text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![text.len() as u8, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(text);
    bytes
}

/// A key, the number of its value type, and the value's bytes.
fn pair(key: &[u8], value_type: u8, value: &[u8]) -> Vec<u8> {
    [&string(key)[..], &[value_type, 0, 0, 0], value].concat()
}

/// The value of an array of fewer than 256 elements.
fn array(element_type: u8, len: u8, elements: &[u8]) -> Vec<u8> {
    [&[element_type, 0, 0, 0, len, 0, 0, 0, 0, 0, 0, 0], elements].concat()
}

fn tensor(name: &[u8], dims: &[u64], type_id: u8, offset: u64) -> Vec<u8> {
    let mut bytes = string(name);
    bytes.extend([dims.len() as u8, 0, 0, 0]);
    bytes.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
    bytes.extend([type_id, 0, 0, 0]);
    bytes.extend(offset.to_le_bytes());
    bytes
}

#[track_caller]
fn rejection(file: &[u8], mode: Mode) -> String {
    File::from_bytes(file, mode).expect_err("ggml accepts it").message
}

#[test]
fn header_alone() {
    let bytes = header(0, 0);
    assert_eq!(bytes.len(), 24);
    for mode in MODES {
        let file = File::from_bytes(&bytes, mode).unwrap();
        assert_eq!((file.version(), file.alignment(), file.data_offset()), (3, 32, 24));
        assert_eq!((file.metadata().len(), file.tensors().len()), (0, 0));
        assert_eq!(file.tensor_data(0), None);
    }
}

#[test]
fn from_a_path() {
    let path = env::temp_dir().join(format!("gguf-assay-oracle-{}.gguf", process::id()));
    fs::write(&path, [header(0, 1), pair(b"k", 4, &[1, 2, 0, 0])].concat()).unwrap();
    for mode in MODES {
        let file = File::open(&path, mode).unwrap();
        let entries: Vec<Entry> = file.metadata().collect();
        assert_eq!(entries, [Entry { key: b"k", value: Value::U32(0x201) }]);
    }
    fs::remove_file(&path).unwrap();
    let missing = File::open(&path, Mode::Header).unwrap_err();
    assert!(missing.message.contains("failed to open GGUF file"), "{missing}");
    let nul = File::open(Path::new("a\0b"), Mode::Header).unwrap_err();
    assert_eq!(nul.message, "the path cannot be handed to ggml");
}

#[test]
fn bad_magic() {
    let message = rejection(b"ggjt\x03\0\0\0", Mode::Header);
    assert!(message.ends_with("invalid magic characters: 'ggjt', expected 'GGUF'"), "{message}");
}

#[test]
fn no_bytes_and_no_reason() {
    let rejected = File::from_bytes(&[], Mode::Header).unwrap_err();
    assert_eq!(rejected.message, "");
    assert_eq!(rejected.to_string(), "rejected by ggml without a reason");
}

#[test]
fn message_of_one_call_only() {
    assert!(rejection(b"GG", Mode::Header).ends_with("failed to read magic"));
    let version_4 = rejection(b"GGUF\x04\0\0\0", Mode::Header);
    assert!(version_4.contains("is version 4 but"), "{version_4}");
    assert!(!version_4.contains("magic"), "{version_4}");
}

#[test]
fn message_is_bounded() {
    let key = [b'k'; 200];
    let mut file = header(0, 1);
    // Value type 13, and a key of 20,000 bytes.
    file.extend(20_000_u64.to_le_bytes());
    file.extend(key.repeat(100));
    file.extend([13, 0, 0, 0]);
    assert_eq!(rejection(&file, Mode::Header).len(), 16 * 1024);
}

#[test]
fn message_with_bytes_that_are_not_utf8() {
    let file = [header(0, 1), pair(b"\xff\x1b", 13, &[])].concat();
    let rejected = File::from_bytes(&file, Mode::Header).unwrap_err();
    let raw = "key '\u{fffd}\u{1b}' has invalid GGUF type 13";
    assert!(rejected.message.contains(raw), "{rejected}");
    let escaped = "key '\u{fffd}\\u{1b}' has invalid GGUF type 13";
    assert!(rejected.to_string().contains(escaped), "{rejected}");
}

#[test]
fn duplicate_key() {
    let file = [header(0, 2), pair(b"twice", 0, &[1]), pair(b"twice", 0, &[2])].concat();
    for mode in MODES {
        let message = rejection(&file, mode);
        assert!(message.contains("duplicate key 'twice' for KV pair 1"), "{message}");
    }
}

#[test]
fn scalars() {
    let file = [
        header(0, 12),
        pair(b"u8", 0, &[0xfe]),
        pair(b"i8", 1, &[0xfe]),
        pair(b"u16", 2, &[0xfe, 0xff]),
        pair(b"i16", 3, &[0xfe, 0xff]),
        pair(b"u32", 4, &[1, 0, 0, 0x80]),
        pair(b"i32", 5, &[1, 0, 0, 0x80]),
        pair(b"f32", 6, &[0, 0, 0xc0, 0xbf]),
        pair(b"bool", 7, &[2]),
        pair(b"string", 8, &string(b"caf\xe9")),
        pair(b"u64", 10, &[0xff; 8]),
        pair(b"i64", 11, &[0xff; 8]),
        pair(b"f64", 12, &[0, 0, 0, 0, 0, 0, 0xf8, 0xbf]),
    ]
    .concat();
    let file = File::from_bytes(&file, Mode::Header).unwrap();
    let entries: Vec<(&[u8], Value)> = file.metadata().map(|e| (e.key, e.value)).collect();
    let expected: [(&[u8], Value); 12] = [
        (b"u8", Value::U8(254)),
        (b"i8", Value::I8(-2)),
        (b"u16", Value::U16(65534)),
        (b"i16", Value::I16(-2)),
        (b"u32", Value::U32(0x8000_0001)),
        (b"i32", Value::I32(-0x7fff_ffff)),
        (b"f32", Value::F32(-1.5)),
        (b"bool", Value::Bool(true)),
        (b"string", Value::String(b"caf\xe9")),
        (b"u64", Value::U64(u64::MAX)),
        (b"i64", Value::I64(-1)),
        (b"f64", Value::F64(-1.5)),
    ];
    assert_eq!(entries, expected);
}

#[test]
fn arrays() {
    let file = [
        header(0, 13),
        pair(b"u8", 9, &array(0, 2, &[1, 255])),
        pair(b"i8", 9, &array(1, 2, &[1, 255])),
        pair(b"u16", 9, &array(2, 2, &[1, 0, 255, 255])),
        pair(b"i16", 9, &array(3, 2, &[1, 0, 255, 255])),
        pair(b"u32", 9, &array(4, 1, &[1, 0, 0, 0x80])),
        pair(b"i32", 9, &array(5, 1, &[1, 0, 0, 0x80])),
        pair(b"f32", 9, &array(6, 1, &[0, 0, 0xc0, 0xbf])),
        pair(b"bool", 9, &array(7, 3, &[0, 1, 2])),
        pair(b"string", 9, &array(8, 3, &[string(b"x"), string(b""), string(b"yz")].concat())),
        pair(b"u64", 9, &array(10, 1, &[0xff; 8])),
        pair(b"i64", 9, &array(11, 1, &[0xff; 8])),
        pair(b"f64", 9, &array(12, 1, &[0, 0, 0, 0, 0, 0, 0xf8, 0xbf])),
        pair(b"empty", 9, &array(12, 0, &[])),
    ]
    .concat();
    let file = File::from_bytes(&file, Mode::Header).unwrap();
    let values: Vec<Value> = file.metadata().map(|e| e.value).collect();
    let expected = [
        Array::U8(vec![1, 255]),
        Array::I8(vec![1, -1]),
        Array::U16(vec![1, 65535]),
        Array::I16(vec![1, -1]),
        Array::U32(vec![0x8000_0001]),
        Array::I32(vec![-0x7fff_ffff]),
        Array::F32(vec![-1.5]),
        Array::Bool(vec![false, true, true]),
        Array::String(vec![b"x", b"", b"yz"]),
        Array::U64(vec![u64::MAX]),
        Array::I64(vec![-1]),
        Array::F64(vec![-1.5]),
        Array::F64(vec![]),
    ];
    assert_eq!(values, expected.map(Value::Array));
}

#[test]
fn strings_end_at_nul() {
    let file = [
        header(0, 2),
        pair(b"a\0b", 8, &string(b"c\0d")),
        pair(b"e", 9, &array(8, 1, &string(b"f\0g"))),
    ]
    .concat();
    let file = File::from_bytes(&file, Mode::Header).unwrap();
    let entries: Vec<Entry> = file.metadata().collect();
    let array = Value::Array(Array::String(vec![b"f"]));
    let expected =
        [Entry { key: b"a", value: Value::String(b"c") }, Entry { key: b"e", value: array }];
    assert_eq!(entries, expected);
}

#[test]
fn tensors_with_data() {
    // `m`: two rows of three f32, 24 bytes, padded to 32. `q`: one block of 32 q8_0, 34 bytes,
    // padded to 64. `none`: no elements.
    let mut bytes = [
        header(3, 0),
        tensor(b"m", &[3, 2], 0, 0),
        tensor(b"q", &[32], 8, 32),
        tensor(b"none", &[4, 0], 0, 96),
    ]
    .concat();
    // 24 + (8+1+4+16+4+8) + (8+1+4+8+4+8) + (8+4+4+16+4+8) = 142, which goes up to 160.
    assert_eq!(bytes.len(), 142);
    bytes.resize(160, 0);
    let data: Vec<u8> = (0..96).collect();
    bytes.extend(&data);

    let expected = [
        Tensor {
            name: b"m",
            type_id: 0,
            type_name: "f32",
            dims: [3, 2, 1, 1],
            offset: 0,
            size: 24,
        },
        Tensor {
            name: b"q",
            type_id: 8,
            type_name: "q8_0",
            dims: [32, 1, 1, 1],
            offset: 32,
            size: 34,
        },
        Tensor {
            name: b"none",
            type_id: 0,
            type_name: "f32",
            dims: [4, 0, 1, 1],
            offset: 96,
            size: 0,
        },
    ];
    for mode in MODES {
        let file = File::from_bytes(&bytes, mode).unwrap();
        assert_eq!(file.data_offset(), 160);
        let tensors: Vec<Tensor> = file.tensors().collect();
        assert_eq!(tensors, expected);
    }

    let file = File::from_bytes(&bytes, Mode::Data).unwrap();
    assert_eq!(file.tensor_data(0), Some(&data[..24]));
    assert_eq!(file.tensor_data(1), Some(&data[32..66]));
    assert_eq!(file.tensor_data(2), Some(&data[..0]));
    assert_eq!(file.tensor_data(3), None);
    for mode in [Mode::Header, Mode::Tensors] {
        assert_eq!(File::from_bytes(&bytes, mode).unwrap().tensor_data(0), None);
    }
}

#[test]
fn tensors_that_seem_to_share_a_name() {
    let bytes = [
        header(2, 1),
        pair(b"general.alignment", 4, &[1, 0, 0, 0]),
        tensor(b"a\0b", &[2], 24, 0),
        tensor(b"a\0c", &[3], 24, 2),
        vec![10, 11, 20, 21, 22],
    ]
    .concat();
    let file = File::from_bytes(&bytes, Mode::Data).unwrap();
    let named: Vec<(&[u8], i64)> = file.tensors().map(|t| (t.name, t.dims[0])).collect();
    assert_eq!(named, [(&b"a"[..], 2), (b"a", 3)]);
    assert_eq!(file.tensor_data(0), Some(&[10, 11][..]));
    assert_eq!(file.tensor_data(1), Some(&[20, 21, 22][..]));
}

#[test]
fn data_cut_short() {
    let mut bytes = [header(1, 0), tensor(b"t", &[8], 0, 0)].concat();
    // 24 + (8+1+4+8+4+8) = 57, which goes up to 64; then 32 bytes of data, one of them missing.
    bytes.resize(64 + 31, 0);
    for mode in [Mode::Header, Mode::Tensors] {
        assert!(File::from_bytes(&bytes, mode).is_ok());
    }
    let message = rejection(&bytes, Mode::Data);
    assert!(message.contains("failed to read tensor data binary blob"), "{message}");
}
