//! Reading a large header: ours, which validates everything, beside the fastest peer, which
//! indexes keys and tensors, and ggml, which copies every string.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use gguf_assay_benches::{KEYS, MERGES, Model, TENSORS, TOKENS, qwen_like};
use gguf_assay_format::{Profile, Value, diagnose, read};
use gguf_assay_oracle::{self as ggml, File, Mode};
use ggus::GGuf;

type Reader = (&'static str, fn(&[u8]));

/// Each reads the whole header and frees what it made of it.
const READERS: [Reader; 5] = [
    ("ours, read(spec)", |bytes| drop(black_box(read(bytes, Profile::Spec)))),
    ("ours, read(ggml)", |bytes| drop(black_box(read(bytes, Profile::Ggml)))),
    ("ours, diagnose", |bytes| drop(black_box(diagnose(bytes)))),
    ("ggus 0.5.1", |bytes| drop(black_box(GGuf::new(bytes).ok()))),
    ("ggml", |bytes| drop(black_box(File::from_bytes(bytes, Mode::Header)))),
];

/// Whether times are asked for: without `--bench`, as in `cargo test`, each part runs once.
fn measuring() -> bool {
    let given = |option: &str| std::env::args().any(|argument| argument == option);
    given("--bench") && !given("--test") && !given("--list")
}

fn main() {
    println!("ggus 0.5.1, ggml {} ({})", ggml::version(), ggml::source());
    let model = qwen_like();
    check(&model.bytes);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("header");
    group.throughput(Throughput::Bytes(model.header_len as u64));
    for (name, reader) in READERS {
        group.bench_function(name, |bencher| bencher.iter(|| reader(black_box(&model.bytes))));
    }
    group.finish();
    criterion.final_summary();

    if measuring() {
        ratios(&model);
    }
}

/// All readers see the same file, or what they take for it is not comparable.
fn check(bytes: &[u8]) {
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

/// The readers in turn, round after round, so that all of them see the same state of the machine.
fn ratios(model: &Model) {
    const ROUNDS: usize = 201;
    let mut times = READERS.map(|_| Vec::with_capacity(ROUNDS));
    for round in 0..ROUNDS {
        // With a stride that changes, each reader follows each other one as often as any: their
        // number is prime.
        let stride = 1 + round % (READERS.len() - 1);
        for place in 0..READERS.len() {
            let index = (round + place * stride) % READERS.len();
            let start = Instant::now();
            READERS[index].1(black_box(&model.bytes));
            times[index].push(start.elapsed());
        }
    }
    let sorted = times.map(|mut times| {
        times.sort_unstable();
        times
    });
    let medians = sorted.each_ref().map(|times| times[ROUNDS / 2]);
    let best = sorted.each_ref().map(|times| times[0]);

    println!("a header of {} bytes, {ROUNDS} interleaved rounds:", model.header_len);
    let rate = |time: Duration| model.header_len as f64 / time.as_secs_f64() / 1e9;
    for (((name, _), median), best) in READERS.iter().zip(medians).zip(best) {
        let (median_ms, best_ms) = (1e3 * median.as_secs_f64(), 1e3 * best.as_secs_f64());
        let rate = rate(median);
        println!("  {name:16}  median {median_ms:7.3} ms ({rate:5.2} GB/s)  best {best_ms:7.3} ms");
    }
    // On a busy machine the long readings are interrupted more often than the short ones, and the
    // medians flatter us; the best rounds do not.
    for (what, [ours, .., ggus, ggml]) in [("medians", medians), ("best", best)] {
        let (ggus, ggml) = (ours.div_duration_f64(ggus), ours.div_duration_f64(ggml));
        println!("{what}: ours / ggus = {ggus:.3}, ours / ggml = {ggml:.3}");
    }
}
