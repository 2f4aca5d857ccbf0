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
    let pairs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/names/pairs");
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

/// Where gguf-py 0.19.0 answers with a tensor that llama.cpp does not ask for.
const BEFORE: [(&str, &str); 1] = [
    // Whole, as it was before it was split.
    ("glm-dsa", "model.layers.N.self_attn.kv_b_proj.weight"),
];

/// gguf-py's own table, recorded by `tests/gguf_py.py`, gives the same names where it has one.
#[test]
fn gguf_py_gives_the_same_names() {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("gguf-py.json")).unwrap();
    assert_eq!(recorded["version"], "gguf 0.19.0");
    let mut compared = 0;
    let mut wrong = Vec::new();
    for (name, answers) in recorded["names"].as_object().unwrap() {
        let architecture = Architecture::find(name).unwrap();
        for (parameter, answer) in answers.as_object().unwrap() {
            let answer = answer.as_str().unwrap();
            let ours: Vec<&str> = architecture
                .pairs()
                .filter(|(_, other)| other.text() == parameter)
                .map(|(tensor, _)| tensor.text())
                .collect();
            compared += 1;
            // It keeps the suffix of a parameter; to those that have none, the converter adds one.
            let same = |name: &&str| {
                let suffixed = parameter.ends_with(".weight") || parameter.ends_with(".bias");
                *name == answer
                    || (!suffixed
                        && [".weight", ".bias"]
                            .iter()
                            .any(|suffix| name.strip_suffix(suffix) == Some(answer)))
            };
            let is_before = BEFORE.contains(&(name.as_str(), parameter.as_str()));
            if is_before == ours.iter().any(same) {
                wrong.push(format!("{name}: {parameter}: {answer}, and here {ours:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 400, "{compared}");
}
