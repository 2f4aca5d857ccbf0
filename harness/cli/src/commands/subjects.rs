//! `gguf-assay subjects`: the readers under test and how they come onto this machine.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, bail};
use gguf_assay_subjects::{Status, SubjectFolder, all, cache_dir};
use indicatif::{ProgressBar, ProgressStyle};

use super::{is_chosen, print};
use crate::style::{bad, dim, good};

/// Install readers under test, or say which are installed
///
/// Each is pinned and goes into a cache folder ($GGUF_ASSAY_CACHE, or gguf-assay below the user's
/// cache): Python readers into an environment of their own, JavaScript readers into a folder of
/// packages, Rust readers into a build folder. Nothing else on the machine is touched. What takes
/// gigabytes is only installed when it is named.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Install all subjects that are not optional, or those named
    Install {
        /// Names, or patterns with *
        names: Vec<String>,
    },
    /// Say which subjects are there
    Status {
        /// Names, or patterns with *
        names: Vec<String>,
    },
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    match &args.command {
        Command::Install { names } => install(&chosen(names)?, names.is_empty()),
        Command::Status { names } => status(&chosen(names)?),
    }
}

/// The subjects that the patterns name; a pattern that names none is an error.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<SubjectFolder>> {
    let subjects = all();
    for name in names {
        if !subjects.iter().any(|subject| gguf_assay::matches(name, subject.name)) {
            let known: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
            bail!("there is no subject `{name}`; there are {}", known.join(", "));
        }
    }
    Ok(subjects.into_iter().filter(|subject| is_chosen(names, subject.name)).collect())
}

fn status(subjects: &[SubjectFolder]) -> Result<u8> {
    let cache = cache_dir()?;
    let mut text = String::new();
    for subject in subjects {
        let status = match subject.status(&cache) {
            Status::Builtin => good("built in"),
            Status::Installed => good("installed"),
            Status::NotInstalled if subject.manifest.optional.is_some() => dim("optional"),
            Status::NotInstalled => bad("not installed"),
            Status::OutOfDate if subject.manifest.optional.is_some() => {
                dim("optional, out of date")
            }
            Status::OutOfDate => bad("out of date"),
        };
        let _ = writeln!(text, "{:<12} {status}  {}", subject.name, dim(&subject.manifest.summary));
    }
    print(&text)?;
    Ok(crate::SUCCESS)
}

/// Installs subjects; of all, those that are not optional.
fn install(subjects: &[SubjectFolder], all: bool) -> Result<u8> {
    let cache = cache_dir()?;
    let mut failed = 0;
    for subject in subjects {
        if matches!(subject.status(&cache), Status::Builtin | Status::Installed) {
            println!("{}: there", subject.name);
            continue;
        }
        if let (true, Some(reason)) = (all, &subject.manifest.optional) {
            println!("{}: only when it is named: {reason}", subject.name);
            continue;
        }
        let spinner = ProgressBar::new_spinner().with_prefix(subject.name.to_string());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg} {elapsed}")
        {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(100));
        let result = subject.install(&cache, &mut |line| spinner.set_message(line.to_owned()));
        spinner.finish_and_clear();
        match result {
            Ok(()) => println!("{}: installed", subject.name),
            Err(error) => {
                eprintln!("{}: {error:#}", subject.name);
                failed += 1;
            }
        }
    }
    Ok(if failed == 0 { crate::SUCCESS } else { crate::FINDINGS })
}
