//! `generate` and `fuzz`, with the readers that are built in.

use std::path::Path;
use std::process::{Command, Output};

use gguf_assay_cases::Corpus;

fn gguf_assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gguf-assay")).args(args).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the command writes UTF-8")
}

#[test]
fn generated_files_are_what_they_are_said_to_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file.gguf");
    let path = path.to_str().expect("a path in UTF-8");
    for kind in ["any", "llama", "experts", "vocabulary"] {
        let made = gguf_assay(&["generate", "--kind", kind, "--seed", "3", path]);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        assert_eq!(gguf_assay(&["check", path]).status.code(), Some(0), "{kind}");
    }
    let made = gguf_assay(&["generate", "--fault", "META-006", "--seed", "3", path]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let checked = gguf_assay(&["check", path]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stdout).contains("META-006"));

    let made = gguf_assay(&["generate", "--fault", "META-999", path]);
    assert_eq!(made.status.code(), Some(2));
    assert!(text(&made.stderr).contains("there is no rule META-999"));
}

#[test]
fn nothing_is_found_in_the_reference() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("findings");
    let run = fuzz("reference", "300", &out);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stdout));
    assert!(!out.exists());
}

/// ggml keeps strings as C strings: what is behind a zero byte is lost.
#[test]
fn what_is_found_is_a_case_that_shows_it_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("findings");
    let run = fuzz("ggml", "300", &out);
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stdout));
    assert!(text(&run.stdout).contains("accepted-wrong-value"), "{}", text(&run.stdout));

    let corpus = Corpus::from_dir(&out).expect("what is written is cases");
    assert!(!corpus.cases.is_empty());
    for case in &corpus.cases {
        let entries = case.description().expect("a description").metadata.len();
        assert!(entries <= 2, "{}: {entries} entries are left", case.id);
    }
    let cases = out.to_str().expect("a path in UTF-8");
    let again = gguf_assay(&["run", "ggml", "--cases", cases, "--filter", "read/fuzz/*"]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stdout));

    // The same seed finds the same.
    let second = folder.path().join("again");
    fuzz("ggml", "300", &second);
    for entry in std::fs::read_dir(&out).expect("the findings") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        let other = std::fs::read(second.join(name)).expect("the same file");
        assert_eq!(std::fs::read(&path).expect("a file"), other, "{}", path.display());
    }
}

fn fuzz(subject: &str, count: &str, out: &Path) -> Output {
    let out = out.to_str().expect("a path in UTF-8");
    gguf_assay(&["fuzz", subject, "--count", count, "--out", out])
}
