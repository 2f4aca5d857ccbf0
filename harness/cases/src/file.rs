//! A case's file, ready to be written or read.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use gguf_assay_format::{Segment, Segments};
use sha2::{Digest, Sha256};

/// The bytes of a case's file; long runs of zeros take no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltFile(pub Segments);

impl BuiltFile {
    /// The size of the file in bytes.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether the file has no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole file in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Writes the file; long runs of zeros become holes.
    ///
    /// # Errors
    ///
    /// Whatever the file system says.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut file = std::fs::File::create(path)?;
        for segment in self.0.as_slice() {
            match segment {
                Segment::Bytes(bytes) => file.write_all(bytes)?,
                Segment::Zeros(len) => {
                    file.seek(SeekFrom::Current(*len as i64))?;
                }
            }
        }
        file.set_len(self.len())
    }

    /// The SHA-256 of the file in hex.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for segment in self.0.as_slice() {
            match segment {
                Segment::Bytes(bytes) => hash.update(bytes),
                Segment::Zeros(len) => hash_zeros(&mut hash, *len),
            }
        }
        hex(&hash.finalize())
    }
}

pub(crate) fn hash_zeros(hash: &mut Sha256, len: u64) {
    let zeros = [0; 1 << 16];
    let mut left = len;
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        hash.update(&zeros[..now as usize]);
        left -= now;
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_how_zeros_are_kept() {
        // SHA-256 of "abc" is the first example of FIPS 180-2.
        let abc = file([Segment::Bytes(b"abc".into())]);
        assert_eq!(
            abc.sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let zeros = file([Segment::Zeros(70_000), Segment::Bytes(b"abc".into())]);
        let flat = file([Segment::Bytes(zeros.to_bytes())]);
        assert_eq!(zeros.sha256(), flat.sha256());
    }

    fn file<const N: usize>(parts: [Segment; N]) -> BuiltFile {
        let mut segments = Segments::default();
        parts.into_iter().for_each(|part| segments.push(part));
        BuiltFile(segments)
    }
}
