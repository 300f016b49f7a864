//! The layout of a segment: `observers/pmpi/src/segment.h` in Rust. This crate's tests compare both with a C compiler.

use crate::atomic::{AtomicU32, AtomicU64};
use crate::key::mix;

/// The environment variable that names the segment to the rank's processes, as that of the ring does.
pub const ENV: &str = "FOREREAD_CACHE";
/// The first word of a segment.
pub const MAGIC: u64 = u64::from_le_bytes(*b"READPAGE");
/// The layout's version.
pub const VERSION: u32 = 5;
/// Bytes of a part, the unit of filling and reading.
pub const PART: u64 = 4096;
/// Parts of a page.
pub const PARTS: u64 = 16;
/// Bytes of a page (the paper's 64 KiB).
pub const PAGE: u64 = PART * PARTS;
/// Slots of a set.
pub const WAYS: u32 = 8;
/// Limit of other ranks' segments on one host that a rank can name to its foreread.
pub const PEERS: usize = 64;
/// Limit of recently opened files of a rank that its foreread knows.
pub const FILES: usize = 64;
/// The most slots of a segment: 64 GiB of pages.
pub const SLOTS_MAX: u32 = 1 << 20;
/// Entries of the directory for each slot.
pub const PLACES: u64 = 4;
/// Bytes of the header.
pub const HEADER: u64 = 4096;

/// The place for the rank's reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Nothing is known yet.
    Undecided = 0,
    /// Into the page cache, which ranks share.
    Plain = 1,
    /// Into segments.
    Collective = 2,
}

/// A number for the state of a file, from its size in bytes and the times of the last changes of its content and its inode, in ns; never 0.
pub const fn version(size: u64, mtime_ns: i64, ctime_ns: i64) -> u64 {
    mix(mix(mix(size.wrapping_add(1)) ^ mtime_ns as u64) ^ ctime_ns as u64) | 1
}

/// The place in [`Header::files`] and the pages that a word of [`Header::reading`] shows.
pub(crate) const fn reading(word: u64) -> (usize, std::ops::Range<u64>) {
    let (first, count) = (word >> 24 & 0x3_ffff_ffff, word & 0xff_ffff);
    ((word >> 58) as usize, first..first + count)
}

/// Number of sets for this many slots.
pub const fn sets(slots: u32) -> u32 {
    slots.div_ceil(WAYS)
}

/// Offsets of the areas of a segment, and its size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// [`Set`]s.
    pub sets: u64,
    /// [`Slot`](crate::slot::Slot)s.
    pub slots: u64,
    /// Numbers of filled slots.
    pub log: u64,
    /// [`Hint`]s.
    pub directory: u64,
    /// The pages themselves.
    pub pages: u64,
    /// The segment's size.
    pub size: u64,
}

impl Places {
    /// The places for this many slots.
    pub const fn of(slots: u32) -> Self {
        let count = slots as u64;
        let sets = HEADER;
        let slots_at = sets + up(size_of::<Set>() as u64 * crate::layout::sets(slots) as u64);
        let log = slots_at + up(size_of::<crate::slot::Slot>() as u64 * count);
        let directory = log + up(size_of::<AtomicU32>() as u64 * count);
        let pages = directory + up(size_of::<Hint>() as u64 * PLACES * count);
        Self {
            sets,
            slots: slots_at,
            log,
            directory,
            pages,
            size: pages + PAGE * count,
        }
    }
}

const fn up(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

/// Another rank's segment on this host.
#[repr(C)]
pub struct Peer {
    /// Its token.
    pub token: AtomicU64,
    /// The process that has it open.
    pub pid: AtomicU32,
    /// Its descriptor there.
    pub fd: AtomicU32,
}

/// A file that the rank has opened through MPI.
#[repr(C)]
pub struct File {
    /// Its device.
    pub dev: AtomicU64,
    /// Its inode.
    pub ino: AtomicU64,
    /// 1 if it is read past the page cache, whatever its file system.
    pub direct: AtomicU64,
    /// Its state when the rank opened it or last synced it.
    pub version: AtomicU64,
}

/// Counts of a segment. The first ten are counted by the rank's processes, the others by its foreread.
#[repr(C)]
pub struct Counters {
    /// Reads served from the own segment.
    pub hits: AtomicU64,
    /// Bytes of them.
    pub hit_bytes: AtomicU64,
    /// Reads served from another rank's segment on this host.
    pub host_hits: AtomicU64,
    /// Bytes of them.
    pub host_bytes: AtomicU64,
    /// Reads served from another host's segments.
    pub remote_hits: AtomicU64,
    /// Bytes of them.
    pub remote_bytes: AtomicU64,
    /// Hits that waited for a fill.
    pub late: AtomicU64,
    /// Reads without a hit.
    pub missed: AtomicU64,
    /// Pages made void when a file that had changed was opened or synced.
    pub voided: AtomicU64,
    /// Files that changed while they were open, and were left to their file systems.
    pub changed: AtomicU64,
    /// Fills that became valid.
    pub filled: AtomicU64,
    /// Bytes of them.
    pub filled_bytes: AtomicU64,
    /// Foretold bytes that were left to another rank of the host, which has them or is reading them.
    pub left_bytes: AtomicU64,
    /// Bytes that were filled beside the rank's foretold reads, because other ranks read them.
    pub beside_bytes: AtomicU64,
    /// Fills without a valid part.
    pub lost: AtomicU64,
    /// Evicted pages.
    pub evicted: AtomicU64,
    /// Evicted pages with parts that were never read.
    pub unread: AtomicU64,
}

/// The first page of a segment.
#[repr(C)]
pub struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) slots: AtomicU32,
    pub(crate) token: AtomicU64,
    pub(crate) mode: AtomicU32,
    pub(crate) peer_count: AtomicU32,
    pub(crate) clock: AtomicU64,
    pub(crate) logged: AtomicU64,
    pub(crate) joined: AtomicU64,
    pub(crate) file_count: AtomicU64,
    pub(crate) claimed: AtomicU64,
    pub(crate) slowest: AtomicU64,
    pub(crate) reading: AtomicU64,
    pub(crate) counts: Counters,
    pub(crate) peers: [Peer; PEERS],
    pub(crate) files: [File; FILES],
}

/// The tags of the slots of a set; 0 for none.
#[repr(C)]
pub struct Set {
    /// The tag of each slot.
    pub tag: [AtomicU64; WAYS as usize],
}

/// A possible place of a page.
#[repr(C)]
pub struct Hint {
    /// The page's tag.
    pub tag: AtomicU64,
    /// The rank that has it, in the high half, and the slot.
    pub place: AtomicU64,
}

#[cfg(not(all(test, loom)))]
const _: () = assert!(
    size_of::<Header>() as u64 <= HEADER
        && size_of::<Set>() == 64
        && size_of::<crate::slot::Slot>() == 64
);
