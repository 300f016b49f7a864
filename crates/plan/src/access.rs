//! A read of a range of a file, and sequences of such reads.

use crate::{FileId, ThreadId};

/// The page size, in bytes, that all page arithmetic here assumes.
///
/// Prefetching works in whole pages; on a kernel with larger pages the hints are
/// merely finer than they need to be.
pub const PAGE: u64 = 4096;

/// A byte range of a file: `[offset, offset + len)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Extent {
    /// The extent of `len` bytes at `offset`.
    pub const fn new(offset: u64, len: u64) -> Self {
        Self { offset, len }
    }

    /// One past the last byte, saturating at `u64::MAX`.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// True if the extent has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pages the extent touches, as page numbers `[first, end)`.
    pub const fn pages(&self) -> std::ops::Range<u64> {
        if self.len == 0 {
            let page = self.offset / PAGE;
            return page..page;
        }
        self.offset / PAGE..(self.end() - 1) / PAGE + 1
    }

    /// The part of the extent below `size` bytes.
    pub const fn clipped(&self, size: u64) -> Self {
        let end = if self.end() < size { self.end() } else { size };
        Self::new(self.offset, end.saturating_sub(self.offset))
    }
}

/// The kind of call by which a program read an extent or used a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// `open` and its family: no bytes, but the file is about to be used.
    Open = 0,
    /// `read`, at the descriptor's offset.
    Read = 1,
    /// `pread`.
    Pread = 2,
    /// `readv`.
    Readv = 3,
    /// `preadv` and `preadv2`.
    Preadv = 4,
    /// A refill of a stdio stream's buffer.
    Stdio = 5,
    /// `mmap`: the range mapped, not yet touched.
    Map = 6,
    /// Pages of a mapping found touched; their order within a sample is unknown.
    Touch = 7,
    /// `sendfile`, as its source.
    Sendfile = 8,
    /// `copy_file_range`, as its source.
    CopyFileRange = 9,
    /// `splice`, as its source.
    Splice = 10,
    /// A name's inode was looked up: the `stat` family, `access`, `readlink`. No bytes.
    Stat = 11,
    /// The entries of a directory were read. No bytes.
    List = 12,
    /// Bytes requested by a read through MPI-IO. The resulting reads of files are accesses of their own.
    MpiRead = 13,
    /// Bytes that a write through MPI-IO was for.
    MpiWrite = 14,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Kind; 15] = [
        Kind::Open,
        Kind::Read,
        Kind::Pread,
        Kind::Readv,
        Kind::Preadv,
        Kind::Stdio,
        Kind::Map,
        Kind::Touch,
        Kind::Sendfile,
        Kind::CopyFileRange,
        Kind::Splice,
        Kind::Stat,
        Kind::List,
        Kind::MpiRead,
        Kind::MpiWrite,
    ];

    /// The kind with this code in the durable format, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// True if the access reads bytes from the page cache. `Map` only announces reads; kinds that [name](Kind::names) read none; kinds that
    /// [ask](Kind::asks) a library lead to other accesses.
    pub const fn reads(self) -> bool {
        !matches!(self, Kind::Map) && !self.names() && !self.asks()
    }

    /// True if the access is a request to a library, whose own reads are accesses of their own.
    pub const fn asks(self) -> bool {
        matches!(self, Kind::MpiRead | Kind::MpiWrite)
    }

    /// True if the access needs the target of a name (directories, an inode, directory entries) and no bytes of a file.
    pub const fn names(self) -> bool {
        matches!(self, Kind::Open | Kind::Stat | Kind::List)
    }

    /// The word reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Open => "open",
            Kind::Read => "read",
            Kind::Pread => "pread",
            Kind::Readv => "readv",
            Kind::Preadv => "preadv",
            Kind::Stdio => "stdio",
            Kind::Map => "mmap",
            Kind::Touch => "touch",
            Kind::Sendfile => "sendfile",
            Kind::CopyFileRange => "copy_file_range",
            Kind::Splice => "splice",
            Kind::Stat => "stat",
            Kind::List => "list",
            Kind::MpiRead => "MPI read",
            Kind::MpiWrite => "MPI write",
        }
    }
}

/// An access, as observed, recorded or disclosed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The file read.
    pub file: FileId,
    /// The bytes read: the number that the call returned, not the number requested.
    pub extent: Extent,
    /// The thread that read.
    pub thread: ThreadId,
    /// The call.
    pub kind: Kind,
    /// When the call began, in ns since the run began. The durable format keeps it to 1 µs.
    pub start: u64,
    /// Duration of the call, in ns. The durable format has a resolution of 1 µs.
    pub took: u64,
}

/// A read that took longer than this plus 1 ns per byte waited for a device. The limit is above a copy from memory (2 µs for 4 KiB) and
/// below the fastest devices, which answer in about 10 µs, after which the thread continues a few µs later. A copy sometimes takes longer
/// (about 20 µs just after a sleep). The observers of other programs know whether a thread was switched out during a call; if it was not,
/// they report no more than the duration of a copy.
const WAITED_NS: u64 = 10_000;

/// True if a read of `len` bytes that took `took` ns is long enough to have waited for a device.
pub fn waited(took: u64, len: u64) -> bool {
    took > WAITED_NS.saturating_add(len)
}

impl Access {
    /// True if the call is long enough to have waited for a device.
    pub fn waited(&self) -> bool {
        waited(self.took, self.extent.len)
    }
}

/// An access and others that went on where it ended: a program that reads a file in pieces of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The first.
    pub first: Access,
    /// Number of following accesses with the same length and duration, each beginning where and when the previous one ended.
    pub more: u16,
}

impl Sequence {
    /// Number of accesses.
    pub fn count(&self) -> u64 {
        u64::from(self.more) + 1
    }

    /// Each access by itself, in order.
    pub fn accesses(self) -> impl Iterator<Item = Access> {
        let Access { extent, took, .. } = self.first;
        (0..self.count()).map(move |number| Access {
            extent: Extent::new(
                extent
                    .offset
                    .saturating_add(extent.len.saturating_mul(number)),
                extent.len,
            ),
            start: self.first.start.saturating_add(took.saturating_mul(number)),
            ..self.first
        })
    }

    /// The same accesses as sequences of at most `most` accesses, in order.
    pub fn pieces(self, most: u16) -> impl Iterator<Item = Self> {
        let step = most.max(1);
        let count = self.count();
        (0..count).step_by(step.into()).map(move |number| {
            let Access { extent, took, .. } = self.first;
            let offset = extent.len.saturating_mul(number);
            let more = (count - number).min(step.into()) - 1;
            Self {
                first: Access {
                    extent: Extent::new(extent.offset.saturating_add(offset), extent.len),
                    start: self.first.start.saturating_add(took.saturating_mul(number)),
                    ..self.first
                },
                more: more as u16,
            }
        })
    }

    /// The extent of all accesses.
    pub fn extent(&self) -> Extent {
        let Extent { offset, len } = self.first.extent;
        Extent::new(offset, len.saturating_mul(self.count()))
    }
}

impl From<Access> for Sequence {
    fn from(first: Access) -> Self {
        Self { first, more: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_its_accesses_one_after_the_other() {
        let first = Access {
            file: FileId(1),
            extent: Extent::new(8192, 100),
            thread: ThreadId(2),
            kind: Kind::Read,
            start: 1000,
            took: 7,
        };
        let sequence = Sequence { first, more: 2 };
        let places: Vec<_> = sequence
            .accesses()
            .map(|one| (one.start, one.extent))
            .collect();
        let expected = [(1000, 8192), (1007, 8292), (1014, 8392)];
        assert_eq!(
            places,
            expected.map(|(start, offset)| (start, Extent::new(offset, 100)))
        );
        assert_eq!(sequence.extent(), Extent::new(8192, 300));
        for most in 1..5 {
            let pieces: Vec<_> = sequence.pieces(most).collect();
            assert!(pieces.iter().all(|piece| piece.count() <= most.into()));
            let all = pieces.into_iter().flat_map(Sequence::accesses);
            assert!(all.eq(sequence.accesses()), "{most} at a time");
        }
        assert!(sequence.accesses().all(|one| Access {
            extent: first.extent,
            start: first.start,
            ..one
        } == first));
        assert_eq!(
            Sequence::from(first).accesses().collect::<Vec<_>>(),
            [first]
        );
    }
}
