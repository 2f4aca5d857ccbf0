//! `dequantize/<type>/<size>/<engine>`, each by itself: for work on a kernel. Ratios come from
//! `record`, where engines take turns.

use std::cell::{OnceCell, RefCell};
use std::time::Duration;

use criterion::{Criterion, Throughput};
use gguf_assay_benches::dequantize::{Input, Sizes, contender, names, types};
use gguf_assay_benches::is_measuring;
use gguf_assay_record::Size;

fn main() {
    let sizes = if is_measuring() { Sizes::MEASURED } else { Sizes::TEST };
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for t in types() {
        // What cannot run, or is wrong, is no bench.
        let small = Input::new(t, Sizes::TEST.cached, Sizes::TEST.cached);
        let engines: Vec<_> =
            names().filter(|name| contender(name, &small, &mut small.room()).is_ok()).collect();
        for size in Size::ALL {
            let elements = sizes.of(size);
            let mut group =
                criterion.benchmark_group(format!("dequantize/{}/{}", t.name, size.name()));
            group.throughput(Throughput::Bytes(4 * elements as u64));
            // Made for the first that is asked for.
            let input = OnceCell::new();
            let out = OnceCell::new();
            for name in &engines {
                let ready = OnceCell::new();
                group.bench_function(*name, |bencher| {
                    let input = input.get_or_init(|| Input::new(t, elements, sizes.cached));
                    let mut out = out.get_or_init(|| RefCell::new(input.room())).borrow_mut();
                    let contender = ready.get_or_init(|| {
                        contender(name, input, &mut out).expect("right on a small input")
                    });
                    bencher.iter(|| (contender.work)(&mut out));
                });
            }
            group.finish();
        }
    }
    criterion.final_summary();
}
