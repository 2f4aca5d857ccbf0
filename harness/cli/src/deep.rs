//! Every number of every tensor: NaN and infinite ones.

use gguf_assay_format::{ByteOrder, Gguf, TensorType, escape};
use gguf_assay_quant::{Error, dequantize, feeds};
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

/// How many numbers are held at a time, up to a block.
const CHUNK: usize = 1 << 16;

/// Looks at all tensors whose data are there; `progress` is told the bytes as they are done.
pub(crate) fn inspect(
    gguf: &Gguf<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Vec<NotFinite>, Error> {
    let mut found = Vec::new();
    for tensor in &gguf.tensors {
        let (Some(tensor_type), Some(data)) = (tensor.tensor_type, gguf.tensor_bytes(tensor))
        else {
            continue;
        };
        let name = escape(tensor.name.0, 72);
        found.extend(inspect_tensor(&name, tensor_type, data, gguf.byte_order, &mut progress)?);
    }
    Ok(found)
}

fn inspect_tensor(
    name: &str,
    t: &'static TensorType,
    data: &[u8],
    order: ByteOrder,
    progress: &mut impl FnMut(u64),
) -> Result<Option<NotFinite>, Error> {
    let (len, size) = (t.block_len as usize, t.block_bytes as usize);
    let mut numbers = Vec::new();
    let mut found: Option<NotFinite> = None;
    let mut blocks_before = 0;
    for bytes in data.chunks(CHUNK.div_ceil(len) * size) {
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
            _ => dequantize(t, bytes, order, &mut numbers)?,
        }
        let count = numbers.iter().filter(|number| !number.is_finite()).count() as u64;
        if let Some(first) = numbers.iter().position(|number| !number.is_finite()) {
            let finding = found.get_or_insert_with(|| {
                let element = first % len;
                let from: Vec<String> = feeds(t, element).iter().map(ToString::to_string).collect();
                NotFinite {
                    tensor: name.into(),
                    tensor_type: t.name,
                    count: 0,
                    of: (data.len() / size * len) as u64,
                    block: blocks_before + (first / len) as u64,
                    element,
                    value: numbers[first].to_string(),
                    from: from.join(", "),
                }
            });
            finding.count += count;
        }
        blocks_before += blocks as u64;
        progress(bytes.len() as u64);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(t: &str, data: &[u8]) -> Option<NotFinite> {
        let t = TensorType::by_name(t).unwrap();
        inspect_tensor("t", t, data, ByteOrder::Little, &mut |_| {}).unwrap()
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
    }

    #[test]
    fn a_double_beyond_single_precision_is_finite() {
        assert_eq!(find("F64", &1e300f64.to_le_bytes()), None);
        let data = [1.0, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        assert_eq!(find("F64", &data).unwrap().value, "-inf");
        assert_eq!(find("F64", &data).unwrap().block, 1);
    }
}
