//! Every number of every tensor: NaN and infinite ones.

use gguf_assay_format::{ByteOrder, Gguf, TensorType, escape};
use gguf_assay_quant::kernel::{Engine, Kernel};
use gguf_assay_quant::{Error, feeds};
use rayon::prelude::*;
use serde::Serialize;

/// A tensor with numbers that are none.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct NotFinite {
    /// The tensor's name, escaped.
    pub(crate) tensor: String,
    /// The type's name.
    #[serde(rename = "type")]
    pub(crate) tensor_type: &'static str,
    /// How many of its numbers are not finite, of how many.
    pub(crate) count: u64,
    /// How many numbers it has.
    pub(crate) of: u64,
    /// The block of the first of them, counted from 0.
    pub(crate) block: u64,
    /// The first of them within its block.
    pub(crate) element: usize,
    /// `NaN`, `inf` or `-inf`.
    pub(crate) value: String,
    /// The parts of the block that it comes from.
    pub(crate) from: String,
}

/// How many numbers a thread holds at a time: they stay in its cache.
const CHUNK: usize = 1 << 16;

/// Looks at all tensors whose data are there, on all cores; `progress` is told the bytes as they are
/// done.
pub(crate) fn inspect(
    gguf: &Gguf<'_>,
    engine: Engine,
    progress: impl Fn(u64) + Sync,
) -> Result<Vec<NotFinite>, Error> {
    let mut found = Vec::new();
    for tensor in &gguf.tensors {
        let (Some(tensor_type), Some(data)) = (tensor.tensor_type, gguf.tensor_bytes(tensor))
        else {
            continue;
        };
        let name = escape(tensor.name.0, 72);
        let kernel = engine.kernel(tensor_type)?;
        found.extend(inspect_tensor(
            &name,
            tensor_type,
            &kernel,
            data,
            gguf.byte_order,
            &progress,
        )?);
    }
    Ok(found)
}

fn inspect_tensor(
    name: &str,
    t: &'static TensorType,
    kernel: &Kernel,
    data: &[u8],
    order: ByteOrder,
    progress: &(impl Fn(u64) + Sync),
) -> Result<Option<NotFinite>, Error> {
    let (len, size) = (t.block_len as usize, t.block_bytes as usize);
    let chunk = CHUNK / len * size;
    let inspect_chunk = |numbers: &mut Vec<f32>, (index, bytes): (usize, &[u8])| {
        let blocks = bytes.len() / size;
        numbers.resize(blocks * len, 0.0);
        match t.name {
            // An F64 may be finite and still beyond the range of an f32.
            "F64" => {
                for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
                    let wide = match order {
                        ByteOrder::Little => f64::from_le_bytes(*bytes),
                        ByteOrder::Big => f64::from_be_bytes(*bytes),
                    };
                    *number = if wide.is_finite() { 0.0 } else { wide as f32 };
                }
            }
            _ => kernel.dequantize(bytes, order, numbers)?,
        }
        progress(bytes.len() as u64);
        let count = numbers.iter().filter(|number| !number.is_finite()).count() as u64;
        let first = numbers.iter().position(|number| !number.is_finite());
        Ok(first.map(|first| NotFinite {
            tensor: name.into(),
            tensor_type: t.name,
            count,
            of: (data.len() / size * len) as u64,
            block: (index * (CHUNK / len) + first / len) as u64,
            element: first % len,
            value: numbers[first].to_string(),
            from: feeds(t, first % len)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        }))
    };
    // The first finding of the tensor is that of the first chunk which has one.
    let join = |a: Option<NotFinite>, b: Option<NotFinite>| match (a, b) {
        (Some(a), Some(b)) => {
            let count = a.count + b.count;
            let first = if a.block <= b.block { a } else { b };
            Ok(Some(NotFinite { count, ..first }))
        }
        (a, b) => Ok(a.or(b)),
    };
    data.par_chunks(chunk).enumerate().map_init(Vec::new, inspect_chunk).try_reduce(|| None, join)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(t: &str, data: &[u8]) -> Option<NotFinite> {
        let t = TensorType::by_name(t).unwrap();
        let kernel = Engine::best().kernel(t).unwrap();
        inspect_tensor("t", t, &kernel, data, ByteOrder::Little, &|_| {}).unwrap()
    }

    /// By hand: blocks of 34 bytes, a half-precision scale of 1 (0x3C00) and quants of 1; block 3000 is
    /// behind the first chunk, which ends with block 2047.
    #[test]
    fn a_scale_that_is_nan_is_found() {
        let block = [&[0x00, 0x3C][..], &[1; 32]].concat();
        let mut data = block.repeat(4000);
        assert_eq!(find("Q8_0", &data), None);
        data[3000 * 34 + 1] = 0x7E;
        let finding = find("Q8_0", &data).unwrap();
        assert_eq!((finding.block, finding.element, finding.count), (3000, 0, 32));
        assert_eq!((finding.value.as_str(), finding.of), ("NaN", 128_000));
        assert!(finding.from.contains('d'), "{}", finding.from);
        // The first is the first of the file, whichever thread is done first.
        data[2999 * 34 + 1] = 0x7C;
        let finding = find("Q8_0", &data).unwrap();
        assert_eq!((finding.block, finding.element, finding.count), (2999, 0, 64));
        assert_eq!(finding.value, "inf");
        data[34 + 1] = 0x7E;
        let finding = find("Q8_0", &data).unwrap();
        assert_eq!((finding.block, finding.count), (1, 96));
    }

    #[test]
    fn a_double_beyond_single_precision_is_finite() {
        assert_eq!(find("F64", &1e300f64.to_le_bytes()), None);
        let data = [1.0, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        assert_eq!(find("F64", &data).unwrap().value, "-inf");
        assert_eq!(find("F64", &data).unwrap().block, 1);
    }
}
