//! Writes the seeds and the dictionaries that fuzzing starts from, out of the corpus of cases:
//! `fuzz/corpus/<target>/`, `fuzz/corpus/gguf.dict`, and `fuzz/corpus/checkpoint.dict`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Result;
use std::path::Path;

use gguf_assay_cases::{Corpus, sha256};
use gguf_assay_checkpoint::{Dtype, method::Method};
use gguf_assay_format::{TENSOR_TYPES, ValueType};
use gguf_assay_fuzz::{Input, TARGETS, checkpoint_input, dequantize_input};

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
    let folders: Vec<Vec<u8>> = corpus
        .checkpoints
        .iter()
        .map(|case| checkpoint_input(&case.build().expect("a case of the corpus").0))
        .filter(|input| input.len() as u64 <= MOST)
        .collect();
    for target in TARGETS {
        let inputs = match target.input {
            Input::File => &files[..],
            Input::Blocks => &blocks[..],
            Input::Folder => &folders[..],
            // None are better to start from than others.
            Input::Choices => &files[..64],
        };
        write(&folder.join(target.name), inputs)?;
    }
    fs::write(folder.join("gguf.dict"), dictionary(&gguf_words(&corpus)))?;
    fs::write(folder.join("checkpoint.dict"), dictionary(&checkpoint_words()))?;
    println!(
        "{} files, {} blocks, {} checkpoints, and two dictionaries below fuzz/corpus",
        files.len(),
        blocks.len(),
        folders.len()
    );
    Ok(())
}

fn write(folder: &Path, inputs: &[Vec<u8>]) -> Result<()> {
    fs::create_dir_all(folder)?;
    inputs.iter().try_for_each(|input| fs::write(folder.join(&sha256(input)[..16]), input))
}

/// The magic, the ids of types as they stand in files, and the keys of the cases.
fn gguf_words(corpus: &Corpus) -> BTreeSet<Vec<u8>> {
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
    words
}

/// What headers and configs are made of: types, and the fields of every method.
fn checkpoint_words() -> BTreeSet<Vec<u8>> {
    let fixed = [
        "\n#FILE",
        "\"dtype\":",
        "\"shape\":",
        "\"data_offsets\":",
        "\"__metadata__\":{",
        "[0,0]",
        "\"weight_map\":{",
        "\"metadata\":{",
        "\"total_size\":",
        "\"quantization_config\":{",
        "\"quant_method\":",
        "18446744073709551615",
        "null",
        "true",
        "false",
        "-1",
        "{}",
        "[]",
    ];
    let methods = Method::ALL.iter();
    let fields = methods.clone().flat_map(|method| method.fields).map(|field| field.name);
    let quoted = methods.map(|method| method.name).chain(fields);
    let quoted = quoted.chain(Dtype::ALL.iter().map(|dtype| dtype.name));
    let quoted = quoted.map(|name| format!("\"{name}\"").into_bytes());
    fixed.map(|word| word.as_bytes().to_vec()).into_iter().chain(quoted).collect()
}

/// As libFuzzer reads it.
fn dictionary(words: &BTreeSet<Vec<u8>>) -> String {
    let word = |word: &Vec<u8>| {
        let bytes: String = word.iter().map(|byte| format!("\\x{byte:02X}")).collect();
        format!("\"{bytes}\"\n")
    };
    words.iter().map(word).collect()
}
