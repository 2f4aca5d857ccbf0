//! Faults: one change that spoils a file.

use core::fmt;
use core::ops::Range;

use crate::description::{Description, OwnedValue};
use crate::segments::Segments;
use crate::tensor_type::TensorType;
use crate::writer::{Layout, lay_out, scalar_bytes};

/// One change, either to what a file is described as or to the bytes that are laid down.
///
/// Paths are those of [`Layout::fields`]. A change to the description moves everything behind it,
/// as a writer would that was told so; one to the bytes leaves the rest as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The number at `at` becomes `value`, which is as wide.
    Overwrite {
        /// The path of the field.
        at: String,
        /// A number or bool.
        value: OwnedValue,
    },
    /// The field at `at` becomes these bytes, however many.
    Replace {
        /// The path of the field.
        at: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Two fields of the same width change places.
    Swap {
        /// The path of one field.
        a: String,
        /// The path of the other.
        b: String,
    },
    /// The file ends `plus` bytes behind the start of `at`.
    Cut {
        /// The path of the field.
        at: String,
        /// How many bytes of it are left; negative for bytes that are missing in front of it.
        plus: i64,
    },
    /// These bytes stand before the field at `at`.
    Insert {
        /// The path of the field.
        at: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// These bytes follow the file.
    Append {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// These bytes precede the file.
    Prepend {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// An entry of the metadata is described with another key.
    Key {
        /// The entry's index.
        entry: usize,
        /// The key.
        to: Vec<u8>,
    },
    /// An entry of the metadata is described with another value.
    Value {
        /// The entry's index.
        entry: usize,
        /// The value.
        to: OwnedValue,
    },
    /// A tensor is described with another name.
    Name {
        /// The tensor's index.
        tensor: usize,
        /// The name.
        to: Vec<u8>,
    },
    /// A tensor is described with other dimensions; its data stay as they are.
    Dims {
        /// The tensor's index.
        tensor: usize,
        /// The dimensions.
        to: Vec<u64>,
    },
    /// A tensor is described with another type; its data stay as they are.
    Type {
        /// The tensor's index.
        tensor: usize,
        /// The type.
        to: &'static TensorType,
    },
    /// A tensor is described with another offset, and its data go there.
    Offset {
        /// The tensor's index.
        tensor: usize,
        /// The offset in the data section.
        to: u64,
    },
    /// An entry of the metadata is not described.
    RemoveEntry {
        /// The entry's index.
        entry: usize,
    },
    /// A tensor is not described.
    RemoveTensor {
        /// The tensor's index.
        tensor: usize,
    },
}

/// Why a fault cannot be put into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced(String);

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misplaced {}

impl Fault {
    /// Whether the description is changed, rather than the bytes.
    pub fn is_described(&self) -> bool {
        matches!(
            self,
            Fault::Key { .. }
                | Fault::Value { .. }
                | Fault::Name { .. }
                | Fault::Dims { .. }
                | Fault::Type { .. }
                | Fault::Offset { .. }
                | Fault::RemoveEntry { .. }
                | Fault::RemoveTensor { .. }
        )
    }

    /// Changes the description, if that is what the fault does.
    ///
    /// # Errors
    ///
    /// If there is no such entry or tensor.
    pub fn describe(&self, description: &mut Description) -> Result<(), Misplaced> {
        let Description { metadata, tensors, .. } = description;
        match self {
            Fault::Key { entry, to } => at(metadata, *entry)?.0 = to.clone(),
            Fault::Value { entry, to } => at(metadata, *entry)?.1 = to.clone(),
            Fault::Name { tensor, to } => at(tensors, *tensor)?.name = to.clone(),
            Fault::Dims { tensor, to } => at(tensors, *tensor)?.dims = to.clone(),
            Fault::Type { tensor, to } => at(tensors, *tensor)?.type_id = to.id,
            Fault::Offset { tensor, to } => at(tensors, *tensor)?.offset = Some(*to),
            Fault::RemoveEntry { entry } => {
                at(metadata, *entry)?;
                metadata.remove(*entry);
            }
            Fault::RemoveTensor { tensor } => {
                at(tensors, *tensor)?;
                tensors.remove(*tensor);
            }
            _ => {}
        }
        Ok(())
    }

    /// The file of the description, with the fault.
    ///
    /// # Errors
    ///
    /// If the file does not have the field, entry or tensor, or not with the width that the fault
    /// takes for granted.
    pub fn lay_out(&self, description: &Description) -> Result<Segments, Misplaced> {
        let mut described = description.clone();
        self.describe(&mut described)?;
        let layout = lay_out(&described);
        let mut file = layout.segments.clone();
        let len = file.len();
        match self {
            Fault::Overwrite { at, value } => {
                let range = range(&layout, at)?;
                let (bytes, width) = scalar_bytes(value, description.byte_order);
                let bytes = bytes.get(..width).unwrap_or_default();
                let found = range.end.saturating_sub(range.start);
                if u64::try_from(width) != Ok(found) {
                    return Err(Misplaced(format!("`{at}` has {found} bytes, not {width}")));
                }
                file.splice(range.start, range.end, bytes);
            }
            Fault::Replace { at, bytes } => {
                let range = range(&layout, at)?;
                file.splice(range.start, range.end, bytes);
            }
            Fault::Swap { a, b } => {
                let (a, b) = (range(&layout, a)?, range(&layout, b)?);
                let (first, second) = (file.slice(a.start, a.end), file.slice(b.start, b.end));
                if first.len() != second.len() {
                    return Err(Misplaced("the fields to swap differ in width".into()));
                }
                file.splice(a.start, a.end, &second);
                file.splice(b.start, b.end, &first);
            }
            Fault::Cut { at, plus } => {
                let end = range(&layout, at)?.start.checked_add_signed(*plus);
                let end = end.filter(|&end| end < len);
                let end = end.ok_or_else(|| Misplaced("the cut is not within the file".into()))?;
                file.splice(end, len, &[]);
            }
            Fault::Insert { at, bytes } => {
                let start = range(&layout, at)?.start;
                file.splice(start, start, bytes);
            }
            Fault::Append { bytes } => file.splice(len, len, bytes),
            Fault::Prepend { bytes } => file.splice(0, 0, bytes),
            _ => {}
        }
        Ok(file)
    }
}

fn at<T>(list: &mut [T], index: usize) -> Result<&mut T, Misplaced> {
    let place = list.get_mut(index);
    place.ok_or_else(|| Misplaced(format!("the fault's index {index} is out of range")))
}

fn range(layout: &Layout, path: &str) -> Result<Range<u64>, Misplaced> {
    let field = layout.field(path).map(|field| field.range.clone());
    field.ok_or_else(|| Misplaced(format!("the file has no field `{path}`")))
}
