//! Where the files of a checkpoint are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The files that a publisher ships, read in parts.
pub trait Files {
    /// The names of the files, in order. Folders within are not looked into.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn names(&self) -> io::Result<Vec<String>>;

    /// The length of a file in bytes.
    ///
    /// # Errors
    ///
    /// What the file system says.
    fn len(&self, name: &str) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// What the file system says; `UnexpectedEof` if there are not that many.
    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// How files begin that are found where others are looked for, and what they are.
const STRANGERS: [(&[u8], &str); 7] = [
    (b"version https://git-lfs", "a pointer of Git LFS, the file itself was not downloaded"),
    (b"<!", "a web page"),
    (b"<html", "a web page"),
    (b"PK\x03\x04", "a ZIP archive, as torch.save writes"),
    (b"\x80\x02", "a pickle of Python"),
    (b"GGUF", "a GGUF file"),
    (b"\x1f\x8b", "a file compressed by gzip"),
];

/// What a file is that begins like this, if it is none of a checkpoint.
pub(crate) fn stranger(start: &[u8]) -> Option<&'static str> {
    STRANGERS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind)
}

/// A folder.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this path.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Files for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // A name that is not UTF-8 is none that a checkpoint has.
            if let Ok(name) = entry.file_name().into_string()
                && entry.path().is_file()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.0.join(name))?.len())
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = File::open(self.0.join(name))?;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles(pub BTreeMap<String, Vec<u8>>);

impl Files for MemoryFiles {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        let bytes = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        u64::try_from(bytes.len()).map_err(io::Error::other)
    }

    fn read_at(&self, name: &str, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let part = bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }
}
