//! Magic, version, byte order, counts.

use super::{Stop, Walk, count, wide};
use crate::cursor::{ByteOrder, CountWidth};
use crate::reader::Gguf;
use crate::rule::{self, Rule};
use crate::{DEFAULT_ALIGNMENT, MAGIC, escape};

/// The least that an entry of the metadata takes: a key's length, a type, one byte of value.
const MIN_ENTRY: usize = 9;
/// The least that a record of the tensor table takes, in version 1: a name's length, the number of
/// dimensions, a type, an offset.
const MIN_TENSOR: usize = 20;

impl<'a> Walk<'a> {
    pub(super) fn header(&mut self) -> Result<(u64, u64), Stop> {
        if self.bytes.is_empty() {
            return Err(self.fatal(&rule::FILE_001, 0, || {
                ("file".into(), "0 bytes".into(), "a GGUF file".into())
            }));
        }
        let head = self.bytes.get(..MAGIC.len()).unwrap_or(self.bytes);
        if !MAGIC.starts_with(head) {
            return Err(self.fatal(&rule::HDR_001, 0, || {
                let hex: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
                let found = format!("{} (\"{}\")", hex.join(" "), escape(head, 4));
                ("header.magic".into(), found, "47 47 55 46 (\"GGUF\")".into())
            }));
        }
        if self.cursor.bytes(4).is_none() {
            return Err(self.truncated("header.magic".into(), "the magic", Some(4)));
        }

        let at = self.cursor.position();
        let Some(raw) = self.cursor.array::<4>() else {
            return Err(self.truncated("header.version".into(), "a u32", Some(4)));
        };
        let little = u32::from_le_bytes(raw);
        let big = u32::from_be_bytes(raw);
        let (version, order) = match (little, big) {
            (_, 1..=3) => (big, ByteOrder::Big),
            _ => (little, ByteOrder::Little),
        };
        if !(1..=3).contains(&version) {
            return Err(self.fatal(&rule::HDR_002, at, || {
                let found = format!("{version} (bytes {:02x?})", raw);
                ("header.version".into(), found, "1, 2 or 3".into())
            }));
        }
        if version == 1 {
            self.cursor.width = CountWidth::Four;
            self.report(&rule::HDR_003, at, || {
                ("header.version".into(), "1".into(), "2 or 3".into())
            })?;
        }
        if order == ByteOrder::Big {
            self.cursor.order = order;
            self.report(&rule::HDR_004, at, || {
                let found = format!("version {version} in big-endian order");
                ("header.version".into(), found, "little-endian order".into())
            })?;
        }

        let tensor_count = self.header_count("header.tensor_count", &rule::HDR_005, MIN_TENSOR)?;
        let kv_count = self.header_count("header.kv_count", &rule::HDR_006, MIN_ENTRY)?;
        self.gguf = Some(Gguf {
            version,
            byte_order: order,
            metadata: Vec::new(),
            tensors: Vec::new(),
            alignment: DEFAULT_ALIGNMENT,
            data_offset: 0,
            bytes: self.bytes,
        });
        if kv_count > wide(self.bytes.len()) {
            return Err(Stop);
        }
        Ok((tensor_count, kv_count))
    }

    /// A count of records, each of which takes at least `min` bytes. More records than the file has
    /// bytes are a wrong count; fewer that still do not fit show as a truncation where they end.
    fn header_count(&mut self, field: &str, rule: &'static Rule, min: usize) -> Result<u64, Stop> {
        let at = self.cursor.position();
        let Some(number) = self.cursor.count() else {
            let width = wide(self.cursor.width.bytes());
            return Err(self.truncated(field.into(), "a count", Some(width)));
        };
        let len = self.bytes.len();
        if number > wide(len) {
            self.report(rule, at, || {
                let expected = format!("at most {}", len.checked_div(min).unwrap_or(0));
                let found = format!("{number}, in a file of {}", count(wide(len), "byte"));
                (field.into(), found, expected)
            })?;
        }
        Ok(number)
    }
}
