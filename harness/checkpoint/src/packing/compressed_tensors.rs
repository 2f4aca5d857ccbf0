//! compressed-tensors, integers. Source: compressed-tensors 0.20.1, `compressors/pack_quantized` and
//! `quantization/lifecycle/forward.py`.

use super::quantized::Quantized;
use super::stream::{self, words_for};
use super::tensor::Grid;
use super::{Job, NotUnpacked, Tensor, Tensors};
use crate::dtype::{Dtype, FLOATS};

const SCALE: &str = "weight_scale";
const ZERO: &str = "weight_zero_point";

/// Scales, [groups, out]; and whether there is one for all of the weight.
fn scales(job: &Job<'_, '_>) -> Result<(Dtype, Vec<f32>, bool), NotUnpacked> {
    let Job { rows, groups, .. } = *job;
    let of_rows: &[usize] = &[rows, groups];
    let shapes: &[&[usize]] = match job.packing.group_size {
        None => &[of_rows, &[1], &[]],
        Some(_) => &[of_rows],
    };
    let tensor = job.tensor(SCALE, FLOATS, shapes)?;
    let numbers = tensor.numbers();
    match (tensor.shape.len(), numbers.first()) {
        (0 | 1, Some(scale)) => Ok((tensor.dtype, vec![*scale; rows], true)),
        _ => Ok((tensor.dtype, Grid::of(groups, numbers).transposed().items, false)),
    }
}

/// Integers less their middle, as codes from 0.
fn from_signed(job: &Job<'_, '_>, name: &str, bytes: &[u8]) -> Result<Vec<u8>, NotUnpacked> {
    let middle = 1i16 << (job.bits - 1);
    let code = |byte: &u8| {
        let signed = i8::from_le_bytes([*byte]);
        let code = u8::try_from(i16::from(signed) + middle).ok();
        code.filter(|code| i16::from(*code) < middle * 2).ok_or_else(|| {
            let expected = format!("{} to {}, {} bits", -middle, middle - 1, job.bits);
            NotUnpacked::of(name, signed.to_string(), expected)
        })
    };
    bytes.iter().map(code).collect()
}

fn to_signed(job: &Job<'_, '_>, codes: &[u8]) -> Vec<u8> {
    let middle = 1u8 << (job.bits - 1);
    codes.iter().map(|code| code.wrapping_sub(middle)).collect()
}

/// Zero points of a byte each: [out, groups], or one.
fn plain_zeros(job: &Job<'_, '_>, one: bool) -> Result<Vec<i16>, NotUnpacked> {
    let Job { rows, groups, .. } = *job;
    let shapes: &[&[usize]] = if one { &[&[1], &[]] } else { &[&[rows, groups]] };
    let tensor = job.tensor(ZERO, &[Dtype::I8], shapes)?;
    let codes = from_signed(job, ZERO, &tensor.bytes)?;
    let codes = match (one, codes.first()) {
        (true, Some(zero)) => vec![*zero; rows],
        _ => Grid::of(groups, codes).transposed().items,
    };
    Ok(codes.into_iter().map(i16::from).collect())
}

/// Codes are stored from 0: the integer plus 2^(bits - 1), zero points likewise. Zero points are
/// packed along the output, of all strategies but that of one scale for all.
pub(super) fn unpack_packed(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    let Job { rows, cols, bits, groups, .. } = *job;
    job.whole_groups()?;
    let (in_words, out_words) = (words_for(cols, bits), words_for(rows, bits));
    let packed = job.tensor("weight_packed", &[Dtype::I32], &[&[rows, in_words]])?;
    let (scale_dtype, scales, one) = scales(job)?;
    let index = job.group_index("weight_g_idx")?;
    if job.find("weight_shape").is_some() {
        let shape = job.tensor("weight_shape", &[Dtype::I64, Dtype::I32], &[&[2]])?.integers();
        let found: Vec<Option<usize>> = shape.iter().map(|dim| (*dim).try_into().ok()).collect();
        if found != [Some(rows), Some(cols)] {
            let expected = format!("{:?}", [rows, cols]);
            return Err(NotUnpacked::of("weight_shape", format!("{shape:?}"), expected));
        }
    }
    let zeros = match (job.packing.symmetric, one) {
        (true, _) => None,
        (false, true) => Some(plain_zeros(job, true)?),
        (false, false) => {
            let words = job.tensor(ZERO, &[Dtype::I32], &[&[out_words, groups]])?.words();
            let mut zeros = Vec::with_capacity(groups * rows);
            for group in 0..groups {
                for row in 0..rows {
                    let zero = stream::read(&words, |word| word * groups + group, row, bits);
                    zeros.push(zero.into());
                }
            }
            Some(zeros)
        }
    };
    let words = packed.words();
    let mut codes = Grid::new(rows, cols);
    for row in 0..rows {
        for col in 0..cols {
            codes.set(row, col, stream::read(&words, |word| row * in_words + word, col, bits));
        }
    }
    Ok(job.quantized(codes, index, (scale_dtype, scales), zeros))
}

fn pack_scales(job: &Job<'_, '_>, quantized: &Quantized) -> Result<Tensor<'static>, NotUnpacked> {
    let scales = quantized.scale_grid().transposed().items;
    Tensor::of_numbers(SCALE, quantized.scale_dtype, &[job.rows, job.groups], &scales)
}

pub(super) fn pack_packed(
    job: &Job<'_, '_>,
    quantized: &Quantized,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, bits, groups, .. } = *job;
    job.whole_groups()?;
    let (in_words, out_words) = (words_for(cols, bits), words_for(rows, bits));
    let codes = quantized.code_grid();
    let mut packed = vec![0; rows * in_words];
    for row in 0..rows {
        for col in 0..cols {
            let at = |word| row * in_words + word;
            stream::write(&mut packed, at, col, bits, codes.get(row, col));
        }
    }
    let size = |features: usize| i64::try_from(features).unwrap_or(i64::MAX).to_le_bytes();
    let shape = [rows, cols].map(size).into_iter();
    let mut tensors = Tensors::from([
        ("weight_packed", Tensor::of_words(&[rows, in_words], &packed)),
        (SCALE, pack_scales(job, quantized)?),
        ("weight_shape", Tensor::from_le(Dtype::I64, &[2], shape)),
    ]);
    if job.packing.symmetric {
        quantized.is_symmetric(job)?;
    } else {
        let zeros = quantized.zero_codes()?;
        let mut words = vec![0; out_words * groups];
        for group in 0..groups {
            for row in 0..rows {
                let at = |word| word * groups + group;
                stream::write(&mut words, at, row, bits, zeros.get(group, row));
            }
        }
        tensors.insert(ZERO, Tensor::of_words(&[out_words, groups], &words));
    }
    if !quantized.is_in_order(job.group) {
        tensors.insert("weight_g_idx", Tensor::of_words(&[cols], &quantized.groups));
    }
    Ok(tensors)
}

pub(super) fn unpack_int(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    let Job { rows, cols, .. } = *job;
    job.whole_groups()?;
    let weight = job.tensor("weight", &[Dtype::I8], &[&[rows, cols]])?;
    let (scale_dtype, scales, one) = scales(job)?;
    let index = job.group_index("weight_g_idx")?;
    let zeros = if job.packing.symmetric { None } else { Some(plain_zeros(job, one)?) };
    let codes = Grid::of(cols, from_signed(job, "weight", &weight.bytes)?);
    Ok(job.quantized(codes, index, (scale_dtype, scales), zeros))
}

pub(super) fn pack_int(
    job: &Job<'_, '_>,
    quantized: &Quantized,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    job.whole_groups()?;
    let codes = to_signed(job, &quantized.codes);
    let mut tensors = Tensors::from([
        ("weight", Tensor::of_bytes(Dtype::I8, &[rows, cols], codes)),
        (SCALE, pack_scales(job, quantized)?),
    ]);
    if job.packing.symmetric {
        quantized.is_symmetric(job)?;
    } else {
        let zeros = to_signed(job, &quantized.zero_codes()?.transposed().items);
        tensors.insert(ZERO, Tensor::of_bytes(Dtype::I8, &[rows, groups], zeros));
    }
    if !quantized.is_in_order(job.group) {
        tensors.insert("weight_g_idx", Tensor::of_words(&[cols], &quantized.groups));
    }
    Ok(tensors)
}
