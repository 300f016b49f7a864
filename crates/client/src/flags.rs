//! Flags of a request, which changes the list.

use std::ops::BitOr;

/// Flags of [`crate::Client::request`], combined with `|`. The bits are those of `foreread.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Replace the list: numbering starts at 0 again. The default.
    pub const SET: Flags = Flags(1);
    /// Append; numbering continues.
    pub const APPEND: Flags = Flags(2);
    /// Empty the list first. Without entries: stop prefetching.
    pub const CLEAR: Flags = Flags(4);
    /// The list is complete for now: when it runs out, the callback is asked for more.
    pub const DONE: Flags = Flags(8);

    /// The flags with these bits; `None` for an undefined bit, or for both `SET` and `APPEND`.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let both = Flags::SET.0 | Flags::APPEND.0;
        (bits < 16 && bits & both != both).then_some(Self(bits))
    }

    /// The bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// True if all of `other` is set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}
