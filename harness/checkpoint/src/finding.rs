//! What is wrong with a checkpoint.

use std::collections::BTreeMap;
use std::fmt;

use gguf_assay_format::{Requirement, Rule, printable};

/// One thing that is wrong, or that deserves a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The file that it is about.
    pub file: Option<String>,
    /// Where in it, in bytes.
    pub offset: Option<u64>,
    /// The field of a config or of a header, with dots: `quantization_config.bits`.
    pub field: Option<String>,
    /// The module: `model.layers.0.mlp.down_proj`.
    pub module: Option<String>,
    /// Other modules of which the very same is to be said.
    pub others: Vec<String>,
    /// The tensor.
    pub tensor: Option<String>,
    /// What is there.
    pub found: String,
    /// What it would need to be, and by whose account.
    pub expected: String,
    /// Who refuses it, as far as is known.
    pub refused_by: Vec<Refusal>,
}

/// A loader that refuses a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its name and version: `vLLM 0.33.0`.
    pub loader: &'static str,
    /// What it says, or does not support.
    pub says: &'static str,
}

impl Finding {
    /// A finding without a place.
    pub fn new(
        rule: &'static Rule,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Finding {
        Finding {
            rule,
            file: None,
            offset: None,
            field: None,
            module: None,
            others: Vec::new(),
            tensor: None,
            found: found.into(),
            expected: expected.into(),
            refused_by: Vec::new(),
        }
    }

    /// The same in a file.
    pub fn in_file(mut self, file: impl Into<String>) -> Finding {
        self.file = Some(file.into());
        self
    }

    /// The same at an offset.
    pub fn at(mut self, offset: u64) -> Finding {
        self.offset = Some(offset);
        self
    }

    /// The same about a field.
    pub fn of_field(mut self, field: impl Into<String>) -> Finding {
        self.field = Some(field.into());
        self
    }

    /// The same about a module.
    pub fn of_module(mut self, module: impl Into<String>) -> Finding {
        self.module = Some(module.into());
        self
    }

    /// The same about a tensor.
    pub fn of_tensor(mut self, tensor: impl Into<String>) -> Finding {
        self.tensor = Some(tensor.into());
        self
    }

    /// The same with those who refuse it.
    pub fn refused_by(mut self, refusals: &[Refusal]) -> Finding {
        self.refused_by.extend(refusals);
        self
    }

    /// Whether the checkpoint is refused for it; else it is a note.
    pub fn is_fault(&self) -> bool {
        let rule = self.rule;
        [rule.spec, rule.ggml, rule.policy]
            .iter()
            .any(|requirement| matches!(requirement, Requirement::Must(_)))
    }
}

/// What is found, of each rule and file as many as a person reads: whoever damages a file a million
/// times gets a count for it.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    /// How many there are of a rule in a file, and where in the list the last is that is told.
    counts: BTreeMap<(&'static str, Option<String>), (u64, usize)>,
}

impl Findings {
    /// As many are told of a rule in a file.
    const MOST: u64 = 100;

    pub(crate) fn add(&mut self, finding: Finding) {
        let key = (finding.rule.id, finding.file.clone());
        let (count, last) = self.counts.entry(key).or_default();
        *count = count.saturating_add(1);
        if *count <= Findings::MOST {
            *last = self.list.len();
            self.list.push(finding);
        }
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// All of them; the last of those that are too many says how many more there are.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        for (count, last) in self.counts.into_values() {
            let more = count.saturating_sub(Findings::MOST);
            if more > 0
                && let Some(finding) = self.list.get_mut(last)
            {
                finding.found.push_str(&format!("; {more} more are like it in this file"));
            }
        }
        self.list
    }
}

/// On one line, for a person: what, where, what was found and what was expected.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        let places = [&self.file, &self.field, &self.module, &self.tensor];
        for place in places.into_iter().flatten() {
            write!(f, " {}", printable(place, 200))?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at {offset:#x}")?;
        }
        write!(f, ": {}; expected {}", printable(&self.found, 400), printable(&self.expected, 400))
    }
}
