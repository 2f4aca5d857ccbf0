//! The header of a safetensors file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use gguf_assay_format::{Rule, printable};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dtype::Dtype;
use crate::files::{Files, stranger};
use crate::finding::{Finding, Findings};
use crate::json::{not_utf8, offset_of, unreadable};
use crate::rule;

/// A tensor, as a header has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRecord {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: Dtype,
    /// Its shape, in torch's order.
    pub shape: Vec<u64>,
    /// Where its bytes begin, counted from the start of the file.
    pub offset: u64,
    /// How many there are, as its offsets say.
    pub len: u64,
}

/// What a header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The tensors whose entries can be read, in the order of the header. Of those that come again
    /// it is the last.
    pub tensors: Vec<TensorRecord>,
    /// The names of the others, sorted: they are there, but nobody knows what they are.
    pub illegible: Vec<String>,
    /// The entries of `__metadata__`.
    pub metadata: Vec<(String, String)>,
}

/// As long as a header may be: safetensors 0.8, `MAX_HEADER_SIZE`.
const MAX_LEN: u64 = 100_000_000;

/// The bytes that say how long the header is.
const LENGTH: u64 = 8;

impl Header {
    /// Reads the header of a file, and finds what is wrong with it. There is no header if its text
    /// cannot be had, or is no JSON object.
    ///
    /// Takes memory for a header that is there, and not for one that is claimed.
    pub fn read<F: Files>(files: &F, name: &str) -> (Option<Header>, Vec<Finding>) {
        let mut findings = Findings::default();
        let header = match text(files, name) {
            Ok((text, file_len)) => parse(&text, file_len, &mut findings),
            Err(finding) => {
                findings.add(*finding);
                None
            }
        };
        let findings = findings.finish().into_iter().map(|finding| finding.in_file(name));
        (header, findings.collect())
    }

    /// The same of the text of a header, as it is between its length and the data, in a file of
    /// `file_len` bytes. Offsets of findings count from the start of the file.
    pub fn parse(text: &[u8], file_len: u64) -> (Option<Header>, Vec<Finding>) {
        let mut findings = Findings::default();
        let header = parse(text, file_len, &mut findings);
        (header, findings.finish())
    }
}

/// The text of a file's header, and the length of the file.
fn text<F: Files>(files: &F, name: &str) -> Result<(Vec<u8>, u64), Box<Finding>> {
    let unreadable = |error| Box::new(unreadable(&error));
    let file_len = files.len(name).map_err(unreadable)?;
    // As much as tells a stranger, too.
    let mut start = [0; 24];
    let there = usize::try_from(file_len).map_or(start.len(), |len| len.min(start.len()));
    let start = start.get_mut(..there).unwrap_or_default();
    files.read_at(name, 0, start).map_err(unreadable)?;
    let refused = |rule, found: String, expected: String| {
        let found = match stranger(start) {
            Some(kind) => format!("{kind}; taken for a header, {found}"),
            None => found,
        };
        Err(Box::new(Finding::new(rule, found, expected).at(0)))
    };
    let Some(length) = start.first_chunk().copied().map(u64::from_le_bytes) else {
        let found = format!("a file of {file_len} bytes");
        return refused(&rule::ST_001, found, format!("at least {LENGTH}"));
    };
    let rest = file_len.saturating_sub(LENGTH);
    let found = format!("a header of {length} bytes in a file of {file_len}");
    if length > rest {
        return refused(&rule::ST_001, found, format!("at most {rest}"));
    }
    if length > MAX_LEN {
        return refused(&rule::ST_002, found, format!("at most {MAX_LEN}"));
    }
    let length = usize::try_from(length).map_err(std::io::Error::other).map_err(unreadable)?;
    let mut text = vec![0; length];
    files.read_at(name, LENGTH, &mut text).map_err(unreadable)?;
    Ok((text, file_len))
}

fn parse(text: &[u8], file_len: u64, findings: &mut Findings) -> Option<Header> {
    let begins = match text.first() {
        Some(b'{') => None,
        Some(byte) => Some(format!("the byte {byte:#04x}, {}", printable_byte(*byte))),
        None => Some("a header of 0 bytes".into()),
    };
    if let Some(found) = begins {
        findings.add(Finding::new(&rule::ST_003, found, "{, which is 0x7b").at(LENGTH));
        // White space in front is passed over by safetensors 0.8.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
    }
    let base = u64::try_from(text.len()).ok()?.checked_add(LENGTH)?;
    let text = match simdutf8::compat::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            findings.add(not_utf8(&rule::ST_004, text, error.valid_up_to(), LENGTH));
            return None;
        }
    };
    // All of it once as JSON, so that nothing is passed over below.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Whole>();
    if let Some(Err(error)) = values.next() {
        let offset = LENGTH.saturating_add(offset_of(&error, text));
        findings.add(Finding::new(&rule::ST_005, error.to_string(), "a JSON object").at(offset));
        return None;
    }
    let (object, padding) = text.split_at_checked(values.byte_offset())?;
    let object: Members<'_> = serde_json::from_str(object).ok()?;
    let mut reader = Reader { text, base, file_len, findings };
    reader.padding(padding);
    Some(reader.header(&object.0))
}

fn printable_byte(byte: u8) -> String {
    if byte.is_ascii_graphic() {
        char::from(byte).into()
    } else {
        "which is no { and nothing that is printed".into()
    }
}

/// Any value of JSON, every string and number of which can be read.
struct Whole;

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole, D::Error> {
        deserializer.deserialize_any(Whole)
    }
}

impl<'de> Visitor<'de> for Whole {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_str<E>(self, _: &str) -> Result<Whole, E> {
        Ok(Whole)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Whole, A::Error> {
        while seq.next_element::<Whole>()?.is_some() {}
        Ok(Whole)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Whole, A::Error> {
        while map.next_entry::<Whole, Whole>()?.is_some() {}
        Ok(Whole)
    }
}

/// The members of a JSON object in their order, each as often as it is there, with their text.
struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

/// A key, borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// What goes through a header.
struct Reader<'a> {
    text: &'a str,
    /// Where the data begins in the file.
    base: u64,
    file_len: u64,
    findings: &'a mut Findings,
}

/// The most that is quoted of a value.
const QUOTED: usize = 80;

impl Reader<'_> {
    /// Where in the file a part of the text is.
    fn offset(&self, part: &str) -> u64 {
        let start = part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        u64::try_from(start).map_or(u64::MAX, |start| LENGTH.saturating_add(start))
    }

    /// A finding about a value.
    fn about(&self, rule: &'static Rule, value: &RawValue, expected: impl Into<String>) -> Finding {
        let found = printable(value.get(), QUOTED);
        Finding::new(rule, found, expected).at(self.offset(value.get()))
    }

    fn padding(&mut self, padding: &str) {
        let place = |is_fine: fn(char) -> bool| padding.find(|c| !is_fine(c));
        let (rule, place) =
            match (place(|c| matches!(c, ' ' | '\t' | '\n' | '\r')), place(|c| c == ' ')) {
                (Some(place), _) => (&rule::ST_006, place),
                (None, Some(place)) => (&rule::ST_007, place),
                (None, None) => return,
            };
        let Some(rest) = padding.get(place..) else { return };
        let found = format!("{} bytes after the object: {}", rest.len(), printable(rest, QUOTED));
        self.findings.add(Finding::new(rule, found, "spaces").at(self.offset(rest)));
    }

    fn header(&mut self, members: &[(Cow<'_, str>, &RawValue)]) -> Header {
        let mut header = Header::default();
        let mut is_whole = true;
        let last: HashMap<&str, usize> =
            members.iter().enumerate().map(|(place, (name, _))| (name.as_ref(), place)).collect();
        for (place, (name, value)) in members.iter().enumerate() {
            let again = last.get(name.as_ref()).and_then(|last| members.get(*last));
            if let Some((_, again)) = again
                && last.get(name.as_ref()) != Some(&place)
            {
                let found = format!("the key again at {:#x}", self.offset(again.get()));
                let finding = Finding::new(&rule::ST_008, found, "each key once");
                let finding = finding.at(self.offset(value.get()));
                self.findings.add(match name.as_ref() {
                    "__metadata__" => finding.of_field("__metadata__"),
                    name => finding.of_tensor(name),
                });
                is_whole = false;
                continue;
            }
            if name == "__metadata__" {
                header.metadata = self.metadata(value);
                continue;
            }
            if name.is_empty() || name.contains(char::is_control) {
                let found = if name.is_empty() { "an empty name" } else { "control characters" };
                let finding = Finding::new(&rule::ST_020, found, "a name that can be printed");
                self.findings.add(finding.at(self.offset(value.get())).of_tensor(name.as_ref()));
            }
            match self.tensor(name, value) {
                Some(record) => header.tensors.push(record),
                None => header.illegible.push(name.as_ref().into()),
            }
        }
        header.illegible.sort();
        is_whole &= header.illegible.is_empty();
        self.spans(&header.tensors, is_whole);
        header
    }

    fn metadata(&mut self, value: &RawValue) -> Vec<(String, String)> {
        let Ok(Members(members)) = serde_json::from_str(value.get()) else {
            let finding = self.about(&rule::ST_009, value, "an object of strings");
            self.findings.add(finding.of_field("__metadata__"));
            return Vec::new();
        };
        self.duplicates(&members, |finding, key| finding.of_field(format!("__metadata__.{key}")));
        let mut metadata = Vec::new();
        for (key, value) in &members {
            match serde_json::from_str(value.get()) {
                Ok(text) => metadata.push((key.as_ref().into(), text)),
                Err(_) => {
                    let finding = self.about(&rule::ST_009, value, "a string");
                    self.findings.add(finding.of_field(format!("__metadata__.{key}")));
                }
            }
        }
        metadata
    }

    fn duplicates(
        &mut self,
        members: &[(Cow<'_, str>, &RawValue)],
        place: impl Fn(Finding, &str) -> Finding,
    ) {
        let mut first: HashMap<&str, u64> = HashMap::new();
        for (key, value) in members {
            let offset = self.offset(value.get());
            if let Some(first) = first.insert(key, offset) {
                let found = format!("the key again, after {first:#x}");
                let finding = Finding::new(&rule::ST_008, found, "each key once").at(offset);
                self.findings.add(place(finding, key));
            }
        }
    }

    /// The tensor of an entry, if there is a whole one to be read.
    fn tensor(&mut self, name: &str, entry: &RawValue) -> Option<TensorRecord> {
        let fields = "an object with dtype, shape and data_offsets";
        let Ok(Members(members)) = serde_json::from_str(entry.get()) else {
            let finding = self.about(&rule::ST_010, entry, fields);
            self.findings.add(finding.of_tensor(name));
            return None;
        };
        self.duplicates(&members, |finding, key| finding.of_tensor(name).of_field(key));
        let [mut dtype, mut shape, mut offsets] = [None; 3];
        for (key, value) in &members {
            match key.as_ref() {
                "dtype" => dtype = Some(*value),
                "shape" => shape = Some(*value),
                "data_offsets" => offsets = Some(*value),
                _ => {
                    let finding = self.about(&rule::ST_019, value, fields);
                    self.findings.add(finding.of_tensor(name).of_field(key.as_ref()));
                }
            }
        }
        let missing = [("dtype", dtype), ("shape", shape), ("data_offsets", offsets)];
        for (field, _) in missing.into_iter().filter(|(_, value)| value.is_none()) {
            let finding = Finding::new(&rule::ST_010, "no such field", fields);
            let finding = finding.at(self.offset(entry.get()));
            self.findings.add(finding.of_tensor(name).of_field(field));
        }
        let dtype = dtype.and_then(|dtype| self.dtype(name, dtype));
        let shape = shape.and_then(|value| Some((value, self.shape(name, value)?)));
        let span = offsets.and_then(|offsets| self.data_offsets(name, offsets));
        let (dtype, (shape_text, shape), (start, end)) = (dtype?, shape?, span?);
        let len = end.checked_sub(start)?;
        self.length(name, shape_text, dtype, &shape, len);
        let Some(offset) = self.base.checked_add(start).filter(|at| at.checked_add(len).is_some())
        else {
            let expected = format!("offsets within {} bytes of data", self.data_len());
            let found = format!("bytes {start} to {end}, which no file can have");
            self.findings.add(Finding::new(&rule::ST_014, found, expected).of_tensor(name));
            return None;
        };
        Some(TensorRecord { name: name.into(), dtype, shape, offset, len })
    }

    fn dtype(&mut self, name: &str, value: &RawValue) -> Option<Dtype> {
        let text: Option<Cow<'_, str>> = serde_json::from_str(value.get()).ok();
        let found = text.as_ref().and_then(|text| Dtype::find(text));
        if found.is_none() {
            let like = text.as_ref().and_then(|text| {
                Dtype::ALL.iter().find(|dtype| dtype.name.eq_ignore_ascii_case(text))
            });
            let expected = match like {
                Some(dtype) => format!("{dtype}: names of types are written like this"),
                None if text.is_none() => "the name of a type".into(),
                None => "a type of safetensors 0.8; a newer one may have it".into(),
            };
            let finding = self.about(&rule::ST_011, value, expected);
            self.findings.add(finding.of_tensor(name).of_field("dtype"));
        }
        found
    }

    fn shape(&mut self, name: &str, value: &RawValue) -> Option<Vec<u64>> {
        let shape = serde_json::from_str(value.get()).ok();
        if shape.is_none() {
            self.not_numbers(&rule::ST_012, name, "shape", value);
        }
        shape
    }

    fn data_offsets(&mut self, name: &str, value: &RawValue) -> Option<(u64, u64)> {
        let Ok(offsets) = serde_json::from_str::<Vec<u64>>(value.get()) else {
            self.not_numbers(&rule::ST_013, name, "data_offsets", value);
            return None;
        };
        match offsets.as_slice() {
            [start, end] if start <= end => Some((*start, *end)),
            _ => {
                let finding = self.about(&rule::ST_013, value, "a begin, and an end not before it");
                self.findings.add(finding.of_tensor(name).of_field("data_offsets"));
                None
            }
        }
    }

    /// Says which element of a list is no whole number below 2^64.
    fn not_numbers(&mut self, rule: &'static Rule, name: &str, field: &str, value: &RawValue) {
        let list: Option<Vec<&RawValue>> = serde_json::from_str(value.get()).ok();
        let wrong = list.iter().flatten().enumerate();
        let wrong = wrong.map(|(place, value)| (format!("{field}[{place}]"), *value));
        let wrong = wrong.into_iter().find(|(_, value)| value.get().parse::<u64>().is_err());
        let expected = match wrong {
            Some(_) => "a whole number from 0 to 2^64 - 1",
            None => "a list of whole numbers",
        };
        let (field, value) = wrong.unwrap_or((field.into(), value));
        let finding = self.about(rule, value, expected);
        self.findings.add(finding.of_tensor(name).of_field(field));
    }

    fn length(&mut self, name: &str, shape_text: &RawValue, dtype: Dtype, shape: &[u64], len: u64) {
        let (rule, found, expected) = match dtype.byte_len(shape) {
            Some(expected) if expected == len => {
                let row = shape.last().and_then(|row| row.checked_mul(dtype.bits));
                if row.is_none_or(|row| row.is_multiple_of(8)) {
                    return;
                }
                let found = format!("rows of {} of {dtype}", printable_dim(shape.last()));
                (&rule::ST_021, found, "rows of whole bytes".into())
            }
            expected => {
                let shape = printable(shape_text.get(), QUOTED);
                let found = format!("{shape} of {dtype} in {len} bytes");
                let expected = expected.map_or_else(
                    || "a shape whose elements come to whole bytes, below 2^64 bits".into(),
                    |expected| format!("{expected} bytes"),
                );
                (&rule::ST_015, found, expected)
            }
        };
        let finding = Finding::new(rule, found, expected).at(self.offset(shape_text.get()));
        self.findings.add(finding.of_tensor(name).of_field("shape"));
    }

    fn data_len(&self) -> u64 {
        self.file_len.saturating_sub(self.base)
    }

    /// Looks at where tensors are in the file. That offsets are out of order in the JSON is nobody's
    /// fault: safetensors 0.8 sorts them, and older writers sorted by name. Bytes that are nobody's
    /// are told of a header that is whole only: in another they are those of tensors that are not
    /// known.
    fn spans(&mut self, tensors: &[TensorRecord], is_whole: bool) {
        let mut sorted: Vec<&TensorRecord> = tensors.iter().collect();
        sorted.sort_by_key(|tensor| (tensor.offset, tensor.len));
        let end_of = |tensor: &TensorRecord| tensor.offset.saturating_add(tensor.len);

        let mut beyond = sorted.iter().filter(|tensor| end_of(tensor) > self.file_len);
        if let Some(first) = beyond.next() {
            let found = format!(
                "it ends at {}, {} bytes after the end of the file; so do {} more tensors",
                end_of(first),
                end_of(first).saturating_sub(self.file_len),
                beyond.count()
            );
            let expected = format!("at most {}, the length of the file", self.file_len);
            let finding = Finding::new(&rule::ST_014, found, expected).at(first.offset);
            self.findings.add(finding.of_tensor(&first.name).of_field("data_offsets"));
        }

        let mut cursor = self.base;
        let mut before: Option<&TensorRecord> = None;
        for tensor in sorted {
            let offset = tensor.offset;
            let name = |tensor: &TensorRecord| printable(&tensor.name, 200);
            let previous = before.map_or_else(|| "the header".into(), name);
            if offset > cursor && is_whole {
                let bytes = offset.saturating_sub(cursor);
                let found = format!("{bytes} bytes between {previous} and {}", name(tensor));
                let finding = Finding::new(&rule::ST_017, found, "none").at(cursor);
                self.findings.add(finding.of_tensor(&tensor.name).of_field("data_offsets"));
            }
            if offset < cursor {
                let found = format!("it begins at {offset}, before the end of {previous}");
                let finding = Finding::new(&rule::ST_016, found, format!("at least {cursor}"));
                let finding = finding.at(offset);
                self.findings.add(finding.of_tensor(&tensor.name).of_field("data_offsets"));
            }
            if end_of(tensor) >= cursor {
                (cursor, before) = (end_of(tensor), Some(tensor));
            }
        }
        if cursor < self.file_len && is_whole {
            let bytes = self.file_len.saturating_sub(cursor);
            let found = format!("{bytes} bytes after the last tensor");
            self.findings.add(Finding::new(&rule::ST_018, found, "none").at(cursor));
        }
    }
}

fn printable_dim(dim: Option<&u64>) -> String {
    dim.map_or_else(String::new, u64::to_string)
}
