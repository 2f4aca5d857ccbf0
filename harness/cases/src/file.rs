//! A case's file, ready to be written or read.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use gguf_assay_format::{Layout, Segment};
use sha2::{Digest, Sha256};

/// The bytes of a case's file; long runs of zeros take no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltFile {
    segments: Vec<Segment>,
}

impl From<Layout> for BuiltFile {
    fn from(layout: Layout) -> BuiltFile {
        BuiltFile { segments: layout.segments().to_vec() }
    }
}

impl BuiltFile {
    /// The size of the file in bytes.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(Segment::len).sum()
    }

    /// Whether the file has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole file in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for segment in &self.segments {
            match segment {
                Segment::Bytes(part) => bytes.extend_from_slice(part),
                Segment::Zeros(len) => bytes.resize(bytes.len() + *len as usize, 0),
            }
        }
        bytes
    }

    /// Writes the file; long runs of zeros become holes.
    ///
    /// # Errors
    ///
    /// Whatever the file system says.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut file = std::fs::File::create(path)?;
        for segment in &self.segments {
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
        for segment in &self.segments {
            match segment {
                Segment::Bytes(bytes) => hash.update(bytes),
                Segment::Zeros(len) => hash_zeros(&mut hash, *len),
            }
        }
        hex(&hash.finalize())
    }

    /// Replaces the bytes from `start` to `end` by others; `end` may be the end of the file.
    pub(crate) fn splice(&mut self, start: u64, end: u64, bytes: &[u8]) {
        let mut out = Vec::new();
        let mut position = 0;
        let mut placed = false;
        let place = |out: &mut Vec<Segment>, placed: &mut bool| {
            if !std::mem::replace(placed, true) {
                push(out, Segment::Bytes(bytes.to_vec()));
            }
        };
        for segment in std::mem::take(&mut self.segments) {
            let (from, to) = (position, position + segment.len());
            position = to;
            if from < start {
                push(&mut out, part(&segment, 0, start.min(to) - from));
            }
            if to >= start {
                place(&mut out, &mut placed);
            }
            if to > end {
                push(&mut out, part(&segment, end.max(from) - from, to - from));
            }
        }
        place(&mut out, &mut placed);
        self.segments = out;
    }

    /// The bytes of a small stretch.
    pub(crate) fn slice(&self, start: u64, end: u64) -> Vec<u8> {
        let mut head = self.clone();
        head.splice(end, head.len(), &[]);
        head.splice(0, start, &[]);
        head.to_bytes()
    }
}

fn part(segment: &Segment, from: u64, to: u64) -> Segment {
    match segment {
        Segment::Bytes(bytes) => Segment::Bytes(bytes[from as usize..to as usize].to_vec()),
        Segment::Zeros(_) => Segment::Zeros(to - from),
    }
}

/// Adds a segment, joined with the last where both are bytes, so that equal files compare equal.
fn push(segments: &mut Vec<Segment>, segment: Segment) {
    match (segments.last_mut(), segment) {
        (_, segment) if segment.is_empty() => {}
        (Some(Segment::Bytes(last)), Segment::Bytes(bytes)) => last.extend(bytes),
        (_, segment) => segments.push(segment),
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

    fn sample() -> BuiltFile {
        BuiltFile {
            segments: vec![
                Segment::Bytes(b"abc".into()),
                Segment::Zeros(5),
                Segment::Bytes(b"xyz".into()),
            ],
        }
    }

    #[test]
    fn splicing_is_what_it_is_on_bytes() {
        for start in 0..=11usize {
            for end in start..=11 {
                let mut file = sample();
                file.splice(start as u64, end as u64, b"NEW");
                let mut bytes = b"abc\0\0\0\0\0xyz".to_vec();
                bytes.splice(start..end, *b"NEW");
                assert_eq!(file.to_bytes(), bytes, "{start}..{end}");
                assert_eq!(file.len(), bytes.len() as u64);
            }
        }
    }

    #[test]
    fn the_hash_does_not_depend_on_how_zeros_are_kept() {
        // SHA-256 of "abc" is the first example of FIPS 180-2.
        let abc = BuiltFile { segments: vec![Segment::Bytes(b"abc".into())] };
        assert_eq!(
            abc.sha256(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let flat = BuiltFile { segments: vec![Segment::Bytes(sample().to_bytes())] };
        assert_eq!(sample().sha256(), flat.sha256());
    }
}
