//! Writes the seeds and the dictionary that fuzzing starts from, out of the corpus of cases:
//! `fuzz/corpus/<target>/` and `fuzz/corpus/gguf.dict`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Result;
use std::path::Path;

use gguf_assay_cases::{Corpus, sha256};
use gguf_assay_format::{TENSOR_TYPES, ValueType};
use gguf_assay_fuzz::{Input, TARGETS, dequantize_input};

/// Larger files would only slow a fuzzer down.
const MOST: u64 = 16 << 10;

fn main() -> Result<()> {
    let corpus = Corpus::embedded();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files: Vec<Vec<u8>> = corpus
        .cases
        .iter()
        .filter(|case| !case.is_large())
        .map(|case| case.build().expect("a case of the corpus"))
        .filter(|file| file.len() <= MOST)
        .map(|file| file.to_bytes())
        .collect();
    let blocks: Vec<Vec<u8>> =
        corpus.blocks.iter().map(|case| dequantize_input(case.tensor_type, &case.bytes)).collect();
    for target in TARGETS {
        let inputs = match target.input {
            Input::File => &files[..],
            Input::Blocks => &blocks[..],
            // None are better to start from than others.
            Input::Choices => &files[..64],
        };
        write(&folder.join(target.name), inputs)?;
    }
    fs::write(folder.join("gguf.dict"), dictionary(&corpus))?;
    println!("{} files, {} blocks, and gguf.dict below fuzz/corpus", files.len(), blocks.len());
    Ok(())
}

fn write(folder: &Path, inputs: &[Vec<u8>]) -> Result<()> {
    fs::create_dir_all(folder)?;
    inputs.iter().try_for_each(|input| fs::write(folder.join(&sha256(input)[..16]), input))
}

/// The magic, the ids of types as they stand in files, and the keys of the cases.
fn dictionary(corpus: &Corpus) -> String {
    let mut words: BTreeSet<Vec<u8>> = [b"GGUF".to_vec()].into();
    for id in ValueType::ALL.iter().map(|t| t.id()).chain(TENSOR_TYPES.iter().map(|t| t.id)) {
        words.insert(id.to_le_bytes().to_vec());
    }
    for number in [0u64, 1, 32, 1 << 31, 1 << 32, 1 << 62, i64::MAX as u64, u64::MAX] {
        words.insert(number.to_le_bytes().to_vec());
    }
    for case in corpus.cases.iter().filter(|case| !case.is_large()) {
        let description = case.description().expect("a case of the corpus");
        // With its length in front, as in a file.
        for (key, _) in description.metadata.iter().filter(|(key, _)| key.len() <= 40) {
            words.insert([&(key.len() as u64).to_le_bytes(), key.as_slice()].concat());
        }
    }
    let word = |word: &Vec<u8>| {
        let bytes: String = word.iter().map(|byte| format!("\\x{byte:02X}")).collect();
        format!("\"{bytes}\"\n")
    };
    words.iter().map(word).collect()
}
