//! `report`: what parts of a run merge into is the run, in whatever order; what contradicts is an error.
//! This target starts itself as a downstream's test target, once for each part.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use gguf_assay::report::Report;
use gguf_assay::{Corpus, Harness, Reference};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::{Value, json};

/// Set for a process that is to be the test target.
const AS_TARGET: &str = "GGUF_ASSAY_TEST_AS_TARGET";

fn main() -> ExitCode {
    if std::env::var_os(AS_TARGET).is_some() {
        return Harness::new(Reference).main();
    }
    let trials = vec![
        Trial::test("two partitions are the whole", two_partitions),
        Trial::test("a process a case, as cargo-nextest has it, is the whole", process_a_case),
        Trial::test("parts of a run of the command are the whole", parts_of_a_run),
        Trial::test("subjects come together", subjects),
        Trial::test("a missing case is said and fails", missing_case),
        Trial::test("a large case counts as it was answered", large_case),
        Trial::test("a known failure and stale expectations stay what they are", verdicts),
        Trial::test("contradictions say what, where and what to do", contradictions),
        Trial::test("files that are no results", bad_files),
        Trial::test("nothing in a file reaches the terminal as it is", control_characters),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Tested = Result<(), Failed>;

/// Runs the test target, which leaves its results in the folder.
fn test(folder: &Path, args: &[&str]) {
    let mut target = Command::new(std::env::current_exe().expect("this program"));
    target.args(args).arg("--quiet").env(AS_TARGET, "1").env("GGUF_ASSAY_RESULTS", folder);
    let output = target.output().expect("this program starts");
    assert!(output.status.success(), "{}", text(&output.stdout));
}

fn gguf_assay<S: AsRef<OsStr>>(args: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gguf-assay"));
    command.args(args).env("NO_COLOR", "1").output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the command writes UTF-8")
}

/// The report of these files and folders, and the exit status.
fn report(paths: &[&Path], more: &[&str]) -> (String, String, Option<i32>) {
    let mut args: Vec<&OsStr> = vec!["report".as_ref()];
    args.extend(paths.iter().map(|path| path.as_os_str()));
    args.extend(more.iter().map(OsStr::new));
    let output = gguf_assay(&args);
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// All that a report says but how long each case took, and a number that ggml did not read from
/// the file either: it prints the type of a tensor whose type is cut off.
fn report_json(paths: &[&Path]) -> Value {
    let (stdout, stderr, status) = report(paths, &["--format", "json"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    comparable(serde_json::from_str(&stdout).expect("JSON"))
}

fn comparable(mut report: Value) -> Value {
    for subject in report["subjects"].as_array_mut().expect("subjects") {
        for result in subject["results"].as_array_mut().into_iter().flatten() {
            result["millis"] = json!(0);
            if result["detail"].as_str().is_some_and(|detail| detail.contains("invalid ggml type"))
            {
                result["detail"] = json!("");
            }
        }
    }
    report
}

/// Two reports of all cases would fill the screen: the first lines that differ are shown.
fn assert_same(one: &Value, other: &Value) {
    let lines = |report| serde_json::to_string_pretty(report).expect("JSON");
    let (one, other) = (lines(one), lines(other));
    if let Some((one, other)) = one.lines().zip(other.lines()).find(|(one, other)| one != other) {
        panic!("{one} and {other}");
    }
    assert_eq!(one.len(), other.len());
}

fn two_partitions() -> Tested {
    let folder = tempfile::tempdir()?;
    let [whole, one, other] = ["whole", "one", "other"].map(|name| folder.path().join(name));
    test(&whole, &[]);
    test(&one, &["dequantize/"]);
    test(&other, &["--skip", "dequantize/"]);
    let whole = report_json(&[&whole]);
    assert_same(&report_json(&[&one, &other]), &whole);
    assert_same(&report_json(&[&other, &one]), &whole);
    // One folder above both, and one part twice.
    std::fs::rename(folder.path().join("whole"), folder.path().join("one/again"))?;
    assert_same(&report_json(&[folder.path()]), &whole);

    let cases = Corpus::embedded().all().count();
    assert_eq!(whole["corpus"]["cases"], json!(cases));
    assert_eq!(whole["subjects"][0]["results"].as_array().map(Vec::len), Some(cases));
    let (stdout, ..) = report(&[&one, &other], &[]);
    assert!(stdout.contains(&format!("{cases} cases, profile ggml")), "{stdout}");
    assert!(stdout.contains("1 subject judged, all as expected"), "{stdout}");
    Ok(())
}

fn process_a_case() -> Tested {
    let folder = tempfile::tempdir()?;
    let [whole, parts] = ["whole", "parts"].map(|name| folder.path().join(name));
    test(&whole, &[]);
    test(&parts, &["--skip", "read/endianness/"]);
    let corpus = Corpus::embedded();
    let area = corpus.cases.iter().filter(|case| case.area() == "endianness");
    let mut processes = 1;
    for case in area {
        test(&parts, &["--exact", &case.id]);
        processes += 1;
    }
    assert!(processes > 10, "{processes}");
    assert_eq!(
        std::fs::read_dir(&parts)?.count(),
        processes,
        "no process writes over another's part"
    );
    assert_same(&report_json(&[&parts]), &report_json(&[&whole]));
    Ok(())
}

/// Runs subjects by the command; the file of their results.
fn run(folder: &Path, name: &str, args: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let mut all = vec!["run", "--format", "json", "-o", path.to_str().expect("a path in UTF-8")];
    all.extend(args);
    let output = gguf_assay(&all);
    assert!(path.exists(), "{}", text(&output.stderr));
    path
}

fn parts_of_a_run() -> Tested {
    let folder = tempfile::tempdir()?;
    let run = |name, args: &[&str]| run(folder.path(), name, args);
    let whole = run("whole.json", &["ggml", "reference"]);
    let parts = [
        run("reference.json", &["reference"]),
        run("read.json", &["ggml", "--filter", "read/*"]),
        run(
            "dequantize.json",
            &[
                "ggml",
                "--filter",
                "dequantize/*",
                "--filter",
                "names/*",
                "--filter",
                "checkpoint/*",
            ],
        ),
    ];
    let whole: Value = serde_json::from_str(&std::fs::read_to_string(whole)?)?;
    assert_same(&report_json(&[&parts[2], &parts[0], &parts[1]]), &comparable(whole));
    Ok(())
}

fn subjects() -> Tested {
    let folder = tempfile::tempdir()?;
    let filter = ["--filter", "read/endianness/*"];
    let ggml = run(folder.path(), "ggml.json", &[&["ggml"][..], &filter].concat());
    test(&folder.path().join("tests"), &[]);
    let (stdout, stderr, status) = report(&[folder.path()], &["--format", "markdown"]);
    let cases = Corpus::embedded().all().count();
    let of_ggml = Report::parse(&std::fs::read_to_string(&ggml)?)?.cases;
    // In the order of `run`, not of the files.
    let rows: Vec<&str> = stdout.lines().skip(2).take(2).collect();
    assert!(
        rows[0].starts_with("| reference 0.1.0 |") && rows[1].starts_with("| ggml "),
        "{stdout}"
    );
    assert!(stdout.contains(&format!(": {of_ggml} of {cases} cases.")), "{stdout}");
    assert!(stderr.contains(&format!("ggml: {} of {cases} cases", cases - of_ggml)), "{stderr}");
    assert_eq!(status, Some(1));
    Ok(())
}

fn missing_case() -> Tested {
    let folder = tempfile::tempdir()?;
    test(folder.path(), &["--skip", "read/metadata/duplicate-key"]);
    let corpus = Corpus::embedded();
    let cases = corpus.all().count();
    let is_left_out = |id: &str| id.contains("read/metadata/duplicate-key");
    let missing = corpus.all().filter(|case| is_left_out(case.id())).count();
    let (stdout, stderr, status) = report(&[folder.path()], &[]);
    assert!(stdout.contains(&format!("{} of {cases} cases", cases - missing)), "{stdout}");
    assert!(
        stderr.contains(&format!("reference: {missing} of {cases} cases have no result")),
        "{stderr}"
    );
    assert!(stderr.contains("read/metadata/duplicate-key"), "{stderr}");
    assert_eq!(status, Some(1));
    let (_, _, status) = report(&[folder.path()], &["--partial"]);
    assert_eq!(status, Some(0));
    Ok(())
}

/// A result with this outcome and verdict.
fn result(case: &str, outcome: &str, verdict: &str) -> Value {
    let outcome = Some(outcome).filter(|outcome| !outcome.is_empty());
    json!({"case": case, "outcome": outcome, "verdict": verdict, "detail": "", "millis": 1})
}

/// Results as `run` writes them, of one subject.
fn results(results: &[Value]) -> Value {
    let mut report: Value = serde_json::from_str(include_str!("results.json")).expect("JSON");
    report["subjects"][0]["results"] = json!(results);
    report
}

/// Writes the results into a folder, and reports on them; both orders of two files give the same.
fn report_of(files: &[Value]) -> (String, String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<PathBuf> =
        (0..files.len()).map(|number| folder.path().join(format!("{number}.json"))).collect();
    for (path, file) in paths.iter().zip(files) {
        std::fs::write(path, file.to_string()).expect("a file");
    }
    let mut paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let there = report(&paths, &["--partial"]);
    paths.reverse();
    assert_eq!(report(&paths, &["--partial"]), there, "the order of the files makes a difference");
    let (stdout, stderr, status) = there;
    (stdout, stderr.replace(&format!("{}/", folder.path().display()), ""), status)
}

fn large_case() -> Tested {
    let skipped = results(&[result("a/large", "", "skipped"), result("a/b", "accepted", "pass")]);
    let run = results(&[result("a/large", "timed-out", "fail")]);
    let (stdout, _, status) = report_of(&[skipped.clone(), run]);
    assert!(stdout.contains("fail: a/large: timed-out"), "{stdout}");
    assert_eq!(status, Some(1));
    let (stdout, _, status) = report_of(&[skipped.clone(), skipped]);
    assert!(stdout.contains("2 of 3 cases"), "{stdout}");
    assert_eq!(status, Some(0));
    Ok(())
}

fn verdicts() -> Tested {
    let one = results(&[result("a/a", "crashed", "expected-fail")]);
    let mut other = results(&[result("a/b", "accepted", "pass")]);
    let (stdout, _, status) = report_of(&[one.clone(), other.clone()]);
    assert!(stdout.contains("reader 1.0     1               1"), "{stdout}");
    assert_eq!(status, Some(0));
    let unexpected = results(&[result("a/c", "accepted", "unexpected-pass")]);
    assert_eq!(report_of(&[one.clone(), unexpected]).2, Some(1));
    other["subjects"][0]["stale"] = json!(["`b/*` matches no case"]);
    let (stdout, _, status) = report_of(&[one.clone(), other]);
    assert!(stdout.contains("reader: expectations: `b/*` matches no case"), "{stdout}");
    assert_eq!(status, Some(1));
    let mut broken = one.clone();
    broken["subjects"] = json!([{"name": "reader", "counts": {}, "error": "no such program"}]);
    let (stdout, _, status) = report_of(&[one.clone(), broken]);
    assert!(stdout.contains("reader: could not be run: no such program"), "{stdout}");
    assert_eq!(status, Some(1));
    // Not there on one machine, and judged on another.
    let mut absent = one.clone();
    absent["subjects"] = json!([{"name": "reader", "counts": {}, "skipped": "not installed"}]);
    let (stdout, _, status) = report_of(&[one, absent.clone()]);
    assert!(!stdout.contains("not installed"), "{stdout}");
    assert_eq!(status, Some(0));
    let (stdout, _, status) = report_of(&[absent]);
    assert!(stdout.contains("reader: skipped: not installed"), "{stdout}");
    assert_eq!(status, Some(1), "nothing was judged");
    Ok(())
}

fn contradictions() -> Tested {
    let one = results(&[result("a/a", "accepted", "pass")]);
    let with = |pointer: &str, value: Value| {
        let mut other = one.clone();
        *other.pointer_mut(pointer).expect("it is there") = value;
        other
    };
    for (other, says) in [
        (
            results(&[result("a/a", "crashed", "fail")]),
            "reader: a/a: pass (accepted) in 0.json, and fail (crashed) in 1.json: leave out the one",
        ),
        (
            with("/subjects/0/about/version", json!("1.1")),
            "reader: the version is 1.0 in 0.json, and 1.1 in 1.json: run one of them again",
        ),
        (with("/subjects/0/about/ops", json!([])), "reader: what it says of itself is"),
        (with("/profile", json!("spec")), "the profile is ggml in 0.json, and spec in 1.json"),
        (with("/version", json!("0.0.1")), "the version of gguf-assay is"),
        (with("/corpus/sha256", json!("00")), "the hash of the cases is"),
        (with("/ggml", json!("0.1.0")), "several ggmls: 0.1.0, 0.28.0 (somewhere)"),
        (
            with("/schema", json!("gguf-assay/results/1")),
            "found gguf-assay/results/1; expected gguf",
        ),
        (
            with("/schema", json!("gguf-assay/results/3")),
            "found gguf-assay/results/3; expected gguf",
        ),
    ] {
        let (stdout, stderr, status) = report_of(&[one.clone(), other]);
        assert!(stderr.contains(says), "expected {says}, found {stderr}");
        assert_eq!((stdout.as_str(), status), ("", Some(2)));
    }
    // What no answer is about may differ.
    let mut slower = one.clone();
    slower["subjects"][0]["results"][0]["millis"] = json!(2);
    slower["subjects"][0]["results"][0]["detail"] = json!("after a while");
    let (_, _, status) = report_of(&[one, slower]);
    assert_eq!(status, Some(0));
    Ok(())
}

fn bad_files() -> Tested {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bad.json");
    let good = results(&[result("a/a", "accepted", "pass")]);
    let spoiled = |pointer: &str, value: Value| {
        let mut spoiled = good.clone();
        *spoiled.pointer_mut(pointer).expect("it is there") = value;
        spoiled.to_string()
    };
    for (text, says) in [
        (String::new(), "found no JSON"),
        (good.to_string()[..200].to_owned(), "found no JSON"),
        ("[]".into(), "names no schema"),
        ("{}".into(), "names no schema"),
        (json!({"schema": "gguf-assay/check/1"}).to_string(), "found gguf-assay/check/1"),
        (spoiled("/cases", json!(-1)), "invalid value"),
        (spoiled("/profile", json!("strict")), "strict"),
        (spoiled("/subjects/0/results/0/verdict", json!("maybe")), "unknown variant `maybe`"),
        (spoiled("/subjects/0/results", Value::Null), "expected `about`, `results` and `stale`"),
        (spoiled("/subjects/0/about", json!({})), "missing field"),
    ] {
        std::fs::write(&path, &text)?;
        let (stdout, stderr, status) = report(&[&path], &[]);
        assert!(stderr.contains("bad.json") && stderr.contains(says), "expected {says}: {stderr}");
        assert_eq!((stdout.as_str(), status), ("", Some(2)));
    }
    std::fs::write(&path, b"\xff\xfe")?;
    assert_eq!(report(&[&path], &[]).2, Some(2));
    std::fs::remove_file(&path)?;
    let (_, stderr, status) = report(&[folder.path()], &[]);
    assert!(stderr.contains("there are no results"), "{stderr}");
    assert_eq!(status, Some(2));
    assert_eq!(report(&[&path], &[]).2, Some(2));
    Ok(())
}

fn control_characters() -> Tested {
    let hostile = "\u{1b}[2J\u{202e}";
    let mut file = results(&[result(&format!("a/{hostile}"), "crashed", "fail")]);
    file["version"] = json!(hostile);
    file["ggml"] = json!(hostile);
    let subject = &mut file["subjects"][0];
    subject["name"] = json!(hostile);
    subject["stale"] = json!([hostile]);
    subject["error"] = json!(hostile);
    subject["about"]["version"] = json!(hostile);
    subject["results"][0]["detail"] = json!(hostile);
    let mut other = file.clone();
    other["version"] = json!(format!("{hostile} too"));
    for (stdout, stderr, _) in [report_of(&[file.clone()]), report_of(&[file, other])] {
        for text in [stdout, stderr] {
            let is_harmless = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
            assert!(text.chars().all(is_harmless), "{text:?}");
        }
    }
    Ok(())
}
