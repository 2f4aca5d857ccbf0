//! E2M1, two numbers to a byte, the first in the low nibble: NVFP4 and MXFP4.
//!
//! Source: compressed-tensors 0.20.1 `compressors/nvfp4`, `mxfp4` and `mx_utils.py`; vllm 0.33.0
//! `modelopt.py`.

use super::tensor::E2M1;
use super::{Job, NotUnpacked, Tensor};
use crate::dtype::Dtype;

pub(super) const NVFP4_GROUP: usize = 16;
pub(super) const MXFP4_GROUP: usize = 32;
pub(super) const MXFP4_NAME: &str = "weight_packed";

/// The tensor of codes of compressed-tensors, which divides, or of modelopt.
pub(super) const fn nvfp4_name(divide: bool) -> &'static str {
    if divide { "weight_packed" } else { "weight" }
}

/// Two codes of each byte, the low nibble first.
pub(super) fn nibbles(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4]).collect()
}

pub(super) fn join_nibbles(codes: &[u8]) -> Vec<u8> {
    codes.as_chunks::<2>().0.iter().map(|[low, high]| low | high << 4).collect()
}

/// Numbers of codes, each times its scale; `scale` is given the place of a group.
pub(super) fn scaled(codes: &[u8], group: usize, scales: &[f32]) -> Vec<f32> {
    let number = |code: &u8| E2M1.get(usize::from(*code)).copied().unwrap_or_default();
    let groups = codes.chunks(group).zip(scales);
    groups.flat_map(|(codes, scale)| codes.iter().map(move |code| number(code) * scale)).collect()
}

/// The codes, [out, in / 2] bytes.
pub(super) fn codes(job: &Job<'_, '_>, name: &str, group: usize) -> Result<Vec<u8>, NotUnpacked> {
    job.multiple(job.cols, group, "in_features", "the groups")?;
    Ok(nibbles(&job.tensor(name, &[Dtype::U8], &[&[job.rows, job.cols / 2]])?.bytes))
}

pub(super) fn pack_codes(
    job: &Job<'_, '_>,
    name: &'static str,
    group: usize,
    codes: &[u8],
) -> Result<(&'static str, Tensor<'static>), NotUnpacked> {
    job.multiple(job.cols, group, "in_features", "the groups")?;
    Ok((name, Tensor::of_bytes(Dtype::U8, &[job.rows, job.cols / 2], join_nibbles(codes))))
}

/// `e2m1 * (weight_scale / weight_global_scale)`, or with modelopt `e2m1 * (weight_scale *
/// weight_scale_2)`: the scale rounds once, and so does the number.
pub(super) fn nvfp4_numbers(job: &Job<'_, '_>, divide: bool) -> Result<Vec<f32>, NotUnpacked> {
    let codes = codes(job, nvfp4_name(divide), NVFP4_GROUP)?;
    let shape: &[usize] = &[job.rows, job.cols / NVFP4_GROUP];
    let scales = job.tensor("weight_scale", &[Dtype::F8_E4M3], &[shape])?.numbers();
    let factor = if divide { "weight_global_scale" } else { "weight_scale_2" };
    let factor = job.tensor(factor, &[Dtype::F32], &[&[], &[1]])?.numbers();
    let factor = factor.first().copied().unwrap_or_default();
    let scale = |scale: f32| if divide { scale / factor } else { scale * factor };
    let scales: Vec<f32> = scales.into_iter().map(scale).collect();
    Ok(scaled(&codes, NVFP4_GROUP, &scales))
}

/// `e2m1 * 2^(weight_scale - 127)`, exact.
pub(super) fn mxfp4_numbers(job: &Job<'_, '_>) -> Result<Vec<f32>, NotUnpacked> {
    let codes = codes(job, MXFP4_NAME, MXFP4_GROUP)?;
    let shape: &[usize] = &[job.rows, job.cols / MXFP4_GROUP];
    let scales = job.tensor("weight_scale", &[Dtype::U8, Dtype::F8_E8M0], &[shape])?.numbers();
    Ok(scaled(&codes, MXFP4_GROUP, &scales))
}
