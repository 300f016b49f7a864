//! The key of a page, and its hash, which determines the possible places of the page in a segment: the same as in
//! `observers/pmpi/src/segment.h`.

/// A page of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The file's device.
    pub dev: u64,
    /// The file's inode.
    pub ino: u64,
    /// The page's number.
    pub page: u64,
}

impl Key {
    /// The hash, which determines the page's possible places.
    pub fn hash(&self) -> u64 {
        mix(mix(mix(self.dev.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ self.ino) ^ self.page)
    }
}

/// SplitMix64's finalizer.
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The tag of a page with this hash in its set; never 0.
pub const fn tag(hash: u64) -> u64 {
    hash | 1
}

/// The two sets, among this many, in which a page with this hash may be.
pub fn sets_of(hash: u64, sets: u32) -> [u32; 2] {
    let place = |half: u64| ((half * u64::from(sets)) >> 32) as u32;
    [place(hash >> 32), place(hash & u64::from(u32::MAX))]
}
