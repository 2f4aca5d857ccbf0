//! `read/<file>/<reader>`, each by itself. Ratios come from `record`, where readers take turns.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use gguf_assay_benches::model::qwen_like;
use gguf_assay_benches::read::{FILE, READERS, check};

fn main() {
    let model = qwen_like();
    check(&model.bytes);
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group(format!("read/{FILE}"));
    group.throughput(Throughput::Bytes(model.header_len as u64));
    for (name, reader) in READERS {
        group.bench_function(name, |bencher| bencher.iter(|| reader(black_box(&model.bytes))));
    }
    group.finish();
    criterion.final_summary();
}
