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
