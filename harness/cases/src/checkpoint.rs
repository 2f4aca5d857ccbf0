//! Cases that ask whether a checkpoint is in order, and what the numbers of a module are.

use std::collections::BTreeMap;

use gguf_assay_format::Rule;
use serde::Deserialize;
use toml::{Table, Value};

use crate::case::{CaseError, Verdict, accept};
use crate::folder::{BuiltFolder, Edit, Folder};
use crate::syntax::{self, Result};

/// The text of a checkpoint that cases are made of, as TOML has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBase {
    pub(crate) name: String,
    from: Option<String>,
    config: Option<Value>,
    #[serde(default)]
    files: Table,
    #[serde(default)]
    tensors: Vec<Table>,
    #[serde(default)]
    edit: Vec<Table>,
}

/// The text of such a case, as TOML has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCheckpoint {
    pub(crate) id: String,
    rule: String,
    summary: String,
    source: String,
    base: String,
    #[serde(default)]
    op: Op,
    module: Option<String>,
    tp: Option<u32>,
    #[serde(default)]
    edit: Vec<Table>,
    #[serde(default)]
    fault: RawFault,
    #[serde(default = "accept")]
    verdict: Verdict,
    #[serde(default)]
    says: Vec<String>,
    expect: Option<RawExpect>,
}

/// What is wrong: nothing, one change, or one thing that takes several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum RawFault {
    One(Table),
    Several(Vec<Table>),
}

impl Default for RawFault {
    fn default() -> RawFault {
        RawFault::Several(Vec::new())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    #[default]
    Judge,
    Unpack,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpect {
    method: Option<String>,
    bits: Option<u64>,
    group_size: Option<i64>,
    symmetric: Option<bool>,
    experts: Option<String>,
    #[serde(default)]
    modules: Vec<ModuleValue>,
    #[serde(default)]
    plain: Vec<String>,
    shape: Option<Vec<u64>>,
    numbers: Option<Vec<Value>>,
    tolerance: Option<f32>,
}

impl RawExpect {
    fn judges(&self) -> bool {
        let words = self.method.is_some() || self.experts.is_some() || self.symmetric.is_some();
        let numbers = self.bits.is_some() || self.group_size.is_some();
        words || numbers || !(self.modules.is_empty() && self.plain.is_empty())
    }

    fn unpacks(&self) -> bool {
        self.shape.is_some() || self.numbers.is_some() || self.tolerance.is_some()
    }
}

/// The checkpoints that cases are made of, by name.
#[derive(Debug, Default)]
pub(crate) struct Bases(BTreeMap<String, Folder>);

impl Bases {
    /// All of them, with those that they are made from.
    pub(crate) fn parse(raws: &[RawBase]) -> std::result::Result<Bases, CaseError> {
        let mut bases = Bases::default();
        let error = |raw: &RawBase, message: String| CaseError {
            place: format!("base {}", raw.name),
            message,
        };
        let mut waiting: Vec<&RawBase> = raws.iter().collect();
        // One that is made from another may stand before it.
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut still = Vec::new();
            for raw in waiting {
                let from = raw.from.as_ref().map(|name| bases.0.get(name));
                if from == Some(None) {
                    still.push(raw);
                    continue;
                }
                let folder = raw.folder(from.flatten()).map_err(|e| error(raw, e))?;
                if bases.0.insert(raw.name.clone(), folder).is_some() {
                    return Err(error(raw, "there are two of this name".into()));
                }
            }
            if let Some(raw) = still.first().filter(|_| still.len() == before) {
                let from = raw.from.as_deref().unwrap_or_default();
                return Err(error(raw, format!("there is no base `{from}` to make it from")));
            }
            waiting = still;
        }
        Ok(bases)
    }
}

impl RawBase {
    fn folder(&self, from: Option<&Folder>) -> Result<Folder> {
        let mut folder = match from {
            Some(_) if self.config.is_some() || !self.files.is_empty() => {
                return Err("what `from` another has no `config` and `files`: `edit` those".into());
            }
            Some(from) => from.clone(),
            None => Folder::parse(self.config.as_ref(), &self.files, &[])?,
        };
        folder.extend(&self.tensors)?;
        folder.edit(&edits(&self.edit)?)?;
        Ok(folder)
    }
}

fn edits(tables: &[Table]) -> Result<Vec<Edit>> {
    let edits = tables.iter().map(Edit::parse).collect::<Result<_>>();
    edits.map_err(|e| format!("edit: {e}"))
}

fn faults(raw: &RawFault) -> Result<Vec<Edit>> {
    let tables = match raw {
        RawFault::One(table) => std::slice::from_ref(table),
        RawFault::Several(tables) => tables,
    };
    tables.iter().map(Edit::parse).collect::<Result<_>>().map_err(|e| format!("fault: {e}"))
}

/// A checkpoint, and what is expected of who judges it or unpacks a module of it.
#[derive(Clone, Debug)]
pub struct CheckpointCase {
    /// `checkpoint/<area>/<slug>`.
    pub id: String,
    /// The rule that it probes.
    pub rule: &'static Rule,
    /// What is special about it.
    pub summary: String,
    /// Where anyone can look it up.
    pub source: String,
    /// The checkpoint that it is made of.
    pub base: String,
    /// The module to unpack; none if the checkpoint is to be judged.
    pub module: Option<String>,
    /// On how many devices the tensors are to be split.
    pub tp: Option<u32>,
    /// A refusal has to name one of these, so that somebody can find what is wrong.
    pub says: Vec<String>,
    verdict: Verdict,
    folder: Folder,
    fault: Vec<Edit>,
    expect: RawExpect,
}

/// What is said of a checkpoint that is in order. What is left out (`None`) is not compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointValue {
    /// The method in the spelling of `quant_method`; `None` if nothing is quantized.
    pub method: Option<String>,
    /// The width of codes, where all modules have one.
    pub bits: Option<u64>,
    /// How many codes share a scale, -1 for all of a row, where all modules have one.
    pub group_size: Option<i64>,
    /// Whether there are no zero points but the middle of the codes.
    pub symmetric: Option<bool>,
    /// How experts are laid down.
    pub experts: Option<String>,
    /// The modules that are quantized, in any order.
    pub modules: Option<Vec<ModuleValue>>,
}

/// What is said of a quantized module. What is left out (`None`) is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleValue {
    /// Its name.
    pub name: String,
    /// The columns of its weight.
    pub in_features: Option<u64>,
    /// The rows.
    pub out_features: Option<u64>,
    /// The width of its codes.
    pub bits: Option<u64>,
    /// How many share a scale, -1 for all of a row.
    pub group_size: Option<i64>,
    /// How its tensors are laid down: `gptq`, `awq-gemm`, `pack-quantized` …
    pub layout: Option<String>,
}

/// The numbers of a module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightValue {
    /// Rows (out_features) and columns (in_features); before those, experts where there are any.
    pub shape: Vec<u64>,
    /// The numbers, row by row.
    pub numbers: Vec<f32>,
}

/// What is expected of who accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedCheckpoint {
    /// A judgement. A module that is not listed is not compared.
    Judged {
        /// What has to be said.
        value: CheckpointValue,
        /// Whether the method is compared: that there is none can be expected, too.
        method: bool,
        /// Modules that are not among those that are quantized.
        plain: Vec<String>,
    },
    /// A module's numbers.
    Unpacked {
        /// Their shape and bits; all NaNs are one number.
        value: WeightValue,
        /// How far a number may be off, if not at all is too much to ask.
        tolerance: Option<f32>,
    },
}

impl CheckpointCase {
    pub(crate) fn parse(
        raw: RawCheckpoint,
        bases: &Bases,
    ) -> std::result::Result<CheckpointCase, CaseError> {
        let error = |message: String| CaseError { place: raw.id.clone(), message };
        let rule = crate::find_rule(&raw.rule)
            .ok_or_else(|| error(format!("there is no rule `{}`", raw.rule)))?;
        let base = bases.0.get(&raw.base).ok_or_else(|| {
            let names: Vec<&str> = bases.0.keys().map(String::as_str).collect();
            error(format!("there is no base `{}`; there are {}", raw.base, names.join(", ")))
        })?;
        let mut folder = base.clone();
        edits(&raw.edit).and_then(|edits| folder.edit(&edits)).map_err(error)?;
        if (raw.op == Op::Unpack) != raw.module.is_some() {
            return Err(error("op = \"unpack\" goes with a `module`".into()));
        }
        Ok(CheckpointCase {
            fault: faults(&raw.fault).map_err(error)?,
            rule,
            folder,
            id: raw.id,
            summary: raw.summary,
            source: raw.source,
            base: raw.base,
            module: raw.module,
            tp: raw.tp,
            says: raw.says,
            verdict: raw.verdict,
            expect: raw.expect.unwrap_or_default(),
        })
    }

    /// What is expected of who judges or unpacks.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// `judge_checkpoint` or `unpack`.
    pub fn operation(&self) -> &'static str {
        if self.module.is_some() { "unpack" } else { "judge_checkpoint" }
    }

    /// Whether there is a fault.
    pub fn has_fault(&self) -> bool {
        !self.fault.is_empty()
    }

    /// The method: what is expected of an answer, or what the configs name before the fault; `none` if
    /// they name none.
    pub fn method(&self) -> &str {
        let expected = self.expect.method.as_deref();
        expected.or_else(|| self.folder.method()).unwrap_or("none")
    }

    fn error(&self, message: impl Into<String>) -> CaseError {
        CaseError { place: self.id.clone(), message: message.into() }
    }

    /// The files.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case, such as a fault of what is not there.
    pub fn build(&self) -> std::result::Result<BuiltFolder, CaseError> {
        self.folder.lay_out(&self.fault).map_err(|e| self.error(e))
    }

    /// The files of the description without the fault.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case.
    pub fn build_without_fault(&self) -> std::result::Result<BuiltFolder, CaseError> {
        self.folder.lay_out(&[]).map_err(|e| self.error(e))
    }

    /// What is expected of an answer that accepts.
    ///
    /// # Errors
    ///
    /// What is wrong with the text of the case.
    pub fn expected(&self) -> std::result::Result<ExpectedCheckpoint, CaseError> {
        let expect = &self.expect;
        let error = |message: &str| self.error(format!("expect: {message}"));
        if self.module.is_none() {
            if expect.unpacks() {
                return Err(error("`shape`, `numbers` and `tolerance` are for op = \"unpack\""));
            }
            let value = CheckpointValue {
                method: expect.method.clone().filter(|method| method != "none"),
                bits: expect.bits,
                group_size: expect.group_size,
                symmetric: expect.symmetric,
                experts: expect.experts.clone(),
                modules: Some(expect.modules.clone()),
            };
            let (method, plain) = (expect.method.is_some(), expect.plain.clone());
            return Ok(ExpectedCheckpoint::Judged { value, method, plain });
        }
        if expect.judges() {
            return Err(error("to unpack has `shape`, `numbers` and `tolerance`"));
        }
        let mut numbers = Vec::new();
        for value in expect.numbers.iter().flatten() {
            let run = match value.as_array().map(Vec::as_slice) {
                Some([count, value]) => syntax::unsigned(count).map(|count: u32| (count, value)),
                Some(_) => Err("a run is [count, value]".into()),
                None => Ok((1, value)),
            };
            let (count, value) = run.map_err(|e| error(&e))?;
            let number = syntax::exact_f32(value).map_err(|e| error(&e))?;
            numbers.extend((0..count).map(|_| number));
        }
        let shape = expect.shape.clone().unwrap_or_default();
        let count: u64 = shape.iter().product();
        if !shape.is_empty() && numbers.len() as u64 != count {
            return Err(error(&format!("{} numbers for the shape {shape:?}", numbers.len())));
        }
        let value = WeightValue { shape, numbers };
        Ok(ExpectedCheckpoint::Unpacked { value, tolerance: expect.tolerance })
    }

    /// Whether something is said of an answer that accepts.
    pub(crate) fn has_expectation(&self) -> bool {
        self.expect.judges() || self.expect.unpacks()
    }
}
