//! Finds bytes read from devices that no observed read explains.
//!
//! The kernel counts the bytes that it fetches for a program. Reads that the observer cannot see are among them: those of
//! direct system calls, of libraries loaded apart (`RTLD_DEEPBIND`), of statically linked children. So are the read-ahead
//! that comes with reads that are seen, and the file system's own data.
//!
//! Invariant: read-ahead never counts as unseen reads. Each read explains the whole read-ahead windows that it touches, the window before
//! (the kernel reads around a fault) and the window after, up to the end of the file.
//!
//! Data flow: observed files and accesses → [`Explained`]; at the end the kernel's count → [`Explained::unseen`].

use foreread_plan::{Extent, FileId, FileMeta, Kind, Sequence};
use foreread_sys::device::Device;
use rustc_hash::FxHashMap;

/// Fewer bytes do not matter: they are the start of programs, folders and inodes. The same limit decides whether a run was cold.
pub(super) const MATTERS: u64 = 1 << 20;
/// Nor does a smaller share of all bytes: read-ahead of other programs, and folders. In a cold `grep -r` over 10,170 files, 2.6 % of the
/// bytes were outside their pages.
const SHARE: u64 = 4;
/// Bytes of its inode, folder and extents that reading a file explains: the page that these are in. In that run it
/// was 436 bytes a file, many having them in one page.
const FACTS: u64 = 4096;
/// The smallest window of read-ahead, in bytes: the kernel's default.
const WINDOW: u64 = 128 << 10;

/// Bytes that observed reads explain.
#[derive(Default)]
pub(super) struct Explained {
    files: FxHashMap<FileId, Windows>,
    /// Bytes of read-ahead of each device.
    devices: FxHashMap<u64, u64>,
    /// Bytes.
    bytes: u64,
}

/// The windows of a file that its reads explain.
#[derive(Default)]
struct Windows {
    size: u64,
    window: u64,
    /// One bit per window.
    explained: Vec<u64>,
    /// The windows that the last read touched.
    last: (u64, u64),
}

impl Explained {
    /// A file was met, or has changed.
    pub(super) fn file(&mut self, id: FileId, meta: &FileMeta) {
        let file = self.files.entry(id).or_insert_with(|| {
            self.bytes += FACTS;
            Windows::default()
        });
        let ahead = self.devices.entry(meta.dev);
        let ahead = ahead.or_insert_with(|| Device::of(meta.dev).read_ahead.max(WINDOW));
        file.size = file.size.max(meta.size);
        if file.window == 0 {
            file.window = *ahead;
            file.last = (1, 0);
        }
    }

    /// A read was observed.
    pub(super) fn accesses(&mut self, sequence: &Sequence) {
        // Mapped pages are read when touched; the kernel may read some at the mapping.
        if !(sequence.first.kind.reads() || sequence.first.kind == Kind::Map) {
            return;
        }
        if let Some(file) = self.files.get_mut(&sequence.first.file) {
            let extent = match sequence.first.kind {
                Kind::Map => Extent::new(sequence.first.extent.offset, 1),
                _ => sequence.extent(),
            };
            self.bytes += file.explain(extent.clipped(file.size));
        }
    }

    /// The bytes that nothing explains of those that the device gave, if they matter.
    pub(super) fn unseen(&self, device_bytes: u64) -> Option<u64> {
        let unseen = device_bytes.saturating_sub(self.bytes);
        (unseen >= MATTERS && unseen >= device_bytes / SHARE).then_some(unseen)
    }
}

impl Windows {
    /// The bytes that a read explains and none before it did.
    fn explain(&mut self, extent: Extent) -> u64 {
        if extent.is_empty() || self.window == 0 {
            return 0;
        }
        let first = (extent.offset / self.window).saturating_sub(1);
        let last = (extent.end() - 1) / self.window + 1;
        if self.last.0 <= first && last <= self.last.1 {
            return 0;
        }
        self.last = (first, last);
        let last = last.min((self.size - 1) / self.window);
        let words = (last / 64) as usize + 1;
        if self.explained.len() < words {
            self.explained.resize(words, 0);
        }
        let mut bytes = 0;
        for window in first..=last {
            let (word, bit) = (
                &mut self.explained[(window / 64) as usize],
                1 << (window % 64),
            );
            if *word & bit == 0 {
                *word |= bit;
                let rest = self.size - window * self.window;
                bytes += rest.min(self.window).next_multiple_of(4096);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Access, ThreadId};

    fn explained(size: u64, reads: &[(Kind, u64, u64)]) -> Explained {
        let mut explained = Explained::default();
        let meta = FileMeta::regular("/f", (u64::MAX, 1), size, 0);
        explained.file(FileId(0), &meta);
        for &(kind, offset, len) in reads {
            explained.accesses(&Sequence::from(Access {
                file: FileId(0),
                extent: Extent::new(offset, len),
                thread: ThreadId(0),
                kind,
                start: 0,
                took: 0,
            }));
        }
        explained
    }

    #[test]
    fn a_read_explains_its_read_ahead_once() {
        let big = 1 << 30;
        let of = |size, reads: &[_]| explained(size, reads).bytes - FACTS;
        assert_eq!(of(big, &[(Kind::Open, 0, 0)]), 0);
        assert_eq!(of(big, &[(Kind::Read, 0, 1)]), 2 * WINDOW);
        assert_eq!(of(big, &[(Kind::Touch, 8 * WINDOW, 4096); 3]), 3 * WINDOW);
        assert_eq!(of(5000, &[(Kind::Pread, 0, 5000)]), 8192);
        assert_eq!(of(big, &[(Kind::Map, 0, big)]), 2 * WINDOW);
        let all: Vec<_> = (0..big / WINDOW)
            .map(|n| (Kind::Read, n * WINDOW, WINDOW))
            .collect();
        assert_eq!(of(big, &all), big);
        // A part beyond the file's end, which another user's record may claim, is empty.
        assert_eq!(of(10, &[(Kind::Read, u64::MAX - 1, 1)]), 0);
        assert_eq!(of(0, &[(Kind::Read, 0, 4096)]), 0);
    }

    #[test]
    fn what_is_not_explained_is_told_where_it_matters() {
        let explained = explained(64 << 20, &[(Kind::Read, 0, 1 << 20)]);
        assert_eq!(explained.unseen(1 << 20), None);
        assert_eq!(explained.unseen(explained.bytes + MATTERS - 1), None);
        assert_eq!(explained.unseen(explained.bytes + MATTERS), Some(MATTERS));
        let many = Explained {
            bytes: 1 << 30,
            ..Explained::default()
        };
        assert_eq!(many.unseen((1 << 30) + (8 << 20)), None, "a small share");
    }
}
