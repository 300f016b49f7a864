//! The one judge of streams: which accesses belong to a sequential stream, how long the stream is, and which accesses the kernel's
//! read-ahead serves.
//!
//! From [`STREAM_AFTER`] bytes on, the kernel's own read-ahead does at least as well as any list. Accesses of a
//! record are still disclosed then, so that the place in the plan is known, and left to the kernel; those that
//! a signature foretells need not be. Both ask here, with the accesses in the order in which they are expected.

use rustc_hash::FxHashMap;

use foreread_plan::{Extent, FileId, PAGE, Pattern, ThreadId};

/// Bytes after which a sequential stream is left to the kernel: two of its default read-ahead windows (128 KiB), enough for
/// its own detection to ramp up.
pub(crate) const STREAM_AFTER: u64 = 256 * 1024;
/// Bytes that a read may skip after the previous one and still be served by the kernel's read-ahead. With more, it misses the four pages of
/// the kernel's first window. A skipped page is mostly the one at which the kernel would start its next window, so the program waits for
/// each window: such a stream is not left to the kernel.
const SKIP: u64 = 12 * 1024;
/// Bytes read from front to back before a longer read-ahead pays: its greatest waste is a small part of them. The waste, twice the kernel's
/// default, is 256 KiB, an eighth of 2 MiB; 512 MiB from a virtio SSD took 15 % less time.
const ENOUGH_BYTES: u64 = 2 << 20;
/// One read in this many may be elsewhere in a file that is read from front to back: each wastes a longer read-ahead once, and all together
/// no more than 1 % of its gain.
const ELSEWHERE: u64 = 100;
/// Streams remembered at a time; beyond it the table starts afresh.
const STREAMS: usize = 1 << 16;

/// One thread's stream in one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    end: u64,
    run: u64,
    /// True if the last access continued the previous one.
    goes_on: bool,
}

/// The relation of an access to earlier ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runs {
    /// Length in bytes, without skipped pages, of the stream that the access continues; 0 if it continues none.
    pub(crate) whole: u64,
    /// True if the kernel's read-ahead for the previous access serves it.
    pub(crate) onward: bool,
}

impl Runs {
    /// The same in a word.
    pub(crate) fn pattern(self) -> Pattern {
        if self.whole >= STREAM_AFTER {
            Pattern::Sequential
        } else {
            Pattern::Scattered
        }
    }
}

/// True if the kernel's read-ahead for a read that ended at `end` serves a read at `offset`, in bytes.
pub fn goes_on(end: u64, offset: u64) -> bool {
    offset / PAGE == end / PAGE || (end..=end.saturating_add(SKIP)).contains(&offset)
}

/// True if a file is read from front to back, long enough for a longer read-ahead, by its bytes, reads, and reads elsewhere.
pub fn is_front_to_back(bytes: u64, reads: u64, elsewhere: u64) -> bool {
    bytes >= ENOUGH_BYTES && elsewhere * ELSEWHERE < reads
}

impl Default for Stream {
    /// A stream without accesses: no access continues it.
    fn default() -> Self {
        Self {
            end: u64::MAX,
            run: 0,
            goes_on: false,
        }
    }
}

impl Stream {
    /// Adds an access. Returns its relation to the stream before it.
    pub(crate) fn next(&mut self, extent: Extent) -> Runs {
        let offset = extent.offset;
        let mut before = Runs {
            whole: 0,
            onward: goes_on(self.end, offset),
        };
        self.goes_on = false;
        if let Some(skipped) = offset.checked_sub(self.end)
            && offset / PAGE <= self.end.div_ceil(PAGE)
        {
            before.whole = self.run.saturating_add(skipped);
            self.goes_on = true;
        }
        self.run = before.whole.saturating_add(extent.len);
        self.end = extent.end();
        before
    }

    /// The stream as the kernel sees it after reading it ahead since its second access; `None` if the last access did not continue the
    /// previous one, so that the kernel needs to see more of it.
    pub(crate) fn served(mut self) -> Option<Self> {
        self.run = self.run.max(STREAM_AFTER);
        self.goes_on.then_some(self)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Streams(FxHashMap<(ThreadId, FileId), Stream>);

impl Streams {
    /// Adds an access. Returns its relation to the stream before it.
    pub(crate) fn runs(&mut self, thread: ThreadId, file: FileId, extent: Extent) -> Runs {
        if self.0.len() >= STREAMS {
            self.0.clear();
        }
        self.0.entry((thread, file)).or_default().next(extent)
    }

    /// True if this access continues a stream long enough to be left to the kernel.
    pub fn is_left(&mut self, thread: ThreadId, file: FileId, extent: Extent) -> bool {
        self.runs(thread, file, extent).pattern() == Pattern::Sequential
    }
}
