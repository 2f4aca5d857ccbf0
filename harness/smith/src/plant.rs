//! Faults: for each rule, a change to a valid file that breaks that rule.

use arbitrary::Unstructured;
use gguf_assay_format::{
    ByteOrder, Data, Description, Fault, Layout, OwnedArray, OwnedValue, RULES, Rule, Segments,
    TensorDescription, TensorType, ValueType, lay_out,
};

use crate::choices::{Choices, bytes_of};
use crate::file::is_special;

/// A file that breaks one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Planted {
    /// The rule.
    pub rule: &'static Rule,
    /// A valid file, which is the one that was given, or that with what the fault needs added: an
    /// entry or a tensor to be spoilt.
    pub description: Description,
    /// What is wrong with it. `None` if the file itself is what the rule speaks of: one of version
    /// 1, or a big-endian one, which some allow and some do not.
    pub fault: Option<Fault>,
}

impl Planted {
    /// The file.
    ///
    /// # Panics
    ///
    /// If the fields were altered so that the fault has no place in the file.
    pub fn lay_out(&self) -> Segments {
        match &self.fault {
            None => lay_out(&self.description).segments,
            Some(fault) => {
                fault.lay_out(&self.description).unwrap_or_else(|e| panic!("{}: {e}", self.rule))
            }
        }
    }
}

/// Spoils a valid file so that it breaks `rule`; the seed chooses where and how.
///
/// It breaks no other rule, but for those that are broken wherever this one is: a name of 65 bytes
/// is also longer than 63, and tensors that overlap do not follow each other. `None` if the rule is
/// not one of the container's. A string or an array that is too long (`META-005`, `META-013`) takes
/// gigabytes of memory; [`small_rules`] are the others.
pub fn plant(rule: &'static Rule, description: &Description, seed: u64) -> Option<Planted> {
    plant_from(rule, description, &mut Unstructured::new(&bytes_of(seed)))
}

/// [`plant`], with the choices made by these bytes.
pub fn plant_from(
    rule: &'static Rule,
    description: &Description,
    bytes: &mut Unstructured<'_>,
) -> Option<Planted> {
    let mut planter =
        Planter { description: description.clone(), choices: Choices(bytes), spares: 0 };
    let fault = planter.fault(rule.id)?;
    Some(Planted { rule, description: planter.description, fault })
}

/// The rules that small files can break: a string or an array too long takes a gigabyte.
pub fn small_rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(|rule| !["META-005", "META-013"].contains(&rule.id))
}

struct Planter<'a, 'b> {
    description: Description,
    choices: Choices<'a, 'b>,
    /// How many entries and tensors were added.
    spares: usize,
}

impl Planter<'_, '_> {
    /// The fault; `Some(None)` if none is needed any more, `None` if there is no way.
    fn fault(&mut self, rule: &str) -> Option<Option<Fault>> {
        let fault = match rule {
            "FILE-001" => Fault::Cut { at: "header.magic".into(), plus: 0 },
            "FILE-002" => self.cut_before_data(),
            "FILE-003" => {
                // Behind a table alone, the bytes would be padding.
                self.tensor("I8", &[5]);
                let len = self.choices.between(1, 40) as usize;
                Fault::Append { bytes: self.choices.bytes(len) }
            }
            "HDR-001" => {
                let mut bytes = self.choices.bytes(4);
                bytes[0] = b'g';
                Fault::Replace { at: "header.magic".into(), bytes }
            }
            "HDR-002" => {
                // The low 16 bits are not 0, which would be a sign of the other byte order.
                let version = match self.choices.between(0, 3) {
                    0 => 0,
                    _ => self.choices.between(4, 0xFFFF) as u32 | 4,
                };
                self.overwrite("header.version".into(), OwnedValue::U32(version))
            }
            "HDR-003" => {
                self.description.version = 1;
                return Some(None);
            }
            "HDR-004" => {
                (self.description.version, self.description.byte_order) = (3, ByteOrder::Big);
                return Some(None);
            }
            "HDR-005" => self.overwrite_count("header.tensor_count"),
            "HDR-006" => self.overwrite_count("header.kv_count"),
            "META-001" => self.key(Vec::new()),
            "META-002" => {
                let len = self.choices.between(65_536, 70_000) as usize;
                self.key(vec![b'a'; len])
            }
            "META-003" => self.key_like("schlüssel.größe"),
            "META-004" => {
                let keys = ["Upper.case", "with-hyphen", "a..b", ".a", "a.", "with space"];
                let key = self.choices.pick(&keys);
                self.key_like(key)
            }
            "META-006" => {
                let value = OwnedValue::U8(self.choices.bits() as u8);
                let first = self.entry(value.clone());
                let key = self.description.metadata[first].0.clone();
                let second = self.entry(value);
                Fault::Key { entry: second, to: key }
            }
            "META-007" => {
                let entry = self.any_entry();
                self.overwrite_type(format!("metadata[{entry}].type"), 13)
            }
            "META-008" => {
                let array = OwnedArray::new(ValueType::U16, vec![OwnedValue::U16(7)]);
                let entry = self.entry(OwnedValue::Array(array));
                self.overwrite_type(format!("metadata[{entry}].value.type"), 13)
            }
            "META-009" => self.nested(self.plain(), 1),
            "META-010" => {
                let levels = 64 + self.choices.between(1, 30);
                self.nested(self.plain(), levels)
            }
            "META-011" => {
                let entry = self.entry(OwnedValue::Bool(true));
                let byte = self.choices.between(2, 255) as u8;
                self.overwrite(format!("metadata[{entry}].value"), OwnedValue::U8(byte))
            }
            "META-012" => {
                let entry = self.entry("text".into());
                let invalid: [&[u8]; 5] =
                    [b"\xFF", b"a\x80", b"\xC0\x80", b"\xED\xA0\x80", b"\xF4\x90\x80\x80"];
                Fault::Value { entry, to: OwnedValue::String(self.choices.pick(&invalid).into()) }
            }
            "META-005" => {
                let entry = self.entry("a string".into());
                let string = vec![b'a' + self.choices.below(26) as u8; (1 << 30) + 1];
                Fault::Value { entry, to: OwnedValue::String(string) }
            }
            "META-013" => {
                let entry = self.entry(OwnedValue::Array(self.plain()));
                let array = OwnedArray::fill(OwnedValue::U8(0), (1 << 30) + 1);
                Fault::Value { entry, to: OwnedValue::Array(array) }
            }
            "META-014" => {
                let entry = self.entry_of("general.architecture", "llama".into());
                Fault::RemoveEntry { entry }
            }
            "META-015" => {
                let entry = self.entry_of("general.architecture", "llama".into());
                let name = self.choices.pick(&["Llama", "gpt-oss", "", "llama 2", "ll\u{e4}ma"]);
                Fault::Value { entry, to: name.into() }
            }
            "META-016" => {
                let at = self.tensor("Q8_0", &[32]);
                self.fill(at);
                let entry = self.entry_of("general.quantization_version", 2.into());
                match self.choices.below(2) {
                    0 => Fault::RemoveEntry { entry },
                    _ => Fault::Value { entry, to: OwnedValue::I32(2) },
                }
            }
            "META-017" => {
                let entry = self.entry_of("general.file_type", 7.into());
                let wrong = [OwnedValue::U32(4711), OwnedValue::I32(7), "Q8_0".into()];
                let which = self.choices.index(wrong.len());
                Fault::Value { entry, to: wrong[which].clone() }
            }
            "META-018" => {
                let entry = self.entry(4.into());
                Fault::Key { entry, to: b"tokenizer.ggml.separator_token_id".into() }
            }
            "ALIGN-001" => {
                let wrong = [OwnedValue::U64(32), OwnedValue::I32(32), "32".into()];
                let which = self.choices.index(wrong.len());
                self.align(wrong[which].clone())
            }
            "ALIGN-002" => self.align(0.into()),
            "ALIGN-003" => self.align(24.into()),
            "ALIGN-004" => {
                let alignment = self.choices.pick(&[1u32, 2, 4]);
                self.align(alignment.into())
            }
            "TENSOR-001" => {
                let len = self.choices.between(65, 300) as usize;
                self.name(vec![b'n'; len])
            }
            "TENSOR-002" => self.name(vec![b'n'; 64]),
            "TENSOR-003" => self.name(b"blk.0.\xFF\xFE.weight".into()),
            "TENSOR-004" => {
                let first = self.tensor("I8", &[0]);
                let name = self.description.tensors[first].name.clone();
                let second = self.tensor("F32", &[1]);
                Fault::Name { tensor: second, to: name }
            }
            "TENSOR-005" => {
                let len = self.choices.between(5, 9) as usize;
                self.dims("I8", vec![0; len])
            }
            "TENSOR-006" => {
                let dim = self.choices.between(1 << 63, u64::MAX);
                self.dims("I8", vec![0, dim])
            }
            "TENSOR-007" => {
                // Their product needs 64 bits, no more: the size in bytes is a number.
                let dim = self.choices.between(1 << 32, (1 << 33) - 1);
                self.dims("I8", vec![dim, 1 << 31])
            }
            "TENSOR-008" => {
                let tensor = self.tensor("I8", &[0]);
                self.overwrite_type(format!("tensors[{tensor}].type"), 44)
            }
            "TENSOR-009" => {
                let tensor = self.tensor("I8", &[0]);
                let removed = self.choices.pick(&[4, 5, 31, 32, 33, 36, 37, 38]);
                let to = TensorType::by_id(removed).expect("a type of the table");
                Fault::Type { tensor, to }
            }
            "TENSOR-010" => {
                let len = 32 * self.choices.below(4) + self.choices.between(1, 31);
                self.dims("Q8_0", vec![len])
            }
            "TENSOR-011" => {
                let dim = self.choices.between(1 << 61, (1 << 63) - 1);
                self.dims("I64", vec![dim])
            }
            "TENSOR-012" => {
                let tensor = self.tensor("I8", &[0]);
                let newer = self.choices.pick(&[40, 41, 42, 43]);
                let to = TensorType::by_id(newer).expect("a type of the table");
                // Quantized, of which the text asks for more.
                self.entry_of("general.quantization_version", 2.into());
                Fault::Type { tensor, to }
            }
            "DATA-001" => {
                self.be_aligned();
                let tensor = self.tensor("I8", &[5]);
                let offset = self.offset_of(tensor) + self.choices.between(1, 7);
                Fault::Offset { tensor, to: offset }
            }
            "DATA-002" => {
                let tensor = self.tensor("I8", &[5]);
                let gap = self.choices.between(1, 9) * u64::from(self.alignment());
                Fault::Offset { tensor, to: self.offset_of(tensor) + gap }
            }
            "DATA-003" => {
                let first = self.tensor("I8", &[5]);
                let second = self.tensor("I8", &[5]);
                Fault::Offset { tensor: second, to: self.offset_of(first) }
            }
            "DATA-004" => {
                let tensor = self.tensor("I8", &[40]);
                self.fill(tensor);
                let plus = self.choices.below(40) as i64;
                Fault::Cut { at: format!("tensors[{tensor}].data"), plus }
            }
            "DATA-005" => {
                let (at, width) = self.padding();
                Fault::Cut { at, plus: self.choices.below(width) as i64 }
            }
            "DATA-006" => {
                // Some bytes, and as many as fit 64 bits.
                self.tensor("I64", &[1]);
                self.dims("I64", vec![(1 << 61) - 1])
            }
            "DATA-007" => {
                let (at, width) = self.padding();
                let mut bytes = vec![0; width as usize];
                let place = self.choices.index(bytes.len());
                bytes[place] = self.choices.between(1, 255) as u8;
                Fault::Replace { at, bytes }
            }
            "DATA-008" => {
                self.be_aligned();
                let tensor = self.tensor("I8", &[5]);
                let at = format!("tensors[{tensor}].padding");
                let range = self.layout().field(&at)?.range.clone();
                Fault::Cut { at, plus: self.choices.below(range.end - range.start) as i64 }
            }
            "SPLIT-001" => {
                let wrong = [("split.no", 0.into()), ("split.count", OwnedValue::I16(2))];
                let wrong = wrong.into_iter().chain([("split.tensors.count", 9.into())]);
                let wrong: Vec<(&str, OwnedValue)> = wrong.collect();
                self.forget_split();
                let (key, to) = wrong[self.choices.index(wrong.len())].clone();
                let right = match key {
                    "split.tensors.count" => OwnedValue::I32(9),
                    "split.no" => OwnedValue::U16(0),
                    _ => OwnedValue::U16(2),
                };
                let entry = self.entry_of(key, right);
                Fault::Value { entry, to }
            }
            "SPLIT-002" => {
                self.forget_split();
                // A set of one is no set to llama.cpp.
                let count = self.choices.between(2, 9) as u16;
                self.entry_of("split.count", OwnedValue::U16(count));
                let entry = self.entry_of("split.no", OwnedValue::U16(0));
                let to = count + self.choices.below(3) as u16;
                Fault::Value { entry, to: OwnedValue::U16(to) }
            }
            _ => return None,
        };
        Some(Some(fault))
    }

    fn layout(&self) -> Layout {
        lay_out(&self.description)
    }

    fn overwrite(&self, at: String, value: OwnedValue) -> Fault {
        Fault::Overwrite { at, value }
    }

    /// More than any file can hold.
    fn overwrite_count(&mut self, at: &str) -> Fault {
        // In version 1, counts have 32 bits, and none is too many for a file.
        self.description.version = self.description.version.max(2);
        let count = self.choices.between(1 << 61, u64::MAX);
        self.overwrite(at.into(), OwnedValue::U64(count))
    }

    /// An id that no type has: `first` or more.
    fn overwrite_type(&mut self, at: String, first: u64) -> Fault {
        let id = match self.choices.below(4) {
            0 => first,
            1 => u32::MAX.into(),
            _ => self.choices.between(first, u32::MAX.into()),
        };
        self.overwrite(at, OwnedValue::U32(id as u32))
    }

    /// Ends the file within a field that has bytes, before the data section.
    fn cut_before_data(&mut self) -> Fault {
        let layout = self.layout();
        // Of a file that is shorter than a count in it, that count would be the first thing wrong.
        let most = self.description.tensors.len().max(self.description.metadata.len()) as u64;
        let counts = ["header.magic", "header.version", "header.tensor_count"];
        let fields: Vec<_> = layout
            .fields
            .iter()
            .filter(|field| field.range.start < layout.data_offset.max(layout.len()))
            .filter(|field| field.range.start >= most || counts.contains(&field.path.as_str()))
            .filter(|field| !field.range.is_empty())
            .filter(|field| !field.path.ends_with("padding") && !field.path.ends_with("data"))
            .collect();
        let field = fields[self.choices.index(fields.len())];
        let width = field.range.end - field.range.start;
        let mut plus = self.choices.below(width) as i64;
        if field.range.start == 0 {
            plus = plus.max(1);
        }
        Fault::Cut { at: field.path.clone(), plus }
    }

    /// The index of an entry that no rule looks at, added anywhere.
    fn entry(&mut self, value: OwnedValue) -> usize {
        let key = loop {
            self.spares += 1;
            let key = format!("smith.spare_{}", self.spares).into_bytes();
            if self.description.metadata.iter().all(|(other, _)| *other != key) {
                break key;
            }
        };
        let place = self.choices.index(self.description.metadata.len() + 1);
        self.description.metadata.insert(place, (key, value));
        place
    }

    /// The index of the entry with this key, made to have the value.
    fn entry_of(&mut self, key: &str, value: OwnedValue) -> usize {
        let metadata = &mut self.description.metadata;
        match metadata.iter().position(|(other, _)| other == key.as_bytes()) {
            Some(index) => {
                metadata[index].1 = value;
                index
            }
            None => {
                let index = self.entry(value);
                self.description.metadata[index].0 = key.into();
                index
            }
        }
    }

    /// The index of an entry, whatever it is.
    fn any_entry(&mut self) -> usize {
        match self.description.metadata.len() {
            0 => self.entry(0.into()),
            len => self.choices.index(len),
        }
    }

    fn forget_split(&mut self) {
        self.description.metadata.retain(|(key, _)| !key.starts_with(b"split."));
    }

    fn key(&mut self, to: Vec<u8>) -> Fault {
        let value = OwnedValue::U32(self.choices.bits() as u32);
        Fault::Key { entry: self.entry(value), to }
    }

    /// A key that begins like this one and that the file does not have.
    fn key_like(&mut self, start: &str) -> Fault {
        let mut key = start.as_bytes().to_vec();
        while is_special(&key) || self.description.metadata.iter().any(|(other, _)| *other == key) {
            key.insert(0, b'x');
        }
        self.key(key)
    }

    fn plain(&self) -> OwnedArray {
        OwnedArray::new(ValueType::U8, vec![OwnedValue::U8(1), OwnedValue::U8(2)])
    }

    fn nested(&mut self, array: OwnedArray, levels: u64) -> Fault {
        let entry = self.entry(OwnedValue::Array(array.clone()));
        let to = (0..levels).fold(array, |array, _| {
            OwnedArray::new(ValueType::Array, vec![OwnedValue::Array(array)])
        });
        Fault::Value { entry, to: OwnedValue::Array(to) }
    }

    /// The alignment becomes `to`; it was 32, which readers take when it is of another type.
    fn align(&mut self, to: OwnedValue) -> Fault {
        for tensor in &mut self.description.tensors {
            tensor.offset = None;
        }
        Fault::Value { entry: self.entry_of("general.alignment", 32.into()), to }
    }

    /// Makes the alignment 8 or more, so that there is padding and a wrong place for a tensor.
    fn be_aligned(&mut self) {
        if self.alignment() < 8 {
            self.entry_of("general.alignment", 32.into());
        }
    }

    fn alignment(&self) -> u32 {
        let metadata = &self.description.metadata;
        let entry = metadata.iter().find(|(key, _)| key == b"general.alignment");
        match entry {
            Some((_, OwnedValue::U32(alignment))) => *alignment,
            _ => gguf_assay_format::DEFAULT_ALIGNMENT,
        }
    }

    /// The index of a tensor that nothing follows, added at the end.
    fn tensor(&mut self, type_name: &str, dims: &[u64]) -> usize {
        let tensor_type = TensorType::by_name(type_name).expect("a type of the table");
        let name = loop {
            self.spares += 1;
            let name = format!("smith.spare_{}.weight", self.spares);
            if self.description.tensors.iter().all(|other| other.name != name.as_bytes()) {
                break name;
            }
        };
        if tensor_type.is_quantized() {
            self.entry_of("general.quantization_version", 2.into());
        }
        let tensors = &mut self.description.tensors;
        tensors.push(TensorDescription::zeros(&name, tensor_type, dims));
        tensors.len() - 1
    }

    /// Gives a tensor data that are not zeros.
    fn fill(&mut self, tensor: usize) {
        let data = &mut self.description.tensors[tensor].data;
        *data = Data::Bytes((0..data.len()).map(|place| place as u8 | 1).collect());
    }

    fn offset_of(&self, tensor: usize) -> u64 {
        self.layout().tensor_offsets[tensor]
    }

    fn name(&mut self, to: Vec<u8>) -> Fault {
        Fault::Name { tensor: self.tensor("F32", &[2]), to }
    }

    /// A tensor without data is described with these dimensions.
    fn dims(&mut self, type_name: &str, to: Vec<u64>) -> Fault {
        Fault::Dims { tensor: self.tensor(type_name, &[0]), to }
    }

    /// The padding in front of the data, which is made to have bytes, and how many it has.
    fn padding(&mut self) -> (String, u64) {
        self.be_aligned();
        self.tensor("I8", &[5]);
        let entry = self.entry("".into());
        loop {
            let layout = self.layout();
            let range = layout.field("padding").map(|field| field.range.clone());
            match range.map(|range| range.end - range.start) {
                Some(width) if width > 0 => return ("padding".into(), width),
                _ => {
                    if let OwnedValue::String(text) = &mut self.description.metadata[entry].1 {
                        text.push(b'p');
                    }
                }
            }
        }
    }
}
