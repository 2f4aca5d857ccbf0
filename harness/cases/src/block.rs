//! Block cases: bytes of a tensor type, and the numbers that they stand for.

use gguf_assay_format::{ByteOrder, Profile, Rule, TensorType};
use serde::Deserialize;
use toml::Value;

use crate::case::{CaseError, RawOrder, RawVerdicts, Verdict};
use crate::syntax::{self, byte_string};

/// The text of a block case, as TOML has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBlock {
    pub(crate) id: String,
    rule: String,
    summary: String,
    source: String,
    #[serde(rename = "type")]
    tensor_type: Value,
    #[serde(default)]
    byte_order: RawOrder,
    bytes: Vec<Value>,
    values: Vec<Value>,
    #[serde(default)]
    verdict: RawVerdicts,
    or: Option<Vec<Value>>,
}

/// Blocks to dequantize, and what they stand for.
#[derive(Clone, Debug)]
pub struct BlockCase {
    /// `dequantize/<type>/<slug>`.
    pub id: String,
    /// The rule that it probes: the meaning of the type.
    pub rule: &'static Rule,
    /// What is special about the blocks.
    pub summary: String,
    /// Where anyone can look it up, and where the numbers come from.
    pub source: String,
    /// The type of the blocks.
    pub tensor_type: &'static TensorType,
    /// The order of the bytes in the numbers of a block.
    pub byte_order: ByteOrder,
    /// The blocks.
    pub bytes: Vec<u8>,
    /// The numbers, one an element, as the bits of an f32. All NaNs are one number.
    pub values: Vec<u32>,
    /// Other numbers that are as right, where readers legitimately differ.
    pub or: Option<Vec<u32>>,
    verdicts: RawVerdicts,
}

impl BlockCase {
    pub(crate) fn parse(raw: RawBlock) -> Result<BlockCase, CaseError> {
        let error = |message: String| CaseError { place: raw.id.clone(), message };
        let rule = crate::find_rule(&raw.rule)
            .ok_or_else(|| error(format!("there is no rule `{}`", raw.rule)))?;
        let tensor_type = syntax::tensor_type(&raw.tensor_type).map_err(error)?;
        let bytes: syntax::Result<Vec<Vec<u8>>> = raw.bytes.iter().map(byte_string).collect();
        Ok(BlockCase {
            bytes: bytes.map_err(|e| error(format!("bytes: {e}")))?.concat(),
            values: runs(&raw.values).map_err(|e| error(format!("values: {e}")))?,
            or: match raw.or {
                Some(or) => Some(runs(&or).map_err(|e| error(format!("or: {e}")))?),
                None => None,
            },
            byte_order: raw.byte_order.into(),
            rule,
            tensor_type,
            id: raw.id,
            summary: raw.summary,
            source: raw.source,
            verdicts: raw.verdict,
        })
    }

    /// What `profile` expects.
    pub fn verdict(&self, profile: Profile) -> &Verdict {
        self.verdicts.of(profile)
    }
}

/// `[[count, value], …]` as the bits of each element.
fn runs(list: &[Value]) -> syntax::Result<Vec<u32>> {
    let mut values = Vec::new();
    for run in list {
        let Some([count, value]) = run.as_array().map(Vec::as_slice) else {
            return Err(format!("a run is [count, value], not {run}"));
        };
        let count: usize = syntax::unsigned(count)?;
        let bits = syntax::exact_f32(value)?.to_bits();
        values.resize(values.len() + count, bits);
    }
    Ok(values)
}
