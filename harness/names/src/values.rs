//! Values: the transforms applied to the bytes of tensors, one parameter at a time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use gguf_assay_format::{ByteOrder, Gguf, TensorType};
use safetensors::tensor::View as SafetensorsView;
use safetensors::{Dtype, SafeTensorError};

use crate::data::Change;
use crate::map::{Map, Parameter};
use crate::view::{Moves, product};

/// A parameter's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Their type: one number a block.
    pub tensor_type: &'static TensorType,
    /// In torch's order.
    pub shape: Vec<u64>,
    /// Little-endian, the last dimension contiguous.
    pub bytes: Vec<u8>,
}

/// Why a parameter's numbers cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// A tensor is of blocks, whose elements cannot be moved one by one.
    Quantized(String, &'static str),
    /// A tensor's type is not known.
    UnknownType(String),
    /// A tensor's data are not all there.
    NoData(String),
    /// The tensors do not have the shapes that they should, or one is missing.
    NotWhole(String),
    /// The parameter's parts are of two types.
    TwoTypes(String, &'static str, &'static str),
    /// Numbers change, which is done for F32 only.
    Change(String, &'static str),
    /// There are more parameters than a file of any use has.
    TooMany(u64),
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotRead::Quantized(name, t) => write!(
                f,
                "{name} is {t}: its elements share blocks and cannot be moved one by one; \
                 export a file of F32, F16 or BF16"
            ),
            NotRead::UnknownType(name) => write!(f, "the type of {name} is not known"),
            NotRead::NoData(name) => write!(f, "the data of {name} are not all there"),
            NotRead::NotWhole(name) => write!(f, "{name} does not come whole"),
            NotRead::TwoTypes(name, a, b) => write!(f, "one part of {name} is {a}, another {b}"),
            NotRead::Change(name, t) => {
                write!(f, "{name} is {t}, and its numbers change, which is done for F32 only")
            }
            NotRead::TooMany(count) => write!(f, "there would be {count} parameters"),
        }
    }
}

impl std::error::Error for NotRead {}

/// As many parameters as are written at most.
const MOST_PARAMETERS: u64 = 1 << 24;

impl Map {
    /// The numbers of a parameter; of one that each expert has, those of `expert`. Memory of the
    /// parameter's size is taken, and no more than its tensors have.
    ///
    /// # Errors
    ///
    /// The parameter does not come whole, or from tensors of blocks.
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
        let (tensor_type, shape) = (parts.tensor_type, parts.shape.to_vec());
        let bytes = parts.numbers(expert).ok_or_else(whole)?;
        Ok(Values { tensor_type, shape, bytes })
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
            let tensor_type = TensorType::by_name("F32").ok_or_else(whole)?;
            let (size, byte_order) = (4, ByteOrder::Little);
            let number = Some(number);
            return Ok(Parts {
                tensor_type,
                shape,
                size,
                len: size,
                byte_order,
                parts: Vec::new(),
                number,
            });
        }
        let elements = product(shape.iter().copied()).ok_or_else(whole)?;
        let mut parts = Vec::new();
        let mut first: Option<&'static TensorType> = None;
        let mut moved = 0u64;
        for source in &parameter.sources {
            let moves = source.moves.as_ref().ok_or_else(whole)?;
            let mapped = self.tensors.get(source.tensor).ok_or_else(whole)?;
            let tensor = gguf.tensors.get(mapped.index).ok_or_else(whole)?;
            let name = || mapped.name.clone();
            let found = tensor.tensor_type.ok_or_else(|| NotRead::UnknownType(name()))?;
            if found.is_quantized() {
                return Err(NotRead::Quantized(name(), found.name));
            }
            let stays = matches!(source.change, Change::None | Change::Ternary);
            if !stays && found.name != "F32" {
                return Err(NotRead::Change(name(), found.name));
            }
            let first = *first.get_or_insert(found);
            if first != found {
                let name = parameter.name.clone();
                return Err(NotRead::TwoTypes(name, first.name, found.name));
            }
            let bytes = gguf.tensor_bytes(tensor).ok_or_else(|| NotRead::NoData(name()))?;
            let (of_parameter, of_tensor) = moves.ends().ok_or_else(whole)?;
            if of_parameter > elements || Some(of_tensor) > tensor.dims.elements() {
                return Err(whole());
            }
            moved = moved.saturating_add(moves.elements().ok_or_else(whole)?);
            parts.push((moves, source.change, bytes));
        }
        let tensor_type = first.ok_or_else(whole)?;
        let size = size_of(tensor_type).ok_or_else(whole)?;
        let len = usize::try_from(elements).ok().and_then(|elements| elements.checked_mul(size));
        let (Some(len), true) = (len, moved == elements) else { return Err(whole()) };
        Ok(Parts {
            tensor_type,
            shape,
            size,
            len,
            byte_order: gguf.byte_order,
            parts,
            number: None,
        })
    }

    /// Writes all parameters to a safetensors file, one at a time.
    ///
    /// # Errors
    ///
    /// A parameter cannot be read, or the file cannot be written.
    pub fn export(&self, gguf: &Gguf<'_>, path: &Path) -> Result<u64, NotExported> {
        let count = self.parameter_count();
        if count > MOST_PARAMETERS {
            return Err(NotRead::TooMany(count).into());
        }
        let mut parameters = Vec::new();
        for parameter in &self.parameters {
            // All are found before the first is written.
            let parts = Rc::new(self.parts(gguf, parameter)?);
            let dtype = dtype(parts.tensor_type)
                .ok_or_else(|| NotRead::UnknownType(parameter.name.clone()))?;
            let shape = parts.shape.iter().map(|dim| usize::try_from(*dim));
            let shape: Vec<usize> = shape
                .collect::<Result<_, _>>()
                .map_err(|_| NotRead::NotWhole(parameter.name.clone()))?;
            for (expert, name) in (0..).zip(parameter.names()) {
                let (parts, shape) = (Rc::clone(&parts), shape.clone());
                parameters.push((name, ExportedParameter { parts, expert, dtype, shape }));
            }
        }
        // As transformers marks its files.
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        safetensors::serialize_to_file(parameters, Some(metadata), path)?;
        Ok(count)
    }
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
    tensor_type: &'static TensorType,
    shape: &'a [u64],
    /// Of a number, in bytes.
    size: usize,
    /// Of the parameter, in bytes.
    len: usize,
    byte_order: ByteOrder,
    /// Each lies within the parameter and within the bytes of its tensor.
    parts: Vec<(&'a Moves, Change, &'a [u8])>,
    /// The only number, where it comes from no tensor.
    number: Option<f32>,
}

impl Parts<'_> {
    /// The numbers, little-endian.
    fn numbers(&self, expert: u64) -> Option<Vec<u8>> {
        if let Some(number) = self.number {
            return Some(number.to_le_bytes().to_vec());
        }
        let mut bytes = vec![0; self.len];
        for (moves, change, source) in &self.parts {
            let undo = |numbers: &mut [u8]| {
                if self.byte_order == ByteOrder::Big {
                    numbers.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
                }
                match change {
                    Change::None | Change::Ternary => {}
                    Change::PlusOne => change_each(numbers, |x| x - 1.0),
                    Change::NegativeExp => change_each(numbers, |x| (-x).ln()),
                }
            };
            if !copy(moves, expert, self.size, Way::IntoParameter, source, &mut bytes, undo) {
                return None;
            }
        }
        Some(bytes)
    }
}

/// A parameter that is read when it is written.
struct ExportedParameter<'a> {
    parts: Rc<Parts<'a>>,
    expert: u64,
    dtype: Dtype,
    shape: Vec<usize>,
}

impl SafetensorsView for ExportedParameter<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        // They are there: `parts` has looked.
        Cow::Owned(self.parts.numbers(self.expert).unwrap_or_default())
    }

    fn data_len(&self) -> usize {
        self.parts.len
    }
}

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

fn size_of(tensor_type: &TensorType) -> Option<usize> {
    usize::try_from(tensor_type.block_bytes).ok().filter(|size| *size > 0)
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
    }
}

/// Rounds to -1, 0 and 1 times the mean without signs (`BitnetModel.weight_quant` of the converter).
fn ternary(bytes: &mut [u8]) {
    let (numbers, _) = bytes.as_chunks::<4>();
    let sum: f64 = numbers.iter().map(|number| f64::from(f32::from_le_bytes(*number).abs())).sum();
    // No tensor has so many numbers that their count is rounded.
    #[allow(clippy::as_conversions)]
    let mean = (sum / numbers.len().max(1) as f64) as f32;
    let inverse = 1.0 / mean.max(1e-5);
    change_each(bytes, |x| (x * inverse).round_ties_even().clamp(-1.0, 1.0) / inverse);
}

/// Calls `each` with the place in the parameter, the place in the tensor and the length of every run
/// of elements that lie next to each other in both.
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
