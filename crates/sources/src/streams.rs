//! Which accesses belong to a sequential stream, and how long it has run.
//!
//! From [`STREAM_AFTER`] bytes on, the kernel's own read-ahead does at least as well as any
//! list: such accesses are disclosed, so that the place in the plan is known, and left to the kernel.

use rustc_hash::FxHashMap;

use foreread_plan::{Extent, FileId, PAGE, ThreadId};

/// Bytes after which a sequential stream is left to the kernel: two of its default read-ahead
/// windows (128 KiB), time enough for its own detection to ramp up.
pub(crate) const STREAM_AFTER: u64 = 256 * 1024;
/// Bytes a stream may leave out between two reads for the kernel's read-ahead to go on at all: with more, a read misses
/// the four pages that it begins with. But with a page left out, it is mostly the one that the kernel has marked, to read
/// further when that is come to, and the program waits for each window.
const SKIP: u64 = 12 * 1024;
/// Streams remembered at a time; beyond it the table starts afresh.
const STREAMS: usize = 1 << 16;

/// One thread's sequential run through one file.
#[derive(Clone, Copy, Debug)]
struct Stream {
    end: u64,
    runs: Runs,
}

/// How many bytes a stream had run before an access that goes on with it; 0 where it does not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runs {
    /// Without a page left out.
    pub(crate) whole: u64,
    /// With a few pages left out at a time, at most.
    pub(crate) gapped: u64,
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
        let offset = extent.offset;
        let mut before = Runs::default();
        if let Some(&Stream { end, runs }) = self.0.get(&(thread, file))
            && let Some(skipped) = offset.checked_sub(end)
        {
            if offset / PAGE <= end.div_ceil(PAGE) {
                before.whole = runs.whole + skipped;
            }
            if skipped <= SKIP {
                before.gapped = runs.gapped + skipped;
            }
        }
        let runs = Runs {
            whole: before.whole.saturating_add(extent.len),
            gapped: before.gapped.saturating_add(extent.len),
        };
        let end = extent.end();
        self.0.insert((thread, file), Stream { end, runs });
        before
    }

    /// Start afresh.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
