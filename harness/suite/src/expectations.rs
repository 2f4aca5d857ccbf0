//! A subject's known failures. Strict: what is listed must fail, in the way that is listed.

use std::collections::BTreeSet;

use gguf_assay_format::Profile;
use serde::Deserialize;

use crate::Outcome;

/// The known failures of a subject, from an expectation file:
///
/// ```toml
/// [[expect]]
/// cases = ["read/arrays/count-2-pow-40"]   # ids, or patterns with *
/// outcome = "timed-out"
/// reason = "a Python loop up to the declared count"
/// link = "https://github.com/ggml-org/llama.cpp/pull/27188"
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// The entries, in the order of the file.
    #[serde(default)]
    pub expect: Vec<Entry>,
}

/// Cases that fail for one reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Ids of cases, or patterns in which `*` stands for anything.
    pub cases: Vec<String>,
    /// What the subject does with them.
    pub outcome: OneOrMore,
    /// Why.
    pub reason: String,
    /// Where that is discussed, if it is.
    pub link: Option<String>,
    /// The profile under which it is a failure; both, if left out.
    pub profile: Option<String>,
}

/// An outcome, or several where the machine decides which it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// Always this.
    One(Outcome),
    /// One of these.
    More(Vec<Outcome>),
}

impl OneOrMore {
    fn contains(&self, outcome: Outcome) -> bool {
        match self {
            OneOrMore::One(one) => *one == outcome,
            OneOrMore::More(more) => more.contains(&outcome),
        }
    }
}

impl Entry {
    fn counts_under(&self, profile: Profile) -> bool {
        self.profile.as_ref().is_none_or(|name| name == profile.name())
    }

    fn covers(&self, id: &str) -> bool {
        self.cases.iter().any(|pattern| matches(pattern, id))
    }

    /// Whether the outcome is one that the entry says.
    pub fn allows(&self, outcome: Outcome) -> bool {
        self.outcome.contains(outcome)
    }
}

impl Expectations {
    /// Parses an expectation file.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Expectations, String> {
        let expectations: Expectations = toml::from_str(text).map_err(|e| e.to_string())?;
        for entry in &expectations.expect {
            if entry.reason.trim().is_empty() {
                return Err(format!("the entry for {:?} has no reason", entry.cases));
            }
            if let Some(profile) = &entry.profile {
                profile.parse::<Profile>()?;
            }
        }
        Ok(expectations)
    }

    /// The entry that lists this case under this profile.
    pub fn entry(&self, id: &str, profile: Profile) -> Option<&Entry> {
        self.expect.iter().find(|entry| entry.counts_under(profile) && entry.covers(id))
    }

    /// Patterns that match none of these ids, and ids that two entries list.
    pub fn stale<'a>(
        &self,
        ids: impl Iterator<Item = &'a str> + Clone,
        profile: Profile,
    ) -> Vec<String> {
        let mut complaints = BTreeSet::new();
        let entries = || self.expect.iter().filter(|entry| entry.counts_under(profile));
        for pattern in entries().flat_map(|entry| &entry.cases) {
            if !ids.clone().any(|id| matches(pattern, id)) {
                complaints.insert(format!("`{pattern}` matches no case"));
            }
        }
        for id in ids {
            if entries().filter(|entry| entry.covers(id)).count() > 1 {
                complaints.insert(format!("`{id}` is listed by two entries"));
            }
        }
        complaints.into_iter().collect()
    }
}

/// Whether a pattern, in which `*` stands for any characters, matches the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    // The last part ends the text; those before it are found from left to right.
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("a/b", "a/b", true),
            ("a/b", "a/bc", false),
            ("a/*", "a/b/c", true),
            ("*", "", true),
            ("*-plus-1", "x-plus-1", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn entries_need_a_reason_and_patterns_a_match() {
        let entry = |reason: &str| {
            format!("[[expect]]\ncases = [\"a/*\"]\noutcome = \"crashed\"\nreason = \"{reason}\"")
        };
        assert!(Expectations::parse(&entry("")).is_err());
        let expectations = Expectations::parse(&entry("known")).unwrap();
        assert!(expectations.stale(["a/b"].into_iter(), Profile::Ggml).is_empty());
        let stale = expectations.stale(["b/b"].into_iter(), Profile::Ggml);
        assert_eq!(stale, ["`a/*` matches no case"]);
    }
}
