//! The command `gguf-assay`: proves a loader right, and says what is wrong with a file.

// The docs of the arguments are what `--help` prints, indented examples included.
#![allow(rustdoc::invalid_rust_codeblocks)]

mod commands;
mod deep;
mod identify;
mod mapped;
mod real;
mod sarif;
mod style;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Everything is as expected, or the file is accepted.
const SUCCESS: u8 = 0;
/// There are findings or failures.
const FINDINGS: u8 = 1;
/// The call is wrong, or the input cannot be read.
const USAGE: u8 = 2;
/// The command itself is at fault.
const OUR_FAULT: u8 = 3;

/// Conformance suite and reference reader for GGUF: proves a loader right, and says whether a model
/// file is broken or its loader is.
///
/// Exit status: 0 all as expected or file accepted, 1 findings or failures, 2 wrong usage or
/// unreadable input, 3 a fault of this program.
#[derive(Parser)]
#[command(name = "gguf-assay", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(commands::run::Args),
    Report(commands::report::Args),
    Check(commands::check::Args),
    Checkpoint(commands::checkpoint::Args),
    Names(commands::names::Args),
    Dequantize(commands::dequantize::Args),
    List(commands::list::Args),
    Explain(commands::explain::Args),
    Fuzz(commands::fuzz::Args),
    Generate(commands::generate::Args),
    AdapterCheck(commands::adapter_check::Args),
    Subjects(commands::subjects::Args),
    Real(commands::real::Args),
    BuildCorpus(commands::build_corpus::Args),
    BenchReport(commands::bench_report::Args),
    Serve(commands::serve::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { USAGE } else { SUCCESS };
            // A reader that closed the pipe has seen enough.
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("gguf-assay: this is a fault of gguf-assay: {panic}");
        std::process::exit(OUR_FAULT.into());
    }));
    let status = match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Checkpoint(args) => commands::checkpoint::run(&args),
        Command::Names(args) => commands::names::run(&args),
        Command::Dequantize(args) => commands::dequantize::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Fuzz(args) => commands::fuzz::run(&args),
        Command::Generate(args) => commands::generate::run(&args),
        Command::AdapterCheck(args) => commands::adapter_check::run(&args),
        Command::Subjects(args) => commands::subjects::run(&args),
        Command::Real(args) => commands::real::run(&args),
        Command::BenchReport(args) => commands::bench_report::run(&args),
        Command::BuildCorpus(args) => commands::build_corpus::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
    };
    match status {
        Ok(status) => ExitCode::from(status),
        Err(error) if commands::is_closed_pipe(&error) => ExitCode::from(SUCCESS),
        Err(error) => {
            eprintln!("gguf-assay: {error:#}");
            ExitCode::from(USAGE)
        }
    }
}
