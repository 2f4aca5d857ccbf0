//! `gguf-assay bench-report` in a repository of its own: what follows from a record, and whether it
//! still does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gguf_assay_record::{
    Group, Machine, Measurement, Noise, Operation, Record, SCHEMA, Size, Untimed,
};

const README: &str = "# Title\n\n<!-- benches: cargo run --release -- bench-report -->\nold\n\
    <!-- end of benches -->\n\nThe end.\n";

fn record(started: &str, nanoseconds: u64) -> Record {
    let timed = |engine: &str, wall_ns| Measurement {
        engine: engine.into(),
        untimed: None,
        calls: 1,
        wall_ns,
        cpu_ns: vec![],
    };
    Record {
        schema: SCHEMA.into(),
        version: "0.1.0".into(),
        commit: None,
        started: started.into(),
        seconds: 1,
        machine: Machine { cpu: "CPU 9000".into(), ..Machine::this() },
        noise: Noise { load_before: None, load_after: None, stolen: None, busy: None },
        rustc: "rustc".into(),
        c_compiler: "gcc".into(),
        engines: vec![],
        groups: vec![Group {
            operation: Operation::Dequantize,
            subject: "Q4_0".into(),
            size: Some(Size::Cached),
            bytes_in: 18,
            bytes_out: 128,
            measurements: vec![
                timed("avx2", vec![nanoseconds; 5]),
                Measurement::untimed("avx512", Untimed::Absent("no".into())),
                timed("ggml", vec![400; 5]),
            ],
        }],
    }
}

fn report(root: &Path, args: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf-assay"));
    let Output { status, stdout, stderr } =
        command.arg("bench-report").args(args).current_dir(root).output().unwrap();
    let text = String::from_utf8([stdout, stderr].concat()).unwrap();
    (text, status.code())
}

#[test]
fn reports_follow_from_records() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    assert_eq!(report(root, &[]).1, Some(2), "not a repository");

    let folder = |record: &Record| root.join("benches/record").join(record.folder());
    let (old, new) = (record("2026-11-30T12:00:00Z", 200), record("2026-12-01T12:00:00Z", 100));
    for record in [&old, &new] {
        fs::create_dir_all(folder(record)).unwrap();
        fs::write(folder(record).join("record.json"), record.to_json()).unwrap();
    }
    fs::write(root.join("README.md"), README).unwrap();
    assert_eq!(report(root, &["--check"]).1, Some(1));

    assert_eq!(report(root, &[]).1, Some(0));
    assert_eq!(report(root, &["--check"]), (String::new(), Some(0)));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    // The newest: 400 ns of ggml's are 4 times 100.
    assert!(readme.contains("| Q4_0 | 0.32 | 4.00× | – |"), "{readme}");
    assert!(readme.contains("(benches/record/2026-12-01-9000/report.md)"), "{readme}");
    assert!(readme.starts_with("# Title\n") && readme.ends_with("\nThe end.\n"), "{readme}");
    for record in [&old, &new] {
        let read = |name| fs::read_to_string(folder(record).join(name)).unwrap();
        assert_eq!(read("report.md"), record.to_markdown());
        assert_eq!(read("report.html"), record.to_html());
    }

    let page = folder(&old).join("report.html");
    fs::write(&page, "by hand").unwrap();
    let (text, status) = report(root, &["--check"]);
    assert!(text.contains("report.html is not what its record makes"), "{text}");
    assert_eq!(status, Some(1));
}

#[test]
fn records_are_printed_and_compared() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let (old, new) = (record("2026-11-30T12:00:00Z", 200), record("2026-12-01T12:00:00Z", 100));
    fs::write(root.join("old.json"), old.to_json()).unwrap();
    fs::write(root.join("new.json"), new.to_json()).unwrap();
    assert_eq!(report(root, &["old.json"]), (old.to_markdown(), Some(0)));
    assert_eq!(report(root, &["old.json", "--format", "html"]), (old.to_html(), Some(0)));
    assert_eq!(report(root, &["old.json", "--format", "json"]), (old.to_json(), Some(0)));
    let (text, status) = report(root, &["old.json", "new.json"]);
    assert!(
        text.contains("| dequantize/Q4_0/cached avx2 | 2.00× | 4.00× | 2.00× faster |"),
        "{text}"
    );
    assert_eq!(status, Some(0));

    fs::write(root.join("wrong.json"), "{}").unwrap();
    for args in [&["absent.json"][..], &["wrong.json"], &["old.json", "--measure"]] {
        assert_eq!(report(root, args).1, Some(2), "{args:?}");
    }
}
