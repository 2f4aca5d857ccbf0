//! Time linear in the size of the file, whatever is in it. Ratios only: how long a thing takes is
//! the machine's affair.

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use gguf_assay_format::{Profile, Value, diagnose, read};
use support::raw::costly;

/// All that is done for a file, and a look at each element of its arrays.
fn work(bytes: &[u8]) -> Duration {
    let start = Instant::now();
    for profile in Profile::ALL {
        let _ = black_box(read(bytes, profile));
    }
    if let Some(gguf) = diagnose(bytes).gguf {
        for entry in &gguf.metadata {
            if let Value::Array(array) = entry.value {
                for element in array {
                    black_box(element);
                }
            }
            black_box(entry.value.to_string());
        }
    }
    start.elapsed()
}

#[test]
fn time_grows_with_the_size() {
    let (small, large) = (costly(1 << 20), costly(4 << 20));
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        // Four times the bytes take 4 times the time if it is linear, 16 times if quadratic. Other
        // processes disturb a comparison, but not each of several.
        let linear = (0..8).any(|_| {
            let few = work(small).max(Duration::from_micros(100));
            work(large) < few * 12
        });
        assert!(linear, "{name}: {:?} for 1 MiB, {:?} for 4 MiB", work(small), work(large));
    }
}
