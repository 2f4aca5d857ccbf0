//! Keys and values, and the rules on single keys.

use std::collections::HashSet;

use super::{Stop, Walk, count, indices, narrow, value_field, wide};
use crate::cursor::Cursor;
use crate::path::ValuePath;
use crate::reader::Entry;
use crate::rule::{self, Rule};
use crate::{Array, DEFAULT_ALIGNMENT, Text, Value, ValueType, escape};

/// The last of llama.cpp's `enum llama_ftype` that may stand in a file.
const LAST_FILE_TYPE: u32 = 42;

/// ggml's `GGUF_MAX_STRING_LENGTH` and `GGUF_MAX_ARRAY_ELEMENTS`.
const GGML_MAX: u64 = 1 << 30;

impl<'a> Walk<'a> {
    pub(super) fn metadata(&mut self, kv_count: u64) -> Result<(), Stop> {
        let mut keys = HashSet::new();
        let mut entries = Vec::new();
        let end = (|| {
            for index in indices(kv_count) {
                let entry = self.entry(index, &mut keys)?;
                entries.push(entry);
            }
            Ok(())
        })();
        if let Some(gguf) = &mut self.gguf {
            gguf.metadata = entries;
        }
        end
    }

    fn entry(&mut self, index: usize, keys: &mut HashSet<&'a [u8]>) -> Result<Entry<'a>, Stop> {
        let start = self.cursor.position();
        let field = |part: &str| format!("metadata[{index}].{part}");
        let (key, at) = self.string(|| field("key"), None)?;
        let shown = || format!("\"{}\"", escape(key, 64));
        if key.is_empty() {
            self.report(&rule::META_001, at, || {
                (field("key"), "an empty key".into(), "at least one character".into())
            })?;
        } else if !key.is_ascii() {
            self.report(&rule::META_003, at, || (field("key"), shown(), "ASCII".into()))?;
        } else if !is_lower_snake(key) {
            self.report(&rule::META_004, at, || {
                (field("key"), shown(), "segments of a-z, 0-9 and _, joined by '.'".into())
            })?;
        }
        if key.len() > 65_535 {
            self.report(&rule::META_002, start, || {
                let found = count(wide(key.len()), "byte");
                (field("key.length"), found, "at most 65535 bytes".into())
            })?;
        }
        if !keys.insert(key) {
            self.report(&rule::META_006, at, || {
                (field("key"), format!("{}, seen before", shown()), "a key of its own".into())
            })?;
        }

        let at = self.cursor.position();
        let Some(id) = self.cursor.u32() else {
            return Err(self.truncated(field("type"), "a u32", Some(4)));
        };
        let Some(value_type) = ValueType::by_id(id) else {
            return Err(self.fatal(&rule::META_007, at, || {
                let found = format!("{id}, for the key {}", shown());
                (field("type"), found, "0 to 12".into())
            }));
        };
        let value_offset = wide(self.cursor.position());
        let value = self.value(value_type, ValuePath::Entry(index), 0)?;
        Ok(Entry { key: Text(key), value, offset: wide(start), value_offset })
    }

    fn value(
        &mut self,
        value_type: ValueType,
        path: ValuePath<'_>,
        depth: u32,
    ) -> Result<Value<'a>, Stop> {
        match value_type {
            ValueType::String => {
                let (bytes, _) = self.string(|| path.to_string(), Some(&rule::META_012))?;
                Ok(Value::String(Text(bytes)))
            }
            ValueType::Array => self.array(path, depth).map(Value::Array),
            scalar => {
                let at = self.cursor.position();
                let before = self.cursor.rest();
                let Some(value) = Value::read_scalar(scalar, &mut self.cursor) else {
                    return Err(self.truncated(path.to_string(), scalar.name(), scalar.size()));
                };
                if let (Value::Bool(_), Some(byte @ 2..)) = (&value, before.first()) {
                    self.report(&rule::META_011, at, || {
                        (path.to_string(), format!("the byte {byte}"), "0 or 1".into())
                    })?;
                }
                Ok(value)
            }
        }
    }

    /// A length and as many bytes, with the position of the bytes. Checked for UTF-8 if a rule for
    /// it is given.
    #[inline]
    pub(super) fn string(
        &mut self,
        path: impl Fn() -> String,
        utf8: Option<&'static Rule>,
    ) -> Result<(&'a [u8], usize), Stop> {
        let start = self.cursor.position();
        let Some(len) = self.cursor.count() else {
            let width = wide(self.cursor.width.bytes());
            return Err(self.truncated(format!("{}.length", path()), "a length", Some(width)));
        };
        let at = self.cursor.position();
        let Some(bytes) = self.cursor.bytes(len) else {
            return Err(self.truncated(path(), "a string", Some(len)));
        };
        if len > GGML_MAX {
            self.report(&rule::META_005, start, || {
                (format!("{}.length", path()), count(len, "byte"), "at most 2^30 bytes".into())
            })?;
        }
        if let Some(rule) = utf8
            && self.wants(rule)
            && !is_utf8(bytes)
        {
            self.report(rule, at, || not_utf8(path(), bytes))?;
        }
        Ok((bytes, at))
    }

    fn array(&mut self, path: ValuePath<'_>, outer: u32) -> Result<Array<'a>, Stop> {
        let depth = outer.saturating_add(1);
        let at = self.cursor.position();
        if depth > self.limits.array_depth {
            let limit = self.limits.array_depth;
            return Err(self.fatal(&rule::META_010, at, || {
                let found = format!("an array at depth {depth}");
                (path.to_string(), found, format!("at most {limit}"))
            }));
        }
        let Some(id) = self.cursor.u32() else {
            return Err(self.truncated(format!("{path}.type"), "a u32", Some(4)));
        };
        let Some(element_type) = ValueType::by_id(id) else {
            return Err(self.fatal(&rule::META_008, at, || {
                (format!("{path}.type"), id.to_string(), "0 to 12".into())
            }));
        };
        // Once for the outermost array that has arrays in it, not once a level.
        if element_type == ValueType::Array && depth == 1 {
            self.report(&rule::META_009, at, || {
                (format!("{path}.type"), "arrays in an array".into(), "scalars or strings".into())
            })?;
        }
        let at = self.cursor.position();
        let Some(len) = self.cursor.count() else {
            let width = wide(self.cursor.width.bytes());
            return Err(self.truncated(format!("{path}.count"), "a count", Some(width)));
        };
        let width = wide(self.cursor.width.bytes());
        let least = match element_type.size() {
            Some(size) => size,
            None if element_type == ValueType::Array => width.saturating_add(4),
            None => width,
        };
        let needed = len.checked_mul(least);
        if needed.is_none_or(|needed| needed > wide(self.cursor.remaining())) {
            let what = format!("{} of type {element_type}", count(len, "element"));
            return Err(self.truncated(path.to_string(), &what, needed));
        }
        if len > GGML_MAX {
            self.report(&rule::META_013, at, || {
                (format!("{path}.count"), len.to_string(), "at most 2^30".into())
            })?;
        }

        let start = self.cursor;
        match element_type {
            ValueType::String => self.strings(len, &path)?,
            ValueType::Array => {
                for index in 0..len {
                    self.array(ValuePath::Element(&path, index), depth)?;
                }
            }
            ValueType::Bool => self.bools(len, &path)?,
            _ => {
                self.cursor.bytes(needed.unwrap_or(0));
            }
        }
        let bytes = start.bytes_up_to(&self.cursor);
        Ok(Array::new(element_type, len, bytes, self.cursor.order, self.cursor.width))
    }

    fn bools(&mut self, len: u64, path: &ValuePath<'_>) -> Result<(), Stop> {
        let at = self.cursor.position();
        let bytes = self.cursor.bytes(len).unwrap_or_default();
        let Some(index) = bytes.iter().position(|&byte| byte > 1) else {
            return Ok(());
        };
        let bad = bytes.iter().filter(|&&byte| byte > 1).count();
        self.report(&rule::META_011, at.saturating_add(index), || {
            let byte = bytes.get(index).copied().unwrap_or(0);
            let found = format!("the byte {byte} ({} such)", count(wide(bad), "element"));
            (format!("{path}[{index}]"), found, "0 or 1".into())
        })
    }

    /// The strings of an array. A vocabulary has hundreds of thousands, so they are first taken all
    /// at once, and one by one only where that finds a fault.
    fn strings(&mut self, len: u64, path: &ValuePath<'_>) -> Result<(), Stop> {
        if let Some(behind) = self.flawless_strings(len) {
            self.cursor = behind;
            return Ok(());
        }
        for index in 0..len {
            let element = ValuePath::Element(path, index);
            self.string(|| element.to_string(), Some(&rule::META_012))?;
        }
        Ok(())
    }

    /// The cursor behind so many strings, if no rule on them is broken.
    fn flawless_strings(&self, len: u64) -> Option<Cursor<'a>> {
        let check = self.wants(&rule::META_012);
        let mut cursor = self.cursor;
        let mut unchecked = cursor;
        let mut lengths = 0;
        for _ in 0..len {
            let length = cursor.count()?;
            lengths |= length;
            // A length without a high bit in any byte is ASCII: no character can reach across it,
            // so the strings on both sides are UTF-8 if all the bytes together are.
            if check && length & 0x8080_8080_8080_8080 != 0 {
                let strings = unchecked.bytes_up_to(&cursor);
                let end = strings.len().checked_sub(cursor.width.bytes())?;
                if !is_utf8(strings.get(..end)?) {
                    return None;
                }
                unchecked = cursor;
            }
            cursor.bytes(length)?;
        }
        // No length is above what the lengths have together.
        let fine = lengths <= GGML_MAX && (!check || is_utf8(unchecked.bytes_up_to(&cursor)));
        fine.then_some(cursor)
    }

    /// The rules on `general.*`. Returns the alignment to go on with.
    pub(super) fn general_keys(&mut self) -> Result<u32, Stop> {
        let end = self.cursor.position();
        match self.find("general.architecture") {
            None => self.report(&rule::META_014, end, || {
                let found = "no such key".into();
                ("metadata".into(), found, "general.architecture, a string".into())
            })?,
            Some((index, entry)) => {
                let value = entry.value;
                let fits = value.as_str().is_some_and(|name| {
                    !name.is_empty()
                        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                });
                if !fits {
                    self.report(&rule::META_015, self.value_position(&entry), || {
                        let found = format!("the {} {value}", value.value_type());
                        (value_field(index), found, "a string of a-z and 0-9".into())
                    })?;
                }
            }
        }

        let Some((index, entry)) = self.find("general.alignment") else {
            return Ok(DEFAULT_ALIGNMENT);
        };
        let value = entry.value;
        let at = self.value_position(&entry);
        if value.value_type() != ValueType::U32 {
            self.report(&rule::ALIGN_001, at, || {
                let found = format!("the {} {value}", value.value_type());
                (value_field(index), found, "a u32".into())
            })?;
        }
        let Some(alignment) = value.as_u64().and_then(|value| u32::try_from(value).ok()) else {
            return Ok(DEFAULT_ALIGNMENT);
        };
        if alignment == 0 {
            self.report(&rule::ALIGN_002, at, || {
                (value_field(index), "0".into(), "a positive multiple of 8".into())
            })?;
            return Ok(DEFAULT_ALIGNMENT);
        }
        if !alignment.is_power_of_two() {
            self.report(&rule::ALIGN_003, at, || {
                (value_field(index), alignment.to_string(), "a power of two".into())
            })?;
        }
        if !alignment.is_multiple_of(8) {
            self.report(&rule::ALIGN_004, at, || {
                (value_field(index), alignment.to_string(), "a multiple of 8".into())
            })?;
        }
        Ok(alignment)
    }

    /// Where the field `metadata[…].value` starts: a string's is its bytes, behind the length.
    fn value_position(&self, entry: &Entry<'_>) -> usize {
        let length = match entry.value {
            Value::String(_) => self.cursor.width.bytes(),
            _ => 0,
        };
        narrow(entry.value_offset).saturating_add(length)
    }

    /// Notes on keys that the container does not need but its readers do.
    pub(super) fn noted_keys(&mut self) -> Result<(), Stop> {
        if let Some((index, entry)) = self.find("general.file_type")
            && !matches!(entry.value, Value::U32(0..=LAST_FILE_TYPE))
        {
            let value = entry.value;
            self.report(&rule::META_017, self.value_position(&entry), || {
                let found = format!("the {} {value}", value.value_type());
                (value_field(index), found, format!("a u32 up to {LAST_FILE_TYPE}"))
            })?;
        }
        if let Some((index, entry)) = self.find("tokenizer.ggml.separator_token_id")
            && self.find("tokenizer.ggml.seperator_token_id").is_none()
        {
            let at = narrow(entry.offset).saturating_add(self.cursor.width.bytes());
            self.report(&rule::META_018, at, || {
                let found = format!("only \"{}\"", entry.key);
                let expected = "also \"tokenizer.ggml.seperator_token_id\"".into();
                (format!("metadata[{index}].key"), found, expected)
            })?;
        }
        self.split_keys()
    }

    fn split_keys(&mut self) -> Result<(), Stop> {
        let asked = [
            ("split.no", ValueType::U16),
            ("split.count", ValueType::U16),
            ("split.tensors.count", ValueType::I32),
        ];
        for (key, value_type) in asked {
            if let Some((index, entry)) = self.find(key)
                && entry.value.value_type() != value_type
            {
                self.report(&rule::SPLIT_001, self.value_position(&entry), || {
                    let value = entry.value;
                    let found = format!("the {} {value}", value.value_type());
                    (value_field(index), found, format!("a {value_type}"))
                })?;
            }
        }
        let number = |key| Some((self.find(key)?.0, self.find(key)?.1.value.as_u64()?));
        if let (Some((index, no)), Some((_, of))) = (number("split.no"), number("split.count"))
            && of > 1
            && no >= of
        {
            let at = self.find("split.no").map_or(0, |(_, entry)| narrow(entry.value_offset));
            self.report(&rule::SPLIT_002, at, || {
                (value_field(index), no.to_string(), format!("below split.count, which is {of}"))
            })?;
        }
        Ok(())
    }
}

fn not_utf8(field: String, bytes: &[u8]) -> (String, String, String) {
    (field, format!("\"{}\"", escape(bytes, 64)), "UTF-8".into())
}
fn is_lower_snake(key: &[u8]) -> bool {
    key.split(|&byte| byte == b'.').all(|segment| {
        !segment.is_empty()
            && segment
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_')
    })
}
fn is_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}
