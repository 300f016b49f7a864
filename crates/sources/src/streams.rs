//! The one judge of shapes: which accesses belong to a sequential stream, and how long it has run.
//!
//! From [`STREAM_AFTER`] bytes on, the kernel's own read-ahead does at least as well as any list. Accesses of a
//! record are still disclosed then, so that the place in the plan is known, and left to the kernel; those that
//! a signature foretells need not be. Both ask here, with the accesses in the order in which they are expected.

use rustc_hash::FxHashMap;

use foreread_plan::{Extent, FileId, PAGE, Pattern, ThreadId};

/// Bytes after which a sequential stream is left to the kernel: two of its default read-ahead
/// windows (128 KiB), time enough for its own detection to ramp up.
pub(crate) const STREAM_AFTER: u64 = 256 * 1024;
/// Bytes a stream may leave out between two reads for the kernel's read-ahead to go on at all: with more, a read misses
/// the four pages that it begins with. But with a page left out, it is mostly the one that the kernel has marked, to read
/// further when that is come to, and the program waits for each window.
const SKIP: u64 = 12 * 1024;
/// Streams remembered at a time; beyond it the table starts afresh.
const STREAMS: usize = 1 << 16;

/// One thread's run through one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    end: u64,
    runs: Runs,
    /// Whether the last access went on where the one before ended.
    goes_on: bool,
}

/// How many bytes a stream had run before an access that goes on with it; 0 where it does not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runs {
    /// Without a page left out.
    pub(crate) whole: u64,
    /// With a few pages left out at a time, at most.
    pub(crate) gapped: u64,
}

impl Runs {
    /// How the access goes with those before it.
    pub(crate) fn pattern(self) -> Pattern {
        if self.whole >= STREAM_AFTER {
            Pattern::Sequential
        } else if self.gapped >= STREAM_AFTER {
            Pattern::Gapped
        } else {
            Pattern::Scattered
        }
    }
}

impl Default for Stream {
    /// One that has not begun: no access goes on with it.
    fn default() -> Self {
        Self {
            end: u64::MAX,
            runs: Runs::default(),
            goes_on: false,
        }
    }
}

impl Stream {
    /// How far the stream had run that the next access goes on with.
    pub(crate) fn next(&mut self, extent: Extent) -> Runs {
        let offset = extent.offset;
        let mut before = Runs::default();
        self.goes_on = false;
        if let Some(skipped) = offset.checked_sub(self.end) {
            if offset / PAGE <= self.end.div_ceil(PAGE) {
                before.whole = self.runs.whole.saturating_add(skipped);
                self.goes_on = true;
            }
            if skipped <= SKIP {
                before.gapped = self.runs.gapped.saturating_add(skipped);
            }
        }
        self.runs = Runs {
            whole: before.whole.saturating_add(extent.len),
            gapped: before.gapped.saturating_add(extent.len),
        };
        self.end = extent.end();
        before
    }

    /// The stream as the kernel sees it that has read ahead of it since its second access: if the last access went on
    /// where the one before ended, the kernel needs no more of it.
    pub(crate) fn served(mut self) -> Option<Self> {
        self.runs.whole = self.runs.whole.max(STREAM_AFTER);
        self.goes_on.then_some(self)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Streams(FxHashMap<(ThreadId, FileId), Stream>);

impl Streams {
    /// How far the stream had run that this access goes on with.
    pub(crate) fn runs(&mut self, thread: ThreadId, file: FileId, extent: Extent) -> Runs {
        if self.0.len() >= STREAMS {
            self.0.clear();
        }
        self.0.entry((thread, file)).or_default().next(extent)
    }

    /// Start afresh.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
