//! Whole checkpoints, judged: one trial for each folder with `config.json` within the folders that
//! GGUF_ASSAY_CHECKPOINTS names (separated as PATH is). All are made by real tools and in order.

use std::path::{Path, PathBuf};
use std::{env, fs};

use gguf_assay_checkpoint::{Checkpoint, Folder, Options, judge};
use libtest_mimic::{Arguments, Failed, Trial};

const VARIABLE: &str = "GGUF_ASSAY_CHECKPOINTS";

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    match env::var_os(VARIABLE) {
        Some(folders) => {
            for folder in env::split_paths(&folders).flat_map(|outer| folders_within(&outer)) {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                trials.push(Trial::test(format!("accepted::{name}"), move || accepted(&folder)));
            }
        }
        None => {
            let name = format!("accepted (set {VARIABLE})");
            trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn folders_within(outer: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(outer).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    let mut folders: Vec<PathBuf> =
        folders.filter(|folder| folder.join("config.json").is_file()).collect();
    folders.sort();
    folders
}

fn accepted(folder: &Path) -> Result<(), Failed> {
    let checkpoint = Checkpoint::open(Folder::new(folder))?;
    let judgement = judge(&checkpoint, &Options::default());
    let experts = judgement.experts.as_ref();
    let layout = experts.map_or("none", |experts| experts.layout.name());
    let notes: Vec<&str> = judgement.findings.iter().map(|finding| finding.rule.id).collect();
    let method = judgement.method.map_or("none", |method| method.name);
    println!("{}: {method}, experts {layout}, {notes:?}", folder.display());
    let mut faults = judgement.findings.iter().filter(|finding| finding.is_fault()).peekable();
    if faults.peek().is_none() {
        return Ok(());
    }
    Err(faults.map(|finding| format!("{finding}\n")).collect::<String>().into())
}
