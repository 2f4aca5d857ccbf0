//! What follows the tensor table: padding, tensor data, the tail.

use super::{Mode, Stop, Walk, count, narrow, wide};
use crate::cursor::pad;
use crate::reader::Tensor;
use crate::violation::Report;
use crate::{MAGIC, TensorType, ValueType, escape, rule};

impl<'a> Walk<'a> {
    /// The rules on what follows the tensor table.
    pub(super) fn layout(&mut self) -> Result<(), Stop> {
        let table_end = self.cursor.position();
        let Some(gguf) = &mut self.gguf else {
            return Err(Stop);
        };
        let alignment = u64::from(gguf.alignment);
        gguf.data_offset = wide(table_end);
        if !gguf.tensors.is_empty() {
            // A file's length plus 2^32 fits 64 bits.
            gguf.data_offset = pad(wide(table_end), alignment).unwrap_or(u64::MAX);
        }
        let data_offset = gguf.data_offset;
        let tensors = std::mem::take(&mut gguf.tensors);
        let end = self.data(&tensors, table_end, data_offset, alignment);
        if let Some(gguf) = &mut self.gguf {
            gguf.tensors = tensors;
        }
        end
    }

    fn data(
        &mut self,
        tensors: &[Tensor<'a>],
        table_end: usize,
        data_offset: u64,
        alignment: u64,
    ) -> Result<(), Stop> {
        let file_len = wide(self.bytes.len());
        let quantized = tensors
            .iter()
            .position(|tensor| tensor.tensor_type.is_some_and(TensorType::is_quantized));
        if let Some(index) = quantized {
            let version = self.find("general.quantization_version");
            if version.is_none_or(|(_, entry)| entry.value.value_type() != ValueType::U32) {
                self.report(&rule::META_016, table_end, || {
                    let found = match version {
                        Some((_, entry)) => format!("a {}", entry.value.value_type()),
                        None => "no such key".into(),
                    };
                    let found = format!("{found}, while tensors[{index}] is quantized");
                    ("metadata".into(), found, "general.quantization_version, a u32".into())
                })?;
            }
        }
        if !tensors.is_empty() && data_offset > file_len {
            return Err(self.fatal(&rule::DATA_005, table_end, || {
                let missing = data_offset.saturating_sub(file_len);
                let found = format!("the end of the file, {} before", count(missing, "byte"));
                let expected = format!("a data section at byte {data_offset}");
                Report { field: "padding".into(), found, expected, missing: Some(missing) }
            }));
        }
        self.zeros(wide(table_end), data_offset, || "padding".into())?;

        self.offsets(tensors, table_end, alignment)?;
        self.extents(tensors, data_offset)?;
        if self.mode == Mode::Diagnose {
            self.tail(tensors, table_end, data_offset, alignment)?;
        }
        Ok(())
    }

    /// The offsets of the table: aligned, and each the sum of the padded sizes before it.
    fn offsets(
        &mut self,
        tensors: &[Tensor<'a>],
        table_end: usize,
        alignment: u64,
    ) -> Result<(), Stop> {
        let mut expected = Some(0u64);
        let mut drift = Some(0u64);
        for (index, tensor) in tensors.iter().enumerate() {
            let field = |part: &str| format!("tensors[{index}].{part}");
            let at = offset_field(tensors, index, table_end);
            if !tensor.offset.is_multiple_of(alignment) {
                self.report(&rule::DATA_001, at, || {
                    let expected = format!("a multiple of {alignment}");
                    (field("offset"), tensor.offset.to_string(), expected)
                })?;
            }
            // ggml's own sum goes by sizes alone. A gap moves all that follows, so offsets that
            // keep step with the last one that was reported are not reported again.
            let kept_step = [expected, drift].contains(&Some(tensor.offset));
            if let (false, Some(sum)) = (kept_step, expected) {
                self.report(&rule::DATA_002, at, || {
                    (field("offset"), tensor.offset.to_string(), format!("{sum}"))
                })?;
            }
            let Some(byte_len) = tensor.byte_len else {
                (expected, drift) = (None, None);
                continue;
            };
            let padded = pad(byte_len, alignment);
            let sum = expected.unwrap_or(tensor.offset);
            expected = padded.and_then(|padded| sum.checked_add(padded));
            drift = padded.and_then(|padded| tensor.offset.checked_add(padded));
            if expected.is_none() {
                self.report(&rule::DATA_006, self.dims_position(tensor), || {
                    let found = format!("{byte_len} bytes after {sum}");
                    (field("dims"), found, "a sum below 2^64".into())
                })?;
            }
        }
        Ok(())
    }

    /// Every tensor's data are within the file.
    fn extents(&mut self, tensors: &[Tensor<'a>], data_offset: u64) -> Result<(), Stop> {
        let file_len = wide(self.bytes.len());
        for (index, tensor) in tensors.iter().enumerate() {
            let start = data_offset.checked_add(tensor.offset);
            let Some(byte_len) = tensor.byte_len else { continue };
            let end = start.and_then(|start| start.checked_add(byte_len));
            if end.is_none_or(|end| end > file_len) {
                self.report(&rule::DATA_004, narrow(start.unwrap_or(u64::MAX)), || {
                    let missing = end.map(|end| end.saturating_sub(file_len));
                    let end = match (end, missing) {
                        (Some(end), Some(missing)) => format!("{end} ({missing} missing)"),
                        _ => "2^64 or more".into(),
                    };
                    let found = format!("the end of the file at byte {file_len}");
                    let name = escape(tensor.name.0, 72);
                    let expected = format!("the data of \"{name}\" up to byte {end}");
                    Report { field: format!("tensors[{index}].data"), found, expected, missing }
                })?;
            }
        }
        Ok(())
    }

    /// Where a tensor's dimensions stand in its record: behind name and number of dimensions.
    fn dims_position(&self, tensor: &Tensor<'_>) -> usize {
        narrow(tensor.record_offset)
            .saturating_add(self.cursor.width.bytes())
            .saturating_add(tensor.name.0.len())
            .saturating_add(4)
    }

    /// Notes on the bytes between and behind tensors.
    fn tail(
        &mut self,
        tensors: &[Tensor<'a>],
        table_end: usize,
        data_offset: u64,
        alignment: u64,
    ) -> Result<(), Stop> {
        let file_len = wide(self.bytes.len());
        let mut spans: Vec<(u64, u64, usize)> = Vec::new();
        for (index, tensor) in tensors.iter().enumerate() {
            let end = tensor.byte_len.and_then(|byte_len| tensor.offset.checked_add(byte_len));
            match end {
                Some(end) if end > tensor.offset => spans.push((tensor.offset, end, index)),
                Some(_) => {}
                // Where a tensor of unknown size ends, nothing can be said about what follows.
                None => return Ok(()),
            }
        }
        spans.sort_unstable();
        let mut last_end = 0;
        let mut last: Option<usize> = None;
        for &(start, end, index) in &spans {
            if let (Some(last), true) = (last, start < last_end) {
                self.report(&rule::DATA_003, offset_field(tensors, index, table_end), || {
                    let shared = count(last_end.min(end).saturating_sub(start), "byte");
                    let found = format!("{shared} that tensors[{last}] has too");
                    (format!("tensors[{index}].offset"), found, "bytes of its own".into())
                })?;
            } else if let Some(last) = last {
                let gap = pad(last_end, alignment).unwrap_or(last_end).min(start);
                let (from, to) =
                    (data_offset.saturating_add(last_end), data_offset.saturating_add(gap));
                self.zeros(from, to, || format!("tensors[{last}].padding"))?;
            }
            if end >= last_end {
                (last_end, last) = (end, Some(index));
            }
        }
        let data_end = data_offset.saturating_add(last_end);
        let padded = match tensors {
            [] => pad(wide(table_end), alignment),
            _ => pad(last_end, alignment).and_then(|end| data_offset.checked_add(end)),
        }
        .unwrap_or(u64::MAX);
        let field = || match last {
            Some(index) => format!("tensors[{index}].padding"),
            None => "padding".into(),
        };
        if let Some(index) = last
            && data_end <= file_len
            && padded > file_len
        {
            self.report(&rule::DATA_008, narrow(data_end), || {
                let found = format!("the end of the file at byte {file_len}");
                (format!("tensors[{index}].padding"), found, format!("padding up to byte {padded}"))
            })?;
        }
        self.zeros(data_end, padded, field)?;
        if file_len > padded {
            let tail = self.bytes.get(narrow(padded)..).unwrap_or_default();
            let seen = tail.get(..1 << 20).unwrap_or(tail);
            self.report(&rule::FILE_003, narrow(padded), || {
                let kind = if seen.iter().all(|&byte| byte == 0) {
                    "zeros"
                } else if seen.starts_with(&MAGIC) {
                    "another GGUF file"
                } else {
                    "not zeros"
                };
                let found = format!("{} ({kind})", count(wide(tail.len()), "more byte"));
                ("end".into(), found, format!("the end of the file at byte {padded}"))
            })?;
        }
        Ok(())
    }

    /// Notes the first byte of a padding that is not zero. Parts outside the file do not count.
    fn zeros(&mut self, from: u64, to: u64, field: impl Fn() -> String) -> Result<(), Stop> {
        if self.mode != Mode::Diagnose {
            return Ok(());
        }
        let end = narrow(to).min(self.bytes.len());
        let Some(bytes) = self.bytes.get(narrow(from)..end) else {
            return Ok(());
        };
        let Some(index) = bytes.iter().position(|&byte| byte != 0) else {
            return Ok(());
        };
        self.report(&rule::DATA_007, narrow(from).saturating_add(index), || {
            let byte = bytes.get(index).copied().unwrap_or(0);
            (field(), format!("the byte {byte:#04x}"), "zeros".into())
        })
    }
}

/// Where the offset of a tensor stands: the last 8 bytes of its record.
fn offset_field(tensors: &[Tensor<'_>], index: usize, table_end: usize) -> usize {
    let next = index.checked_add(1).and_then(|next| tensors.get(next));
    next.map_or(table_end, |next| narrow(next.record_offset)).saturating_sub(8)
}
