//! The folders of the subjects: that all of them load, and fit the corpus.

use gguf_assay::{Corpus, Profile};
use gguf_assay_subjects::{Install, all, capabilities};

#[test]
fn builtins_come_first() {
    let names: Vec<&str> = all().iter().map(|subject| subject.name).collect();
    assert!(names.starts_with(&["reference", "ggml", "ggml-data"]), "{names:?}");
    for name in ["candle", "gguf-py", "ggus", "hf-gguf"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn known_failures_name_cases_that_exist() {
    let corpus = Corpus::embedded();
    for subject in all() {
        let expectations = subject.expectations().unwrap();
        for profile in Profile::ALL {
            let ids = corpus.all().map(|case| case.id());
            let stale = expectations.stale(ids, profile);
            assert!(stale.is_empty(), "{}, profile {profile}: {stale:#?}", subject.name);
        }
    }
}

/// `--locked` refuses a lock file that does not know all that our own crates depend on.
#[test]
fn lock_files_of_adapters_know_the_dependencies_of_our_crates() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &std::path::Path| -> toml::Table {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        toml::from_str(&text).unwrap()
    };
    for subject in all() {
        let Install::Cargo { adapter, .. } = &subject.manifest.install else { continue };
        let lock = read(&root.join(subject.name).join(adapter).join("Cargo.lock"));
        for (package, folder) in [
            ("gguf-assay", "suite"),
            ("gguf-assay-cases", "cases"),
            ("gguf-assay-checkpoint", "checkpoint"),
            ("gguf-assay-format", "format"),
            ("gguf-assay-names", "names"),
            ("gguf-assay-quant", "quant"),
        ] {
            let mut packages = lock["package"].as_array().unwrap().iter();
            let locked = packages.find(|locked| locked["name"].as_str() == Some(package)).unwrap();
            let locked = locked.get("dependencies").and_then(toml::Value::as_array);
            let mut locked: Vec<&str> = locked
                .into_iter()
                .flatten()
                .filter_map(|name| name.as_str()?.split(' ').next())
                .collect();
            let manifest = read(&root.join("..").join(folder).join("Cargo.toml"));
            let mut declared: Vec<&str> = dependencies(&manifest);
            if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
                let targets = targets.values().filter_map(toml::Value::as_table);
                declared.extend(targets.flat_map(dependencies));
            }
            locked.sort_unstable();
            declared.sort_unstable();
            assert_eq!(
                locked, declared,
                "{}: {package} has other dependencies than the lock file of {adapter} has; run \
                 `cargo check` there",
                subject.name
            );
        }
    }
}

/// But for optional ones, which adapters do not ask for.
fn dependencies(table: &toml::Table) -> Vec<&str> {
    let is_optional = |dependency: &toml::Value| {
        dependency.get("optional").and_then(toml::Value::as_bool).unwrap_or(false)
    };
    ["dependencies", "build-dependencies"]
        .iter()
        .filter_map(|kind| table.get(*kind)?.as_table())
        .flat_map(|table| table.iter().filter(|(_, dependency)| !is_optional(dependency)))
        .map(|(name, _)| name.as_str())
        .collect()
}

/// What is recorded is of the subjects that dequantize, map names or know checkpoints, in the versions that are pinned; `.ci/run`
/// sees that a run shows the same.
#[test]
fn capabilities_are_recorded_of_every_subject_that_has_some() {
    let recorded = capabilities().subjects;
    let names: Vec<&str> = recorded.iter().map(|subject| subject.name.as_str()).collect();
    let mut subjects = all();
    let recorded_ops = ["dequantize", "map_names", "judge_checkpoint", "unpack"];
    subjects.retain(|subject| {
        subject.manifest.ops.iter().any(|op| recorded_ops.contains(&op.as_str()))
    });
    assert_eq!(names, subjects.iter().map(|subject| subject.name).collect::<Vec<_>>());
    for (recorded, subject) in recorded.iter().zip(&subjects) {
        if let Some(version) = subject.version() {
            assert_eq!(recorded.version, version, "{}", subject.name);
        }
    }
}
