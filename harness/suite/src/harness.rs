//! A test target of which every case is a test.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use gguf_assay_cases::{AnyCase, Corpus};
use gguf_assay_format::Profile;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::process::{Bounds, Process, Program};
use crate::run::run_case;
use crate::{
    CaseFiles, Channel, Expectations, InProcess, Options, Subject, Unclear, Verdict, serve,
};

/// Asks the test target to be an adapter for itself.
const SERVE: &str = "--gguf-assay-serve";

/// Runs the cases as tests of a reader, in a target with `harness = false`.
///
/// The target takes what any test target takes (names to filter by, `--list`, `--exact`,
/// `--skip`, `--format`), cargo-nextest's calls included, and:
///
/// - `--isolated` runs the reader in a child process, so that a hang, a crash or an exhausted memory
///   fails one case and not the run.
///
/// Cases whose files are large are ignored; `--include-ignored` runs them.
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
        match self.trials(isolated) {
            Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }

    fn trials(self, isolated: bool) -> Result<Vec<Trial>, String> {
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
        });
        let mut trials: Vec<Trial> = Vec::new();
        for case in self.corpus.cases {
            let shared = Arc::clone(&shared);
            let (id, large) = (case.id.clone(), case.is_large());
            let trial = Trial::test(id, move || shared.judge(AnyCase::Read(&case)));
            trials.push(trial.with_ignored_flag(large));
        }
        for case in self.corpus.blocks {
            let shared = Arc::clone(&shared);
            let id = case.id.clone();
            trials.push(Trial::test(id, move || shared.judge(AnyCase::Dequantize(&case))));
        }
        trials.push(Trial::test("expectations/none-is-stale", move || match stale.is_empty() {
            true => Ok(()),
            false => Err(stale.join("\n").into()),
        }));
        Ok(trials)
    }
}

struct Shared {
    channel: Mutex<Box<dyn Channel + Send>>,
    files: CaseFiles,
    options: Options,
}

impl Shared {
    fn judge(&self, case: AnyCase<'_>) -> Result<(), Failed> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let result = run_case(channel.as_mut(), case, &self.files, &self.options);
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
