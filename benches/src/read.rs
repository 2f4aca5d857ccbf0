//! Reading a large header: ours, which validates everything, beside the fastest peer, which indexes
//! keys and tensors, and ggml, which copies every string.

use std::hint::black_box;

use gguf_assay_format::{Profile, Value, diagnose, read};
use gguf_assay_oracle::{self as ggml, File, Mode};
use gguf_assay_record::{Group, Operation, engine};
use ggus::GGuf;

use crate::model::{KEYS, MERGES, Model, TENSORS, TOKENS};
use crate::rounds::{Contender, Plan, measure};

type Reader = (&'static str, fn(&[u8]));

/// The name of the file in reports.
pub const FILE: &str = "qwen-like";

/// Each reads the whole header and frees what it made of it.
pub const READERS: [Reader; 5] = [
    ("read(spec)", |bytes| drop(black_box(read(bytes, Profile::Spec)))),
    ("read(ggml)", |bytes| drop(black_box(read(bytes, Profile::Ggml)))),
    ("diagnose", |bytes| drop(black_box(diagnose(bytes)))),
    ("ggus", |bytes| drop(black_box(GGuf::new(bytes).ok()))),
    (engine::GGML, |bytes| drop(black_box(File::from_bytes(bytes, Mode::Header)))),
];

/// What sets each apart; ggml is among those that dequantize, too.
pub(crate) fn about() -> Vec<(&'static str, String)> {
    vec![
        ("read(spec)", "ours: every rule of the specification".into()),
        ("read(ggml)", "ours: ggml's rules".into()),
        ("diagnose", "ours: the rules of both, and notes".into()),
        ("ggus", "ggus 0.5.1, GGuf::new: indexes keys and tensors".into()),
    ]
}

/// Measures the readers in turns.
pub fn group(model: &Model, plan: Plan) -> Group {
    check(&model.bytes);
    let contenders = READERS.map(|(engine, reader)| Contender::<()> {
        engine,
        work: Box::new(move |()| reader(black_box(&model.bytes))),
    });
    Group {
        operation: Operation::Read,
        subject: FILE.into(),
        size: None,
        bytes_in: model.header_len as u64,
        bytes_out: 0,
        measurements: measure(&contenders, &mut (), plan),
    }
}

/// All readers see the same file, or what they take for it is not comparable.
///
/// # Panics
///
/// If they do not.
pub fn check(bytes: &[u8]) {
    let ours = read(bytes, Profile::Spec).expect("ours, read(spec)");
    read(bytes, Profile::Ggml).expect("ours, read(ggml)");
    assert!(diagnose(bytes).violations.is_empty());
    let ggus = GGuf::new(bytes).expect("ggus");
    let ggml = File::from_bytes(bytes, Mode::Header).expect("ggml");

    assert_eq!(ours.metadata.len(), KEYS);
    assert_eq!((ggus.meta_kvs.len(), ggml.metadata().len()), (KEYS, KEYS));
    for (entry, theirs) in ours.metadata.iter().zip(ggml.metadata()) {
        assert_eq!(entry.key.0, theirs.key);
        assert!(ggus.meta_kvs.contains_key(entry.key.as_str().expect("ASCII")));
    }
    let strings = |key: &str, count: usize| {
        let Some(Value::Array(array)) = ours.get(key) else { panic!("{key} is no array") };
        let ours: Vec<_> = array
            .iter()
            .map(|value| match value {
                Value::String(text) => text.0,
                other => panic!("{key} has {other:?}"),
            })
            .collect();
        assert_eq!(ours.len(), count);
        let theirs = ggml.metadata().find(|entry| entry.key == key.as_bytes());
        let theirs = theirs.map(|entry| entry.value);
        assert!(theirs == Some(ggml::Value::Array(ggml::Array::String(ours.clone()))), "{key}");
        let mut reader = ggus.meta_kvs[key].value_reader();
        let (_, len) = reader.read_arr_header().expect("an array");
        assert_eq!(len, count);
        for string in ours {
            assert_eq!(reader.read_str().expect("a string").as_bytes(), string);
        }
    };
    strings("tokenizer.ggml.tokens", TOKENS);
    strings("tokenizer.ggml.merges", MERGES);

    assert_eq!(ours.tensors.len(), TENSORS);
    assert_eq!((ggus.tensors.len(), ggml.tensors().len()), (TENSORS, TENSORS));
    assert_eq!(ours.data_offset, ggml.data_offset());
    for (tensor, theirs) in ours.tensors.iter().zip(ggml.tensors()) {
        let info = ggus.tensors[tensor.name.as_str().expect("ASCII")].to_info();
        assert_eq!(tensor.name.0, theirs.name);
        assert_eq!((tensor.offset, tensor.byte_len), (theirs.offset, Some(theirs.size)));
        assert_eq!(
            (tensor.offset, tensor.byte_len),
            (info.offset() as u64, Some(info.nbytes() as u64))
        );
        let dims: Vec<_> = tensor.dims.iter().collect();
        assert_eq!(dims, info.shape());
    }
}
