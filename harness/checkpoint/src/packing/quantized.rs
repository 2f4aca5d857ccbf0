//! What layouts of integers have in common.

use super::tensor::Grid;
use super::{Job, NotUnpacked};
use crate::dtype::Dtype;

/// Codes, scales and zero points of a weight: `w[o, i] = (code[o, i] - zero[g, o]) * scale[g, o]`, where
/// g is the group of i, in `f32`: the difference is exact, the product rounds once.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// Rows of the weight.
    pub out_features: usize,
    /// Columns of the weight.
    pub in_features: usize,
    /// The width of a code.
    pub bits: u32,
    /// Codes from 0, [out, in] row by row.
    pub codes: Vec<u8>,
    /// The group of each input.
    pub groups: Vec<u32>,
    /// The type that scales have in tensors.
    pub scale_dtype: Dtype,
    /// Scales, [groups, out]; exactly those of the tensors.
    pub scales: Vec<f32>,
    /// Zero points, [groups, out], on the same count as codes; none if all are the middle,
    /// 2^(bits - 1).
    pub zeros: Option<Vec<i16>>,
}

impl Quantized {
    /// The numbers, [out, in] row by row.
    pub fn numbers(&self) -> Vec<f32> {
        let middle = self.middle();
        let place = |row: usize, group: u32| {
            usize::try_from(group).unwrap_or(usize::MAX).saturating_mul(self.out_features) + row
        };
        let rows = self.codes.chunks(self.in_features.max(1)).enumerate();
        rows.flat_map(|(row, codes)| {
            codes.iter().zip(&self.groups).map(move |(code, group)| {
                let place = place(row, *group);
                let scale = self.scales.get(place).copied().unwrap_or_default();
                let zero = match &self.zeros {
                    Some(zeros) => zeros.get(place).copied().unwrap_or_default(),
                    None => middle,
                };
                f32::from(i16::from(*code).saturating_sub(zero)) * scale
            })
        })
        .collect()
    }

    /// The middle of the codes, 2^(bits - 1).
    pub fn middle(&self) -> i16 {
        1 << self.bits.saturating_sub(1).min(7)
    }

    /// Whether groups follow each other, `size` inputs each.
    pub fn is_in_order(&self, size: usize) -> bool {
        self.groups.iter().copied().eq(groups_in_order(self.in_features, size))
    }

    pub(super) fn code_grid(&self) -> Grid<u8> {
        Grid::of(self.in_features, self.codes.clone())
    }

    /// Zero points as codes, [groups, out], also where all are the middle.
    pub(super) fn zero_codes(&self) -> Result<Grid<u8>, NotUnpacked> {
        let code = |zero: &i16| {
            let code = u8::try_from(*zero).ok().filter(|code| i16::from(*code) < self.middle() * 2);
            code.ok_or_else(|| {
                NotUnpacked::new(format!("zero point {zero}"), format!("{} bits", self.bits))
            })
        };
        let codes = match &self.zeros {
            Some(zeros) => zeros.iter().map(code).collect::<Result<_, _>>()?,
            None => vec![code(&self.middle())?; self.scales.len()],
        };
        Ok(Grid::of(self.out_features, codes))
    }

    pub(super) fn scale_grid(&self) -> Grid<f32> {
        Grid::of(self.out_features, self.scales.clone())
    }

    /// Refuses what does not hang together, or is of another width or size of groups than `job`.
    pub(super) fn check(&self, job: &Job<'_, '_>) -> Result<(), NotUnpacked> {
        let agree = |what: &str, found: usize, expected: usize| {
            if found == expected {
                return Ok(());
            }
            Err(NotUnpacked::new(format!("{found} {what}"), expected.to_string()))
        };
        let refuse = |found: String, expected: String| Err(NotUnpacked::new(found, expected));
        if self.bits != job.packing.bits {
            return refuse(format!("{} bits", self.bits), job.packing.bits.to_string());
        }
        agree("codes", self.codes.len(), job.rows.saturating_mul(job.cols))?;
        agree("groups of inputs", self.groups.len(), job.cols)?;
        agree("scales", self.scales.len(), job.groups.saturating_mul(job.rows))?;
        if let Some(zeros) = &self.zeros {
            agree("zero points", zeros.len(), self.scales.len())?;
        }
        if let Some(code) = self.codes.iter().find(|code| usize::from(**code) >= 1 << job.bits) {
            return refuse(format!("code {code}"), format!("{} bits", job.bits));
        }
        let out_of = |group: &&u32| usize::try_from(**group).map_or(true, |g| g >= job.groups);
        if let Some(group) = self.groups.iter().find(out_of) {
            return refuse(format!("group {group}"), format!("less than {}", job.groups));
        }
        Ok(())
    }

    /// Refuses groups that do not follow each other.
    pub(super) fn in_order(&self, job: &Job<'_, '_>) -> Result<(), NotUnpacked> {
        if self.is_in_order(job.group) {
            return Ok(());
        }
        let expected =
            format!("groups of {} in order: {} has no g_idx", job.group, job.packing.layout);
        Err(NotUnpacked::new("inputs in groups of another order", expected))
    }

    /// Refuses zero points that are not all the middle.
    pub(super) fn is_symmetric(&self, job: &Job<'_, '_>) -> Result<(), NotUnpacked> {
        let middle = self.middle();
        match self.zeros.iter().flatten().find(|zero| **zero != middle) {
            None => Ok(()),
            Some(zero) => {
                let expected = format!("{middle}: {} has no zero points here", job.packing.layout);
                Err(NotUnpacked::new(format!("zero point {zero}"), expected))
            }
        }
    }
}

/// The group of each of `inputs` if groups follow each other, `size` inputs each.
pub(super) fn groups_in_order(inputs: usize, size: usize) -> impl Iterator<Item = u32> {
    (0..inputs)
        .map(move |input| input.checked_div(size).and_then(|g| g.try_into().ok()).unwrap_or(0))
}

impl Job<'_, '_> {
    /// What was read, with groups in order unless they are given.
    pub(super) fn quantized(
        &self,
        codes: Grid<u8>,
        groups: Option<Vec<u32>>,
        (scale_dtype, scales): (Dtype, Vec<f32>),
        zeros: Option<Vec<i16>>,
    ) -> Quantized {
        let groups = groups.unwrap_or_else(|| groups_in_order(self.cols, self.group).collect());
        Quantized {
            out_features: self.rows,
            in_features: self.cols,
            bits: self.packing.bits,
            codes: codes.items,
            groups,
            scale_dtype,
            scales,
            zeros,
        }
    }

    /// The group of each input from a tensor, if there is one.
    pub(super) fn group_index(&self, name: &str) -> Result<Option<Vec<u32>>, NotUnpacked> {
        if self.find(name).is_none() {
            return Ok(None);
        }
        let tensor = self.tensor(name, &[Dtype::I32], &[&[self.cols]])?;
        let mut groups = Vec::with_capacity(self.cols);
        for (input, index) in tensor.integers().into_iter().enumerate() {
            match u32::try_from(index) {
                Ok(group) if usize::try_from(group).is_ok_and(|g| g < self.groups) => {
                    groups.push(group);
                }
                _ => {
                    let expected = format!("0 to {}", self.groups - 1);
                    return Err(NotUnpacked::of(
                        name,
                        format!("group {index} of input {input}"),
                        expected,
                    ));
                }
            }
        }
        Ok(Some(groups))
    }
}
