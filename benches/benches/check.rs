//! `check/<file>/<engine>`: the command `check --deep`, from start to end.

use criterion::{Criterion, Throughput};
use gguf_assay_benches::check::Check;
use gguf_assay_benches::is_measuring;

fn main() {
    let folder = tempfile::tempdir().expect("a folder for a file to check");
    let bytes = if is_measuring() { 128 << 20 } else { 1 << 20 };
    let check = match Check::find(folder.path(), bytes, is_measuring()) {
        Ok(check) => check,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let mut group = criterion.benchmark_group(format!("check/{}", check.name));
    group.throughput(Throughput::Bytes(check.bytes));
    for (name, engine) in Check::engines() {
        group.bench_function(name, |bencher| bencher.iter(|| check.run(engine)));
    }
    group.finish();
    criterion.final_summary();
}
