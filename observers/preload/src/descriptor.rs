//! The state of one descriptor.

use core::sync::atomic::AtomicU64;

use foreread_ring::Shared;

/// The fields that each read uses, adjacent in memory, because a program that reads much leaves little room in the processor's cache.
#[repr(C, align(16))]
pub struct Descriptor {
    /// An [`Entry`].
    pub entry: AtomicU64,
    /// Offset of the cursor, in bytes.
    pub offset: AtomicU64,
}

/// A table entry: 0 unknown, 1 ignored, else the instance in the upper half and flags.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    pub const UNKNOWN: Self = Self(0);
    pub const IGNORED: Self = Self(1);
    pub const SHARED: u64 = 4;
    pub const ADVISED: u64 = 8;
    pub const DUPLICATED: u64 = 16;
    /// It was duplicated, and is the last descriptor left: the kernel must be asked for the cursor once.
    pub const LEFT: u64 = 32;

    pub fn tracked(inst: u32, shared: bool, advised: bool) -> Self {
        let flags = if shared { Self::SHARED } else { 0 } | if advised { Self::ADVISED } else { 0 };
        Self(u64::from(inst) << 32 | flags)
    }

    #[inline(always)]
    pub fn inst(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn is_tracked(self) -> bool {
        self.inst() != 0
    }

    /// True if the kernel's read-ahead is off on it, and the plan was given up.
    pub fn is_to_restore(self, area: &Shared) -> bool {
        self.0 & Self::ADVISED != 0 && area.wanted().is_given_up()
    }
}
