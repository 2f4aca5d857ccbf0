//! Reports of a record whose figures are known by hand.

use gguf_assay_record::{
    Cache, Engine, Group, Machine, Measurement, Noise, Operation, Record, SCHEMA, Size, Untimed,
};

fn timed(engine: &str, micros: [u64; 5]) -> Measurement {
    let wall_ns: Vec<u64> = micros.iter().map(|micros| 2000 * micros).collect();
    let (engine, cpu_ns) = (engine.into(), wall_ns.clone());
    Measurement { engine, untimed: None, calls: 2, wall_ns, cpu_ns }
}

/// 256 KiB: 8 µs are 32.77 GB/s. Of two calls a round.
fn group(subject: &str, size: Size, ours: u64) -> Group {
    let around = |micros| [micros, micros, micros, micros, micros + 1];
    Group {
        operation: Operation::Dequantize,
        subject: subject.into(),
        size: Some(size),
        bytes_in: 36_864,
        bytes_out: 1 << 18,
        measurements: vec![
            timed("scalar", around(64)),
            timed("avx2", around(2 * ours)),
            timed("avx512", around(ours)),
            timed("ggml", around(32)),
            Measurement::untimed("candle", Untimed::Absent("it does not have the type".into())),
            Measurement::untimed("<peer>", Untimed::Wrong("element 3 of block 0 is 1e0".into())),
            timed("memcpy", around(16)),
            timed("fill", around(4)),
            timed("fill, streamed", around(16)),
        ],
    }
}

fn record() -> Record {
    let names = ["scalar", "avx2", "avx512", "ggml", "candle", "<peer>"];
    let engine = |name: &str| Engine { name: name.into(), about: format!("{name} & co") };
    let mut read = group("qwen-like", Size::Cached, 8);
    (read.operation, read.size) = (Operation::Read, None);
    read.measurements = vec![timed("read(spec)", [10; 5]), timed("ggml", [100; 5])];
    Record {
        schema: SCHEMA.into(),
        version: "0.1.0".into(),
        commit: Some("0123456789ab".into()),
        started: "2026-11-30T12:00:00Z".into(),
        seconds: 600,
        machine: Machine {
            cpu: "Some(R) CPU 9000 @ 3.00GHz".into(),
            architecture: "x86_64".into(),
            processors: 2,
            flags: vec!["avx2".into(), "avx512f".into(), "hypervisor".into()],
            caches: vec![Cache { level: 2, kind: "Unified".into(), bytes: 1 << 20 }],
            memory: Some(16 << 30),
            governor: None,
            huge_pages: Some("madvise".into()),
            system: "Linux 6.18".into(),
        },
        noise: Noise {
            load_before: Some(0.0),
            load_after: Some(1.0),
            stolen: Some(0.0),
            busy: Some(0.5),
        },
        rustc: "rustc 1.95.0".into(),
        c_compiler: "gcc 12.2.0".into(),
        engines: names.map(engine).into(),
        groups: vec![
            group("Q4_0", Size::Cached, 8),
            group("Q8_0", Size::Cached, 4),
            group("Q4_0", Size::Streamed, 8),
            read,
        ],
    }
}

#[test]
fn json_comes_back_as_it_was() {
    let record = record();
    let text = record.to_json();
    assert_eq!(Record::from_json(&text).unwrap(), record);
    // A line for each measurement.
    assert_eq!(text.lines().filter(|line| line.contains("\"engine\":")).count(), 3 * 9 + 2);
    assert_eq!(record.folder(), "2026-11-30-some-9000-3-00ghz");
}

#[test]
fn another_schema_is_refused() {
    let text = record().to_json().replace("benches/1", "benches/9");
    assert!(Record::from_json(&text).unwrap_err().contains("gguf-assay/benches/9"));
    assert!(Record::from_json("{}").is_err());
}

/// By hand: ggml's 32 µs are 4 times 8 and 8 times 4; a fill of 4 µs is twice as fast as 8.
#[test]
fn markdown_has_the_figures() {
    let text = record().to_markdown();
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
    assert_eq!(
        line("| Q4_0 |"),
        "| Q4_0 | 8.19 | 0.50× | 2.00× | 4.00× | – | wrong | 32.8 | 50% | 0% |"
    );
    assert_eq!(
        line("| Q8_0 |"),
        "| Q8_0 | 8.19 | 0.50× | 4.00× | 8.00× | – | wrong | 65.5 | 100% | 0% |"
    );
    assert_eq!(line("| fill |"), "| fill | 65.5 | 65.5 |");
    assert_eq!(line("| read(spec)"), "| read(spec) | 10.0 µs | 3.69 | 10.0× | 10.0× | 0% |");
    assert!(
        text.contains(
            "## Reading a header: qwen-like\n\n| engine | time | GB/s | as fast as ggml |"
        )
    );
    assert!(text.contains("- candle: it does not have the type: Q4_0, Q8_0"), "{text}");
    assert!(text.contains("<peer> is wrong: element 3 of block 0 is 1e0"), "{text}");
    assert!(text.contains("2 virtual processors"), "{text}");
}

#[test]
fn the_readme_has_a_row_for_each_type() {
    let text = record().to_readme();
    assert!(
        text.contains("| Q4_0 | 8.19 | 2.00× | 4.00× | 50% | 8.19 | 2.00× | 4.00× | 50% |"),
        "{text}"
    );
    assert!(text.contains("| Q8_0 | 8.19 | 4.00× | 8.00× | 100% | – | – | – | – |"), "{text}");
}

/// Self-contained, and nothing of a record is markup.
#[test]
fn html_needs_nothing_else() {
    let page = record().to_html();
    for foreign in ["http", "src=", "<script", "@import", "url(", "<peer>"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("&lt;peer&gt;") && page.contains("scalar &amp; co"));
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 6);
    for tag in ["svg", "section", "table", "tr", "th", "td", "ul", "li", "dl", "dd", "p", "details"]
    {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn a_quiet_machine_has_no_warnings_but_that_of_wrong_numbers() {
    let warnings = record().warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains("<peer> is wrong")), "{warnings:?}");
}

#[test]
fn a_noisy_machine_is_told() {
    let mut record = record();
    record.noise =
        Noise { load_before: Some(2.0), load_after: Some(3.0), stolen: Some(0.2), busy: Some(0.9) };
    record.machine.governor = Some("powersave".into());
    record.commit = Some("0123456789ab+".into());
    let busy = &mut record.groups[0].measurements[0];
    busy.cpu_ns.iter_mut().for_each(|ns| *ns /= 2);
    record.groups[1].measurements[3] = timed("ggml", [30, 30, 32, 40, 50]);
    record.groups[2].measurements[7] = timed("fill", [4; 5]);
    record.groups[0].measurements[7] = timed("fill", [8; 5]);
    record.groups[3].measurements[0].wall_ns.truncate(3);
    let warnings = record.warnings().join("\n");
    for expected in [
        "load 2.0",
        "took 20%",
        "powersave",
        "in 1 of 23 measurements the thread was off the processor",
        "in 1 of 23 measurements the middle half",
        "fewer than 5 rounds",
        "% apart in the course of the run",
        "files had changed",
    ] {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
}

#[test]
fn what_has_changed() {
    let (before, mut after) = (record(), record());
    after.groups[0].measurements[2] = timed("avx512", [4; 5]);
    let text = before.compare(&after);
    assert!(
        text.contains("| dequantize/Q4_0/cached avx512 | 4.00× | 8.00× | 2.00× faster |"),
        "{text}"
    );
    assert!(text.contains("1 ratios have changed"), "{text}");
    assert!(!text.contains("machines differ"), "{text}");
    after.machine.cpu = "another".into();
    assert!(before.compare(&after).contains("machines differ"));
}
