//! The corpus is sound: every case is well formed, every rule is covered, and the committed files
//! are what the TOML builds.

use std::path::Path;

use gguf_assay_cases::{CaseError, Corpus, NamesInput, Side, files, lint};
use gguf_assay_format::ByteOrder;

fn fail_on(errors: &[CaseError]) {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "{} problems\n{}", errors.len(), lines.join("\n"));
}

#[test]
fn the_corpus_is_clean() {
    fail_on(&lint(&Corpus::embedded(), true));
}

#[test]
fn committed_files_are_what_the_cases_build() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    fail_on(&files::compare(&Corpus::embedded(), &dir));
}

#[test]
fn the_embedded_corpus_is_that_of_the_folder() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folder = Corpus::from_dir(&dir).unwrap();
    let ids = |corpus: &Corpus| corpus.all().map(|c| c.id().to_owned()).collect::<Vec<_>>();
    assert_eq!(ids(&Corpus::embedded()), ids(&folder));
    assert_eq!(Corpus::embedded().digest(), folder.digest());
}

/// Every pair is asked for both ways, and its file is put to readers as the converter wrote it.
#[test]
fn every_pair_is_in_a_case_as_it_is() {
    let corpus = Corpus::embedded();
    let pairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/names/pairs");
    let folders = std::fs::read_dir(pairs).unwrap().flatten();
    for folder in folders.map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let whole = |side: Side| {
            let mut cases = corpus.names.iter().filter(|case| !case.is_edited());
            cases.find(|case| case.pair.name == name && case.to == side)
        };
        let to_gguf = whole(Side::Gguf).unwrap_or_else(|| panic!("{name} has no case"));
        assert!(matches!(to_gguf.input(), Ok(NamesInput::Checkpoint { .. })), "{name}");
        // Of some, the file stands for less than the checkpoint: `only_to_gguf` says why.
        let Some(to_transformers) = whole(Side::Transformers) else { continue };
        let NamesInput::File { file, .. } = to_transformers.input().unwrap() else {
            panic!("{name} is no file");
        };
        assert!(file.to_bytes() == std::fs::read(folder.join("model.gguf")).unwrap(), "{name}");
    }
}

/// Big-endian blocks stand for the numbers of the little-endian ones that they are made from.
#[test]
fn big_endian_blocks_have_the_numbers_of_their_source() {
    let corpus = Corpus::embedded();
    let big = corpus.blocks.iter().filter(|case| case.byte_order == ByteOrder::Big);
    for case in big {
        let source = case.source.split(',').next().unwrap();
        let little = corpus.blocks.iter().find(|other| other.id == source).unwrap();
        assert_eq!(little.byte_order, ByteOrder::Little, "{}", case.id);
        assert_eq!(little.tensor_type, case.tensor_type, "{}", case.id);
        assert_eq!(little.values, case.values, "{}", case.id);
    }
}
