//! AWQ, 4 bits. Source: autoawq 0.2.9, `awq/modules/linear` (`gemm.py`, `gemv.py`, `gemv_fast.py`,
//! `marlin.py`) and `awq/utils/packing_utils.py`. Zero points are stored as they are.

use super::quantized::Quantized;
use super::tensor::Grid;
use super::{Job, NotUnpacked, Tensor, Tensors};
use crate::dtype::{Dtype, FLOATS};
use half::f16;

/// The column of a word of `gemm` that each of its nibbles holds, the lowest first.
pub(super) const GEMM_ORDER: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

const BITS: usize = 4;
const PER_WORD: usize = 8;

fn nibble(word: u32, place: usize) -> u8 {
    u8::try_from(word >> (BITS * place) & 0xF).unwrap_or_default()
}

/// Words whose nibbles are given by their place.
fn join(nibbles: impl Fn(usize) -> u8) -> u32 {
    (0..PER_WORD).fold(0, |word, place| word | u32::from(nibbles(place)) << (BITS * place))
}

/// A row of words of `gemm`, as codes; and back.
fn gemm_codes(words: &[u32]) -> Vec<u8> {
    let column = |word: u32, column: usize| {
        let place = GEMM_ORDER.iter().position(|held| *held == column);
        nibble(word, place.unwrap_or_default())
    };
    words.iter().flat_map(|word| (0..PER_WORD).map(|col| column(*word, col))).collect()
}

fn gemm_words(codes: &[u8]) -> Vec<u32> {
    let word = |codes: &[u8]| {
        join(|place| {
            let column = GEMM_ORDER.get(place).copied().unwrap_or_default();
            codes.get(column).copied().unwrap_or_default()
        })
    };
    codes.chunks(PER_WORD).map(word).collect()
}

fn whole(job: &Job<'_, '_>) -> Result<(), NotUnpacked> {
    job.whole_groups()?;
    job.multiple(job.rows, PER_WORD, "out_features", "the words")
}

pub(super) fn unpack_gemm(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    whole(job)?;
    let qweight = job.tensor("qweight", &[Dtype::I32], &[&[cols, rows / PER_WORD]])?;
    let scales = job.tensor("scales", FLOATS, &[&[groups, rows]])?;
    let zeros = if job.packing.symmetric {
        None
    } else {
        let qzeros = job.tensor("qzeros", &[Dtype::I32], &[&[groups, rows / PER_WORD]])?;
        Some(gemm_codes(&qzeros.words()).into_iter().map(i16::from).collect())
    };
    let codes = Grid::of(rows, gemm_codes(&qweight.words())).transposed();
    Ok(job.quantized(codes, None, (scales.dtype, scales.numbers()), zeros))
}

pub(super) fn pack_gemm(
    job: &Job<'_, '_>,
    quantized: &Quantized,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    whole(job)?;
    quantized.in_order(job)?;
    let qweight = gemm_words(&quantized.code_grid().transposed().items);
    let scales =
        Tensor::of_numbers("scales", quantized.scale_dtype, &[groups, rows], &quantized.scales)?;
    let mut tensors = Tensors::from([
        ("qweight", Tensor::of_words(&[cols, rows / PER_WORD], &qweight)),
        ("scales", scales),
    ]);
    if job.packing.symmetric {
        quantized.is_symmetric(job)?;
    } else {
        let qzeros = gemm_words(&quantized.zero_codes()?.items);
        tensors.insert("qzeros", Tensor::of_words(&[groups, rows / PER_WORD], &qzeros));
    }
    Ok(tensors)
}

/// How many words of zero points a row has (`calculate_zeros_width`): more than groups need, for
/// what kernels read at once. There are eight times as many scales. Groups of 16 are gptqmodel's
/// 7.7.0, `utils/gemv.py`.
fn zeros_width(job: &Job<'_, '_>) -> Result<usize, NotUnpacked> {
    let several = match job.group {
        128.. => 1,
        64 => 2,
        32 => 4,
        16 => 8,
        group => {
            let expected = format!("16, 32, 64 or at least 128 for {}", job.packing.layout);
            return Err(NotUnpacked::new(format!("groups of {group}"), expected));
        }
    };
    Ok(job.groups.div_ceil(PER_WORD).div_ceil(several) * several)
}

/// The first columns of rows that are longer, or rows made longer with nothing.
fn resized<T: Copy + Default>(from: &Grid<T>, rows: usize, cols: usize) -> Grid<T> {
    let mut grid = Grid::new(rows, cols);
    for row in 0..rows {
        for col in 0..cols {
            if col < from.cols() {
                grid.set(row, col, from.get(row, col));
            }
        }
    }
    grid
}

fn natural_codes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| (0..PER_WORD).map(|place| nibble(*word, place))).collect()
}

fn natural_words(codes: &[u8]) -> Vec<u32> {
    codes
        .chunks(PER_WORD)
        .map(|codes| join(|place| codes.get(place).copied().unwrap_or_default()))
        .collect()
}

fn whole_gemv(job: &Job<'_, '_>) -> Result<usize, NotUnpacked> {
    whole(job)?;
    job.multiple(job.cols, PER_WORD, "in_features", "the words")?;
    zeros_width(job)
}

pub(super) fn unpack_gemv(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    let width = whole_gemv(job)?;
    let qweight = job.tensor("qweight", &[Dtype::I32], &[&[rows, cols / PER_WORD]])?;
    let scales = job.tensor("scales", FLOATS, &[&[rows, width * PER_WORD]])?;
    let zeros = if job.packing.symmetric {
        None
    } else {
        let words = job.tensor("qzeros", &[Dtype::I32], &[&[rows, width]])?.words();
        let zeros = Grid::of(width * PER_WORD, natural_codes(&words));
        let zeros = resized(&zeros, rows, groups).transposed().items;
        Some(zeros.into_iter().map(i16::from).collect())
    };
    let numbers = Grid::of(width * PER_WORD, scales.numbers());
    let numbers = resized(&numbers, rows, groups).transposed().items;
    let codes = Grid::of(cols, natural_codes(&qweight.words()));
    Ok(job.quantized(codes, None, (scales.dtype, numbers), zeros))
}

pub(super) fn pack_gemv(
    job: &Job<'_, '_>,
    quantized: &Quantized,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, .. } = *job;
    let width = whole_gemv(job)?;
    quantized.in_order(job)?;
    let wide = width * PER_WORD;
    let qweight = natural_words(&quantized.codes);
    let scales = resized(&quantized.scale_grid().transposed(), rows, wide).items;
    let mut tensors = Tensors::from([
        ("qweight", Tensor::of_words(&[rows, cols / PER_WORD], &qweight)),
        ("scales", Tensor::of_numbers("scales", quantized.scale_dtype, &[rows, wide], &scales)?),
    ]);
    if job.packing.symmetric {
        quantized.is_symmetric(job)?;
    } else {
        let zeros = resized(&quantized.zero_codes()?.transposed(), rows, wide).items;
        tensors.insert("qzeros", Tensor::of_words(&[rows, width], &natural_words(&zeros)));
    }
    Ok(tensors)
}

/// Rows of `gemv_fast` that are interleaved, and how many of their columns at a time.
const INTERLEAVED: usize = 4;
const STRIDE: usize = 64;

/// Where a code of `gemv_fast` is: the row and column of its 16-bit word, and the nibble
/// (`pack_intweight`).
fn gemv_fast_place(row: usize, col: usize) -> (usize, usize, usize) {
    // Of 32 columns, pairs 8 apart come together; of each 8 of those, even ones come first.
    let (of_32, in_32) = (col / 32 * 32, col % 32);
    let (eight, pair, odd) = (in_32 / 8, in_32 % 8 / 2, in_32 % 2);
    let col = of_32 + pair * 8 + odd * 4 + eight;
    let flat = row % INTERLEAVED * STRIDE + col % STRIDE;
    (row / INTERLEAVED, col / STRIDE * STRIDE + flat / 4, flat % 4)
}

struct GemvFast {
    codes: Grid<u8>,
    scale_dtype: Dtype,
    /// [groups, out].
    scales: Vec<f32>,
    /// Zero points times scales, negative.
    scaled_zeros: Vec<f32>,
}

fn whole_gemv_fast(job: &Job<'_, '_>) -> Result<usize, NotUnpacked> {
    job.multiple(job.cols, STRIDE, "in_features", "the stride")?;
    whole_gemv(job)
}

fn read_gemv_fast(job: &Job<'_, '_>) -> Result<GemvFast, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    let wide = whole_gemv_fast(job)? * PER_WORD;
    let qweight = job.tensor("qweight", &[Dtype::I16], &[&[rows / INTERLEAVED, cols]])?;
    let scales = job.tensor("scales", &[Dtype::F16], &[&[wide, rows]])?;
    let zeros = job.tensor("qzeros", &[Dtype::F16], &[&[wide, rows]])?;
    let words = Grid::of(cols, qweight.halfwords());
    let mut codes = Grid::new(rows, cols);
    for row in 0..rows {
        for col in 0..cols {
            let (word_row, word_col, place) = gemv_fast_place(row, col);
            codes.set(row, col, nibble(words.get(word_row, word_col).into(), place));
        }
    }
    let there = |tensor: &Tensor<'_>| {
        let mut numbers = tensor.numbers();
        numbers.truncate(groups * rows);
        numbers
    };
    let (scale_dtype, scales, scaled_zeros) = (scales.dtype, there(scales), there(zeros));
    Ok(GemvFast { codes, scale_dtype, scales, scaled_zeros })
}

/// `code * scale + scaled_zero`, as kernels compute it: the product is exact, the sum rounds once.
pub(super) fn gemv_fast_numbers(job: &Job<'_, '_>) -> Result<Vec<f32>, NotUnpacked> {
    let GemvFast { codes, scales, scaled_zeros, .. } = read_gemv_fast(job)?;
    let (scales, zeros) = (Grid::of(job.rows, scales), Grid::of(job.rows, scaled_zeros));
    let mut numbers = Vec::with_capacity(codes.items.len());
    for row in 0..job.rows {
        for col in 0..job.cols {
            let group = col / job.group;
            let code = f32::from(codes.get(row, col));
            numbers.push(code * scales.get(group, row) + zeros.get(group, row));
        }
    }
    Ok(numbers)
}

/// What is stored for a zero point: the product in half precision, negative.
fn scaled_zero(scale: f32, zero: u8) -> f32 {
    f16::from_f32(-(scale * f32::from(zero))).to_f32()
}

pub(super) fn unpack_gemv_fast(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    let GemvFast { codes, scale_dtype, scales, scaled_zeros } = read_gemv_fast(job)?;
    let zero = |(scale, scaled): (&f32, &f32)| {
        let zero = (0..16u8).find(|zero| scaled_zero(*scale, *zero) == *scaled);
        zero.map(i16::from).ok_or_else(|| {
            let expected = format!("a whole number from 0 to 15 times the scale {scale}, negative");
            NotUnpacked::of("qzeros", scaled.to_string(), expected)
        })
    };
    let zeros = scales.iter().zip(&scaled_zeros).map(zero).collect::<Result<_, _>>()?;
    Ok(job.quantized(codes, None, (scale_dtype, scales), Some(zeros)))
}

pub(super) fn pack_gemv_fast(
    job: &Job<'_, '_>,
    quantized: &Quantized,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, .. } = *job;
    let wide = whole_gemv_fast(job)? * PER_WORD;
    quantized.in_order(job)?;
    let codes = quantized.code_grid();
    let mut words = Grid::<u16>::new(rows / INTERLEAVED, cols);
    for row in 0..rows {
        for col in 0..cols {
            let (word_row, word_col, place) = gemv_fast_place(row, col);
            let code = u16::from(codes.get(row, col)) << (BITS * place);
            words.set(word_row, word_col, words.get(word_row, word_col) | code);
        }
    }
    let zeros = quantized.zero_codes()?.items;
    let scaled = quantized.scales.iter().zip(zeros);
    let mut scaled: Vec<f32> = scaled.map(|(scale, zero)| scaled_zero(*scale, zero)).collect();
    scaled.resize(wide * rows, 0.0);
    let mut scales = quantized.scales.clone();
    scales.resize(wide * rows, 0.0);
    let words = words.items.iter().map(|word| word.to_le_bytes());
    Ok(Tensors::from([
        ("qweight", Tensor::from_le(Dtype::I16, &[rows / INTERLEAVED, cols], words)),
        ("scales", Tensor::of_numbers("scales", Dtype::F16, &[wide, rows], &scales)?),
        ("qzeros", Tensor::of_numbers("qzeros", Dtype::F16, &[wide, rows], &scaled)?),
    ]))
}

const TILE: usize = 16;

/// Four tiles: the codes of a permutation of Marlin.
const TILES: usize = 4 * TILE * TILE;

/// Where in four tiles, each of 16 rows of inputs, the code at each place of Marlin's order is
/// (`_get_perms`).
fn marlin_order() -> Vec<usize> {
    let mut order = Vec::with_capacity(TILES);
    for lane in 0..32 {
        let (quarter, col) = (lane % 4, lane / 4);
        for tile in 0..4 {
            // The rows that a lane of a tensor core holds, in the two halves of 8 columns.
            let places: Vec<usize> = [0, 8]
                .into_iter()
                .flat_map(|half| {
                    let rows = [2 * quarter, 2 * quarter + 1, 2 * quarter + 8, 2 * quarter + 9];
                    rows.map(|row| TILE * TILE * tile + TILE * row + col + half)
                })
                .collect();
            order.extend(GEMM_ORDER.iter().filter_map(|place| places.get(*place)));
        }
    }
    order
}

/// The column of the scale at each place: of 64 with groups, of 32 without.
fn marlin_scale_order(grouped: bool) -> Vec<usize> {
    if grouped {
        (0..8).flat_map(|i| (0..8).map(move |j| i + 8 * j)).collect()
    } else {
        let columns = [0, 1, 8, 9, 16, 17, 24, 25];
        (0..4).flat_map(|i| columns.map(move |column| 2 * i + column)).collect()
    }
}

/// Where the code at each place of `qweight`, eight to a word, is in [in, out].
fn marlin_places(job: &Job<'_, '_>) -> impl Iterator<Item = (usize, usize)> {
    let (rows, cols) = (job.rows, job.cols);
    let order = marlin_order();
    let tiles_across = rows / TILE;
    (0..rows * cols / TILES).flat_map(move |quad| {
        let place = move |place: &usize| {
            let (tile, in_tile) = (quad * 4 + place / (TILE * TILE), place % (TILE * TILE));
            let input = tile / tiles_across * TILE + in_tile / TILE;
            (input, tile % tiles_across * TILE + in_tile % TILE)
        };
        order.iter().map(place).collect::<Vec<_>>()
    })
}

fn whole_marlin(job: &Job<'_, '_>) -> Result<(), NotUnpacked> {
    if !job.packing.symmetric {
        return Err(NotUnpacked::new("asymmetric", "symmetric: awq marlin has no zero points"));
    }
    job.whole_groups()?;
    job.multiple(job.cols, TILE, "in_features", "the tiles")?;
    job.multiple(job.rows, 4 * TILE, "out_features", "four tiles")
}

/// Scales between their own order and Marlin's, either way.
fn marlin_scales(job: &Job<'_, '_>, scales: &[f32], to_marlin: bool) -> Vec<f32> {
    let order = marlin_scale_order(job.groups > 1);
    let permute = |run: &[f32]| {
        let mut permuted = vec![0.0; run.len()];
        for (place, column) in order.iter().enumerate() {
            let (from, to) = if to_marlin { (*column, place) } else { (place, *column) };
            if let (Some(from), Some(to)) = (run.get(from), permuted.get_mut(to)) {
                *to = *from;
            }
        }
        permuted
    };
    scales.chunks(order.len()).flat_map(permute).collect()
}

pub(super) fn unpack_marlin(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    whole_marlin(job)?;
    let qweight = job.tensor("qweight", &[Dtype::I32], &[&[cols / TILE, rows * 2]])?;
    let scales = job.tensor("scales", FLOATS, &[&[groups, rows]])?;
    let mut codes = Grid::new(rows, cols);
    for (code, (input, output)) in natural_codes(&qweight.words()).iter().zip(marlin_places(job)) {
        codes.set(output, input, *code);
    }
    let numbers = marlin_scales(job, &scales.numbers(), false);
    Ok(job.quantized(codes, None, (scales.dtype, numbers), None))
}

pub(super) fn pack_marlin(
    job: &Job<'_, '_>,
    quantized: &Quantized,
) -> Result<Tensors<'static>, NotUnpacked> {
    let Job { rows, cols, groups, .. } = *job;
    whole_marlin(job)?;
    quantized.in_order(job)?;
    quantized.is_symmetric(job)?;
    let codes = quantized.code_grid();
    let codes: Vec<u8> =
        marlin_places(job).map(|(input, output)| codes.get(output, input)).collect();
    let scales = marlin_scales(job, &quantized.scales, true);
    Ok(Tensors::from([
        ("qweight", Tensor::of_words(&[cols / TILE, rows * 2], &natural_words(&codes))),
        ("scales", Tensor::of_numbers("scales", quantized.scale_dtype, &[groups, rows], &scales)?),
    ]))
}
