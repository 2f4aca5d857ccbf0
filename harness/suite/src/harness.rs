//! A test target of which every case is a test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use gguf_assay_cases::{AnyCase, Corpus};
use gguf_assay_format::Profile;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::process::{Bounds, Process, Program};
use crate::report::{CorpusId, Report, SubjectReport};
use crate::run::{run_case, skipped};
use crate::{
    CaseFiles, CaseResult, Channel, Expectations, InProcess, Options, Run, Subject, Unclear,
    Verdict, serve,
};

/// Asks the test target to be an adapter for itself.
const SERVE: &str = "--gguf-assay-serve";

/// The variable that names a folder to write the results into.
const RESULTS: &str = "GGUF_ASSAY_RESULTS";

/// Runs the cases as tests of a reader, in a target with `harness = false`.
///
/// The target takes what any test target takes (names to filter by, `--list`, `--exact`,
/// `--skip`, `--format`), cargo-nextest's calls included, and:
///
/// - `--isolated` runs the reader in a child process, so that a hang, a crash or an exhausted memory
///   fails one case and not the run.
///
/// Cases whose files are large are ignored; `--include-ignored` runs them.
///
/// Where the variable `GGUF_ASSAY_RESULTS` names a folder, each process writes a [`Report`] of the
/// cases that it ran into it, as cargo-nextest starts one process a case and CI jobs run one part of
/// the cases each. `gguf-assay report` merges them.
pub struct Harness<S> {
    subject: S,
    corpus: Corpus,
    profile: Profile,
    expectations: Option<PathBuf>,
    unclear: Unclear,
}

impl<S: Subject + Send + 'static> Harness<S> {
    /// All cases, judged as ggml reads them.
    pub fn new(subject: S) -> Harness<S> {
        Harness {
            subject,
            corpus: Corpus::embedded(),
            profile: Profile::Ggml,
            expectations: None,
            unclear: Unclear::default(),
        }
    }

    /// Judges by another profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Harness<S> {
        self.profile = profile;
        self
    }

    /// The file that lists the known failures; see [`Expectations`].
    #[must_use]
    pub fn expect_file(mut self, path: impl AsRef<Path>) -> Harness<S> {
        self.expectations = Some(path.as_ref().into());
        self
    }

    /// Which refusals are unclear.
    #[must_use]
    pub fn unclear(mut self, unclear: Unclear) -> Harness<S> {
        self.unclear = unclear;
        self
    }

    /// Other cases, or more.
    #[must_use]
    pub fn corpus(mut self, corpus: Corpus) -> Harness<S> {
        self.corpus = corpus;
        self
    }

    /// Runs what the command line asks for.
    pub fn main(self) -> ExitCode {
        let args: Vec<String> = std::env::args().collect();
        if args.iter().any(|arg| arg == SERVE) {
            return match serve(self.subject) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::from(2)
                }
            };
        }
        let isolated = args.iter().any(|arg| arg == "--isolated");
        let arguments = Arguments::from_iter(args.into_iter().filter(|arg| arg != "--isolated"));
        match self.run(isolated, &arguments) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }

    fn run(self, isolated: bool, arguments: &Arguments) -> Result<ExitCode, String> {
        let results = std::env::var_os(RESULTS).filter(|folder| !folder.is_empty());
        let corpus = CorpusId::of(&self.corpus);
        let profile = self.profile;
        let large: Vec<(usize, CaseResult)> = (self.corpus.all().enumerate())
            .filter(|(_, case)| case.is_large() && !arguments.include_ignored && !arguments.ignored)
            .map(|(place, case)| {
                (place, skipped(case, "its file is large; --include-ignored runs it"))
            })
            .collect();
        let (trials, shared) = self.trials(isolated)?;
        let conclusion = libtest_mimic::run(arguments, trials);
        if let Some(folder) = results.filter(|_| !arguments.list) {
            let run = shared.run(large);
            let (name, cases) = (run.about.name.clone(), run.results.len());
            let subjects = vec![SubjectReport::of(&name, run)];
            // No ggml is at hand here; the command knows the one that the verdicts come from.
            let report = Report::new("", profile.name(), corpus, cases, subjects);
            let written = report.write_into(Path::new(&folder));
            written.map_err(|e| format!("{RESULTS}: {}: {e}", Path::new(&folder).display()))?;
        }
        Ok(conclusion.exit_code())
    }

    fn trials(self, isolated: bool) -> Result<(Vec<Trial>, Arc<Shared>), String> {
        let expectations = match &self.expectations {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|e| format!("{}: {e}", path.display()))?;
                Expectations::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?
            }
            None => Expectations::default(),
        };
        let channel: Box<dyn Channel + Send> = if isolated {
            let program = std::env::current_exe().map_err(|e| e.to_string())?;
            let program = Program { program, args: vec![SERVE.into()], ..Program::default() };
            Box::new(Process::start(program, Bounds::default())?)
        } else {
            Box::new(InProcess::new(self.subject))
        };
        let stale = {
            let ids = self.corpus.all().map(|case| case.id());
            expectations.stale(ids, self.profile)
        };
        let options = Options {
            large: true,
            expectations,
            unclear: self.unclear,
            ..Options::new(self.profile)
        };
        let shared = Arc::new(Shared {
            // One subject, one case at a time: what it prints and how it dies belong to that case.
            channel: Mutex::new(channel),
            files: CaseFiles::new().map_err(|e| e.to_string())?,
            options,
            stale,
            results: Mutex::default(),
        });
        let mut trials: Vec<Trial> = Vec::new();
        // In the order of `Corpus::all`.
        let blocks = self.corpus.cases.len();
        let names = blocks + self.corpus.blocks.len();
        let checkpoints = names + self.corpus.names.len();
        for (place, case) in self.corpus.cases.into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            let (id, large) = (case.id.clone(), case.is_large());
            let trial = Trial::test(id, move || shared.judge(place, AnyCase::Read(&case)));
            trials.push(trial.with_ignored_flag(large));
        }
        for (place, case) in (blocks..).zip(self.corpus.blocks) {
            let shared = Arc::clone(&shared);
            let id = case.id.clone();
            trials.push(Trial::test(id, move || shared.judge(place, AnyCase::Dequantize(&case))));
        }
        for (place, case) in (names..).zip(self.corpus.names) {
            let shared = Arc::clone(&shared);
            let id = case.id.clone();
            trials.push(Trial::test(id, move || shared.judge(place, AnyCase::MapNames(&case))));
        }
        for (place, case) in (checkpoints..).zip(self.corpus.checkpoints) {
            let shared = Arc::clone(&shared);
            let id = case.id.clone();
            trials.push(Trial::test(id, move || shared.judge(place, AnyCase::Checkpoint(&case))));
        }
        let stale = shared.stale.clone();
        trials.push(Trial::test("expectations/none-is-stale", move || match stale.is_empty() {
            true => Ok(()),
            false => Err(stale.join("\n").into()),
        }));
        Ok((trials, shared))
    }
}

struct Shared {
    channel: Mutex<Box<dyn Channel + Send>>,
    files: CaseFiles,
    options: Options,
    stale: Vec<String>,
    /// By the case's place in the corpus.
    results: Mutex<BTreeMap<usize, CaseResult>>,
}

impl Shared {
    /// What came of the cases that were run, and of these others.
    fn run(&self, others: Vec<(usize, CaseResult)>) -> Run {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.extend(others);
        Run {
            about: channel.about().clone(),
            results: results.values().cloned().collect(),
            stale: self.stale.clone(),
        }
    }

    fn judge(&self, place: usize, case: AnyCase<'_>) -> Result<(), Failed> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let result = run_case(channel.as_mut(), case, &self.files, &self.options);
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.insert(place, result.clone());
        drop(results);
        if result.verdict.is_failure() {
            let outcome = result.outcome.map_or("not run", |outcome| outcome.name());
            let mut text = format!(
                "{}: {outcome}: {}\n{}\nsource: {}",
                result.verdict,
                result.detail,
                case.summary(),
                case.source()
            );
            if let AnyCase::Read(case) = case
                && !case.is_large()
            {
                text.push_str(&format!("\nfile: corpus/{}.gguf", case.id));
            }
            return Err(text.into());
        }
        if result.verdict == Verdict::Skipped {
            println!("{}: skipped: {}", case.id(), result.detail);
        }
        Ok(())
    }
}
