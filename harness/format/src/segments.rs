//! The bytes of a file, of which long runs of zeros take no memory.

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many zeros: a hole, where the file system has holes.
    Zeros(u64),
}

impl Segment {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Segment::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Segment::Zeros(len) => *len,
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part between two places in the segment.
    fn part(&self, from: u64, to: u64) -> Segment {
        match self {
            Segment::Bytes(bytes) => {
                let place = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
                Segment::Bytes(bytes.get(place(from)..place(to)).unwrap_or_default().to_vec())
            }
            Segment::Zeros(_) => Segment::Zeros(to.saturating_sub(from)),
        }
    }
}

/// Stretches of a file, one behind the other.
///
/// Neighbours that are both bytes are one segment, and none is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// The stretches, in order.
    pub fn as_slice(&self) -> &[Segment] {
        &self.0
    }

    /// The number of bytes.
    pub fn len(&self) -> u64 {
        self.0.iter().fold(0, |sum, segment| sum.saturating_add(segment.len()))
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All bytes in memory. Where there are large holes, write the stretches instead: as every
    /// `Vec`, this one panics if it cannot grow.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for segment in &self.0 {
            match segment {
                Segment::Bytes(part) => bytes.extend_from_slice(part),
                Segment::Zeros(len) => {
                    let len = usize::try_from(*len).unwrap_or(usize::MAX);
                    bytes.resize(bytes.len().saturating_add(len), 0);
                }
            }
        }
        bytes
    }

    /// Adds a stretch at the end.
    pub fn push(&mut self, segment: Segment) {
        match (self.0.last_mut(), segment) {
            (_, segment) if segment.is_empty() => {}
            (Some(Segment::Bytes(last)), Segment::Bytes(bytes)) => last.extend(bytes),
            (_, segment) => self.0.push(segment),
        }
    }

    /// Puts `bytes` in the place of those from `start` to `end`, which may be the end of the file.
    pub fn splice(&mut self, start: u64, end: u64, bytes: &[u8]) {
        let mut out = Segments::default();
        let mut new = Some(Segment::Bytes(bytes.to_vec()));
        let mut from = 0u64;
        for segment in std::mem::take(&mut self.0) {
            let to = from.saturating_add(segment.len());
            if from < start {
                out.push(segment.part(0, start.min(to).saturating_sub(from)));
            }
            if to >= start
                && let Some(new) = new.take()
            {
                out.push(new);
            }
            if to > end {
                out.push(segment.part(end.max(from).saturating_sub(from), segment.len()));
            }
            from = to;
        }
        if let Some(new) = new {
            out.push(new);
        }
        *self = out;
    }

    /// The bytes from `start` to `end`, all of them in memory.
    pub fn slice(&self, start: u64, end: u64) -> Vec<u8> {
        let mut part = self.clone();
        part.splice(end, part.len(), &[]);
        part.splice(0, start, &[]);
        part.to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splicing_is_what_it_is_on_bytes() {
        let mut sample = Segments::default();
        for segment in
            [Segment::Bytes(b"abc".into()), Segment::Zeros(5), Segment::Bytes(b"xyz".into())]
        {
            sample.push(segment);
        }
        for start in 0..=11usize {
            for end in start..=11 {
                let mut spliced = sample.clone();
                spliced.splice(start as u64, end as u64, b"NEW");
                let mut bytes = b"abc\0\0\0\0\0xyz".to_vec();
                assert_eq!(sample.slice(start as u64, end as u64), bytes[start..end]);
                bytes.splice(start..end, *b"NEW");
                assert_eq!(spliced.to_bytes(), bytes, "{start}..{end}");
                assert_eq!(spliced.len(), bytes.len() as u64);
            }
        }
    }
}
