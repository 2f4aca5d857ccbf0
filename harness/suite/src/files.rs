//! The cases' files in a folder of their own, which goes away with the value.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use gguf_assay_cases::{BuiltFile, Case, CheckpointCase};

/// Numbers that no other folder or file of this process has.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A temporary folder for the files of cases.
#[derive(Debug)]
pub struct CaseFiles {
    dir: PathBuf,
}

impl CaseFiles {
    /// Makes the folder.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn new() -> std::io::Result<CaseFiles> {
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(format!("gguf-assay-{process}-{next}"));
        fs::create_dir_all(&dir)?;
        Ok(CaseFiles { dir })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Builds the file of a case, if it is not there yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, or what the file system says.
    pub fn path(&self, case: &Case) -> Result<PathBuf, String> {
        self.built(&case.id, || case.build().map_err(|e| e.to_string()))
    }

    /// The file of the case `id`, built if it is not there yet.
    pub(crate) fn built(
        &self,
        id: &str,
        build: impl FnOnce() -> Result<BuiltFile, String>,
    ) -> Result<PathBuf, String> {
        let path = self.dir.join(format!("{id}.gguf"));
        self.made(path, || {
            let file = build()?;
            Ok(move |path: &Path| file.write_to(path))
        })
    }

    /// Builds the folder of a case, if it is not there yet.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, or what the file system says.
    pub fn folder(&self, case: &CheckpointCase) -> Result<PathBuf, String> {
        self.made(self.dir.join(&case.id), || {
            let files = case.build().map_err(|e| e.to_string())?;
            Ok(move |path: &Path| files.write_to(path))
        })
    }

    /// What `make` gives has written it at this path, if nothing is there yet.
    fn made<W: FnOnce(&Path) -> std::io::Result<()>>(
        &self,
        path: PathBuf,
        make: impl FnOnce() -> Result<W, String>,
    ) -> Result<PathBuf, String> {
        if !path.exists() {
            let write = make()?;
            let folder = path.parent().unwrap_or(&self.dir);
            // Several subjects run at once: what is there is whole before it has its name.
            let unfinished =
                path.with_extension(format!("{}", NEXT.fetch_add(1, Ordering::Relaxed)));
            let done = fs::create_dir_all(folder)
                .and_then(|()| write(&unfinished))
                .and_then(|()| fs::rename(&unfinished, &path));
            // Another may have been first, and a folder does not take the place of a full one.
            if let Err(error) = done
                && !path.exists()
            {
                return Err(format!("{}: {error}", path.display()));
            }
        }
        Ok(path)
    }
}

impl Drop for CaseFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
