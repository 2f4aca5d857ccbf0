//! The one walk over a file, which serves the strict reading and the diagnosis.

mod data;
mod header;
mod metadata;
mod tensors;

use crate::cursor::{ByteOrder, CountWidth, Cursor};
use crate::path::ValuePath;
use crate::reader::{Entry, Gguf};
use crate::rule::{self, Rule};
use crate::violation::Report;
use crate::{Limits, Profile, Violation};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Strict(Profile),
    Diagnose,
}

/// Reading cannot or need not go on; the reason is in the list of violations.
pub(crate) struct Stop;

/// The state of one walk over a file.
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    cursor: Cursor<'a>,
    mode: Mode,
    limits: Limits,
    pub(crate) gguf: Option<Gguf<'a>>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) omitted: u64,
    pub(crate) refused: [bool; Profile::ALL.len()],
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8], mode: Mode, limits: Limits) -> Walk<'a> {
        Walk {
            bytes,
            cursor: Cursor::new(bytes, ByteOrder::Little, CountWidth::Eight),
            mode,
            limits,
            gguf: None,
            violations: Vec::new(),
            omitted: 0,
            refused: [false; 2],
        }
    }

    /// Whether a breach of `rule` would be reported.
    fn wants(&self, rule: &Rule) -> bool {
        match self.mode {
            Mode::Strict(profile) => rule.binds(profile),
            Mode::Diagnose => true,
        }
    }

    /// Reports a violation after which reading can go on; ends a strict reading that it binds.
    #[cold]
    fn report<R: Into<Report>>(
        &mut self,
        rule: &'static Rule,
        offset: usize,
        describe: impl FnOnce() -> R,
    ) -> Result<(), Stop> {
        if !self.wants(rule) {
            return Ok(());
        }
        for (refused, profile) in self.refused.iter_mut().zip(Profile::ALL) {
            *refused |= rule.binds(profile);
        }
        if self.violations.len() < self.limits.violations || self.mode != Mode::Diagnose {
            self.violations.push(Violation::new(rule, wide(offset), describe().into()));
        } else {
            self.omitted = self.omitted.saturating_add(1);
        }
        match self.mode {
            Mode::Strict(_) => Err(Stop),
            Mode::Diagnose => Ok(()),
        }
    }

    /// Reports a violation after which nothing more can be read.
    #[cold]
    fn fatal<R: Into<Report>>(
        &mut self,
        rule: &'static Rule,
        offset: usize,
        describe: impl FnOnce() -> R,
    ) -> Stop {
        match self.report(rule, offset, describe) {
            Ok(()) | Err(Stop) => Stop,
        }
    }

    /// The file ends inside the field that starts at the cursor.
    #[cold]
    fn truncated(&mut self, field: String, what: &str, needed: Option<u64>) -> Stop {
        let left = wide(self.cursor.remaining());
        let position = self.cursor.position();
        self.fatal(&rule::FILE_002, position, || {
            let missing = needed.and_then(|needed| needed.checked_sub(left));
            let found = match missing {
                Some(missing) => format!("{}, {missing} missing", count(left, "byte")),
                None => count(left, "byte"),
            };
            let found = format!("the end of the file after {found}");
            let expected = match needed {
                Some(needed) => format!("{what}, {}", count(needed, "byte")),
                None => format!("{what}, 2^64 bytes or more"),
            };
            Report { field, found, expected, missing }
        })
    }

    pub(crate) fn file(&mut self) -> Result<(), Stop> {
        let (tensor_count, kv_count) = self.header()?;
        self.metadata(kv_count)?;
        let alignment = self.general_keys()?;
        if let Some(gguf) = &mut self.gguf {
            gguf.alignment = alignment;
        }
        if tensor_count > wide(self.bytes.len()) {
            return Err(Stop);
        }
        self.tensors(tensor_count)?;
        self.layout()?;
        if self.mode == Mode::Diagnose {
            self.noted_keys()?;
        }
        Ok(())
    }

    /// The first entry with this key, and its place.
    fn find(&self, key: &str) -> Option<(usize, Entry<'a>)> {
        let entries = &self.gguf.as_ref()?.metadata;
        let index = entries.iter().position(|entry| entry.key == key)?;
        Some((index, *entries.get(index)?))
    }
}

fn value_field(index: usize) -> String {
    ValuePath::Entry(index).to_string()
}

/// Records `0..count`; the walk ends with the file long before a count beyond `usize` could.
fn indices(count: u64) -> std::ops::Range<usize> {
    0..usize::try_from(count).unwrap_or(usize::MAX)
}

/// `1 byte`, `2 bytes`.
fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Positions in memory are never wider than 64 bits.
fn wide(position: usize) -> u64 {
    u64::try_from(position).unwrap_or(u64::MAX)
}

/// A position in the file as one in memory; beyond memory there is nothing to index.
fn narrow(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
