//! The one judge of shapes: which accesses belong to a sequential stream, and how long it has run; and which go on from
//! the one before as far as the kernel's read-ahead is concerned.
//!
//! From [`STREAM_AFTER`] bytes on, the kernel's own read-ahead does at least as well as any list. Accesses of a
//! record are still disclosed then, so that the place in the plan is known, and left to the kernel; those that
//! a signature foretells need not be. Both ask here, with the accesses in the order in which they are expected.

use rustc_hash::FxHashMap;

use foreread_plan::{Extent, FileId, PAGE, Pattern, ThreadId};

/// Bytes after which a sequential stream is left to the kernel: two of its default read-ahead windows (128 KiB), enough for
/// its own detection to ramp up.
pub(crate) const STREAM_AFTER: u64 = 256 * 1024;
/// Bytes that a read may leave out after the one before and still be served by the kernel's read-ahead. With more, it
/// misses the four pages that the kernel begins with. A left-out page is mostly the one that the kernel has marked to start
/// its next window at, so the program waits for each window: such a stream is not left to the kernel.
const SKIP: u64 = 12 * 1024;
/// Bytes read from front to back from which on a longer read-ahead pays: what that fetches in vain, at the most, is a small part of
/// them. By these figures: twice the kernel's default is 256 KiB, an eighth of 2 MiB; 512 MiB from a virtio SSD took 15 % less.
const ENOUGH_BYTES: u64 = 2 << 20;
/// One read in so many may go elsewhere in a file that is read from front to back: each costs a longer read-ahead once, and those
/// together no more than 1 % of what it gains.
const ELSEWHERE: u64 = 100;
/// Streams remembered at a time; beyond it the table starts afresh.
const STREAMS: usize = 1 << 16;

/// One thread's run through one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    end: u64,
    run: u64,
    /// Whether the last access went on where the one before ended.
    goes_on: bool,
}

/// How an access goes with those before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runs {
    /// How many bytes the stream had run, without a page left out, that it goes on with; 0 where it goes on with none.
    pub(crate) whole: u64,
    /// Whether the kernel's read-ahead for the one before serves it.
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

/// Whether the kernel's read-ahead for a read that ended at `end` serves one that begins at `offset`, in bytes.
pub fn goes_on(end: u64, offset: u64) -> bool {
    offset / PAGE == end / PAGE || (end..=end.saturating_add(SKIP)).contains(&offset)
}

/// Whether a file is read from front to back, and long enough for a longer read-ahead: by bytes, by how many reads that is, and how
/// many of them went elsewhere.
pub fn is_front_to_back(bytes: u64, reads: u64, elsewhere: u64) -> bool {
    bytes >= ENOUGH_BYTES && elsewhere * ELSEWHERE < reads
}

impl Default for Stream {
    /// One that has not begun: no access goes on with it.
    fn default() -> Self {
        Self {
            end: u64::MAX,
            run: 0,
            goes_on: false,
        }
    }
}

impl Stream {
    /// How far the stream had run that the next access goes on with.
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

    /// The stream as the kernel sees it that has read ahead of it since its second access: if the last access went on
    /// where the one before ended, the kernel needs no more of it.
    pub(crate) fn served(mut self) -> Option<Self> {
        self.run = self.run.max(STREAM_AFTER);
        self.goes_on.then_some(self)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Streams(FxHashMap<(ThreadId, FileId), Stream>);

impl Streams {
    /// How far the stream had run that this access goes on with.
    pub(crate) fn runs(&mut self, thread: ThreadId, file: FileId, extent: Extent) -> Runs {
        if self.0.len() >= STREAMS {
            self.0.clear();
        }
        self.0.entry((thread, file)).or_default().next(extent)
    }

    /// Whether this access goes on with a stream that is long enough to be left to the kernel.
    pub fn is_left(&mut self, thread: ThreadId, file: FileId, extent: Extent) -> bool {
        self.runs(thread, file, extent).pattern() == Pattern::Sequential
    }
}
