//! Names of fields, shared by reader and writer.

use core::fmt;

/// The place of a value: an entry of the metadata and, inside arrays, the indices that lead to it.
/// Lives on the stack of the walk, so that a path costs nothing until it is printed.
#[derive(Clone, Copy)]
pub(crate) enum ValuePath<'a> {
    Entry(usize),
    Element(&'a ValuePath<'a>, u64),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Entry(index) => write!(f, "metadata[{index}].value"),
            ValuePath::Element(array, index) => write!(f, "{array}[{index}]"),
        }
    }
}
