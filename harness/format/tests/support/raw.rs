//! Files laid down byte by byte.

use gguf_assay_format::ValueType;

/// Bytes of a little-endian file, laid down by hand: nothing here goes through the writer.
#[derive(Clone, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// Magic, version 3, the counts.
    pub(crate) fn header(tensors: u64, entries: u64) -> Raw {
        Raw(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    /// A header and `general.architecture`, to which as many entries are yet to be added: 24 + 8 +
    /// 20 + 4 + 8 + 5 = 69 bytes.
    pub(crate) fn named(tensors: u64, more_entries: u64) -> Raw {
        Raw::header(tensors, more_entries + 1).entry("general.architecture", 8).string(b"llama")
    }

    pub(crate) fn u32(mut self, number: u32) -> Raw {
        self.0.extend(number.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, number: u64) -> Raw {
        self.0.extend(number.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Raw {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn string(self, bytes: &[u8]) -> Raw {
        self.u64(bytes.len() as u64).bytes(bytes)
    }

    /// A key and the type of its value.
    pub(crate) fn entry(self, key: &str, value_type: u32) -> Raw {
        self.string(key.as_bytes()).u32(value_type)
    }

    pub(crate) fn array(self, element_type: u32, count: u64) -> Raw {
        self.u32(element_type).u64(count)
    }

    pub(crate) fn repeat(mut self, bytes: &[u8], times: usize) -> Raw {
        self.0.extend(bytes.repeat(times));
        self
    }

    /// A record of the tensor table.
    pub(crate) fn tensor(self, name: &[u8], dims: &[u64], type_id: u32, offset: u64) -> Raw {
        let raw = self.string(name).u32(dims.len() as u32);
        dims.iter().fold(raw, |raw, &dim| raw.u64(dim)).u32(type_id).u64(offset)
    }

    /// Padding to 32 bytes and so many zeros of data.
    pub(crate) fn data(mut self, len: usize) -> Raw {
        self.0.resize(self.0.len().next_multiple_of(32) + len, 0);
        self
    }
}

/// Files of about so many bytes that ask for as much work or memory as they can.
pub(crate) fn costly(size: usize) -> Vec<(&'static str, Vec<u8>)> {
    let array = |element_type: ValueType, element: &[u8]| {
        let count = size / element.len();
        Raw::named(0, 1)
            .entry("a", 9)
            .array(element_type.id(), count as u64)
            .repeat(element, count)
            .0
    };
    let string = |bytes: &[u8]| Raw::default().string(bytes).0;
    let empty = Raw::default().array(0, 0).0;
    // 62 levels around an array of arrays.
    let level = Raw::default().array(9, 1).0;
    let deep = Raw::named(0, 1).entry("a", 9).repeat(&level, 62);
    let deep = deep.array(9, (size / 12) as u64).repeat(&empty, size / 12);

    let entry = Raw::default().entry("a", 0).bytes(&[0]).0;
    let count = size / entry.len();
    let same_keys = Raw::named(0, count as u64).repeat(&entry, count);
    let no_key = Raw::default().entry("", 0).bytes(&[0]).0;
    let count = size / no_key.len();
    let no_keys = Raw::named(0, count as u64).repeat(&no_key, count);
    let one = Raw(b"GGUF".to_vec()).u32(1).u32(0).u32((size / 9) as u32);
    let version_1 = one.repeat(&[0; 9], size / 9);
    let count = size / 20;
    let keys = (0..count)
        .fold(Raw::named(0, count as u64), |raw, i| raw.entry(&format!("k{i:x}"), 0).bytes(&[0]));

    let tensors = |record: &dyn Fn(Raw, usize) -> Raw| {
        let count = size / 40;
        (0..count).fold(Raw::named(count as u64, 0), record).data(64).0
    };
    let name = |i: usize| format!("{i:x}").into_bytes();
    vec![
        ("empty arrays in an array", array(ValueType::Array, &empty)),
        ("arrays 64 levels deep", deep.0),
        ("empty strings", array(ValueType::String, &string(b""))),
        ("strings that are not UTF-8", array(ValueType::String, &string(b"\xff"))),
        (
            "strings with a length that is not ASCII",
            array(ValueType::String, &string(&[b'a'; 128])),
        ),
        ("bools of 2", array(ValueType::Bool, &[2])),
        ("numbers", array(ValueType::U16, &[1, 2])),
        ("one key, over and over", same_keys.0),
        ("empty keys", no_keys.0),
        ("the smallest entries of version 1", version_1.0),
        ("keys", keys.0),
        ("tensors", tensors(&|raw, i| raw.tensor(&name(i), &[], 0, 0))),
        ("tensors of one name", tensors(&|raw, _| raw.tensor(b"", &[], 0, 0))),
        ("tensors far away", tensors(&|raw, i| raw.tensor(&name(i), &[1], 0, i as u64 * 32))),
        ("tensors of unknown types", tensors(&|raw, i| raw.tensor(&name(i), &[1], 99, 1))),
        ("dimensions", tensors(&|raw, i| raw.tensor(&name(i), &[1 << 40; 5], 0, 0))),
    ]
}
