//! The runner against subjects that do their worst. This target starts itself as the adapter, with
//! the way in which to misbehave as its argument.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gguf_assay::process::{Bounds, MemoryKind, Process, Program};
use gguf_assay::protocol::{Request, Response};
use gguf_assay::{
    About, Answer, CaseFiles, Channel, Corpus, Failure, FileValue, Options, Outcome, Profile,
    ReadRequest, Verdict, run,
};
use libtest_mimic::{Arguments, Failed, Trial};

/// What the adapter does when it is asked to read; to any other path it answers properly.
const TRIGGER: &str = "/trigger";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if let [_, flag, how] = args.as_slice()
        && flag == "--misbehave"
    {
        misbehave(how);
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        trial("a hang is timed out", "hang", |answer| matches!(answer, Answer::TimedOut(_))),
        trial(
            "a silent exit is a crash",
            "exit",
            |answer| matches!(answer, Answer::Crashed(how) if how.contains("status 3")),
        ),
        trial(
            "an abort is a crash by signal",
            "abort",
            |answer| matches!(answer, Answer::Crashed(how) if how.contains("SIGABRT")),
        ),
        trial(
            "a panic is told apart",
            "panic",
            |answer| matches!(answer, Answer::Panicked(how) if how.contains("as asked")),
        ),
        trial("an allocation too large is told apart", "allocate", |answer| {
            matches!(answer, Answer::OutOfMemory(_))
        }),
        trial(
            "a flood is bounded",
            "flood",
            |answer| matches!(answer, Answer::Crashed(how) if how.contains("more than")),
        ),
        trial(
            "an answer that is not JSON",
            "garbage",
            |answer| matches!(answer, Answer::Crashed(how) if how.contains("not of the protocol")),
        ),
        trial(
            "control characters in an answer are escaped",
            "control",
            |answer| matches!(answer, Answer::Crashed(how) if !how.contains('\u{1b}')),
        ),
        trial(
            "an answer to another request",
            "stale",
            |answer| matches!(answer, Answer::Crashed(how) if how.contains("request 99")),
        ),
        trial("a child that outlives the adapter and holds its output", "orphan", |answer| {
            matches!(answer, Answer::TimedOut(_))
        }),
        Trial::test("resident memory is watched", resident),
        Trial::test("standard error is kept from its end, and bounded", stderr),
        Trial::test("a program that is not there", absent),
        Trial::test("a program that does not speak the protocol", mute),
        Trial::test("a crash is not a rejection", crash_is_not_rejection),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A subject that misbehaves in this way once is judged so, and answers the next request.
fn trial(name: &str, how: &'static str, expected: fn(&Answer) -> bool) -> Trial {
    Trial::test(name, move || {
        let mut process = start(how, Bounds { time: Duration::from_secs(2), ..bounds() })?;
        let start = Instant::now();
        let answer = process.read(&request(TRIGGER));
        if !expected(&answer) {
            return Err(format!("unexpected: {answer:?}").into());
        }
        if start.elapsed() > Duration::from_secs(60) {
            return Err("the time limit was not kept".into());
        }
        match process.read(&request("/other")) {
            Answer::Failure(Failure::Rejected { message, .. }) if message == "no" => Ok(()),
            answer => Err(format!("not as good as new: {answer:?}").into()),
        }
    })
}

fn bounds() -> Bounds {
    Bounds { memory: 256 << 20, output: 1 << 20, ..Bounds::default() }
}

fn start(how: &str, bounds: Bounds) -> Result<Process, Failed> {
    let program = Program {
        program: std::env::current_exe()?,
        args: vec!["--misbehave".into(), how.into()],
        ..Program::default()
    };
    Ok(Process::start(program, bounds)?)
}

fn request(path: &str) -> ReadRequest {
    ReadRequest { path: path.into(), profile: Profile::Ggml, large: false }
}

fn resident() -> Result<(), Failed> {
    if !std::path::Path::new("/proc/self/statm").exists() {
        println!("skipped: this system does not tell the memory of a process");
        return Ok(());
    }
    let bounds = Bounds { memory_kind: MemoryKind::Resident, memory: 64 << 20, ..bounds() };
    match start("touch", bounds)?.read(&request(TRIGGER)) {
        Answer::OutOfMemory(_) => Ok(()),
        answer => Err(format!("unexpected: {answer:?}").into()),
    }
}

fn stderr() -> Result<(), Failed> {
    let mut process = start("shout", bounds())?;
    process.read(&request(TRIGGER));
    // Standard error is read on another thread than the answer.
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let text = process.take_stderr();
        if text.ends_with("the end") && text.len() < 1000 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("unexpected: {text}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn absent() -> Result<(), Failed> {
    let program = Program { program: "/there/is/no/such/program".into(), ..Program::default() };
    match Process::start(program, bounds()) {
        Err(error) if error.contains("cannot start") => Ok(()),
        other => Err(format!("unexpected: {other:?}").into()),
    }
}

fn mute() -> Result<(), Failed> {
    match start("mute", bounds()) {
        Err(error) => {
            let text = format!("{error:?}");
            if text.contains("describe") && text.contains("my last words") {
                Ok(())
            } else {
                Err(format!("unexpected: {text}").into())
            }
        }
        Ok(_) => Err("a mute program was taken for an adapter".into()),
    }
}

/// Every case rejected by an abort: none of them counts as the rejection that the case asks for.
fn crash_is_not_rejection() -> Result<(), Failed> {
    let corpus = Corpus::embedded();
    let cases: Vec<_> =
        corpus.all().filter(|case| case.id().starts_with("read/alignment/")).collect();
    let mut process = start("abort-always", bounds())?;
    let files = CaseFiles::new()?;
    let run = run(&mut process, &cases, &files, &Options::new(Profile::Ggml), |_| {});
    for result in &run.results {
        if (result.outcome, result.verdict) != (Some(Outcome::Crashed), Verdict::Fail) {
            return Err(format!("unexpected: {result:?}").into());
        }
    }
    if run.is_as_expected() || run.results.is_empty() {
        return Err("the run counts as good".into());
    }
    Ok(())
}

/// The adapter.
fn misbehave(how: &str) {
    if how == "mute" {
        eprintln!("my last words");
        return;
    }
    let stdin = std::io::stdin();
    let mut stdout = std::io::stdout();
    for line in stdin.lock().lines() {
        let request: Request = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match request {
            Request::Describe { .. } => {
                let about = About::new("misbehaving", "1");
                serde_json::to_string(&about).unwrap()
            }
            Request::Read { id, path, .. } => {
                if path == TRIGGER || how == "abort-always" {
                    misbehave_now(how);
                }
                let no = Failure::Rejected { message: "no".into(), kind: String::new() };
                let result: Result<FileValue, Failure> = Err(no);
                serde_json::to_string(&Response::to_read(id, &result)).unwrap()
            }
            Request::Dequantize { id, .. } => {
                let result = Err(Failure::Unimplemented("dequantizing".into()));
                serde_json::to_string(&Response::to_dequantize(id, &result)).unwrap()
            }
            Request::MapNames { id, .. } => {
                let result = Err(Failure::Unimplemented("mapping names".into()));
                serde_json::to_string(&Response::to_map_names(id, &result)).unwrap()
            }
            Request::JudgeCheckpoint { id, .. } => {
                let result = Err(Failure::Unimplemented("judging checkpoints".into()));
                serde_json::to_string(&Response::to_judge_checkpoint(id, &result)).unwrap()
            }
            Request::Unpack { id, .. } => {
                let result = Err(Failure::Unimplemented("unpacking modules".into()));
                serde_json::to_string(&Response::to_unpack(id, &result)).unwrap()
            }
        };
        writeln!(stdout, "{answer}").unwrap();
        stdout.flush().unwrap();
    }
}

fn misbehave_now(how: &str) {
    let mut stdout = std::io::stdout();
    match how {
        "hang" => std::thread::sleep(Duration::from_secs(3600)),
        "exit" => std::process::exit(3),
        "abort" | "abort-always" => std::process::abort(),
        "panic" => panic!("as asked"),
        "allocate" => drop(std::hint::black_box(vec![1u8; 1 << 40])),
        "flood" => loop {
            if stdout.write_all(&[b'x'; 1 << 16]).is_err() {
                std::process::exit(0);
            }
        },
        "garbage" => writeln!(stdout, "hello").unwrap(),
        "control" => writeln!(stdout, "\u{1b}[2J").unwrap(),
        "stale" => writeln!(stdout, r#"{{"id":99,"unimplemented":"x"}}"#).unwrap(),
        "orphan" => {
            drop(std::process::Command::new("sleep").arg("60").spawn());
            std::process::exit(0);
        }
        "touch" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1u8; 1 << 20]);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        "shout" => {
            for _ in 0..100_000 {
                eprintln!("a line of no interest");
            }
            eprint!("the end");
        }
        _ => {}
    }
}
