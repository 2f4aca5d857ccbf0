//! Time linear in the size of the file, whatever is in it. Ratios only: how long a thing takes is
//! the machine's affair.

mod support;

use std::time::{Duration, Instant};

use gguf_assay_format::{OwnedValue, Profile, diagnose, read};
use support::raw::costly;

/// All that a caller can ask of a file.
fn work(bytes: &[u8]) -> Duration {
    let start = Instant::now();
    for profile in Profile::ALL {
        let _ = read(bytes, profile);
    }
    if let Some(gguf) = diagnose(bytes).gguf {
        for entry in &gguf.metadata {
            let _ = (entry.value.to_string(), OwnedValue::from(entry.value));
        }
    }
    start.elapsed()
}

#[test]
fn time_grows_with_the_size() {
    // Four times the bytes: 4 times the time if linear, 16 times if quadratic.
    let (small, large) = (costly(1 << 20), costly(4 << 20));
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        // The best of several: other processes only ever add. Times too short to tell count as
        // long enough.
        let best = |bytes: &[u8]| (0..3).map(|_| work(bytes)).min().unwrap_or_default();
        let few = best(small).max(Duration::from_micros(200));
        let many = best(large);
        assert!(many < few * 12, "{name}: {few:?} for 1 MiB, {many:?} for 4 MiB");
    }
}
