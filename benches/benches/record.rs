//! The measurements that reports are made of: everything in turns, in one run, written down as a
//! record. `gguf-assay bench-report --measure` runs this and makes the report.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use gguf_assay_benches::check::Check;
use gguf_assay_benches::dequantize::{self, Sizes, types};
use gguf_assay_benches::model::qwen_like;
use gguf_assay_benches::rounds::Plan;
use gguf_assay_benches::{engines, is_measuring, read, rustc};
use gguf_assay_record::{Group, Machine, Noise, Operation, Record, SCHEMA, Size, Usage, engine};
use indicatif::ProgressBar;

/// Measure all engines in turns, and write the times down
///
/// With `--test`, everything runs once, untimed and on small inputs.
#[derive(Parser)]
struct Args {
    /// Only these types
    #[arg(long, value_delimiter = ',', value_name = "TYPE,…")]
    types: Vec<String>,
    /// Only these operations: dequantize, read, check
    #[arg(long, value_delimiter = ',', value_name = "OPERATION,…")]
    operations: Vec<String>,
    /// Only outputs that stay in the cache, or only those that go to memory: cached, streamed
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…")]
    sizes: Vec<String>,
    /// Numbers in an output that goes to memory
    #[arg(long, default_value_t = Sizes::MEASURED.streamed, value_name = "N")]
    streamed: usize,
    /// Rounds of what takes microseconds; of what takes longer there are fewer
    #[arg(long, default_value_t = 41, value_name = "N")]
    rounds: usize,
    /// Where to write the record
    #[arg(long, default_value = concat!(env!("CARGO_TARGET_TMPDIR"), "/record.json"))]
    out: PathBuf,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    fn is_wanted(list: &[String], name: &str) -> bool {
        list.is_empty() || list.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    }

    fn wants(&self, operation: Operation) -> bool {
        Args::is_wanted(&self.operations, operation.name())
    }
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    // As a test it gets whatever the test harness understands.
    let args = if is_measuring() { Args::parse() } else { Args::parse_from(["record"]) };
    let known = |list: &[String], names: &[&str]| match list
        .iter()
        .find(|name| !names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    {
        Some(wrong) => Err(format!("there is no {wrong:?}; there are {}", names.join(", "))),
        None => Ok(()),
    };
    let type_names: Vec<&str> = types().map(|t| t.name).collect();
    let checked = known(&args.types, &type_names)
        .and(known(&args.operations, &["dequantize", "read", "check"]))
        .and(known(&args.sizes, &Size::ALL.map(Size::name)));
    if let Err(message) = checked {
        eprintln!("{message}");
        return ExitCode::from(2);
    }
    let record = run(&args);
    if is_measuring() {
        let written = fs::write(&args.out, record.to_json());
        if let Err(error) = written {
            eprintln!("cannot write {}: {error}", args.out.display());
            return ExitCode::FAILURE;
        }
        println!("{}", args.out.display());
        return ExitCode::SUCCESS;
    }
    // A test fails where a report would say so.
    let wrong: Vec<_> =
        record.warnings().into_iter().filter(|w| w.contains(" is wrong: ")).collect();
    wrong.iter().for_each(|wrong| eprintln!("{wrong}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(args: &Args) -> Record {
    let started = jiff::Timestamp::now();
    let clock = Instant::now();
    let before = (Noise::load(), Usage::now());
    let groups = groups(args);
    let noise = Noise::between(before, (Noise::load(), Usage::now()));
    let taking_part = |name: &str| groups.iter().any(|group| group.get(name).is_some());
    Record {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: commit(),
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        seconds: clock.elapsed().as_secs(),
        machine: Machine::this(),
        noise,
        rustc: rustc().into(),
        c_compiler: gguf_assay_oracle::compiler().into(),
        engines: engines().into_iter().filter(|engine| taking_part(&engine.name)).collect(),
        groups,
    }
}

fn groups(args: &Args) -> Vec<Group> {
    let is_measuring = is_measuring();
    // Of what takes long there are fewer rounds, and at least 5: a whole run takes minutes.
    let plan = |share: usize, at_least: Duration| match is_measuring {
        true => Plan { rounds: (args.rounds / share).max(args.rounds.min(5)), at_least },
        false => Plan { rounds: 1, at_least: Duration::ZERO },
    };
    let sizes = match is_measuring {
        true => {
            let parts = (args.streamed / Sizes::MEASURED.cached).max(1);
            Sizes { streamed: parts * Sizes::MEASURED.cached, ..Sizes::MEASURED }
        }
        false => Sizes::TEST,
    };
    let sizes_wanted: Vec<Size> = Size::ALL
        .into_iter()
        .filter(|size| {
            args.wants(Operation::Dequantize) && Args::is_wanted(&args.sizes, size.name())
        })
        .collect();
    let types: Vec<_> = types().filter(|t| Args::is_wanted(&args.types, t.name)).collect();

    // Drawn on a terminal only.
    let bar = ProgressBar::new((types.len() * sizes_wanted.len() + 2) as u64);
    bar.enable_steady_tick(Duration::from_millis(500));
    let style = indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    bar.set_style(style.expect("the template is right"));

    let mut groups = vec![];
    for &size in &sizes_wanted {
        for t in &types {
            bar.set_message(format!("dequantize/{}/{}", t.name, size.name()));
            let plan = match size {
                Size::Cached => plan(1, Duration::from_millis(1)),
                Size::Streamed => plan(4, Duration::ZERO),
            };
            groups.push(dequantize::group(t, size, sizes, plan));
            bar.inc(1);
        }
    }
    if args.wants(Operation::Read) {
        bar.set_message("read");
        groups.push(read::group(&qwen_like(), plan(1, Duration::ZERO)));
        bar.inc(1);
    }
    if args.wants(Operation::Check) {
        bar.set_message("check");
        let folder = tempfile::tempdir().expect("a folder for a file to check");
        let bytes = if is_measuring { 128 << 20 } else { 1 << 20 };
        match Check::find(folder.path(), bytes, is_measuring) {
            Ok(check) => groups.push(check.group(plan(4, Duration::ZERO))),
            Err(why) => bar.suspend(|| eprintln!("check: skipped: {why}")),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if is_measuring {
        print(&groups);
    }
    groups
}

/// How many times as fast as ggml, for those who only look.
fn print(groups: &[Group]) {
    for group in groups {
        print!("{}:", group.id());
        for measurement in &group.measurements {
            let name = measurement.engine.as_str();
            match (&measurement.untimed, group.rate(name), group.ratio(name, engine::GGML)) {
                (Some(gguf_assay_record::Untimed::Wrong(how)), ..) => {
                    print!("  {name} WRONG ({how})")
                }
                (_, Some(rate), Some([ratio, _])) => {
                    print!("  {name} {rate:.2} GB/s ({ratio:.2}×)")
                }
                (_, Some(rate), None) => print!("  {name} {rate:.2} GB/s"),
                _ => {}
            }
        }
        println!();
    }
}

/// The commit that is measured, with a `+` if files differ from it.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let run = Command::new("git").args(args).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_clean { commit } else { commit + "+" })
}
