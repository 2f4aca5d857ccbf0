//! Every case's `ggml` verdict is what the real ggml does, and the reference does the same.

use std::path::Path;
use std::process::ExitCode;

use gguf_assay::process::{Bounds, Process, Program};
use gguf_assay::{Answer, CaseFiles, Channel, Corpus, Failure, Profile, ReadRequest};
use gguf_assay_cases::Verdict;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let trials = ["ggml", "reference"].map(|name| {
        Trial::test(format!("{name}/does-what-the-cases-say-of-ggml"), move || judge(name))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

/// Accepted or refused, nothing else and nothing listed as known: values are judged by `run`.
fn judge(subject: &str) -> Result<(), Failed> {
    let program = Program {
        program: Path::new(env!("CARGO_BIN_EXE_gguf-assay")).into(),
        args: vec!["serve".into(), subject.into()],
        ..Program::default()
    };
    let mut process = Process::start(program, Bounds::default())?;
    let files = CaseFiles::new()?;
    let mut wrong = Vec::new();
    let corpus = Corpus::embedded();
    let mut judged = 0;
    for case in corpus.cases.iter().filter(|case| !case.is_large()) {
        let request = ReadRequest { path: files.path(case)?, profile: Profile::Ggml, large: false };
        let answer = process.read(&request);
        let right = matches!(
            (case.verdict(Profile::Ggml), &answer),
            (Verdict::Accept | Verdict::Either(_), Answer::Value(_))
                | (Verdict::Reject, Answer::Failure(Failure::Rejected { .. }))
                | (Verdict::Either(_), Answer::Failure(_))
        );
        judged += 1;
        if !right {
            wrong.push(format!("{}: {}: {answer:?}", case.id, case.verdict(Profile::Ggml)));
        }
    }
    match wrong.len() {
        0 if judged > 0 => Ok(()),
        _ => Err(wrong.join("\n").into()),
    }
}
