//! Tensors with their bytes, and what their elements are.

use std::borrow::Cow;
use std::fmt;

use gguf_assay_format::printable;
use gguf_assay_quant::number::{E4M3, E8M0};
use half::{bf16, f16};

use crate::dtype::Dtype;

/// A tensor of a safetensors file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its shape, in torch's order.
    pub shape: Vec<u64>,
    /// Its elements, little-endian, row by row.
    pub bytes: Cow<'a, [u8]>,
}

/// Why tensors have no numbers, or numbers no tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnpacked {
    /// The tensor that does not fit, by its suffix; none if it is not about one of them.
    pub tensor: Option<String>,
    /// What was found.
    pub found: String,
    /// What it would need to be.
    pub expected: String,
}

impl NotUnpacked {
    #[cold]
    pub(crate) fn new(found: impl Into<String>, expected: impl Into<String>) -> NotUnpacked {
        NotUnpacked { tensor: None, found: found.into(), expected: expected.into() }
    }

    #[cold]
    pub(crate) fn of(
        tensor: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> NotUnpacked {
        NotUnpacked { tensor: Some(tensor.into()), ..NotUnpacked::new(found, expected) }
    }
}

impl fmt::Display for NotUnpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tensor) = &self.tensor {
            write!(f, "{tensor}: ")?;
        }
        write!(f, "{}; expected {}", printable(&self.found, 400), printable(&self.expected, 400))
    }
}

impl std::error::Error for NotUnpacked {}

impl<'a> Tensor<'a> {
    /// A tensor of these bytes.
    pub fn new(dtype: Dtype, shape: &[u64], bytes: impl Into<Cow<'a, [u8]>>) -> Tensor<'a> {
        Tensor { dtype, shape: shape.to_vec(), bytes: bytes.into() }
    }

    /// The same tensor, with bytes of its own.
    pub fn into_owned(self) -> Tensor<'static> {
        let Tensor { dtype, shape, bytes } = self;
        Tensor { dtype, shape, bytes: Cow::Owned(bytes.into_owned()) }
    }

    pub(super) fn of_words(shape: &[usize], words: &[u32]) -> Tensor<'static> {
        Tensor::from_le(Dtype::I32, shape, words.iter().map(|word| word.to_le_bytes()))
    }

    pub(super) fn of_bytes(dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> Tensor<'static> {
        Tensor { dtype, shape: dims(shape), bytes: Cow::Owned(bytes) }
    }

    pub(super) fn from_le<const N: usize>(
        dtype: Dtype,
        shape: &[usize],
        elements: impl Iterator<Item = [u8; N]>,
    ) -> Tensor<'static> {
        Tensor::of_bytes(dtype, shape, elements.flatten().collect())
    }

    /// Numbers as a type holds them, all of them exactly.
    pub(super) fn of_numbers(
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        numbers: &[f32],
    ) -> Result<Tensor<'static>, NotUnpacked> {
        let exact = |number: f32, back: f32| number == back || (number.is_nan() && back.is_nan());
        let tensor = match dtype {
            Dtype::F32 => {
                Tensor::from_le(dtype, shape, numbers.iter().map(|number| number.to_le_bytes()))
            }
            Dtype::F16 | Dtype::BF16 => {
                let mut bytes = Vec::with_capacity(numbers.len().saturating_mul(2));
                for &number in numbers {
                    let (element, back) = if dtype == Dtype::F16 {
                        let element = f16::from_f32(number);
                        (element.to_le_bytes(), element.to_f32())
                    } else {
                        let element = bf16::from_f32(number);
                        (element.to_le_bytes(), element.to_f32())
                    };
                    if !exact(number, back) {
                        let expected = format!("a number that {dtype} has");
                        return Err(NotUnpacked::of(name, format!("{number:e}"), expected));
                    }
                    bytes.extend(element);
                }
                Tensor::of_bytes(dtype, shape, bytes)
            }
            _ => return Err(NotUnpacked::of(name, dtype.name, "BF16, F16 or F32")),
        };
        Ok(tensor)
    }

    /// The elements, `N` bytes each.
    fn elements<const N: usize>(&self) -> impl Iterator<Item = [u8; N]> + '_ {
        self.bytes.chunks_exact(N).filter_map(|chunk| chunk.try_into().ok())
    }

    /// The elements of I32.
    pub(super) fn words(&self) -> Vec<u32> {
        self.elements().map(u32::from_le_bytes).collect()
    }

    /// The elements of I16.
    pub(super) fn halfwords(&self) -> Vec<u16> {
        self.elements().map(u16::from_le_bytes).collect()
    }

    /// The elements of I32 or I64.
    pub(super) fn integers(&self) -> Vec<i64> {
        match self.dtype {
            Dtype::I64 => self.elements().map(i64::from_le_bytes).collect(),
            _ => self.elements().map(|bytes| i32::from_le_bytes(bytes).into()).collect(),
        }
    }

    /// The elements of a type of numbers; U8 is the exponents of E8M0.
    pub(crate) fn numbers(&self) -> Vec<f32> {
        match self.dtype {
            Dtype::F32 => self.elements().map(f32::from_le_bytes).collect(),
            Dtype::F16 => self.elements().map(|bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
            Dtype::BF16 => {
                self.elements().map(|bytes| bf16::from_le_bytes(bytes).to_f32()).collect()
            }
            Dtype::F8_E4M3 => self.bytes.iter().map(|byte| E4M3(*byte).to_f32()).collect(),
            Dtype::F8_E5M2 => self.bytes.iter().map(|byte| e5m2(*byte)).collect(),
            Dtype::F8_E8M0 | Dtype::U8 => self.bytes.iter().map(|byte| e8m0(*byte)).collect(),
            _ => Vec::new(),
        }
    }
}

/// E5M2 is the first byte of half precision (OCP 8-bit Floating Point, section 5).
fn e5m2(byte: u8) -> f32 {
    f16::from_le_bytes([0, byte]).to_f32()
}

/// 2^(e - 127), and a NaN for 255 (OCP Microscaling Formats 1.0, section 5.4.1).
///
/// compressed-tensors 0.20.1 (`decompress_mx_scale`) and transformers 5.24.0 (`ldexp`) make 2^128 of
/// 255, which is infinite in their bfloat16; ggml makes half of it, so that 0.5 times it is finite.
pub(super) fn e8m0(byte: u8) -> f32 {
    // Doubling is exact: 2^-128 is subnormal, 2^126 is not the last power.
    if byte == u8::MAX { f32::NAN } else { E8M0(byte).half_to_f32() * 2.0 }
}

/// The numbers of E2M1, by code (OCP Microscaling Formats 1.0, table 5). -0 is kept.
pub(super) static E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

pub(super) fn dims(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|dim| u64::try_from(*dim).unwrap_or(u64::MAX)).collect()
}

/// Items in rows of equal length. There is nothing beyond them: reading gives the default, writing
/// does nothing. Shapes are checked before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid<T> {
    cols: usize,
    pub(super) items: Vec<T>,
}

impl<T: Copy + Default> Grid<T> {
    pub(crate) fn of(cols: usize, items: Vec<T>) -> Grid<T> {
        Grid { cols, items }
    }

    pub(super) fn new(rows: usize, cols: usize) -> Grid<T> {
        Grid { cols, items: vec![T::default(); rows.saturating_mul(cols)] }
    }

    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn get(&self, row: usize, col: usize) -> T {
        self.items
            .get(row.saturating_mul(self.cols).saturating_add(col))
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn set(&mut self, row: usize, col: usize, item: T) {
        let place = row.saturating_mul(self.cols).saturating_add(col);
        if let Some(slot) = self.items.get_mut(place) {
            *slot = item;
        }
    }

    /// Rows as columns.
    pub(super) fn transposed(&self) -> Grid<T> {
        let rows = self.items.len().checked_div(self.cols).unwrap_or(0);
        let mut grid = Grid::new(self.cols, rows);
        for row in 0..rows {
            for col in 0..self.cols {
                grid.set(col, row, self.get(row, col));
            }
        }
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the OCP texts.
    #[test]
    fn small_floats() {
        let numbers = [0x00, 0x01, 0x04, 0x3C, 0x7B, 0x7C, 0xBC].map(e5m2);
        let by_hand =
            [0.0, f32::powi(2.0, -16), f32::powi(2.0, -14), 1.0, 57344.0, f32::INFINITY, -1.0];
        assert_eq!(numbers, by_hand);
        assert!(e5m2(0x7D).is_nan() && e5m2(0xFF).is_nan());

        let numbers = [0, 1, 126, 127, 128, 254].map(e8m0);
        let by_hand = [
            f32::from_bits(1 << 22), // 2^-127
            f32::MIN_POSITIVE,       // 2^-126
            0.5,
            1.0,
            2.0,
            f32::from_bits(254 << 23), // 2^127
        ];
        assert_eq!(numbers, by_hand);
        assert!(e8m0(255).is_nan());
    }

    #[test]
    fn a_number_that_a_type_lacks_is_refused() {
        assert!(Tensor::of_numbers("scales", Dtype::F16, &[2], &[0.5, 65504.0]).is_ok());
        let error = Tensor::of_numbers("scales", Dtype::F16, &[1], &[65505.0]).unwrap_err();
        assert_eq!(error.to_string(), "scales: 6.5505e4; expected a number that F16 has");
        let error = Tensor::of_numbers("scales", Dtype::BF16, &[1], &[0.1]).unwrap_err();
        assert_eq!(error.to_string(), "scales: 1e-1; expected a number that BF16 has");
        let error = Tensor::of_numbers("scales", Dtype::I8, &[1], &[1.0]).unwrap_err();
        assert_eq!(error.to_string(), "scales: I8; expected BF16, F16 or F32");
    }
}
