//! What the reader returns, and its two ways in.

use crate::cursor::{ByteOrder, CountWidth, Cursor};
use crate::walk::{Mode, Walk};
use crate::{Limits, Profile, TensorType, Text, Value, Violation, rule};

/// A file that has been read; everything in it borrows from the input.
#[derive(Clone, Debug)]
pub struct Gguf<'a> {
    /// 1, 2 or 3.
    pub version: u32,
    /// The order of the bytes in every number, tensor data included.
    pub byte_order: ByteOrder,
    /// The metadata, in the order of the file.
    pub metadata: Vec<Entry<'a>>,
    /// The tensor table, in the order of the file.
    pub tensors: Vec<Tensor<'a>>,
    /// `general.alignment`, or 32.
    pub alignment: u32,
    /// Where the data section starts, in bytes from the start of the file: behind the tensor
    /// table, rounded up to the alignment if there is a tensor.
    pub data_offset: u64,
    pub(crate) bytes: &'a [u8],
}

/// A key and its value.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The key's bytes.
    pub key: Text<'a>,
    /// The value.
    pub value: Value<'a>,
    /// Where the entry (its key's length) starts, in bytes from the start of the file.
    pub offset: u64,
    /// Where the value starts, behind its type.
    pub value_offset: u64,
}

/// A record of the tensor table.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// Where the record (its name's length) starts, in bytes from the start of the file.
    pub record_offset: u64,
    /// The name's bytes.
    pub name: Text<'a>,
    /// The dimensions in the order of the file: the first is the contiguous one.
    pub dims: Dims<'a>,
    /// The type's id.
    pub type_id: u32,
    /// The type, if it is known and not removed.
    pub tensor_type: Option<&'static TensorType>,
    /// Where the data start, in bytes from the start of the data section.
    pub offset: u64,
    /// The size of the data in bytes, without padding, if it can be told.
    pub byte_len: Option<u64>,
}

/// The dimensions of a tensor.
#[derive(Clone, Copy)]
pub struct Dims<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) order: ByteOrder,
    pub(crate) width: CountWidth,
}

impl<'a> Dims<'a> {
    /// The dimensions in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, self.order, self.width);
        core::iter::from_fn(move || cursor.count())
    }

    /// The number of dimensions.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.width.bytes()).unwrap_or(0)
    }

    /// Whether there is no dimension: the tensor is one element.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of elements, if it fits 64 bits: 1 without dimensions, 0 if one of them is 0.
    pub fn elements(&self) -> Option<u64> {
        if self.iter().any(|dim| dim == 0) {
            return Some(0);
        }
        self.iter().try_fold(1u64, |product, dim| product.checked_mul(dim))
    }
}

impl core::fmt::Debug for Dims<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Gguf<'a> {
    /// The value of the first entry with this key.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.metadata.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The first tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor<'a>> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The tensor's data, without padding, if its size is known and all of them are there.
    pub fn tensor_bytes(&self, tensor: &Tensor<'_>) -> Option<&'a [u8]> {
        let start = self.data_offset.checked_add(tensor.offset)?;
        let end = start.checked_add(tensor.byte_len?)?;
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }
}

/// What [`diagnose`] found.
#[derive(Clone, Debug)]
pub struct Diagnosis<'a> {
    /// The file as far as it could be read; `None` if its header could not.
    pub gguf: Option<Gguf<'a>>,
    /// Whether the walk came to the end of the tensor table.
    pub complete: bool,
    /// What is wrong, in the order in which a reader comes upon it: field by field, then what can
    /// only be told behind all metadata, then behind the tensor table. At most
    /// [`Limits::violations`] of them.
    pub violations: Vec<Violation>,
    /// How many more violations there are.
    pub omitted: u64,
    refused: [bool; Profile::ALL.len()],
}

impl Diagnosis<'_> {
    /// Whether a strict reader under `profile` accepts the file: no violation binds it.
    pub fn accepted_by(&self, profile: Profile) -> bool {
        match profile {
            Profile::Spec => !self.refused[0],
            Profile::Ggml => !self.refused[1],
        }
    }
}

/// Reads a file strictly: the first violation that `profile` forbids is an error.
///
/// # Errors
///
/// The first [`Violation`] that binds `profile`, in the order of [`Diagnosis::violations`].
pub fn read(bytes: &[u8], profile: Profile) -> Result<Gguf<'_>, Violation> {
    read_within(bytes, profile, &Limits::default())
}

/// [`read`] with other limits.
///
/// # Errors
///
/// The first [`Violation`] that binds `profile`, in the order of [`Diagnosis::violations`].
pub fn read_within<'a>(
    bytes: &'a [u8],
    profile: Profile,
    limits: &Limits,
) -> Result<Gguf<'a>, Violation> {
    let mut walk = Walk::new(bytes, Mode::Strict(profile), *limits);
    let end = walk.file();
    match (end, walk.violations.pop(), walk.gguf) {
        (Ok(()), _, Some(gguf)) => Ok(gguf),
        (_, Some(violation), _) => Err(violation),
        // A walk stops only at a violation; without one this is unreachable, but not worth a panic.
        (_, None, _) => Err(Violation::new(
            &rule::FILE_002,
            0,
            ("header".into(), "a file that could not be read".into(), "a whole file".into()).into(),
        )),
    }
}

/// Reads a file as far as it safely can and returns everything that is wrong under any profile,
/// notes included.
pub fn diagnose(bytes: &[u8]) -> Diagnosis<'_> {
    diagnose_within(bytes, &Limits::default())
}

/// [`diagnose`] with other limits.
pub fn diagnose_within<'a>(bytes: &'a [u8], limits: &Limits) -> Diagnosis<'a> {
    let mut walk = Walk::new(bytes, Mode::Diagnose, *limits);
    let complete = walk.file().is_ok();
    Diagnosis {
        gguf: walk.gguf,
        complete,
        violations: walk.violations,
        omitted: walk.omitted,
        refused: walk.refused,
    }
}
