//! `gguf-assay run`: judges subjects by the cases.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use gguf_assay::capability::Capabilities;
use gguf_assay::process::{Bounds, Process, Program};
use gguf_assay::report::{CorpusId, Report, SubjectReport};
use gguf_assay::{CaseFiles, Corpus, Expectations, Options, Profile, Unclear};
use gguf_assay_cases::AnyCase;
use gguf_assay_subjects::{Status, SubjectFolder, cache_dir};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{corpus, is_chosen, print, subjects};

/// Judge readers by the cases, and print a matrix
///
/// Without a name, every subject that is there is judged; the others are named as skipped. Each
/// subject runs in a process of its own, with limits on time, memory and output. A failure that the
/// subject's expectation file lists is a known failure; anything else makes the exit status 1.
///
///     gguf-assay run                                    all subjects that are there
///     gguf-assay run ggml --filter 'read/alignment/*'   some cases
///     gguf-assay run --adapter 'python3 my_adapter.py'  a reader of your own
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Names of subjects, or patterns with *
    subjects: Vec<String>,
    /// A program that speaks the adapter protocol (harness/suite/PROTOCOL.md), instead of subjects
    #[arg(long, value_name = "CMD", conflicts_with = "subjects")]
    adapter: Option<String>,
    /// The known failures of the adapter
    #[arg(long, value_name = "FILE", requires = "adapter")]
    expect: Option<PathBuf>,
    /// Only cases that match; * stands for anything
    #[arg(long, value_name = "GLOB")]
    filter: Vec<String>,
    /// Whose rules count
    #[arg(long, default_value = "ggml")]
    profile: Profile,
    #[command(flatten)]
    output: Output,
    /// Also run cases with large files (gigabytes)
    #[arg(long)]
    large: bool,
    /// More cases, from the TOML files of this folder
    #[arg(long, value_name = "DIR")]
    cases: Vec<PathBuf>,
    /// Seconds for one answer, instead of each subject's own limit
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f32>,
}

/// How results are put out.
#[derive(clap::Args)]
pub(super) struct Output {
    /// How to print the results; `json` is stable and documented, `capabilities` is who reads which
    /// tensor types, as JSON
    #[arg(long, default_value = "text")]
    format: Format,
    /// Write the results to a file
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also list the known failures, by reason
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
    Capabilities,
}

impl Output {
    /// Prints or writes the report, and says with what status to exit.
    pub(super) fn put(&self, report: &Report, corpus: &Corpus) -> Result<u8> {
        let text = match self.format {
            Format::Text => report.to_text(corpus, self.verbose),
            Format::Json => report.to_json() + "\n",
            Format::Markdown => report.to_markdown(),
            Format::Capabilities => {
                let capabilities = Capabilities::of(report, corpus).map_err(anyhow::Error::msg)?;
                capabilities.to_json() + "\n"
            }
        };
        match &self.out {
            Some(path) => {
                std::fs::write(path, &text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => print(&text)?,
        }
        Ok(if report.is_as_expected() { crate::SUCCESS } else { crate::FINDINGS })
    }
}

/// The ggml that the verdicts of the profile `ggml` come from.
pub(super) fn ggml() -> String {
    format!("{} ({})", gguf_assay_oracle::version(), gguf_assay_oracle::source())
}

/// What a program that is given by its command line is called until it says what it is.
const ADAPTER: &str = "adapter";

/// A subject to run, or why not.
struct Job {
    name: String,
    program: std::result::Result<Program, String>,
    bounds: Bounds,
    options: Options,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let corpus = corpus(&args.cases)?;
    let cases: Vec<AnyCase<'_>> =
        corpus.all().filter(|case| is_chosen(&args.filter, case.id())).collect();
    if cases.is_empty() {
        bail!("no case matches {}", args.filter.join(", "));
    }
    let timeout = args.timeout.map(seconds_of).transpose()?;
    let jobs = jobs(args, timeout)?;
    let files = CaseFiles::new().context("cannot make a folder for the cases' files")?;
    let reports = run_all(&jobs, &cases, &corpus, &files);
    let profile = args.profile.name();
    let report = Report::new(&ggml(), profile, CorpusId::of(&corpus), cases.len(), reports);
    args.output.put(&report, &corpus)
}

fn jobs(args: &Args, timeout: Option<Duration>) -> Result<Vec<Job>> {
    let options = |expectations, unclear| Options {
        large: args.large,
        expectations,
        unclear,
        ..Options::new(args.profile)
    };
    let bounds = |mut bounds: Bounds| {
        bounds.time = timeout.unwrap_or(bounds.time);
        bounds
    };
    if let Some(command) = &args.adapter {
        let expectations = match &args.expect {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                parse_expectations(&text, path)?
            }
            None => Expectations::default(),
        };
        let program = adapter(command)?;
        return Ok(vec![Job {
            name: ADAPTER.into(),
            program: Ok(program),
            bounds: bounds(Bounds::default()),
            options: options(expectations, Unclear::default()),
        }]);
    }
    let cache = cache_dir()?;
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let job = |subject: SubjectFolder| {
        let expectations = subject.expectations().map_err(anyhow::Error::msg)?;
        let program = program(&subject, &cache, &own);
        Ok(Job {
            name: subject.name.to_string(),
            program,
            bounds: bounds(subject.bounds()),
            options: options(expectations, subject.manifest.unclear.clone()),
        })
    };
    subjects::chosen(&args.subjects)?.into_iter().map(job).collect()
}

/// The program of a subject, or why there is none to run.
fn program(
    subject: &SubjectFolder,
    cache: &Path,
    own: &Path,
) -> std::result::Result<Program, String> {
    match subject.status(cache) {
        Status::Builtin | Status::Installed => Ok(subject.program(cache, own)),
        status @ (Status::NotInstalled | Status::OutOfDate) => {
            let optional = if subject.manifest.optional.is_some() { "optional, " } else { "" };
            let state =
                if status == Status::NotInstalled { "not installed" } else { "out of date" };
            Err(format!("{optional}{state}: gguf-assay subjects install {}", subject.name))
        }
    }
}

/// One reader to run.
pub(super) struct Reader {
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) bounds: Bounds,
    pub(super) unclear: Unclear,
}

/// The subject of this name, or the program of an adapter's command line.
pub(super) fn reader(subject: Option<&str>, command: Option<&str>) -> Result<Reader> {
    if let Some(command) = command {
        return Ok(Reader {
            name: ADAPTER.into(),
            program: adapter(command)?,
            bounds: Bounds::default(),
            unclear: Unclear::default(),
        });
    }
    let names = [subject.unwrap_or_default().to_owned()];
    let [subject] = subjects::chosen(&names)?.try_into().map_err(|subjects: Vec<_>| {
        anyhow::anyhow!("{} subjects match {}; one is asked for", subjects.len(), names[0])
    })?;
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(Reader {
        program: program(&subject, &cache_dir()?, &own).map_err(anyhow::Error::msg)?,
        bounds: subject.bounds(),
        unclear: subject.manifest.unclear.clone(),
        name: subject.name.to_string(),
    })
}

/// A time limit.
pub(super) fn seconds_of(seconds: f32) -> Result<Duration> {
    if !(seconds.is_finite() && seconds > 0.0) {
        bail!("a time limit is a positive number of seconds");
    }
    Ok(Duration::from_secs_f32(seconds))
}

fn parse_expectations(text: &str, path: &Path) -> Result<Expectations> {
    let parsed = Expectations::parse(text).map_err(anyhow::Error::msg);
    parsed.with_context(|| path.display().to_string())
}

/// The program that a command line names.
pub(super) fn adapter(command: &str) -> Result<Program> {
    let words = shlex::split(command).context("the adapter's command has an open quote")?;
    let Some((program, args)) = words.split_first() else {
        bail!("the adapter's command is empty")
    };
    Ok(Program { program: program.into(), args: args.to_vec(), ..Program::default() })
}

/// Runs the jobs, as many at a time as there are processors.
fn run_all(
    jobs: &[Job],
    cases: &[AnyCase<'_>],
    corpus: &Corpus,
    files: &CaseFiles,
) -> Vec<SubjectReport> {
    let bars = MultiProgress::new();
    if !std::io::stderr().is_terminal() {
        bars.set_draw_target(ProgressDrawTarget::hidden());
    }
    let next = AtomicUsize::new(0);
    let reports: Mutex<Vec<Option<SubjectReport>>> = Mutex::new(vec![None; jobs.len()]);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    let report = run_job(job, cases, corpus, files, &bars);
                    if let Ok(mut reports) = reports.lock() {
                        reports[index] = Some(report);
                    }
                }
            });
        }
    });
    reports.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

fn run_job(
    job: &Job,
    cases: &[AnyCase<'_>],
    corpus: &Corpus,
    files: &CaseFiles,
    bars: &MultiProgress,
) -> SubjectReport {
    let program = match &job.program {
        Ok(program) => program.clone(),
        Err(why) => return SubjectReport::skipped(&job.name, why),
    };
    let bar = bars.add(ProgressBar::new(cases.len() as u64).with_prefix(job.name.clone()));
    if let Ok(style) = ProgressStyle::with_template("{prefix:>12} {bar:30} {pos}/{len} {wide_msg}")
    {
        bar.set_style(style);
    }
    let mut process = match Process::start(program, job.bounds) {
        Ok(process) => process,
        Err(error) => return SubjectReport::broken(&job.name, &error),
    };
    let mut run = gguf_assay::run(&mut process, cases, files, &job.options, |result| {
        bar.set_message(result.case.clone());
        bar.inc(1);
    });
    // Of all cases, whichever are run: parts of a run say the same.
    let ids = corpus.all().map(|case| case.id());
    run.stale = job.options.expectations.stale(ids, job.options.profile);
    bar.finish_and_clear();
    // Results of several adapters merge into one report.
    let name = match job.name.as_str() {
        ADAPTER if !run.about.name.is_empty() => run.about.name.clone(),
        name => name.into(),
    };
    SubjectReport::of(&name, run)
}
