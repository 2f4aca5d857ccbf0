//! FP8: a byte for each number, E4M3 or E5M2, times a scale.
//!
//! Source: vllm 0.33.0 `fp8.py`, transformers 5.24.0 `finegrained_fp8.py`, compressed-tensors 0.20.1.
//! `weight_scale` and `weight_scale_inv` are both multipliers.

use super::tensor::Grid;
use super::{Job, NotUnpacked, Tensor};
use crate::dtype::{Dtype, FLOATS};

const DTYPES: &[Dtype] = &[Dtype::F8_E4M3, Dtype::F8_E5M2];

pub(super) const SCALES: [&str; 2] = ["weight_scale_inv", "weight_scale"];

fn weight<'t, 'a>(job: &Job<'t, 'a>) -> Result<&'t Tensor<'a>, NotUnpacked> {
    job.tensor("weight", DTYPES, &[&[job.rows, job.cols]])
}

/// The scale of each block of `block` rows and columns: of the tensor, of rows, or as declared. The
/// last blocks may be partial.
fn scales(job: &Job<'_, '_>) -> Result<(Grid<f32>, [usize; 2]), NotUnpacked> {
    let Job { rows, cols, group, .. } = *job;
    let name = SCALES.into_iter().find(|name| job.find(name).is_some()).unwrap_or("weight_scale");
    let mut dtypes = FLOATS.to_vec();
    dtypes.extend([Dtype::F8_E8M0, Dtype::U8]);
    let declared = match (job.packing.block, job.packing.group_size) {
        (Some(block), _) => Some(block.map(|size| usize::try_from(size).unwrap_or(usize::MAX))),
        (None, Some(_)) => Some([1, group]),
        (None, None) => None,
    };
    if let Some(block) = declared {
        if block.contains(&0) {
            return Err(NotUnpacked::new(format!("blocks of {block:?}"), "1 at least"));
        }
        let [down, across] = [rows.div_ceil(block[0]), cols.div_ceil(block[1])];
        let tensor = job.tensor(name, &dtypes, &[&[down, across]])?;
        return Ok((Grid::of(across, tensor.numbers()), block));
    }
    let tensor = job.tensor(name, &dtypes, &[&[], &[1], &[1, 1], &[rows], &[rows, 1]])?;
    let numbers = tensor.numbers();
    let down = rows.div_ceil(numbers.len().max(1));
    Ok((Grid::of(1, numbers), [down, cols]))
}

pub(super) fn numbers(job: &Job<'_, '_>) -> Result<Vec<f32>, NotUnpacked> {
    let weight = weight(job)?;
    let (scales, [down, across]) = scales(job)?;
    let rows = weight.bytes.chunks(job.cols).enumerate();
    let mut numbers = Vec::with_capacity(weight.bytes.len());
    for (row, bytes) in rows {
        let row_of = Tensor::new(weight.dtype, &[], bytes);
        let scaled = row_of.numbers().into_iter().enumerate();
        numbers.extend(scaled.map(|(col, number)| number * scales.get(row / down, col / across)));
    }
    Ok(numbers)
}

pub(super) fn codes(job: &Job<'_, '_>) -> Result<Vec<u8>, NotUnpacked> {
    Ok(weight(job)?.bytes.to_vec())
}

pub(super) fn pack_codes(
    job: &Job<'_, '_>,
    dtype: Dtype,
    codes: &[u8],
) -> Result<(&'static str, Tensor<'static>), NotUnpacked> {
    if !DTYPES.contains(&dtype) {
        return Err(NotUnpacked::of("weight", dtype.name, "F8_E4M3 or F8_E5M2"));
    }
    Ok(("weight", Tensor::of_bytes(dtype, &[job.rows, job.cols], codes.to_vec())))
}
