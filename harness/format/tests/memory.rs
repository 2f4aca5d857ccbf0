//! Memory in proportion to the file, whatever it claims. A binary of its own with a single test:
//! the allocator counts for the whole process.

mod support;

use std::alloc::System;

use cap::Cap;
use gguf_assay_format::{Profile, diagnose, read};
use support::raw::{Raw, costly};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Ends the process if all readings of the file together ever need more than `most` bytes at once.
fn read_within(most: usize, name: &str, bytes: &[u8]) {
    println!("{name}: {} bytes", bytes.len()); // what is printed last is at fault
    ALLOCATOR.set_limit(ALLOCATOR.allocated() + most).expect("less is in use");
    for profile in Profile::ALL {
        drop(read(bytes, profile));
    }
    drop(diagnose(bytes));
    ALLOCATOR.set_limit(usize::MAX).expect("no limit");
}

#[test]
fn memory_is_bounded_by_what_the_file_has() {
    // Room for a few violations and their texts.
    const LITTLE: usize = 16 << 10;
    for claim in [1 << 40, 1 << 60, u64::MAX] {
        let claims = [
            ("entries", Raw::header(0, claim)),
            ("tensors", Raw::header(claim, 0)),
            ("a key", Raw::header(0, 1).u64(claim)),
            ("a string", Raw::named(0, 1).entry("a", 8).u64(claim)),
            ("an array", Raw::named(0, 1).entry("a", 9).array(0, claim)),
            ("strings", Raw::named(0, 1).entry("a", 9).array(8, claim)),
            ("arrays", Raw::named(0, 1).entry("a", 9).array(9, claim)),
            ("a tensor's name", Raw::named(1, 0).u64(claim)),
            ("a tensor", Raw::named(1, 0).tensor(b"a", &[claim], 0, 0).data(0)),
            ("an offset", Raw::named(1, 0).tensor(b"a", &[1], 0, claim & !31).data(32)),
        ];
        for (name, raw) in claims {
            read_within(LITTLE, &format!("{name} of {claim:#x}"), &raw.0);
        }
    }
    read_within(LITTLE, "dimensions", &Raw::named(1, 0).string(b"a").u32(u32::MAX).0);

    // An entry of 9 bytes takes 80 in memory, in a list that may have grown to twice its length.
    // The first thousand violations have texts.
    for (name, bytes) in costly(1 << 20) {
        read_within(20 * bytes.len() + (1 << 20), name, &bytes);
    }
}
