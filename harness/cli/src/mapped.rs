//! The one place that maps files.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use anyhow::{Context, Result, bail};
use memmap2::Mmap;

/// A file's bytes, mapped: a model of any size takes no memory but for the pages that are looked at.
pub(crate) struct MappedFile {
    /// `None` for an empty file, which cannot be mapped.
    map: Option<Mmap>,
}

impl MappedFile {
    pub(crate) fn open(path: &Path) -> Result<MappedFile> {
        let context = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(context)?;
        let metadata = file.metadata().with_context(context)?;
        if metadata.is_dir() {
            bail!("{} is a folder; name a file", path.display());
        }
        if !metadata.is_file() {
            bail!("{} is not a regular file", path.display());
        }
        if metadata.len() == 0 {
            return Ok(MappedFile { map: None });
        }
        // SAFETY: the map is read-only, and the bytes are only ever looked at as `u8`, for which any
        // value is valid. Another process that changes the file meanwhile can make two looks differ;
        // the reader checks and uses each byte through the one slice, and holds no references into
        // it that assume more than its length. One that shortens the file ends this process by a
        // signal, which is the risk that memory-mapping takes.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }.with_context(context)?;
        Ok(MappedFile { map: Some(map) })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
