//! Installs subjects below the cache: a folder each, with a stamp that is written last.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use gguf_assay::process::Program;
use gguf_assay::{protocol, sha256};

use crate::{Install, SubjectFolder};

/// The adapter loop that adapters in JavaScript share.
static JAVASCRIPT: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/javascript.rs"));

/// The adapter loop that adapters in Python share.
static PYTHON: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/python.rs"));

/// Whether a subject can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Always: the command serves it itself.
    Builtin,
    /// It is installed as it is pinned.
    Installed,
    /// It is not installed, or not completely.
    NotInstalled,
    /// What is installed has other pins or another adapter than this version of the suite.
    OutOfDate,
}

/// Where subjects are installed: `$GGUF_ASSAY_CACHE`, else `$XDG_CACHE_HOME/gguf-assay`, else
/// `~/.cache/gguf-assay`.
///
/// # Errors
///
/// That none of these is known.
pub fn cache_dir() -> Result<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = folder("GGUF_ASSAY_CACHE") {
        // Adapters are started in other folders.
        return Ok(std::path::absolute(cache)?);
    }
    // A relative one is to be ignored, says the XDG specification.
    let xdg = folder("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = xdg.or_else(|| env::home_dir().map(|home| home.join(".cache")));
    let caches = caches.context("there is no home folder; set GGUF_ASSAY_CACHE")?;
    Ok(caches.join("gguf-assay"))
}

pub(crate) fn status(subject: &SubjectFolder, cache: &Path) -> Status {
    if subject.manifest.install == Install::Builtin {
        return Status::Builtin;
    }
    let Ok(stamp) = fs::read_to_string(stamp_path(subject, cache)) else {
        return Status::NotInstalled;
    };
    // Gone when the Python below an environment is.
    if !product(subject, cache).exists() {
        return Status::NotInstalled;
    }
    if stamp.trim() == stamp_of(subject) { Status::Installed } else { Status::OutOfDate }
}

pub(crate) fn install(
    subject: &SubjectFolder,
    cache: &Path,
    log: &mut dyn FnMut(&str),
) -> Result<()> {
    if matches!(status(subject, cache), Status::Builtin | Status::Installed) {
        return Ok(());
    }
    let folder = subject.folder(cache);
    let stamp = stamp_path(subject, cache);
    let before = fs::read_to_string(&stamp).unwrap_or_default();
    let environment = stamp_of(subject).lines().next().map(str::to_owned);
    let same = before.lines().next().map(str::to_owned) == environment;
    remove(&stamp)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut steps = Steps { output: Output::create(folder.join("install.log"))?, log };
    match &subject.manifest.install {
        Install::Builtin => {}
        // Gigabytes need not come again for another line of an adapter.
        Install::Python { .. } if same && product(subject, cache).exists() => {
            write_adapter(subject, &folder)?;
        }
        Install::Python { python, packages, .. } => {
            install_python(subject, &folder, python, packages, &mut steps)?;
        }
        Install::Npm { node, .. } => install_npm(subject, &folder, node, &mut steps)?,
        Install::Cargo { adapter, .. } => {
            let name = subject.name;
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(name).join(adapter);
            install_cargo(name, &source, &folder, &mut steps)?;
        }
    }
    let product = product(subject, cache);
    if !product.exists() {
        bail!("{} was not made", product.display());
    }
    fs::write(&stamp, stamp_of(subject))
        .with_context(|| format!("cannot write {}", stamp.display()))
}

pub(crate) fn program(subject: &SubjectFolder, cache: &Path, own_exe: &Path) -> Program {
    let run = &subject.manifest.run;
    let mut env: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| env.push((name.into(), value));
    let adapter = subject.folder(cache).join("adapter");
    let entry = adapter.join(&run.entry).display().to_string();
    let (program, args) = match &subject.manifest.install {
        Install::Builtin => {
            return Program {
                program: own_exe.into(),
                args: vec!["serve".into(), subject.name.into()],
                ..Program::default()
            };
        }
        Install::Python { .. } => {
            // In place of the user's own, in which another package of this name may lie.
            set("PYTHONPATH", adapter.display().to_string());
            set("PYTHONUTF8", "1".into());
            (product(subject, cache), vec![entry])
        }
        Install::Npm { .. } => {
            // In place of the user's own, which may load other code.
            set("NODE_OPTIONS", String::new());
            (node(), vec![entry])
        }
        Install::Cargo { .. } => {
            // Some readers add a backtrace to their messages if it is set.
            set("RUST_BACKTRACE", "0".into());
            (product(subject, cache), Vec::new())
        }
    };
    env.extend(run.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    Program { program, args, env, dir: None }
}

/// What an installation makes: the executable to start or, where there is none, the package.
fn product(subject: &SubjectFolder, cache: &Path) -> PathBuf {
    let folder = subject.folder(cache);
    match &subject.manifest.install {
        Install::Builtin => PathBuf::new(),
        Install::Python { .. } => environment_python(&folder),
        Install::Npm { package, .. } => folder.join("adapter/node_modules").join(package),
        Install::Cargo { bin, .. } => {
            folder.join("target/release").join(format!("{bin}{}", env::consts::EXE_SUFFIX))
        }
    }
}

fn environment_python(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "venv/Scripts/python.exe" } else { "venv/bin/python" })
}

fn stamp_path(subject: &SubjectFolder, cache: &Path) -> PathBuf {
    subject.folder(cache).join("stamp")
}

/// Two lines: a hash of what decides which packages are installed, and one of all that decides what a
/// subject is.
fn stamp_of(subject: &SubjectFolder) -> String {
    let manifest = &subject.manifest;
    let packages = toml::to_string(&manifest.install).unwrap_or_default();
    let mut text = format!("{} {}\n{packages}", env!("CARGO_PKG_VERSION"), protocol::PROTOCOL);
    text += &toml::to_string(&manifest.run).unwrap_or_default();
    for (name, content) in adapter_files(subject) {
        text += &format!("{name} {}\n{content}", content.len());
    }
    format!("{}\n{}", sha256(packages.as_bytes()), sha256(text.as_bytes()))
}

/// What an adapter is made of: the subject's own files, and those that its language's adapters share.
fn adapter_files(
    subject: &SubjectFolder,
) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let own =
        subject.files.iter().filter(|(name, _)| !name.ends_with(".toml") || name.contains('/'));
    own.chain(match subject.manifest.install {
        Install::Builtin | Install::Cargo { .. } => [].iter(),
        Install::Python { .. } => PYTHON.iter(),
        Install::Npm { .. } => JAVASCRIPT.iter(),
    })
}

/// Writes an adapter that is not compiled into its folder, in place of what is there.
fn write_adapter(subject: &SubjectFolder, folder: &Path) -> Result<PathBuf> {
    let adapter = folder.join("adapter");
    remove(&adapter)?;
    for (name, content) in adapter_files(subject) {
        let path = adapter.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&adapter))
            .and_then(|()| fs::write(&path, content))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(adapter)
}

fn install_python(
    subject: &SubjectFolder,
    folder: &Path,
    oldest: &str,
    packages: &[String],
    steps: &mut Steps<'_>,
) -> Result<()> {
    let python = match env::var_os("GGUF_ASSAY_PYTHON") {
        Some(python) => PathBuf::from(python),
        None => PathBuf::from(if cfg!(windows) { "python" } else { "python3" }),
    };
    let mut command = Command::new(&python);
    command.args(["-c", &check_python(oldest)]);
    steps.run("looking for Python", &mut command).map_err(|failure| match failure {
        Failed::NotFound => anyhow!(
            "{} is not found; install Python {oldest} or later, or name one in GGUF_ASSAY_PYTHON",
            python.display()
        ),
        other => other.with("this Python cannot be used"),
    })?;

    let venv = folder.join("venv");
    remove(&venv)?;
    let mut command = Command::new(&python);
    command.args(["-m", "venv"]).arg(&venv);
    let done = steps.run("making a virtual environment", &mut command);
    done.map_err(|failure| failure.with("the virtual environment could not be made"))?;

    let mut command = Command::new(environment_python(folder));
    command.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check"]);
    // Wheels only: nothing is compiled, and no code of a package runs while it is installed.
    command.args(["--no-deps", "--only-binary=:all:"]).args(packages);
    let done = steps.run(&format!("installing {}", packages.join(", ")), &mut command);
    done.map_err(|failure| failure.with("pip could not install the packages"))?;
    write_adapter(subject, folder)?;
    Ok(())
}

/// Python that fails, in words, where an environment cannot be made.
fn check_python(oldest: &str) -> String {
    let version = oldest.replace('.', ", ");
    format!(
        "import sys\n\
         found = sys.version.split()[0]\n\
         if sys.version_info < ({version}):\n \
             sys.exit(f'Python {oldest} is needed, this is {{found}}')\n\
         try:\n \
             import venv, ensurepip\n\
         except ImportError:\n \
             sys.exit(f'Python {{found}} has no venv module; '\n \
                 'on Debian and Ubuntu it is the package python3-venv')\n\
         print(found)"
    )
}

fn install_npm(
    subject: &SubjectFolder,
    folder: &Path,
    oldest: &str,
    steps: &mut Steps<'_>,
) -> Result<()> {
    let mut command = Command::new(node());
    command.args(["--eval", &check_node(oldest)]);
    steps.run("looking for Node.js", &mut command).map_err(|failure| match failure {
        Failed::NotFound => anyhow!(
            "{} is not found; install Node.js {oldest} or later, or name one in GGUF_ASSAY_NODE",
            node().display()
        ),
        other => other.with("this Node.js cannot be used"),
    })?;

    let adapter = write_adapter(subject, folder)?;
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    // Refuses what does not have the hash of the lock file; no code of a package runs.
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&adapter);
    let done = steps.run("installing packages by npm", &mut command);
    done.map_err(|failure| match failure {
        Failed::NotFound => anyhow!("npm is not found; it comes with Node.js, or as a package"),
        other => other.with("npm could not install the packages"),
    })
}

fn node() -> PathBuf {
    env::var_os("GGUF_ASSAY_NODE").unwrap_or_else(|| "node".into()).into()
}

/// JavaScript that fails, in words, where Node.js is too old.
fn check_node(oldest: &str) -> String {
    format!(
        "const found = process.versions.node;\n\
         console.log(found);\n\
         if (parseInt(found) < {oldest}) {{\n  \
             console.error(`Node.js {oldest} is needed, this is ${{found}}`);\n  \
             process.exit(1);\n\
         }}"
    )
}

fn install_cargo(name: &str, source: &Path, folder: &Path, steps: &mut Steps<'_>) -> Result<()> {
    let manifest = source.join("Cargo.toml");
    if !manifest.is_file() {
        bail!(
            "{name} is compiled from the source tree of gguf-assay, which is no longer at {}; run \
             the command from a checkout",
            source.display()
        );
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(folder.join("target")).current_dir(source);
    // A reader is judged as its users build it, and found where cargo puts it by default.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        command.env_remove(name);
    }
    let done = steps.run("compiling, which takes minutes the first time", &mut command);
    done.map_err(|failure| match failure {
        Failed::NotFound => anyhow!("cargo is not found; install Rust from https://rustup.rs"),
        other => other.with("cargo could not build the adapter"),
    })
}

/// Removes a file or a folder, if it is there.
fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Runs the commands of an installation, and keeps what they print.
struct Steps<'a> {
    output: Output,
    log: &'a mut dyn FnMut(&str),
}

/// Whether the output of a package client (pip, npm, cargo) says that there is no network.
pub fn is_offline(output: &str) -> bool {
    [
        "Failed to establish a new connection",
        "NewConnectionError",
        "name resolution",
        "resolve host",
        "getaddrinfo",
        "Network is unreachable",
        "network failure seems to have happened",
        "Could not connect to server",
    ]
    .iter()
    .any(|words| output.contains(words))
}

/// Why a command did not do its work.
enum Failed {
    NotFound,
    Other { how: String, tail: String, path: PathBuf },
}

impl Failed {
    fn with(self, what: &str) -> anyhow::Error {
        match self {
            Failed::NotFound => anyhow!("{what}: it is not found"),
            Failed::Other { how, tail, path } => {
                let hint = if is_offline(&tail) {
                    "\nThe package registry cannot be reached: is this machine offline?"
                } else if tail.contains("(from versions: none)") {
                    // All that a quiet pip says in either case.
                    "\nIs this machine offline, or its Python too old for the package?"
                } else {
                    ""
                };
                let path = path.display();
                anyhow!("{what} ({how})\n{}{hint}\nThe whole output is in {path}", tail.trim_end())
            }
        }
    }
}

impl Steps<'_> {
    fn run(&mut self, what: &str, command: &mut Command) -> Result<(), Failed> {
        (self.log)(what);
        // A user's own would shadow what is installed here.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
        let (before, streams) = self.output.section(command)?;
        let [stdout, stderr] = streams;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                let (tail, path) = (self.output.tail(before), self.output.path.clone());
                Err(Failed::Other { how: status.to_string(), tail, path })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Failed::NotFound),
            Err(error) => Err(self.output.failed(&error)),
        }
    }
}

/// The file that has all output of an installation.
struct Output {
    path: PathBuf,
    file: File,
}

impl Output {
    fn create(path: PathBuf) -> Result<Output> {
        let opened = File::options().create(true).write(true).truncate(true).open(&path);
        drop(opened.with_context(|| format!("cannot write {}", path.display()))?);
        // To append: the file is shared with the commands, and each writes at the end.
        let file = File::options().read(true).append(true).open(&path)?;
        Ok(Output { path, file })
    }

    /// Writes the command down; gives where its output starts, and where it is to go.
    fn section(&mut self, command: &Command) -> Result<(u64, [Stdio; 2]), Failed> {
        use std::io::Write;
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        let started = writeln!(self.file, "$ {}", line.join(" "))
            .and_then(|()| self.file.metadata())
            .and_then(|metadata| {
                let streams = [self.file.try_clone()?.into(), self.file.try_clone()?.into()];
                Ok((metadata.len(), streams))
            });
        started.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Failed {
        Failed::Other { how: error.to_string(), tail: String::new(), path: self.path.clone() }
    }

    /// The last lines from an offset on.
    fn tail(&mut self, from: u64) -> String {
        const LINES: usize = 15;
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(from));
        // What there is of it is better than nothing.
        let _ = read.and_then(|_| self.file.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{all, get};

    fn quiet() -> impl FnMut(&str) {
        |_: &str| {}
    }

    #[test]
    fn a_stamp_tells_what_is_installed() {
        let cache = tempfile::tempdir().unwrap();
        let subject = get("gguf-py").unwrap();
        assert_eq!(subject.status(cache.path()), Status::NotInstalled);

        // As far as an installation that failed halfway comes.
        let executable = product(&subject, cache.path());
        fs::create_dir_all(executable.parent().unwrap()).unwrap();
        fs::write(&executable, "").unwrap();
        assert_eq!(subject.status(cache.path()), Status::NotInstalled);

        fs::write(stamp_path(&subject, cache.path()), stamp_of(&subject)).unwrap();
        assert_eq!(subject.status(cache.path()), Status::Installed);
        subject.install(cache.path(), &mut |line| panic!("it is there: {line}")).unwrap();

        let mut newer = subject.clone();
        let Install::Python { packages, .. } = &mut newer.manifest.install else { panic!() };
        packages[0] = "gguf==99.0".into();
        assert_eq!(newer.status(cache.path()), Status::OutOfDate);
        let mut other = subject.clone();
        other.files = &[("adapter.py", "pass")];
        assert_eq!(other.status(cache.path()), Status::OutOfDate);
        other.install(cache.path(), &mut |line| panic!("no package comes again: {line}")).unwrap();
        assert_eq!(other.status(cache.path()), Status::Installed);
        let adapter = fs::read_to_string(other.folder(cache.path()).join("adapter/adapter.py"));
        assert_eq!(adapter.unwrap(), "pass");

        fs::remove_file(&executable).unwrap();
        assert_eq!(subject.status(cache.path()), Status::NotInstalled);
    }

    #[test]
    fn words_about_a_subject_are_not_in_its_stamp() {
        let subject = get("gguf-py").unwrap();
        let mut other = subject.clone();
        other.manifest.summary = "other words".into();
        assert_eq!(stamp_of(&subject), stamp_of(&other));
    }

    #[test]
    fn builtins_are_served_by_the_command() {
        let (cache, exe) = (Path::new("cache"), Path::new("gguf-assay"));
        for name in ["reference", "ggml", "ggml-data"] {
            let subject = get(name).unwrap();
            assert_eq!(subject.status(cache), Status::Builtin);
            let program = subject.program(cache, exe);
            assert_eq!(
                (program.program.as_path(), program.args),
                (exe, vec!["serve".into(), name.into()])
            );
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let cache = tempfile::tempdir().unwrap();
        let mut subject = get("candle").unwrap();
        subject.name = "moved-away";
        let error = subject.install(cache.path(), &mut quiet()).unwrap_err().to_string();
        assert!(error.contains("run the command from a checkout"), "{error}");

        let mut steps =
            Steps { output: Output::create(cache.path().join("log")).unwrap(), log: &mut quiet() };
        let missing = steps.run("", &mut Command::new("no-such-command"));
        assert!(matches!(missing, Err(Failed::NotFound)));
    }

    #[cfg(unix)]
    #[test]
    fn a_failure_shows_the_end_of_its_own_output_and_where_the_rest_is() {
        let cache = tempfile::tempdir().unwrap();
        let log = cache.path().join("install.log");
        let mut steps = Steps { output: Output::create(log.clone()).unwrap(), log: &mut quiet() };
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        assert!(steps.run("first", &mut sh("echo earlier")).is_ok());
        let script =
            "for i in $(seq 100); do echo line $i; done; echo Could not resolve host >&2; exit 3";
        let Err(failure) = steps.run("second", &mut sh(script)) else { panic!("it fails") };
        let error = failure.with("it could not be done").to_string();
        assert!(error.starts_with("it could not be done (exit status: 3)\nline 87\n"), "{error}");
        assert!(error.contains("is this machine offline?"), "{error}");
        assert!(error.ends_with(&format!("is in {}", log.display())), "{error}");
        let whole = fs::read_to_string(log).unwrap();
        assert!(whole.contains("earlier") && whole.contains("line 1\n"), "{whole}");
    }

    #[test]
    fn every_folder_has_what_its_installation_needs() {
        for subject in all() {
            let has = |name: &str| subject.files.iter().any(|(file, _)| *file == name);
            assert!(has("expect.toml"), "{}: no expect.toml", subject.name);
            match &subject.manifest.install {
                Install::Builtin => assert_eq!(subject.version(), None),
                Install::Python { .. } => assert!(has(&subject.manifest.run.entry)),
                Install::Npm { .. } => {
                    assert!(has(&subject.manifest.run.entry) && has("package.json"));
                    let lock = crate::file(subject.files, "package-lock.json").unwrap();
                    let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
                    let packages = lock["packages"].as_object().unwrap().iter();
                    for (path, locked) in packages.filter(|(path, _)| !path.is_empty()) {
                        assert!(locked["integrity"].is_string(), "{}: {path}", subject.name);
                    }
                }
                Install::Cargo { adapter, .. } => {
                    assert!(has(&format!("{adapter}/Cargo.lock")), "{}", subject.name);
                }
            }
            if subject.manifest.install != Install::Builtin {
                assert!(subject.version().is_some(), "{}: which version is pinned?", subject.name);
            }
        }
    }
}
