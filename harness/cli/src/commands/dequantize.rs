//! `gguf-assay dequantize`: the numbers of a tensor.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gguf_assay_format::{ByteOrder, Gguf, Tensor, TensorType, diagnose, escape};
use gguf_assay_quant::kernel::{Engine, Kernel};

use super::{engine, print};
use crate::mapped::MappedFile;

/// Print a tensor's numbers, or write them to a NumPy file
///
/// The numbers are those of the reference dequantizer, bit for bit what ggml makes of the blocks,
/// whichever kernel computes them (gguf-assay list kernels).
/// Without `--out`, the start of a row is printed; without `--row`, of the first.
///
///     gguf-assay dequantize model.gguf output_norm.weight
///     gguf-assay dequantize model.gguf blk.0.attn_q.weight --row 7
///     gguf-assay dequantize model.gguf token_embd.weight --out token_embd.npy
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The model
    file: PathBuf,
    /// The tensor's name
    tensor: String,
    /// Only this row, counted from 0 over all dimensions but the first
    #[arg(long, value_name = "N")]
    row: Option<u64>,
    /// How many numbers of the row to print
    #[arg(long, default_value_t = 32, value_name = "N")]
    first: usize,
    /// Write all numbers (or the row) to a NumPy file, as float32
    #[arg(long, value_name = "FILE.npy")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<u8> {
    let engine = engine()?;
    let bytes = MappedFile::open(&args.file)?;
    let diagnosis = diagnose(&bytes);
    let hint = || format!("gguf-assay check {} says more", args.file.display());
    let Some(gguf) = diagnosis.gguf.as_ref().filter(|_| diagnosis.complete) else {
        bail!("{} cannot be read to its end; {}", args.file.display(), hint());
    };
    let Some(tensor) = gguf.tensor(&args.tensor) else {
        bail!("{}", no_such_tensor(gguf, &args.tensor));
    };
    let Some(data) = gguf.tensor_bytes(tensor) else {
        bail!("the data of {} are not all there; {}", args.tensor, hint());
    };
    // A tensor with data has a type and a shape that its size follows from.
    let tensor_type = tensor.tensor_type.context("the tensor's type is not known")?;
    let rows = Rows::new(tensor, tensor_type, data, gguf.byte_order, engine)?;
    let chosen = match args.row {
        Some(row) if row >= rows.count => {
            bail!("{} has {} rows, so that the last is {}", args.tensor, rows.count, rows.count - 1)
        }
        Some(row) => row..row + 1,
        None => 0..rows.count,
    };
    match &args.out {
        Some(path) => {
            let mut shape: Vec<u64> = tensor.dims.iter().collect();
            shape.reverse();
            if args.row.is_some() {
                shape = vec![rows.len as u64];
            }
            write_npy(path, &shape, &rows, chosen)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}: {} of {shape:?}", path.display(), tensor_type);
        }
        None => print(&rows.to_text(args, tensor, chosen.start)?)?,
    }
    Ok(crate::SUCCESS)
}

fn no_such_tensor(gguf: &Gguf<'_>, name: &str) -> String {
    let names = gguf.tensors.iter().map(|tensor| tensor.name.0);
    let near: Vec<String> = names
        .filter(|other| other.windows(name.len().max(1)).any(|part| part == name.as_bytes()))
        .take(3)
        .map(|other| escape(other, 80))
        .collect();
    match near.as_slice() {
        [] => format!("no tensor is named {name}; the file has {}", gguf.tensors.len()),
        near => format!("no tensor is named {name}; there is {}", near.join(", ")),
    }
}

/// How many numbers are held at a time: some for each core, in 16 MiB.
const CHUNK: usize = 1 << 22;

/// The rows of a tensor: the numbers along its first dimension.
struct Rows<'a> {
    tensor_type: &'static TensorType,
    kernel: Kernel,
    order: ByteOrder,
    data: &'a [u8],
    /// Elements in a row.
    len: usize,
    /// Bytes in a row.
    bytes: usize,
    count: u64,
}

impl<'a> Rows<'a> {
    fn new(
        tensor: &Tensor<'_>,
        tensor_type: &'static TensorType,
        data: &'a [u8],
        order: ByteOrder,
        engine: Engine,
    ) -> Result<Rows<'a>> {
        let kernel = engine.kernel(tensor_type)?;
        let len = tensor.dims.iter().next().unwrap_or(1);
        let bytes = gguf_assay_quant::row_bytes(tensor_type, len)?;
        let (len, bytes) = (usize::try_from(len)?, usize::try_from(bytes)?);
        let count = data.len().checked_div(bytes).unwrap_or(0) as u64;
        if count == 0 {
            bail!("the tensor has no element");
        }
        Ok(Rows { tensor_type, kernel, order, data, len, bytes, count })
    }

    /// The first numbers of a row that there is, in chunks: a row may be as long as the file.
    fn read(
        &self,
        row: u64,
        first: usize,
        mut chunk: impl FnMut(&[f32]) -> Result<()>,
    ) -> Result<()> {
        let start = row as usize * self.bytes;
        let t = self.tensor_type;
        let (len, size) = (t.block_len as usize, t.block_bytes as usize);
        let mut left = self.len.min(first);
        let wanted_blocks = left.div_ceil(len);
        let mut numbers = Vec::new();
        for bytes in self.data[start..][..wanted_blocks * size].chunks(CHUNK / len * size) {
            numbers.resize(bytes.len() / size * len, 0.0);
            self.kernel.dequantize_parallel(bytes, self.order, &mut numbers)?;
            let wanted = &numbers[..numbers.len().min(left)];
            chunk(wanted)?;
            left -= wanted.len();
        }
        Ok(())
    }

    fn to_text(&self, args: &Args, tensor: &Tensor<'_>, row: u64) -> Result<String> {
        let mut numbers = Vec::new();
        self.read(row, args.first, |chunk| {
            numbers.extend_from_slice(chunk);
            Ok(())
        })?;
        let mut text = String::new();
        let dims: Vec<u64> = tensor.dims.iter().collect();
        let _ = writeln!(
            text,
            "{}: {} {dims:?}, row {row} of {}",
            escape(tensor.name.0, 80),
            self.tensor_type,
            self.count
        );
        for line in numbers.chunks(8) {
            let numbers: Vec<String> =
                line.iter().map(|number| format!("{number:>12.6e}")).collect();
            let _ = writeln!(text, "  {}", numbers.join(" "));
        }
        if self.len > args.first {
            let _ = writeln!(text, "  … {} more in the row", self.len - args.first);
        }
        Ok(text)
    }
}

/// Writes rows as a NumPy array of little-endian `float32` (format version 1.0).
fn write_npy(
    path: &Path,
    shape: &[u64],
    rows: &Rows<'_>,
    chosen: std::ops::Range<u64>,
) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let dims: String = shape.iter().map(|dim| format!("{dim}, ")).collect();
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}");
    // Magic, version and length take 10 bytes; the data start at a multiple of 64.
    let padding = (10 + header.len() + 1).next_multiple_of(64) - (10 + header.len() + 1);
    let len = u16::try_from(header.len() + padding + 1)?;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&len.to_le_bytes())?;
    writeln!(out, "{header}{:padding$}", "")?;
    for row in chosen {
        rows.read(row, usize::MAX, |numbers| {
            for number in numbers {
                out.write_all(&number.to_le_bytes())?;
            }
            Ok(())
        })?;
    }
    out.flush()?;
    Ok(())
}
