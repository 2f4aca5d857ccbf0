//! `gguf-assay adapter-check` on adapters whose answers are known.

use std::process::{Command, Output};

const ASSAY: &str = env!("CARGO_BIN_EXE_gguf-assay");

fn adapter_check(adapter: &str) -> (String, Option<i32>) {
    let mut command = Command::new(ASSAY);
    let Output { stdout, status, .. } =
        command.args(["adapter-check", adapter]).env("NO_COLOR", "1").output().unwrap();
    (String::from_utf8(stdout).unwrap(), status.code())
}

#[test]
fn a_subject_that_reads_and_dequantizes() {
    let (text, status) = adapter_check(&format!("'{ASSAY}' serve ggml"));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains(" refused, 0 not implemented\ncompared  version, metadata, "), "{text}");
    assert!(text.contains("29 with numbers, 0 refused, 7 not implemented"), "{text}");
    assert!(text.contains("lacking   F32, Q8_1, I8, I16, I32, I64, F64\n"), "{text}");
    assert!(text.ends_with("the adapter speaks the protocol\n"), "{text}");
}

#[test]
fn a_subject_that_maps_names_and_knows_checkpoints() {
    let (text, status) = adapter_check(&format!("'{ASSAY}' serve reference"));
    assert_eq!(status, Some(0), "{text}");
    let corpus = gguf_assay_cases::Corpus::embedded();
    let whole = corpus.names.iter().filter(|case| !case.is_edited()).count();
    let names = format!("names     {whole} with names, 0 refused, 0 not implemented\n");
    assert!(text.contains(&names), "{text}");
    for (op, title, good) in
        [("judge_checkpoint", "judged  ", "a judgement"), ("unpack", "unpacked", "numbers")]
    {
        let sound = corpus.checkpoints.iter().filter(|case| !case.has_fault() && case.tp.is_none());
        let count = sound.filter(|case| case.operation() == op).count();
        let line = format!("{title}  {count} with {good}, 0 refused, 0 not implemented\n");
        assert!(count > 0 && text.contains(&line), "{line}{text}");
    }
}

/// What is said of an adapter that describes itself so, and answers every request with one number.
#[cfg(unix)]
fn check_one_number(describe: &str) -> (String, Option<i32>) {
    let script = r#"
        while read -r line; do
            case $line in
                *describe*) echo 'DESCRIBE' ;;
                *) id=${line#*\"id\":}; echo "{\"id\":${id%%[!0-9]*},\"ok\":{\"f32\":\"0000803f\"}}" ;;
            esac
        done
    "#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("adapter.sh");
    std::fs::write(&path, script.replace("DESCRIBE", describe)).unwrap();
    adapter_check(&format!("sh '{}'", path.display()))
}

#[cfg(unix)]
#[test]
fn an_adapter_that_only_dequantizes_is_judged_too() {
    let describe = r#"{"protocol":1,"name":"one","version":"1","ops":["dequantize"]"#;
    let (text, status) = check_one_number(&format!(r#"{describe},"types":["F32"]}}"#));
    // F32's first case has more than one number.
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("ops dequantize\n") && !text.contains("files"), "{text}");
    assert!(text.contains("types     0 with numbers, 0 refused, 35 not implemented"), "{text}");
    assert!(text.contains(": 1 numbers for "), "{text}");
}

#[cfg(unix)]
#[test]
fn what_is_off_in_its_description_is_named() {
    let describe = r#"{"protocol":1,"name":"one","version":"","ops":["quantize"],"types":["q9"]}"#;
    let (text, status) = check_one_number(describe);
    assert_eq!(status, Some(1), "{text}");
    for off in [
        "describe: `version` is empty",
        "describe: `ops` has quantize: there are read, dequantize, map_names, judge_checkpoint, unpack",
        "describe: `types` has q9: ",
    ] {
        assert!(text.contains(off), "{off}: {text}");
    }
    let none = r#"{"protocol":1,"name":"one","version":"1","ops":[]}"#;
    let (text, status) = check_one_number(none);
    assert!(status == Some(1) && text.contains("`ops` is empty"), "{text}");
}
