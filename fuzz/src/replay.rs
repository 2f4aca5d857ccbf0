//! Inputs again, without the fuzzer, and what a failing one leaves behind.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args as _, FromArgMatches as _};
use gguf_assay_cases::sha256;
use gguf_assay_format::printable;
use gguf_assay_smith::shrink::shrink_bytes;

use crate::Target;

/// An input that takes longer is taken to hang.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
struct Args {
    /// Make a regression of each file that fails: the smallest input that fails in the same way
    #[arg(long)]
    shrink: bool,
    /// Where regressions go
    #[arg(long, value_name = "DIR", default_value_os_t = regressions())]
    to: PathBuf,
    /// Inputs of the target
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn regressions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/regressions")
}

/// The `main` of a target's binary without the fuzzer. Gives the target the files that the command
/// line (`args`, the program's name first) names, and lets it panic.
///
/// With `--shrink` it does so in a process of its own each time, so that an abort, a crash of
/// ggml's or a hang is a finding like any other, and leaves the smallest input that still fails in
/// the same way in `corpus/regressions/<target>/`, where `cargo test` finds it.
pub fn replay(target: Target, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let about = format!("Gives inputs to the fuzz target {} again", target.name);
    let command = Args::augment_args(clap::Command::new(target.name).about(about));
    let args = match command.try_get_matches_from(args).and_then(|m| Args::from_arg_matches(&m)) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let done = args.files.iter().try_for_each(|path| {
        if args.shrink {
            return keep(target, path, &args.to);
        }
        (target.run)(&fs::read(path).with_context(|| format!("cannot read {}", path.display()))?);
        println!("{}: nothing found", path.display());
        Ok(())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error:#}", target.name);
            ExitCode::from(2)
        }
    }
}

fn keep(target: Target, path: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let scratch = std::env::temp_dir().join(format!("gguf-assay-fuzz-{}", std::process::id()));
    let Some(failure) = failure(&bytes, &scratch)? else {
        println!("{}: nothing found", path.display());
        return Ok(());
    };
    println!("{}: {} bytes, {}", path.display(), bytes.len(), printable(&failure.words, 400));
    let mut attempts = 0;
    let small = shrink_bytes(&bytes, |attempt| {
        attempts += 1;
        let seen = self::failure(attempt, &scratch);
        seen.is_ok_and(|seen| seen.is_some_and(|seen| seen.place == failure.place))
    });
    let _ = fs::remove_file(&scratch);

    let folder = to.join(target.name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let kept = folder.join(&sha256(&small)[..16]);
    fs::write(&kept, &small).with_context(|| format!("cannot write {}", kept.display()))?;
    println!(
        "{}: {} bytes, after {attempts} attempts\n  rule: {}",
        kept.display(),
        small.len(),
        (target.rule)(&small)
    );
    Ok(())
}

/// How an input fails.
struct Failure {
    /// What is the same if two inputs fail in the same way.
    place: String,
    words: String,
}

/// What this program does with an input, in another process of it.
fn failure(bytes: &[u8], scratch: &Path) -> Result<Option<Failure>> {
    fs::write(scratch, bytes).with_context(|| format!("cannot write {}", scratch.display()))?;
    let said = scratch.with_extension("stderr");
    let mut child = Command::new(std::env::current_exe()?)
        .arg(scratch)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said)?)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_micros(500));
    };
    let words = String::from_utf8_lossy(&fs::read(&said)?).trim().to_owned();
    fs::remove_file(&said)?;
    let Some(status) = status else {
        let words = format!("no end after {} s", LIMIT.as_secs());
        return Ok(Some(Failure { place: "hang".into(), words }));
    };
    ensure!(status.code() != Some(2), "{words}");
    // Where it panicked, or what ggml says before it aborts, without the number of the thread.
    let place = words.lines().find_map(|line| {
        line.find("panicked at").or(line.contains("GGML_ASSERT").then_some(0)).map(|at| &line[at..])
    });
    let place = format!("{status} {}", place.unwrap_or_default());
    Ok((!status.success()).then_some(Failure { place, words: format!("{status}: {words}") }))
}
