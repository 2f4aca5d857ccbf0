//! Every target over the corpus, and over what fuzzing has found before, on stable Rust.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gguf_assay_cases::Corpus;
use gguf_assay_fuzz::{TARGETS, checkpoint_input, dequantize_input};

/// `.clusterfuzzlite/build.sh` and `.ci/run` take the files of `fuzz_targets/` for the targets.
#[test]
fn each_target_has_a_program_and_each_program_a_target() {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets"));
    let paths = entries.expect("the folder").map(|entry| entry.expect("an entry").path());
    let programs: BTreeSet<String> = paths
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    let targets = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(programs, targets);
}

#[test]
fn targets_over_the_corpus() {
    for case in Corpus::embedded().cases.iter().filter(|case| !case.is_large()) {
        let bytes = case.build().expect("a case of the corpus").to_bytes();
        for target in TARGETS {
            println!("{}: {}", target.name, case.id);
            (target.run)(&bytes);
        }
    }
}

/// Inputs that made a target fail once, each in a folder of the target's name.
#[test]
fn targets_over_regressions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/regressions");
    for target in TARGETS {
        let Ok(entries) = fs::read_dir(folder.join(target.name)) else { continue };
        for entry in entries {
            let path = entry.expect("an entry of the folder").path();
            println!("{}: {}", target.name, path.display());
            (target.run)(&fs::read(path).expect("a regression"));
        }
    }
}

/// The blocks of the cases, as the target takes them: a byte for the type in front.
#[test]
fn dequantize_over_the_block_cases() {
    for case in &Corpus::embedded().blocks {
        gguf_assay_fuzz::dequantize(&dequantize_input(case.tensor_type, &case.bytes));
    }
}

/// The checkpoints of the cases, and each of their files alone.
#[test]
fn checkpoint_over_the_checkpoint_cases() {
    for case in &Corpus::embedded().checkpoints {
        println!("{}", case.id);
        let folder = case.build().expect("a case of the corpus").0;
        gguf_assay_fuzz::checkpoint(&checkpoint_input(&folder));
        for file in folder {
            gguf_assay_fuzz::checkpoint(&checkpoint_input(&[file].into()));
        }
    }
}
