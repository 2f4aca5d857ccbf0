//! GPTQ. Source: gptqmodel 7.7.0, `nn_modules/qlinear/__init__.py`; AutoGPTQ before it.

use super::quantized::Quantized;
use super::stream::{self, words_for};
use super::tensor::Grid;
use super::{Job, NotUnpacked, Tensor, Tensors};
use crate::dtype::{Dtype, FLOATS};

/// Zero points of v1 are one more than what is stored, each by itself modulo 2^bits.
///
/// Writers that subtract one from whole words (gptqmodel) or OR words together (AutoGPTQ) spoil the
/// fields above a zero point of 0; which of them did cannot be told from the file.
pub(super) fn unpack(job: &Job<'_, '_>, v2: bool) -> Result<Quantized, NotUnpacked> {
    let Job { rows, cols, bits, groups, .. } = *job;
    let (in_words, out_words) = (words_for(cols, bits), words_for(rows, bits));
    let qweight = job.tensor("qweight", &[Dtype::I32], &[&[in_words, rows]])?;
    let qzeros = job.tensor("qzeros", &[Dtype::I32], &[&[groups, out_words]])?;
    let scales = job.tensor("scales", FLOATS, &[&[groups, rows]])?;
    let index = job.group_index("g_idx")?;

    let words = qweight.words();
    let mut codes = Grid::new(rows, cols);
    for row in 0..rows {
        for col in 0..cols {
            codes.set(row, col, stream::read(&words, |word| word * rows + row, col, bits));
        }
    }
    let words = qzeros.words();
    let mut zeros = Vec::with_capacity(groups * rows);
    for group in 0..groups {
        for row in 0..rows {
            let stored = stream::read(&words, |word| group * out_words + word, row, bits);
            let zero = i16::from(stored) + i16::from(!v2);
            zeros.push(if zero == 1 << bits { 0 } else { zero });
        }
    }
    Ok(job.quantized(codes, index, (scales.dtype, scales.numbers()), Some(zeros)))
}

pub(super) fn pack(
    job: &Job<'_, '_>,
    quantized: &Quantized,
    v2: bool,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, bits, groups, .. } = *job;
    let (in_words, out_words) = (words_for(cols, bits), words_for(rows, bits));
    let codes = quantized.code_grid();
    let mut qweight = vec![0; in_words * rows];
    for row in 0..rows {
        for col in 0..cols {
            let at = |word| word * rows + row;
            stream::write(&mut qweight, at, col, bits, codes.get(row, col));
        }
    }
    let zeros = quantized.zero_codes()?;
    let mut qzeros = vec![0; groups * out_words];
    for group in 0..groups {
        for row in 0..rows {
            let zero = zeros.get(group, row);
            let stored = if v2 { zero } else { zero.wrapping_sub(1) };
            stream::write(&mut qzeros, |word| group * out_words + word, row, bits, stored);
        }
    }
    let scales = &quantized.scales;
    Ok(Tensors::from([
        ("qweight", Tensor::of_words(&[in_words, rows], &qweight)),
        ("qzeros", Tensor::of_words(&[groups, out_words], &qzeros)),
        ("scales", Tensor::of_numbers("scales", quantized.scale_dtype, &[groups, rows], scales)?),
        ("g_idx", Tensor::of_words(&[cols], &quantized.groups)),
    ]))
}
