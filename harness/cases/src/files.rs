//! The files that the cases build, on disk.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{BuiltFile, Case, CaseError, Corpus, MAX_COMMITTED, NamesInput, sha256};

/// Where the file of a case lies below the corpus folder, if it is committed.
pub fn path_of(dir: &Path, case: &Case) -> PathBuf {
    dir.join(format!("{}.gguf", case.id))
}

/// The manifest: SHA-256, size and id of every file that is not large, in order of the ids; those of a
/// checkpoint have the file's name behind the id.
///
/// # Errors
///
/// What is wrong with a case.
pub fn manifest(corpus: &Corpus) -> Result<String, CaseError> {
    let mut lines = Vec::new();
    let gguf = |id: &String, file: &BuiltFile| (id.clone(), file.sha256(), file.len());
    for case in corpus.cases.iter().filter(|case| !case.is_large()) {
        lines.push(gguf(&case.id, &case.build()?));
    }
    for case in &corpus.names {
        if let NamesInput::File { file, .. } = case.input()? {
            lines.push(gguf(&case.id, &file));
        }
    }
    for case in &corpus.checkpoints {
        let files = case.build()?.0.into_iter();
        lines.extend(files.map(|(name, bytes)| {
            (format!("{}/{name}", case.id), sha256(&bytes), bytes.len() as u64)
        }));
    }
    lines.sort();
    let mut text = String::new();
    for (id, sha256, len) in lines {
        let _ = writeln!(text, "{sha256}  {len}  {id}");
    }
    Ok(text)
}

/// Writes the small files and the manifest, and removes files that no case builds. Returns how many
/// files were written.
///
/// # Errors
///
/// What is wrong with a case, or what the file system says.
pub fn write(corpus: &Corpus, dir: &Path) -> Result<usize, CaseError> {
    let io = |path: &Path, e: std::io::Error| CaseError {
        place: path.display().to_string(),
        message: e.to_string(),
    };
    let mut written = 0;
    let mut known = HashSet::new();
    for case in corpus.cases.iter().filter(|case| !case.is_large()) {
        let file = case.build()?;
        let path = path_of(dir, case);
        if file.len() > MAX_COMMITTED {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| io(folder, e))?;
        }
        let bytes = file.to_bytes();
        if fs::read(&path).ok().as_deref() != Some(&bytes[..]) {
            file.write_to(&path).map_err(|e| io(&path, e))?;
            written += 1;
        }
        known.insert(path);
    }
    for path in on_disk(dir) {
        if !known.contains(&path) {
            fs::remove_file(&path).map_err(|e| io(&path, e))?;
        }
    }
    let path = dir.join("MANIFEST");
    fs::write(&path, manifest(corpus)?).map_err(|e| io(&path, e))?;
    Ok(written)
}

/// Writes every file that a case builds and that is not large below `dir`, whether it is committed or not.
/// Returns how many there are.
///
/// # Errors
///
/// What is wrong with a case, or what the file system says.
pub fn write_all(corpus: &Corpus, dir: &Path) -> Result<usize, CaseError> {
    let mut written = 0;
    let mut write = |id: &str, file: BuiltFile| {
        written += 1;
        let path = dir.join(format!("{id}.gguf"));
        let folder = path.parent().unwrap_or(dir);
        let done = fs::create_dir_all(folder).and_then(|()| file.write_to(&path));
        done.map_err(|e| CaseError { place: path.display().to_string(), message: e.to_string() })
    };
    for case in corpus.cases.iter().filter(|case| !case.is_large()) {
        write(&case.id, case.build()?)?;
    }
    for case in &corpus.names {
        if let NamesInput::File { file, .. } = case.input()? {
            write(&case.id, file)?;
        }
    }
    for case in &corpus.checkpoints {
        let (files, folder) = (case.build()?, dir.join(&case.id));
        written += files.0.len();
        files.write_to(&folder).map_err(|e| CaseError {
            place: folder.display().to_string(),
            message: e.to_string(),
        })?;
    }
    Ok(written)
}

/// Everything in which the files on disk differ from what the cases build.
pub fn compare(corpus: &Corpus, dir: &Path) -> Vec<CaseError> {
    let mut errors = Vec::new();
    let mut known = HashSet::new();
    for case in corpus.cases.iter().filter(|case| !case.is_large()) {
        let mut say = |message: &str| {
            errors.push(CaseError { place: case.id.clone(), message: message.into() });
        };
        let Ok(file) = case.build() else { continue };
        if file.len() > MAX_COMMITTED {
            continue;
        }
        let path = path_of(dir, case);
        match fs::read(&path) {
            Err(_) => say("its file is not there; run gguf-assay build-corpus"),
            Ok(bytes) if bytes != file.to_bytes() => {
                say("its file is not what the TOML builds; run gguf-assay build-corpus");
            }
            Ok(_) => {}
        }
        known.insert(path);
    }
    for path in on_disk(dir) {
        if !known.contains(&path) {
            let message = "no case builds this file; run gguf-assay build-corpus".into();
            errors.push(CaseError { place: path.display().to_string(), message });
        }
    }
    let manifest = manifest(corpus).unwrap_or_default();
    if fs::read_to_string(dir.join("MANIFEST")).ok() != Some(manifest) {
        let message = "not up to date; run gguf-assay build-corpus".into();
        errors.push(CaseError { place: "MANIFEST".into(), message });
    }
    errors
}

/// Every .gguf file below `dir/read` and the folders of other operations.
fn on_disk(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    // No case builds them: they are what cases are built of.
    let pairs = dir.join("names/pairs");
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| *path != pairs) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "gguf") {
                found.push(path);
            }
        }
    }
    found
}
