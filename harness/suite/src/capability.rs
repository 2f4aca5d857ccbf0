//! Which subject reads which tensor types, maps which architectures, and knows which methods of
//! quantization, as a run of the `dequantize`, the whole `names` and the sound `checkpoint` cases shows.

use std::collections::{BTreeMap, BTreeSet};

use gguf_assay_cases::{AnyCase, Corpus};
use gguf_assay_format::ByteOrder;
use serde::{Deserialize, Serialize};

use crate::report::Report;
use crate::{Outcome, Verdict};

/// The name and version of the JSON schema of [`Capabilities`].
pub const SCHEMA: &str = "gguf-assay/capabilities/2";

/// What subjects make of tensor types and architectures. It says nothing of how many cases there are, so that it
/// changes only when a reader does or a case shows more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// [`SCHEMA`].
    pub schema: String,
    /// The profile.
    pub profile: String,
    /// The subjects that dequantize, map names or know checkpoints, in the order of the run.
    pub subjects: Vec<Capability>,
}

/// What one subject makes of types and architectures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    /// The subject's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `pass`, or an [`Outcome`] that fails a case or leaves it unjudged, and the types of the cases
    /// that it occurs in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, BTreeSet<String>>,
    /// Likewise of the architectures whose names it maps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub architectures: BTreeMap<String, BTreeSet<String>>,
    /// Likewise of the methods of which it judges or unpacks checkpoints that are in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub methods: BTreeMap<String, BTreeSet<String>>,
}

/// Whether a subject reads a type, or maps an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reads {
    /// Every case right.
    Right,
    /// A value that is wrong, in some case.
    Wrong,
    /// No value in some case: refused, panicked, crashed, timed out.
    Fails,
    /// The subject does not have it, and says so.
    Unimplemented,
}

impl Reads {
    /// Every answer.
    pub const ALL: [Reads; 4] = [Reads::Right, Reads::Wrong, Reads::Fails, Reads::Unimplemented];

    /// The name in JSON, such as `unimplemented`.
    pub fn name(self) -> &'static str {
        match self {
            Reads::Right => "right",
            Reads::Wrong => "wrong",
            Reads::Fails => "fails",
            Reads::Unimplemented => "unimplemented",
        }
    }
}

impl Capabilities {
    /// What a run shows of the subjects that dequantize, map names or know checkpoints.
    ///
    /// # Errors
    ///
    /// Which subject was not run, and why: nothing is known of it.
    pub fn of(report: &Report, corpus: &Corpus) -> Result<Capabilities, String> {
        let mut subjects = Vec::new();
        for subject in &report.subjects {
            let Some(run) = &subject.run else {
                let why = subject.skipped.as_ref().or(subject.error.as_ref());
                return Err(format!("{}: {}", subject.name, why.map_or("not run", String::as_str)));
            };
            let mut capability = Capability {
                name: subject.name.clone(),
                version: run.about.version.clone(),
                types: BTreeMap::new(),
                architectures: BTreeMap::new(),
                methods: BTreeMap::new(),
            };
            for result in &run.results {
                let Some(case) = corpus.find(&result.case) else { continue };
                if !run.about.ops.iter().any(|op| op == case.operation()) {
                    continue;
                }
                let (list, what) = match case {
                    // Big-endian blocks say nothing of who reads the type: there are few such files.
                    AnyCase::Dequantize(case) if case.byte_order == ByteOrder::Little => {
                        (&mut capability.types, case.tensor_type.name.to_owned())
                    }
                    AnyCase::MapNames(case) if case.is_whole() => {
                        let input = case.input().map_err(|e| e.to_string())?;
                        (&mut capability.architectures, input.architecture())
                    }
                    AnyCase::Checkpoint(case) if !case.has_fault() => {
                        (&mut capability.methods, case.method().to_owned())
                    }
                    _ => continue,
                };
                // A subject that does not list the type is not even asked.
                let outcome = result.outcome.unwrap_or(Outcome::Unimplemented);
                let how = match result.verdict {
                    Verdict::Pass | Verdict::UnexpectedPass => Verdict::Pass.name(),
                    _ => outcome.name(),
                };
                list.entry(how.into()).or_default().insert(what);
            }
            let lists = [&capability.types, &capability.architectures, &capability.methods];
            if lists.iter().any(|list| !list.is_empty()) {
                subjects.push(capability);
            }
        }
        Ok(Capabilities { schema: SCHEMA.into(), profile: report.profile.clone(), subjects })
    }

    /// As JSON, a type a line.
    pub fn to_json(&self) -> String {
        // Plain data with string keys: nothing in it can fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// From JSON.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(json: &str) -> Result<Capabilities, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }
}

impl Capability {
    /// What is known of the type of this name; `None` if no case is about it.
    pub fn reads(&self, type_name: &str) -> Option<Reads> {
        what_of(&self.types, type_name)
    }

    /// What is known of the architecture of this name; `None` if no case is about it.
    pub fn maps(&self, architecture: &str) -> Option<Reads> {
        what_of(&self.architectures, architecture)
    }

    /// What is known of the method of this name; `None` if no case is about it.
    pub fn knows(&self, method: &str) -> Option<Reads> {
        what_of(&self.methods, method)
    }
}

fn what_of(list: &BTreeMap<String, BTreeSet<String>>, name: &str) -> Option<Reads> {
    let outcomes = list.iter().filter(|(_, names)| names.contains(name));
    let outcomes: BTreeSet<&str> = outcomes.map(|(outcome, _)| outcome.as_str()).collect();
    let (pass, wrong) = (Verdict::Pass.name(), Outcome::AcceptedWrongValue.name());
    let harmless = [pass, Outcome::Unimplemented.name()];
    if outcomes.contains(wrong) {
        Some(Reads::Wrong)
    } else if outcomes.iter().any(|outcome| !harmless.contains(outcome)) {
        Some(Reads::Fails)
    } else if outcomes.contains(pass) {
        Some(Reads::Right)
    } else {
        outcomes.first().map(|_| Reads::Unimplemented)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CorpusId, SubjectReport};
    use crate::{About, CaseResult, Run};

    fn result(case: &str, outcome: Option<Outcome>, verdict: Verdict) -> CaseResult {
        CaseResult {
            case: case.into(),
            outcome,
            verdict,
            detail: String::new(),
            reason: None,
            millis: 0,
        }
    }

    #[test]
    fn one_wrong_case_makes_a_type_wrong() {
        let results = vec![
            result("read/metadata/duplicate-key", Some(Outcome::Crashed), Verdict::Fail),
            result("dequantize/q4-0/high-nibbles-second", Some(Outcome::Accepted), Verdict::Pass),
            result("dequantize/q4-0/scale-nan", Some(Outcome::Panicked), Verdict::Fail),
            result(
                "dequantize/q4-0/scale-infinite",
                Some(Outcome::AcceptedWrongValue),
                Verdict::ExpectedFail,
            ),
            result("dequantize/q5-0/fifth-bits", Some(Outcome::Accepted), Verdict::Pass),
            result("dequantize/q5-0/every-quant", Some(Outcome::Rejected), Verdict::ExpectedFail),
            result("dequantize/q8-0/order", Some(Outcome::Accepted), Verdict::Pass),
            result("dequantize/q4-k/quant-order", None, Verdict::Skipped),
            result("names/whole/llama-to-transformers", Some(Outcome::Accepted), Verdict::Pass),
            result("names/whole/llama-to-gguf", Some(Outcome::Unimplemented), Verdict::Skipped),
            result(
                "names/whole/glm4moe-to-transformers",
                Some(Outcome::Rejected),
                Verdict::ExpectedFail,
            ),
            result("names/shapes/transposed", Some(Outcome::Accepted), Verdict::Fail),
        ];
        let corpus = Corpus::embedded();
        for result in &results {
            assert!(corpus.find(&result.case).is_some(), "{}", result.case);
        }
        let mut run = Run { about: About::new("reader", "1.2"), results, stale: Vec::new() };
        let reads_only = SubjectReport::of("reads-only", run.clone());
        run.about.ops.extend(["dequantize".into(), "map_names".into()]);
        let subjects = vec![reads_only, SubjectReport::of("reader", run)];
        let report = Report::new("", "ggml", CorpusId::of(&corpus), 12, subjects);
        let capabilities = Capabilities::of(&report, &corpus).unwrap();
        assert_eq!(capabilities.subjects.len(), 1);
        let reader = &capabilities.subjects[0];
        assert_eq!((reader.name.as_str(), reader.version.as_str()), ("reader", "1.2"));
        for (type_name, reads) in [
            ("Q4_0", Some(Reads::Wrong)),
            ("Q5_0", Some(Reads::Fails)),
            ("Q8_0", Some(Reads::Right)),
            ("Q4_K", Some(Reads::Unimplemented)),
            ("Q6_K", None),
        ] {
            assert_eq!(reader.reads(type_name), reads, "{type_name}");
        }
        for (architecture, maps) in
            [("llama", Some(Reads::Right)), ("glm4moe", Some(Reads::Fails)), ("qwen2", None)]
        {
            assert_eq!(reader.maps(architecture), maps, "{architecture}");
        }
        assert_eq!(Capabilities::parse(&capabilities.to_json()), Ok(capabilities));
    }

    #[test]
    fn nothing_is_recorded_of_what_was_not_run() {
        let absent = SubjectReport::skipped("reader", "not installed");
        let corpus = Corpus::embedded();
        let report = Report::new("", "ggml", CorpusId::of(&corpus), 0, vec![absent]);
        let error = Capabilities::of(&report, &corpus).unwrap_err();
        assert_eq!(error, "reader: not installed");
    }
}
