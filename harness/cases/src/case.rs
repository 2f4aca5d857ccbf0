//! Cases: parsing, building, expectations.

use std::borrow::Cow;
use std::fmt;

use gguf_assay_format::{
    ByteOrder, Data, Description, Fault, Profile, Rule, TensorDescription, lay_out,
};
use serde::Deserialize;
use toml::Table;

use crate::expected::{FileValue, elements};
use crate::fault;
use crate::file::BuiltFile;
use crate::syntax::{self, CaseData, CaseTensor};

/// What a profile expects of a reader.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RawVerdict")]
pub enum Verdict {
    /// The file is read, with the expected value.
    Accept,
    /// The file is refused, clearly.
    Reject,
    /// Both are right, for this reason. A crash, a hang or a wrong value is not.
    Either(String),
}

/// What is expected where a case says nothing of it.
pub(crate) fn accept() -> Verdict {
    Verdict::Accept
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawVerdict {
    Word(Word),
    Either { either: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Accept,
    Reject,
}

impl From<RawVerdict> for Verdict {
    fn from(raw: RawVerdict) -> Verdict {
        match raw {
            RawVerdict::Word(Word::Accept) => Verdict::Accept,
            RawVerdict::Word(Word::Reject) => Verdict::Reject,
            RawVerdict::Either { either } => Verdict::Either(either),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Accept => f.write_str("accept"),
            Verdict::Reject => f.write_str("reject"),
            Verdict::Either(reason) => write!(f, "either ({reason})"),
        }
    }
}

/// What is special about a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// The file is large: it is built and run only when asked for.
    Large,
}

/// What is wrong with a case, or with a file of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The case's id, or the file's name.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for CaseError {}

/// The text of a case, as TOML has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCase {
    pub(crate) id: String,
    pub(crate) rule: String,
    pub(crate) summary: String,
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) flags: Vec<Flag>,
    #[serde(flatten)]
    pub(crate) description: RawDescription,
    pub(crate) fault: Option<Table>,
    pub(crate) verdict: RawVerdicts,
    pub(crate) expect: Option<RawExpect>,
    pub(crate) value: Option<RawAny>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawVerdicts {
    spec: Verdict,
    ggml: Verdict,
}

impl Default for RawVerdicts {
    fn default() -> RawVerdicts {
        RawVerdicts { spec: Verdict::Accept, ggml: Verdict::Accept }
    }
}

impl RawVerdicts {
    pub(crate) fn of(&self, profile: Profile) -> &Verdict {
        match profile {
            Profile::Spec => &self.spec,
            Profile::Ggml => &self.ggml,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RawDescription {
    version: Option<u32>,
    #[serde(default)]
    byte_order: RawOrder,
    #[serde(default)]
    metadata: Vec<Table>,
    #[serde(default)]
    tensors: Vec<Table>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawOrder {
    #[default]
    Little,
    Big,
}

impl From<RawOrder> for ByteOrder {
    fn from(order: RawOrder) -> ByteOrder {
        match order {
            RawOrder::Little => ByteOrder::Little,
            RawOrder::Big => ByteOrder::Big,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawExpect {
    metadata: Option<Vec<Table>>,
    tensors: Option<Vec<Table>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAny {
    any: String,
}

/// A fault as a case keeps it.
#[derive(Clone, Debug)]
enum FaultText {
    Parsed(Fault),
    /// The fault of a large case holds large values: it is parsed when the file is built.
    Unparsed(Table),
}

/// A case: a description, at most one fault, and what is expected of a reader.
#[derive(Clone, Debug)]
pub struct Case {
    /// `read/<area>/<slug>`.
    pub id: String,
    /// The rule that it probes.
    pub rule: &'static Rule,
    /// What is special about the file.
    pub summary: String,
    /// Where anyone can look it up.
    pub source: String,
    /// What is special about the case.
    pub flags: Vec<Flag>,
    /// Why accepted values are not compared, if they are not.
    pub any_value: Option<String>,
    fault: Option<FaultText>,
    verdicts: RawVerdicts,
    description: RawDescription,
    expect: Option<RawExpect>,
}

impl Case {
    pub(crate) fn parse(raw: RawCase) -> Result<Case, CaseError> {
        let error = |message: String| CaseError { place: raw.id.clone(), message };
        let rule = crate::find_rule(&raw.rule)
            .ok_or_else(|| error(format!("there is no rule `{}`", raw.rule)))?;
        let fault = match raw.fault {
            Some(table) if raw.flags.contains(&Flag::Large) => Some(FaultText::Unparsed(table)),
            Some(table) => {
                let fault = fault::parse(&table);
                Some(FaultText::Parsed(fault.map_err(|e| error(format!("fault: {e}")))?))
            }
            None => None,
        };
        Ok(Case {
            fault,
            rule,
            id: raw.id,
            summary: raw.summary,
            source: raw.source,
            flags: raw.flags,
            any_value: raw.value.map(|value| value.any),
            verdicts: raw.verdict,
            description: raw.description,
            expect: raw.expect,
        })
    }

    /// The case of a sweep that cuts the file here.
    pub(crate) fn cut(
        sweep: &crate::corpus::RawSweep,
        id: String,
        rule: &'static Rule,
        at: &str,
        plus: i64,
        accepted: bool,
    ) -> Case {
        let verdict = if accepted { Verdict::Accept } else { Verdict::Reject };
        let place = if plus == 0 { "before".into() } else { format!("{plus} byte into") };
        Case {
            summary: format!("{}, cut {place} {at}", sweep.summary),
            source: sweep.source.clone(),
            flags: Vec::new(),
            any_value: None,
            fault: Some(FaultText::Parsed(Fault::Cut { at: at.into(), plus })),
            verdicts: RawVerdicts { spec: verdict.clone(), ggml: verdict },
            description: sweep.description.clone(),
            expect: None,
            id,
            rule,
        }
    }

    /// What `profile` expects.
    pub fn verdict(&self, profile: Profile) -> &Verdict {
        self.verdicts.of(profile)
    }

    /// The part of the id between the operation and the last name, such as `metadata`.
    pub fn area(&self) -> &str {
        self.id.split('/').nth(1).unwrap_or_default()
    }

    /// Whether the case is only built and run when asked for.
    pub fn is_large(&self) -> bool {
        self.flags.contains(&Flag::Large)
    }

    /// Whether there is a fault.
    pub fn has_fault(&self) -> bool {
        self.fault.is_some()
    }

    /// The fault, if there is one.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case.
    pub fn fault(&self) -> Result<Option<Cow<'_, Fault>>, CaseError> {
        match &self.fault {
            None => Ok(None),
            Some(FaultText::Parsed(fault)) => Ok(Some(Cow::Borrowed(fault))),
            Some(FaultText::Unparsed(table)) => {
                let fault = fault::parse(table).map_err(|e| self.error(format!("fault: {e}")))?;
                Ok(Some(Cow::Owned(fault)))
            }
        }
    }

    fn error(&self, message: impl Into<String>) -> CaseError {
        CaseError { place: self.id.clone(), message: message.into() }
    }

    /// The description without the fault.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case.
    pub fn description(&self) -> Result<Description, CaseError> {
        self.description.parse().map_err(|message| self.error(message))
    }

    /// The file of the description without the fault.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case.
    pub fn build_without_fault(&self) -> Result<BuiltFile, CaseError> {
        Ok(BuiltFile(lay_out(&self.description()?).segments))
    }

    /// The case's file.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case, such as a fault at a field that is not there.
    pub fn build(&self) -> Result<BuiltFile, CaseError> {
        let Some(fault) = self.fault()? else { return self.build_without_fault() };
        let file = fault.lay_out(&self.description()?);
        file.map(BuiltFile).map_err(|misplaced| self.error(misplaced.to_string()))
    }

    /// What a reader that accepts the file should have read; `None` if that is not compared: the case
    /// says so, or every profile refuses the file for bytes that mean nothing.
    ///
    /// It follows from the description, by the arithmetic of the layout: no reader had a part in it.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case.
    pub fn expected(&self) -> Result<Option<FileValue>, CaseError> {
        if self.any_value.is_some() {
            return Ok(None);
        }
        let fault = self.fault()?;
        let refused = Profile::ALL.into_iter().all(|p| *self.verdict(p) == Verdict::Reject);
        if refused && fault.as_ref().is_some_and(|fault| !fault.is_described()) {
            return Ok(None);
        }
        let mut raw = self.description.clone();
        if let Some(expect) = &self.expect {
            raw.metadata = expect.metadata.clone().unwrap_or(raw.metadata);
            raw.tensors = expect.tensors.clone().unwrap_or(raw.tensors);
        }
        let mut description = raw.parse().map_err(|message| self.error(message))?;
        if let Some(fault) = fault {
            fault.describe(&mut description).map_err(|e| self.error(e.to_string()))?;
        }
        let layout = lay_out(&description);
        Ok(Some(FileValue::of(&description, &layout.tensor_offsets)))
    }
}

impl RawDescription {
    pub(crate) fn parse(&self) -> syntax::Result<Description> {
        let mut metadata = Vec::new();
        for (index, table) in self.metadata.iter().enumerate() {
            metadata.push(syntax::entry(table).map_err(|e| format!("metadata[{index}]: {e}"))?);
        }
        let mut tensors = Vec::new();
        for (index, table) in self.tensors.iter().enumerate() {
            let tensor = syntax::tensor(table).and_then(|tensor| describe(index, tensor));
            tensors.push(tensor.map_err(|e| format!("tensors[{index}]: {e}"))?);
        }
        Ok(Description {
            version: self.version.unwrap_or(3),
            byte_order: self.byte_order.into(),
            metadata,
            tensors,
        })
    }
}

/// A tensor with its data: given, zeros, or counting up from 16 times its place.
fn describe(index: usize, tensor: CaseTensor) -> syntax::Result<TensorDescription> {
    let CaseTensor { name, tensor_type, dims, data, offset } = tensor;
    let len = elements(&dims).and_then(|n| tensor_type.byte_len(n));
    let len = len.ok_or("no size follows from its shape");
    let data = match data {
        CaseData::Bytes(bytes) => Data::Bytes(bytes),
        CaseData::Zeros => Data::Zeros(len?),
        CaseData::Counting => {
            let len = len?;
            if len > 1 << 20 {
                return Err("large data ought to be zeros".into());
            }
            let first = 16 * (index as u64 + 1);
            Data::Bytes((0..len).map(|place| (first + place) as u8).collect())
        }
    };
    Ok(TensorDescription { name, dims, type_id: tensor_type.id, offset, data })
}
