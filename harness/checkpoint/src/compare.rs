//! The numbers of a quantized checkpoint against those that it was made of.

use crate::checkpoint::Checkpoint;
use crate::files::Files;
use crate::finding::Finding;
use crate::judge::{Judgement, QuantizedModule};
use crate::packing::{Candidate, NotUnpacked, PackedLayout, explain};
use crate::rule;

/// A module beside its source.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its name.
    pub module: String,
    /// How far it is by the declared rule and by the known wrong ones, the nearest first; none if the
    /// source has no such weight.
    pub candidates: Vec<Candidate>,
}

impl Compared {
    /// The mean of |difference| over the mean of |weight|, by the declared rule.
    pub fn error(&self) -> Option<f64> {
        let mut candidates = self.candidates.iter();
        candidates.find(|each| each.rule == DECLARED).map(|each| each.error)
    }
}

/// What [`explain`] calls the rule that the checkpoint declares.
const DECLARED: &str = "as declared";

/// A wrong rule counts if it is nearer than this part of the declared one's error.
const NEARER: f64 = 0.6;

/// How far a method may be from its source: about twice the mean error of rounding numbers of a normal
/// distribution with such codes (0.0066, 0.09, 0.24 and 0.44 for 8, 4, 3 and 2 bits in groups of 32;
/// 0.023 for FP8), since quantizers that compensate for errors move single weights further.
fn most(module: &QuantizedModule) -> f64 {
    match (module.layout.packed, module.bits) {
        (PackedLayout::Float8, _) => 0.06,
        (_, 8) => 0.04,
        (_, 5..=7) => 0.12,
        (_, 4) => 0.25,
        (_, 3) => 0.5,
        _ => 1.0,
    }
}

/// Unpacks each quantized module and compares it with the weight of the same name in `source`. What is
/// wrong goes to `findings`; `progress` is told how many modules are done.
///
/// # Errors
///
/// A module cannot be unpacked, or a weight of the source cannot be read.
pub fn compare<F: Files, S: Files>(
    checkpoint: &Checkpoint<F>,
    judgement: &Judgement,
    source: &Checkpoint<S>,
    findings: &mut Vec<Finding>,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Compared>, (String, NotUnpacked)> {
    let mut all = Vec::new();
    for (done, module) in judgement.modules.iter().enumerate() {
        progress(done);
        let failed = |error: NotUnpacked| (module.name.clone(), error);
        let mut compared = Compared { module: module.name.clone(), candidates: Vec::new() };
        let sizes = module.out_features.zip(module.in_features);
        if let (Some(numbers), Some((rows, cols))) =
            (of_source(module, source).map_err(failed)?, sizes)
        {
            let tensors = checkpoint.tensors_of(module).map_err(failed)?;
            let candidates = explain(&module.packing(), rows, cols, &tensors, &numbers);
            compared.candidates = candidates.map_err(failed)?;
            findings.extend(judge(module, &compared));
        }
        all.push(compared);
    }
    Ok(all)
}

/// The weight of the source, in the order of the unpacked one; none if the source has none.
fn of_source<S: Files>(
    module: &QuantizedModule,
    source: &Checkpoint<S>,
) -> Result<Option<Vec<f32>>, NotUnpacked> {
    let plain = format!("{}.weight", module.name);
    if source.tensor(&plain).is_some() {
        return Ok(Some(source.plain(&plain)?.numbers));
    }
    // Experts in one: gpt-oss in BF16 has [experts, in, out].
    if source.tensor(&module.name).is_none() {
        return Ok(None);
    }
    let matrix = source.plain(&module.name)?;
    let [_, rows, cols] = *matrix.shape.as_slice() else { return Ok(Some(matrix.numbers)) };
    if (Some(rows), Some(cols)) != (module.in_features, module.out_features) {
        return Ok(Some(matrix.numbers));
    }
    let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).max(1);
    let (rows, cols) = (size(rows), size(cols));
    let mut numbers = Vec::with_capacity(matrix.numbers.len());
    for expert in matrix.numbers.chunks(rows.saturating_mul(cols)) {
        for col in 0..cols {
            numbers.extend(expert.iter().skip(col).step_by(cols));
        }
    }
    Ok(Some(numbers))
}

/// What is wrong with a module by its candidates.
fn judge(module: &QuantizedModule, compared: &Compared) -> Option<Finding> {
    let declared = compared.error()?;
    let most = most(module);
    let best = compared.candidates.first()?;
    let percent = |error: f64| format!("{:.1} %", error * 100.0);
    let (found, expected) = if best.rule != DECLARED && best.error < declared * NEARER {
        (
            format!(
                "{} off as declared, {} with {}",
                percent(declared),
                percent(best.error),
                best.rule
            ),
            format!("the declared rule nearest, within {}", percent(most)),
        )
    } else if declared > most || declared.is_nan() {
        (
            format!("{} off, and no known rule is nearer", percent(declared)),
            format!("within {}", percent(most)),
        )
    } else {
        return None;
    };
    Some(Finding::new(&rule::METHOD_032, found, expected).of_module(module.name.clone()))
}
