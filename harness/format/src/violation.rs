//! What is wrong with a file, and where.

use core::fmt;

use crate::{Profile, Rule};

/// One breach of one rule: what was found, what was expected, and where.
///
/// A word wide, so that results stay small. The texts are for people: file contents in them are
/// escaped ([`Text`](crate::Text)) and cut, and their wording may change; match on
/// [`rule`](Violation::rule).
#[derive(Clone, PartialEq, Eq)]
pub struct Violation(Box<Details>);

#[derive(Clone, PartialEq, Eq)]
struct Details {
    rule: &'static Rule,
    offset: u64,
    report: Report,
}

/// What the walk says of a violation besides its rule and offset.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) field: String,
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) missing: Option<u64>,
}

impl From<(String, String, String)> for Report {
    fn from((field, found, expected): (String, String, String)) -> Report {
        Report { field, found, expected, missing: None }
    }
}

impl Violation {
    #[cold]
    pub(crate) fn new(rule: &'static Rule, offset: u64, report: Report) -> Violation {
        Violation(Box::new(Details { rule, offset, report }))
    }

    /// The rule that is broken.
    pub fn rule(&self) -> &'static Rule {
        self.0.rule
    }

    /// Where the faulty field starts, in bytes from the start of the file.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// The path of the faulty field, such as `metadata[3].value.count`.
    pub fn field(&self) -> &str {
        &self.0.report.field
    }

    /// What the file has there.
    pub fn found(&self) -> &str {
        &self.0.report.found
    }

    /// What the rule asks for.
    pub fn expected(&self) -> &str {
        &self.0.report.expected
    }

    /// Whether `profile` refuses the file for it; if not, it is a note under that profile.
    pub fn binds(&self, profile: Profile) -> bool {
        self.0.rule.binds(profile)
    }

    /// How many bytes the file lacks at this field, at least, if it ends too early and that can be
    /// told.
    pub fn missing(&self) -> Option<u64> {
        self.0.report.missing
    }

    /// Whether the file seems to end too early.
    pub fn is_truncation(&self) -> bool {
        ["FILE-001", "FILE-002", "DATA-004", "DATA-005"].contains(&self.0.rule.id)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rule, field, offset) = (self.rule(), self.field(), self.offset());
        write!(f, "{rule} at {field} (byte {offset:#x}): {}: ", rule.title)?;
        write!(f, "found {}, expected {}", self.found(), self.expected())
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Violation {}
