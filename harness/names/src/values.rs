//! Values: the transforms applied to the bytes of tensors, one parameter at a time.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use gguf_assay_format::{ByteOrder, Gguf, TensorType};
use gguf_assay_quant::kernel;
use safetensors::tensor::View as SafetensorsView;
use safetensors::{Dtype, SafeTensorError};

use crate::data::Change;
use crate::map::{Map, Parameter};
use crate::view::{Moves, product};

/// A parameter's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Their type. Numbers of blocks are F32 here, and so are all that change or come from tensors
    /// of several types.
    pub dtype: Dtype,
    /// In torch's order.
    pub shape: Vec<u64>,
    /// Little-endian, the last dimension contiguous.
    pub bytes: Vec<u8>,
}

impl Values {
    /// The numbers, if they are F32.
    pub fn f32s(&self) -> Option<Vec<f32>> {
        let (numbers, _) = self.bytes.as_chunks::<4>();
        let plain = self.dtype == Dtype::F32;
        plain.then(|| numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }
}

/// Why a parameter's numbers cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// A tensor's type is not known, or a checkpoint has none like it.
    UnknownType(String),
    /// A tensor would be dequantized, and cannot.
    NotDequantized(String, gguf_assay_quant::Error),
    /// A tensor's data are not all there.
    NoData(String),
    /// The tensors do not have the shapes that they should, or one is missing.
    NotWhole(String),
    /// The parameter's parts are of several types, or its numbers change, and those of this tensor
    /// are not all numbers of F32.
    Wide(String, &'static str),
    /// There are more parameters than a file of any use has.
    TooMany(u64),
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRead::UnknownType(name) => {
                write!(f, "the type of {name} is not known, or safetensors has none like it")
            }
            NotRead::NotDequantized(name, error) => write!(f, "{name}: {error}"),
            NotRead::NoData(name) => write!(f, "the data of {name} are not all there"),
            NotRead::NotWhole(name) => write!(f, "{name} does not come whole"),
            NotRead::Wide(name, t) => write!(
                f,
                "{name} is {t}, and the parameter would be F32, which does not hold all of its \
                 numbers"
            ),
            NotRead::TooMany(count) => write!(f, "there would be {count} parameters"),
        }
    }
}

impl std::error::Error for NotRead {}

/// As many parameters as are written at most.
const MOST_PARAMETERS: u64 = 1 << 24;

impl Map {
    /// The numbers of a parameter; of one that each expert has, those of `expert`. Memory of the
    /// parameter's size is taken, and of what is dequantized for it.
    ///
    /// # Errors
    ///
    /// The parameter does not come whole.
    pub fn read(
        &self,
        gguf: &Gguf<'_>,
        parameter: &Parameter,
        expert: u64,
    ) -> Result<Values, NotRead> {
        let whole = || NotRead::NotWhole(parameter.name.clone());
        let parts = self.parts(gguf, parameter)?;
        if expert >= parameter.experts.unwrap_or(1) {
            return Err(whole());
        }
        let (dtype, shape) = (parts.dtype, parts.shape.to_vec());
        let bytes = parts.numbers(expert).ok_or_else(whole)?;
        Ok(Values { dtype, shape, bytes })
    }

    /// What a parameter is made of, if all of it is there.
    fn parts<'a>(
        &'a self,
        gguf: &Gguf<'a>,
        parameter: &'a Parameter,
    ) -> Result<Parts<'a>, NotRead> {
        let whole = || NotRead::NotWhole(parameter.name.clone());
        let shape = parameter.shape.as_deref().ok_or_else(whole)?;
        if let Some((_, number)) = parameter.key {
            let (dtype, size, byte_order) = (Dtype::F32, 4, ByteOrder::Little);
            let (parts, number) = (Vec::new(), Some(number));
            return Ok(Parts { dtype, shape, size, len: size, byte_order, parts, number });
        }
        let elements = product(shape.iter().copied()).ok_or_else(whole)?;
        let mut parts = Vec::new();
        let mut moved = 0u64;
        for source in &parameter.sources {
            let moves = source.moves.as_ref().ok_or_else(whole)?;
            let mapped = self.tensors.get(source.tensor).ok_or_else(whole)?;
            let tensor = gguf.tensors.get(mapped.index).ok_or_else(whole)?;
            let name = mapped.name.as_str();
            let tensor_type =
                tensor.tensor_type.ok_or_else(|| NotRead::UnknownType(name.to_owned()))?;
            let bytes =
                gguf.tensor_bytes(tensor).ok_or_else(|| NotRead::NoData(name.to_owned()))?;
            let has = match source.blocks {
                Some(_) => bytes.len().try_into().ok(),
                None => tensor.dims.elements(),
            };
            let (of_parameter, of_tensor) = moves.ends().ok_or_else(whole)?;
            if of_parameter > elements || Some(of_tensor) > has {
                return Err(whole());
            }
            moved = moved.saturating_add(moves.elements().ok_or_else(whole)?);
            let (change, factor) = (source.change, source.factor);
            let as_bytes = source.blocks.is_some();
            parts.push(Part { name, tensor_type, moves, change, factor, bytes, as_bytes });
        }
        if moved != elements {
            return Err(whole());
        }
        let dtype = common_type(&parts)?.ok_or_else(whole)?;
        let size = dtype.bitsize().div_euclid(8);
        let len = usize::try_from(elements).ok().and_then(|elements| elements.checked_mul(size));
        let len = len.ok_or_else(whole)?;
        let byte_order = gguf.byte_order;
        Ok(Parts { dtype, shape, size, len, byte_order, parts, number: None })
    }

    /// Writes all parameters to a safetensors file, one at a time. `progress` is told how many
    /// bytes are made, of how many.
    ///
    /// # Errors
    ///
    /// A parameter cannot be read, or the file cannot be written.
    pub fn export(
        &self,
        gguf: &Gguf<'_>,
        path: &Path,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Exported, NotExported> {
        let count = self.parameter_count();
        if count > MOST_PARAMETERS {
            return Err(NotRead::TooMany(count).into());
        }
        let mut exported = Exported { parameters: count, ..Exported::default() };
        let mut dequantized = BTreeMap::new();
        let mut total = 0u64;
        let mut found = Vec::new();
        for parameter in &self.parameters {
            // All are found before the first is written.
            let parts = Rc::new(self.parts(gguf, parameter)?);
            for part in parts.parts.iter().filter(|part| part.is_dequantized(parts.dtype)) {
                dequantized.insert(part.name, part.tensor_type.name);
            }
            let len = u64::try_from(parts.len).unwrap_or(u64::MAX);
            total = total.saturating_add(len.saturating_mul(parameter.experts.unwrap_or(1)));
            found.push((parameter, parts));
        }
        for tensor_type in dequantized.into_values() {
            let count = exported.dequantized.entry(tensor_type).or_default();
            *count = count.saturating_add(1);
        }
        let progress = &Progress { done: Cell::new(0), total, tell: progress };
        let mut parameters = Vec::new();
        for (parameter, parts) in found {
            let shape = parts.shape.iter().map(|dim| usize::try_from(*dim));
            let shape: Vec<usize> = shape
                .collect::<Result<_, _>>()
                .map_err(|_| NotRead::NotWhole(parameter.name.clone()))?;
            for (expert, name) in (0..).zip(parameter.names()) {
                let (parts, shape) = (Rc::clone(&parts), shape.clone());
                parameters.push((name, ExportedParameter { parts, expert, shape, progress }));
            }
        }
        // As transformers marks its files.
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        safetensors::serialize_to_file(parameters, Some(metadata), path)?;
        Ok(exported)
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// How many parameters.
    pub parameters: u64,
    /// The names of the types of blocks, and how many tensors of each were dequantized.
    pub dequantized: BTreeMap<&'static str, u64>,
}

/// Why there is no exported file.
#[derive(Debug)]
pub enum NotExported {
    /// A parameter cannot be read.
    NotRead(NotRead),
    /// The file cannot be written.
    NotWritten(SafeTensorError),
}

impl fmt::Display for NotExported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotExported::NotRead(error) => error.fmt(f),
            NotExported::NotWritten(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotExported {}

impl From<NotRead> for NotExported {
    fn from(error: NotRead) -> NotExported {
        NotExported::NotRead(error)
    }
}

impl From<SafeTensorError> for NotExported {
    fn from(error: SafeTensorError) -> NotExported {
        NotExported::NotWritten(error)
    }
}

/// What a parameter, or one for each expert, is made of.
struct Parts<'a> {
    dtype: Dtype,
    shape: &'a [u64],
    /// Of a number, in bytes.
    size: usize,
    /// Of the parameter, in bytes.
    len: usize,
    byte_order: ByteOrder,
    parts: Vec<Part<'a>>,
    /// The only number, where it comes from no tensor.
    number: Option<f32>,
}

/// A tensor that a parameter, or a part of it, comes from.
struct Part<'a> {
    name: &'a str,
    tensor_type: &'static TensorType,
    /// Within the parameter and within the bytes of the tensor.
    moves: &'a Moves,
    change: Change,
    factor: Option<f32>,
    bytes: &'a [u8],
    /// The moves are of bytes, whatever the type.
    as_bytes: bool,
}

/// Whether numbers come back as they are in the file.
fn stays(part: &Part<'_>) -> bool {
    part.factor.is_none() && matches!(part.change, Change::None | Change::Ternary)
}

/// The type of a parameter: that of its parts, if it is one and has a number of its own for each
/// element, else F32. `None` if there are no parts.
fn common_type(parts: &[Part<'_>]) -> Result<Option<Dtype>, NotRead> {
    let Some(first) = parts.first() else { return Ok(None) };
    if parts.iter().all(|part| part.as_bytes) {
        return Ok(Some(Dtype::U8));
    }
    let unknown = |part: &Part<'_>| NotRead::UnknownType(part.name.to_owned());
    let same = parts.iter().all(|part| {
        part.tensor_type == first.tensor_type
            && !part.tensor_type.is_quantized()
            && (stays(part) || part.tensor_type.name == "F32")
    });
    if same {
        return Ok(Some(dtype(first.tensor_type).ok_or_else(|| unknown(first))?));
    }
    for part in parts {
        let t = part.tensor_type;
        if part.as_bytes || !(t.is_quantized() || ["F32", "F16", "BF16"].contains(&t.name)) {
            return Err(NotRead::Wide(part.name.to_owned(), t.name));
        }
        // An empty output: only whether the type can be dequantized at all.
        kernel::dequantize(t, &[], ByteOrder::Little, &mut [])
            .map_err(|error| NotRead::NotDequantized(part.name.to_owned(), error))?;
    }
    Ok(Some(Dtype::F32))
}

impl Parts<'_> {
    /// The numbers, little-endian.
    fn numbers(&self, expert: u64) -> Option<Vec<u8>> {
        if let Some(number) = self.number {
            return Some(number.to_le_bytes().to_vec());
        }
        let mut bytes = vec![0; self.len];
        for part in &self.parts {
            let undo = |numbers: &mut [u8]| {
                undo(numbers, part.change);
                if let Some(factor) = part.factor {
                    change_each(numbers, |x| x / factor);
                }
            };
            if part.is_dequantized(self.dtype) {
                let (moves, source) = part.dequantize(expert, self.byte_order)?;
                if !copy(&moves, 0, self.size, Way::IntoParameter, &source, &mut bytes, undo) {
                    return None;
                }
                continue;
            }
            let turn = |numbers: &mut [u8]| {
                if self.byte_order == ByteOrder::Big {
                    numbers.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
                }
                undo(numbers);
            };
            let (moves, source) = (part.moves, part.bytes);
            if !copy(moves, expert, self.size, Way::IntoParameter, source, &mut bytes, turn) {
                return None;
            }
        }
        Some(bytes)
    }
}

/// How many elements are dequantized at a time, for which memory is taken twice.
const CHUNK: usize = 1 << 16;

impl Part<'_> {
    /// Whether its numbers are made F32 on the way into a parameter of this type.
    fn is_dequantized(&self, parameter: Dtype) -> bool {
        !self.as_bytes && dtype(self.tensor_type) != Some(parameter)
    }

    /// The blocks in which an expert's elements lie, as little-endian F32, and the moves from
    /// there.
    fn dequantize(&self, expert: u64, order: ByteOrder) -> Option<(Moves, Vec<u8>)> {
        let (start, end) = self.moves.of_tensor(expert)?;
        let block_len = u64::from(self.tensor_type.block_len);
        let first = start.checked_div(block_len)?;
        let blocks = range(first, end.div_ceil(block_len).checked_sub(first)?, 1)?;
        let size = usize::try_from(self.tensor_type.block_bytes).ok()?;
        let bytes = blocks.start.checked_mul(size)?..blocks.end.checked_mul(size)?;
        let bytes = self.bytes.get(bytes)?;
        let len = usize::try_from(block_len).ok()?;
        let mut numbers = Vec::with_capacity(blocks.len().checked_mul(len)?.checked_mul(4)?);
        let mut chunk = vec![0.0f32; CHUNK.min(blocks.len().saturating_mul(len))];
        for blocks in bytes.chunks(CHUNK.checked_div(len)?.checked_mul(size)?) {
            let chunk = chunk.get_mut(..blocks.len().checked_div(size)?.checked_mul(len)?)?;
            kernel::dequantize(self.tensor_type, blocks, order, chunk).ok()?;
            numbers.extend(chunk.iter().flat_map(|number| number.to_le_bytes()));
        }
        let tensor_start = start.checked_sub(first.checked_mul(block_len)?)?;
        Some((Moves { tensor_start, experts: None, ..self.moves.clone() }, numbers))
    }
}

/// How much of a file is made.
struct Progress<'a> {
    done: Cell<u64>,
    total: u64,
    tell: &'a dyn Fn(u64, u64),
}

/// A parameter that is read when it is written.
struct ExportedParameter<'a> {
    parts: Rc<Parts<'a>>,
    expert: u64,
    shape: Vec<usize>,
    progress: &'a Progress<'a>,
}

impl SafetensorsView for ExportedParameter<'_> {
    fn dtype(&self) -> Dtype {
        self.parts.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        // They are there: `parts` has looked.
        let numbers = self.parts.numbers(self.expert).unwrap_or_default();
        let Progress { done, total, tell } = self.progress;
        done.set(done.get().saturating_add(numbers.len().try_into().unwrap_or(u64::MAX)));
        tell(done.get(), *total);
        Cow::Owned(numbers)
    }

    fn data_len(&self) -> usize {
        self.parts.len
    }
}

/// As safetensors has it; none for blocks.
fn dtype(tensor_type: &TensorType) -> Option<Dtype> {
    Some(match tensor_type.name {
        "F32" => Dtype::F32,
        "F16" => Dtype::F16,
        "BF16" => Dtype::BF16,
        "F64" => Dtype::F64,
        "I8" => Dtype::I8,
        "I16" => Dtype::I16,
        "I32" => Dtype::I32,
        "I64" => Dtype::I64,
        _ => return None,
    })
}

fn range(start: u64, run: u64, size: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(start).ok()?.checked_mul(size)?;
    Some(start..start.checked_add(usize::try_from(run).ok()?.checked_mul(size)?)?)
}

fn change_each(bytes: &mut [u8], change: impl Fn(f32) -> f32) {
    let (numbers, _) = bytes.as_chunks_mut::<4>();
    for number in numbers {
        *number = change(f32::from_le_bytes(*number)).to_le_bytes();
    }
}

/// Where numbers come to lie.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    IntoTensor,
    IntoParameter,
}

/// Copies the numbers that a parameter and a tensor have in common, each of `size` bytes, and does
/// `then` to each run of them where it has come to lie. False if they do not fit.
pub(crate) fn copy(
    moves: &Moves,
    expert: u64,
    size: usize,
    way: Way,
    from: &[u8],
    into: &mut [u8],
    then: impl Fn(&mut [u8]),
) -> bool {
    let mut fits = true;
    runs(moves, expert, &mut |parameter, tensor, run| {
        let (source, target) = match way {
            Way::IntoTensor => (parameter, tensor),
            Way::IntoParameter => (tensor, parameter),
        };
        let source = range(source, run, size).and_then(|range| from.get(range));
        let target = range(target, run, size).and_then(|range| into.get_mut(range));
        match (source, target) {
            (Some(source), Some(target)) => {
                target.copy_from_slice(source);
                then(target);
            }
            _ => fits = false,
        }
    });
    fits
}

/// Multiplies numbers by factors, one after the other.
pub(crate) fn scale(bytes: &mut [u8], factors: &[f32]) {
    for factor in factors {
        change_each(bytes, |x| x * factor);
    }
}

/// The change of a tensor's numbers on their way into a file.
pub(crate) fn change(bytes: &mut [u8], change: Change) {
    match change {
        Change::None => {}
        Change::PlusOne => change_each(bytes, |x| x + 1.0),
        Change::NegativeExp => change_each(bytes, |x| -x.exp()),
        Change::Ternary => ternary(bytes),
        Change::Nibbles => bytes.as_chunks_mut().0.iter_mut().for_each(part_nibbles),
    }
}

/// Its inverse.
fn undo(bytes: &mut [u8], change: Change) {
    match change {
        Change::None | Change::Ternary => {}
        Change::PlusOne => change_each(bytes, |x| x - 1.0),
        Change::NegativeExp => change_each(bytes, |x| (-x).ln()),
        Change::Nibbles => bytes.as_chunks_mut().0.iter_mut().for_each(pair_nibbles),
    }
}

/// From bytes of neighbouring elements, the first in the low half, to bytes of elements that lie
/// half a block apart.
fn part_nibbles(block: &mut [u8; 16]) {
    let was = *block;
    let element = |place: usize| {
        let byte = was.get(place / 2).copied().unwrap_or(0);
        if place.is_multiple_of(2) { byte & 15 } else { byte >> 4 }
    };
    for (place, byte) in block.iter_mut().enumerate() {
        *byte = element(place) | (element(place.saturating_add(16)) << 4);
    }
}

/// The inverse of [`part_nibbles`].
fn pair_nibbles(block: &mut [u8; 16]) {
    let was = *block;
    let element = |place: usize| {
        let byte = was.get(place % 16).copied().unwrap_or(0);
        if place < 16 { byte & 15 } else { byte >> 4 }
    };
    for (place, byte) in block.iter_mut().enumerate() {
        let first = place.saturating_mul(2);
        *byte = element(first) | (element(first.saturating_add(1)) << 4);
    }
}

/// Rounds to -1, 0 and 1 times the mean without signs (`BitnetModel.weight_quant` of the
/// converter).
fn ternary(bytes: &mut [u8]) {
    let (numbers, _) = bytes.as_chunks::<4>();
    let sum: f64 = numbers.iter().map(|number| f64::from(f32::from_le_bytes(*number).abs())).sum();
    // No tensor has so many numbers that their count is rounded.
    #[expect(clippy::as_conversions)]
    let mean = (sum / numbers.len().max(1) as f64) as f32;
    let inverse = 1.0 / mean.max(1e-5);
    change_each(bytes, |x| (x * inverse).round_ties_even().clamp(-1.0, 1.0) / inverse);
}

/// Calls `each` with the place in the parameter, the place in the tensor and the length of every
/// run of elements that lie next to each other in both.
pub(crate) fn runs(moves: &Moves, expert: u64, each: &mut dyn FnMut(u64, u64, u64)) {
    let mut loops = moves.loops.clone();
    let mut run = 1u64;
    while let Some(last) = loops.last()
        && (last.size == 1 || (last.parameter_stride == run && last.tensor_stride == run))
    {
        run = run.saturating_mul(last.size);
        loops.pop();
    }
    if run == 0 || loops.iter().any(|each| each.size == 0) {
        return;
    }
    let skip = moves.experts.map_or(0, |experts| experts.tensor_stride.saturating_mul(expert));
    let mut parameter = moves.parameter_start;
    let mut tensor = moves.tensor_start.saturating_add(skip);
    let mut counters = vec![0u64; loops.len()];
    loop {
        each(parameter, tensor, run);
        // The innermost counter that can go on does; those within it start again.
        let mut went_on = false;
        for (counter, each) in counters.iter_mut().zip(&loops).rev() {
            *counter = counter.saturating_add(1);
            if *counter < each.size {
                parameter = parameter.saturating_add(each.parameter_stride);
                tensor = tensor.saturating_add(each.tensor_stride);
                went_on = true;
                break;
            }
            let back = each.size.saturating_sub(1);
            parameter = parameter.saturating_sub(each.parameter_stride.saturating_mul(back));
            tensor = tensor.saturating_sub(each.tensor_stride.saturating_mul(back));
            *counter = 0;
        }
        if !went_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the mean of 1, 2, 0.25 and 0.75 is 1.
    #[test]
    fn ternary_numbers() {
        let bytes = |numbers: [f32; 4]| numbers.map(f32::to_le_bytes).concat();
        let mut found = bytes([1.0, -2.0, 0.25, 0.75]);
        change(&mut found, Change::Ternary);
        assert_eq!(found, bytes([1.0, -1.0, 0.0, 1.0]));
    }
}
