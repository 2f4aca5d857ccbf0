//! Which files of a folder are loaded, and whether index, shards and configs agree.

use std::collections::BTreeMap;
use std::io;

use gguf_assay_checkpoint::{Checkpoint, Files, Finding, MemoryFiles};
use serde_json::{Value as Json, json};

/// A file of these tensors, one byte each.
fn weights(names: &[&str]) -> Vec<u8> {
    let entries = names.iter().enumerate().map(|(place, name)| {
        let entry = json!({ "dtype": "U8", "shape": [1], "data_offsets": [place, place + 1] });
        ((*name).to_owned(), entry)
    });
    let header = Json::Object(entries.collect()).to_string();
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    [&length[..], header.as_bytes(), &vec![0x77; names.len()]].concat()
}

#[derive(Clone)]
struct Folder(BTreeMap<String, Vec<u8>>);

impl Folder {
    fn new() -> Folder {
        Folder(BTreeMap::new()).with("config.json", "{}")
    }

    fn with(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Folder {
        self.0.insert(name.into(), bytes.as_ref().to_vec());
        self
    }

    fn without(mut self, name: &str) -> Folder {
        assert!(self.0.remove(name).is_some());
        self
    }

    fn with_index(self, weight_map: Json, total_size: u64) -> Folder {
        let index = json!({ "metadata": { "total_size": total_size }, "weight_map": weight_map });
        self.with("model.safetensors.index.json", index.to_string())
    }

    fn open(&self) -> Checkpoint<MemoryFiles> {
        Checkpoint::open(MemoryFiles(self.0.clone())).unwrap()
    }

    /// Rule, whether it is a fault, file, and tensor or field.
    fn found(&self) -> Vec<String> {
        let place = |finding: &Finding| {
            let about = finding.tensor.as_ref().or(finding.field.as_ref());
            let about = about.map(|about| format!(" {about}")).unwrap_or_default();
            let kind = if finding.is_fault() { "fault" } else { "note" };
            let file = finding.file.clone().unwrap_or_default();
            format!("{} {kind} {file}{about}", finding.rule)
        };
        self.open().findings.iter().map(place).collect()
    }

    fn names(&self) -> Vec<String> {
        self.open().tensors().map(|tensor| tensor.name.clone()).collect()
    }
}

const FIRST: &str = "model-00001-of-00002.safetensors";
const SECOND: &str = "model-00002-of-00002.safetensors";
const THIRD: &str = "model-00003-of-00003.safetensors";

/// Two files, and an index of them.
fn sharded() -> Folder {
    let folder = Folder::new().with(FIRST, weights(&["a", "b"])).with(SECOND, weights(&["c"]));
    folder.with_index(json!({ "a": FIRST, "b": FIRST, "c": SECOND }), 3)
}

#[test]
fn what_is_as_it_should_be() {
    let single = Folder::new().with("model.safetensors", weights(&["b", "a"]));
    assert_eq!(single.found(), [""; 0]);
    assert_eq!(single.names(), ["a", "b"]);
    assert_eq!(single.open().read("b").unwrap(), [0x77]);
    assert_eq!(sharded().found(), [""; 0]);
    assert_eq!(sharded().names(), ["a", "b", "c"]);
    // MLX writes an index of the one file.
    let one = "model.safetensors";
    let indexed = single.clone().with_index(json!({ "a": one, "b": one }), 2);
    assert_eq!(indexed.found(), [""; 0]);
    let stale = single.with_index(json!({ "a": one, "b": one, "c": one }), 2);
    assert_eq!(stale.found(), ["CKPT-012 fault model.safetensors c"]);
}

#[test]
fn configs() {
    let single = Folder::new().with("model.safetensors", weights(&["a"]));
    let without = single.clone().without("config.json");
    assert_eq!(without.found(), ["CKPT-002 fault config.json"]);
    for text in ["", "[]", "{\"a\": }", "{}}"] {
        let broken = single.clone().with("config.json", text);
        assert_eq!(broken.found(), ["CKPT-003 fault config.json"], "{text}");
        assert!(broken.open().config("config.json").is_none());
    }
    let second = single.clone().with("quantize_config.json", "{\"bits\": 4");
    assert_eq!(second.found(), ["CKPT-003 fault quantize_config.json"]);
    let long = single.clone().with("config.json", vec![b' '; (64 << 20) + 1]);
    assert_eq!(long.found(), ["CKPT-004 fault config.json"]);
    let again = single.clone().with("config.json", r#"{"q": {"bits": 4, "bits": 8}}"#);
    assert_eq!(again.found(), ["CKPT-005 note config.json q.bits"]);
    assert_eq!(again.open().config("config.json").unwrap()["q"]["bits"], 8);
    let python = single.with("config.json", r#"{"a": Infinity}"#);
    assert_eq!(python.found(), ["CKPT-006 note config.json"]);
}

/// Files whose names are there, and whose bytes are not.
struct Unreadable(MemoryFiles);

impl Files for Unreadable {
    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.0.len(name)
    }

    fn read_at(&self, _: &str, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[test]
fn files_that_cannot_be_read() {
    let checkpoint = Checkpoint::open(Unreadable(MemoryFiles(sharded().0))).unwrap();
    // The config, the index, and the two files that are there all the same.
    let files = checkpoint.findings.iter().filter(|found| found.rule.id == "CKPT-001");
    let files: Vec<_> = files.filter_map(|found| found.file.as_deref()).collect();
    assert_eq!(files, ["config.json", "model.safetensors.index.json", FIRST, SECOND]);
}

#[test]
fn weights_are_missing_or_named_otherwise() {
    assert_eq!(Folder::new().found(), ["CKPT-007 fault "]);
    let other = Folder::new().with("weights.safetensors", weights(&["a"]));
    assert_eq!(other.found(), ["CKPT-008 note weights.safetensors"]);
    assert_eq!(other.names(), ["a"]);
    let adapter = Folder::new().with("adapter_model.safetensors", weights(&["a"]));
    let found = ["CKPT-007 fault ", "CKPT-017 note adapter_model.safetensors"];
    assert_eq!(adapter.found(), found);
    let named = other.with("config.json", r#"{"transformers_weights": "weights.safetensors"}"#);
    assert_eq!(named.found(), [""; 0]);
    let absent = named.without("weights.safetensors");
    let absent = absent.with("model.safetensors", weights(&["a"]));
    assert_eq!(absent.found(), ["CKPT-011 fault config.json transformers_weights"]);
}

#[test]
fn files_that_are_not_loaded_are_noted() {
    // Mistral's own file, with tensors of the same model under other names.
    let with = sharded().with("consolidated.safetensors", weights(&["a", "layers.0"]));
    assert_eq!(with.found(), ["CKPT-017 note consolidated.safetensors"]);
    assert_eq!(with.names(), ["a", "b", "c"]);
    let with = with.without("model.safetensors.index.json");
    let found = [
        "CKPT-008 note model-00001-of-00002.safetensors",
        "CKPT-017 note consolidated.safetensors",
    ];
    assert_eq!(with.found(), found);
    let both = sharded().with("model.safetensors", weights(&["a"]));
    let found = [
        "CKPT-018 fault model.safetensors.index.json",
        "CKPT-017 note model-00001-of-00002.safetensors",
        "CKPT-017 note model-00002-of-00002.safetensors",
    ];
    assert_eq!(both.found(), found);
    assert_eq!(both.names(), ["a"]);
}

#[test]
fn an_index_that_cannot_be_used() {
    let index = "model.safetensors.index.json";
    for (text, field) in [
        ("{\"weight_map\": {}}", " metadata"),
        ("{\"metadata\": 1, \"weight_map\": {}}", " metadata"),
        ("{\"metadata\": {}}", " weight_map"),
        ("{\"metadata\": {}, \"weight_map\": []}", " weight_map"),
        ("{\"metadata\": {}, \"weight_map\": {\"a\": 1}}", " a"),
    ] {
        let found = Folder::new().with(index, text).found();
        let expected = format!("CKPT-009 fault model.safetensors.index.json{field}");
        assert_eq!(found.first(), Some(&expected), "{text}");
    }
    assert_eq!(sharded().with(index, "{").found()[0], format!("CKPT-003 fault {index}"));
    // The files are there all the same.
    assert_eq!(sharded().with(index, "{").names(), ["a", "b", "c"]);
    for path in ["../model.safetensors", "/etc/passwd", "sub/x.safetensors", "..", "", "a\\b"] {
        let escaped = sharded().with_index(json!({ "a": FIRST, "b": path, "c": SECOND }), 3);
        assert_eq!(escaped.found()[0], format!("CKPT-010 fault {index} b"), "{path}");
        assert_eq!(escaped.names(), ["a", "b", "c"]);
    }
}

#[test]
fn index_against_shards() {
    let missing = sharded().without(SECOND);
    assert_eq!(missing.found(), [format!("CKPT-011 fault {SECOND}")]);
    assert_eq!(missing.names(), ["a", "b"]);
    let stale = sharded().with(FIRST, weights(&["a"]));
    assert_eq!(stale.found()[0], format!("CKPT-012 fault {FIRST} b"));
    // QC-31: the index is older than the file.
    let hidden = sharded().with(SECOND, weights(&["c", "lm_head.weight"]));
    let index = "model.safetensors.index.json";
    let found = [
        format!("CKPT-013 fault {index} lm_head.weight"),
        format!("CKPT-015 note {index} metadata.total_size"),
    ];
    assert_eq!(hidden.found(), found);
    let moved = sharded().with(FIRST, weights(&["a"])).with(SECOND, weights(&["b", "c"]));
    assert_eq!(moved.found(), [format!("CKPT-012 fault {FIRST} b")]);
    assert!(moved.open().findings[0].found.contains(SECOND));
    let twice = sharded().with(SECOND, weights(&["b", "c"]));
    let found = [
        format!("CKPT-015 note {index} metadata.total_size"),
        format!("CKPT-014 fault {SECOND} b"),
    ];
    assert_eq!(twice.found(), found);
    // A tensor that is there, but of no type that is known, is not missing.
    let mut unknown = weights(&["c"]);
    let place = unknown.windows(2).position(|bytes| bytes == b"U8").unwrap();
    unknown[place..place + 2].copy_from_slice(b"U9");
    let unknown = sharded().with(SECOND, unknown);
    assert_eq!(unknown.found(), [format!("ST-011 fault {SECOND} c")]);
    assert!(unknown.open().has("c") && !unknown.open().has("d"));
    // Nor is what stands in a file whose header cannot be read.
    let cut = sharded().with(SECOND, [1]);
    assert_eq!(cut.found(), [format!("ST-001 fault {SECOND}")]);
    let total = sharded().with_index(json!({ "a": FIRST, "b": FIRST, "c": SECOND }), 4);
    assert_eq!(total.found(), [format!("CKPT-015 note {index} metadata.total_size")]);
}

#[test]
fn numbers_of_files() {
    // Left from an earlier save, and of the same series.
    let folder = sharded().without(SECOND).with_index(json!({ "a": FIRST, "b": FIRST }), 2);
    assert_eq!(folder.found(), [format!("CKPT-016 fault {SECOND}")]);
    let beside = folder.with(SECOND, weights(&["c"]));
    assert_eq!(beside.found(), [format!("CKPT-016 fault {SECOND}")]);
    let other = sharded().with(THIRD, weights(&["c"]));
    assert_eq!(other.found(), [format!("CKPT-017 note {THIRD}")]);
    // Without an index.
    let loose = Folder::new().with(THIRD, weights(&["c"]));
    let found = [
        format!("CKPT-008 note {THIRD}"),
        "CKPT-016 fault model-00001-of-00003.safetensors".to_owned(),
    ];
    assert_eq!(loose.found(), found);
    assert!(loose.open().findings[1].found.starts_with("1 of 3 files; 2 are missing"));
    // gpt-oss as it was published counts from 0 to 2 "of 2"; others from 0 to 1.
    let zero = Folder::new()
        .with("model-00000-of-00002.safetensors", weights(&["a"]))
        .with("model-00001-of-00002.safetensors", weights(&["b"]));
    let notes = ["CKPT-008 note model-00000-of-00002.safetensors"];
    assert_eq!(zero.found(), notes);
    assert_eq!(zero.with(SECOND, weights(&["c"])).found(), notes);
    // No number that is claimed costs time or memory.
    let name = "model-00001-of-18446744073709551615.safetensors";
    let huge = Folder::new().with(name, weights(&["a"]));
    assert_eq!(huge.found().len(), 2);
    let long = format!("model-1-of-{}1.safetensors", "0".repeat(70_000));
    let index = sharded().with_index(json!({ "a": FIRST, "b": FIRST, "c": long }), 3);
    assert!(index.found().iter().any(|found| found.starts_with("CKPT-011")));
}
