//! What the reader refuses to do for any file.

/// Bounds that no rule of the format sets and that a reader needs all the same.
///
/// Counts and lengths need none: the reader allocates for records that it has seen, and a file
/// cannot hold more of them than it has bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep arrays may be nested; an array of scalars has depth 1. Default 64: real files use
    /// 1, the deepest limit seen in a reader (candle 0.11) is 64, and a level costs the reader
    /// less than 300 bytes of stack.
    pub array_depth: u32,
    /// How many violations [`diagnose`](crate::diagnose) keeps; it counts the rest. Default 1000.
    pub violations: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { array_depth: 64, violations: 1000 }
    }
}
