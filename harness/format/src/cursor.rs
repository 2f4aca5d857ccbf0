//! A position in the input, with reads that cannot go past its end.

/// The order of the bytes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first; what nearly every file has.
    Little,
    /// Most significant byte first; allowed since version 3.
    Big,
}

macro_rules! integers {
    ($($name:ident: $t:ty),+) => { $(
        #[inline]
        pub(crate) fn $name(self, bytes: [u8; size_of::<$t>()]) -> $t {
            match self {
                ByteOrder::Little => <$t>::from_le_bytes(bytes),
                ByteOrder::Big => <$t>::from_be_bytes(bytes),
            }
        }
    )+ };
}

impl ByteOrder {
    integers!(u16: u16, u32: u32, u64: u64, i16: i16, i32: i32, i64: i64);
}

/// How many bytes counts, lengths and dimensions have: 4 in version 1, 8 since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CountWidth {
    Four,
    Eight,
}

impl CountWidth {
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        match self {
            CountWidth::Four => 4,
            CountWidth::Eight => 8,
        }
    }
}

/// The input from a position on.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
    pub(crate) order: ByteOrder,
    pub(crate) width: CountWidth,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder, width: CountWidth) -> Cursor<'a> {
        Cursor { rest: bytes, len: bytes.len(), order, width }
    }

    /// Bytes from the start of the input.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.len.saturating_sub(self.rest.len())
    }

    /// Bytes up to the end of the input.
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: u64) -> Option<&'a [u8]> {
        let len = usize::try_from(len).ok()?;
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    /// What lies between this position and a later one.
    #[inline]
    pub(crate) fn bytes_up_to(&self, later: &Cursor<'a>) -> &'a [u8] {
        let len = self.remaining().saturating_sub(later.remaining());
        self.rest.get(..len).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| self.order.u32(bytes))
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| self.order.u64(bytes))
    }

    /// A count, length or dimension, of the width that the version asks for.
    #[inline]
    pub(crate) fn count(&mut self) -> Option<u64> {
        match self.width {
            CountWidth::Eight => self.u64(),
            CountWidth::Four => self.u32().map(u64::from),
        }
    }
}

/// Rounds up to a multiple of `alignment`, if the result fits 64 bits.
pub(crate) fn pad(position: u64, alignment: u64) -> Option<u64> {
    position.checked_next_multiple_of(alignment)
}
