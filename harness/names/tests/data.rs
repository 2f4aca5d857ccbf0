//! The data files, and what they come to.

use gguf_assay_names::{Architecture, Level, lint};

#[test]
fn the_data_files_have_no_fault() {
    let faults: Vec<String> = Architecture::all()
        .iter()
        .flat_map(|architecture| {
            let name = architecture.name();
            lint(architecture).into_iter().map(move |fault| format!("{name}: {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A file is named after its architecture.
#[test]
fn names_are_sorted_and_unique() {
    let names: Vec<&str> = Architecture::all().iter().map(Architecture::name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted);
}

/// Every name that llama.cpp declares is known, at one level.
#[test]
fn every_architecture_has_a_level() {
    let names = Architecture::names();
    for name in &gguf_assay_names::SourceTable::recorded().architectures {
        assert!(names.contains_key(name.as_str()), "{name}");
    }
    for (name, level) in names {
        assert_eq!(level == Level::Full, Architecture::find(name).is_ok(), "{name}");
    }
}

/// The tables and what they come to, for people to review. After a change that is meant,
/// `INSTA_UPDATE=always cargo test -p gguf-assay-names --test data` writes the new texts.
#[test]
fn tables() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../golden/names");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for architecture in Architecture::all() {
            let text = format!("{}\n{}", architecture.to_text(), architecture.examples_to_text());
            insta::assert_snapshot!(architecture.name(), text);
        }
    });
}

/// Every architecture with a map has a pair.
#[test]
fn every_map_is_proven_on_a_pair() {
    let pairs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pairs");
    let mut proven = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(pairs).unwrap().flatten() {
        let Ok(bytes) = std::fs::read(entry.path().join("model.gguf")) else { continue };
        let gguf = gguf_assay_format::diagnose(&bytes).gguf.unwrap();
        proven.insert(gguf.get("general.architecture").unwrap().as_str().unwrap().to_owned());
    }
    for architecture in Architecture::all() {
        assert!(proven.contains(architecture.name()), "{}", architecture.name());
    }
}
