//! bitsandbytes. Source: bitsandbytes 0.50.2, `functional.py` (`QuantState`, `dequantize_4bit`) and
//! `_ops.py` (`int8_vectorwise_dequant`).

use serde::Deserialize;

use super::{Job, NotUnpacked, Tensor, quote_shape};
use crate::dtype::Dtype;

/// Where the state of 4-bit weights is, as JSON.
const STATES: [&str; 2] =
    ["weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"];

/// What of it matters.
#[derive(Deserialize)]
struct State {
    blocksize: usize,
    shape: Vec<u64>,
    nested_blocksize: Option<usize>,
    nested_offset: Option<f32>,
}

fn state(job: &Job<'_, '_>) -> Result<State, NotUnpacked> {
    let name = STATES.into_iter().find(|name| job.find(name).is_some()).unwrap_or(STATES[0]);
    let len = job.find(name).map_or(1, |tensor| tensor.bytes.len());
    let tensor = job.tensor(name, &[Dtype::U8], &[&[len]])?;
    let state: State = serde_json::from_slice(&tensor.bytes)
        .map_err(|error| NotUnpacked::of(name, error.to_string(), "the state, as JSON"))?;
    let shape: Vec<Option<usize>> = state.shape.iter().map(|dim| (*dim).try_into().ok()).collect();
    if shape != [Some(job.rows), Some(job.cols)] {
        let expected = format!("{:?}", [job.rows, job.cols]);
        return Err(NotUnpacked::of(
            name,
            format!("shape {}", quote_shape(&state.shape)),
            expected,
        ));
    }
    if state.blocksize == 0 || state.nested_blocksize == Some(0) {
        return Err(NotUnpacked::of(name, "blocks of 0", "1 at least"));
    }
    Ok(state)
}

/// Places in the table, of the weight as one row: two to a byte, the first in the high nibble.
pub(super) fn codes_4(job: &Job<'_, '_>) -> Result<Vec<u8>, NotUnpacked> {
    let numbers = job.rows * job.cols;
    let weight = job.tensor("weight", &[Dtype::U8], &[&[numbers.div_ceil(2), 1]])?;
    let mut codes: Vec<u8> = weight.bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]).collect();
    codes.truncate(numbers);
    Ok(codes)
}

pub(super) fn pack_codes_4(codes: &[u8]) -> (&'static str, Tensor<'static>) {
    let byte = |pair: &[u8]| match *pair {
        [high, low] => high << 4 | low,
        [high] => high << 4,
        _ => 0,
    };
    let bytes: Vec<u8> = codes.chunks(2).map(byte).collect();
    ("weight", Tensor::of_bytes(Dtype::U8, &[bytes.len(), 1], bytes))
}

/// `quant_map[code] * absmax` of the block. With double quantization `absmax` is places in a table of
/// its own: `nested_quant_map[absmax] * nested_absmax + nested_offset`, each step rounded.
pub(super) fn numbers_4(job: &Job<'_, '_>) -> Result<Vec<f32>, NotUnpacked> {
    let codes = codes_4(job)?;
    let State { blocksize, nested_blocksize, nested_offset, .. } = state(job)?;
    let map = job.tensor("weight.quant_map", &[Dtype::F32], &[&[16]])?.numbers();
    let blocks = codes.len().div_ceil(blocksize);
    let absmax = if job.find("weight.nested_absmax").is_some() {
        let block = nested_blocksize.unwrap_or(256);
        let nested: &[usize] = &[blocks.div_ceil(block)];
        let places = job.tensor("weight.absmax", &[Dtype::U8], &[&[blocks]])?;
        let nested = job.tensor("weight.nested_absmax", &[Dtype::F32], &[nested])?.numbers();
        let map = job.tensor("weight.nested_quant_map", &[Dtype::F32], &[&[256]])?.numbers();
        let offset = nested_offset.unwrap_or_default();
        let absmax = |place: &u8, scale: f32| {
            map.get(usize::from(*place)).copied().unwrap_or_default() * scale + offset
        };
        let of_blocks = places.bytes.chunks(block).zip(nested);
        of_blocks
            .flat_map(|(places, scale)| places.iter().map(move |place| (place, scale)))
            .map(|(place, scale)| absmax(place, scale))
            .collect()
    } else {
        job.tensor("weight.absmax", &[Dtype::F32], &[&[blocks]])?.numbers()
    };
    let number = |code: &u8| map.get(usize::from(*code)).copied().unwrap_or_default();
    let blocks = codes.chunks(blocksize).zip(absmax);
    Ok(blocks.flat_map(|(codes, max)| codes.iter().map(move |code| number(code) * max)).collect())
}

pub(super) fn codes_8(job: &Job<'_, '_>) -> Result<Vec<u8>, NotUnpacked> {
    Ok(job.tensor("weight", &[Dtype::I8], &[&[job.rows, job.cols]])?.bytes.to_vec())
}

pub(super) fn pack_codes_8(job: &Job<'_, '_>, codes: &[u8]) -> (&'static str, Tensor<'static>) {
    ("weight", Tensor::of_bytes(Dtype::I8, &[job.rows, job.cols], codes.to_vec()))
}

/// `code * SCB / 127`: the product rounds, and then that by the `f32` next to 1/127.
pub(super) fn numbers_8(job: &Job<'_, '_>) -> Result<Vec<f32>, NotUnpacked> {
    const PER_STEP: f32 = 1.0 / 127.0;
    let codes = codes_8(job)?;
    let scales = job.tensor("SCB", &[Dtype::F32], &[&[job.rows]])?.numbers();
    let rows = codes.chunks(job.cols).zip(scales);
    let number = |code: &u8| f32::from(i8::from_le_bytes([*code]));
    Ok(rows
        .flat_map(|(codes, max)| codes.iter().map(move |code| number(code) * max * PER_STEP))
        .collect())
}
