//! Which accesses belong to a sequential stream, and how long it has run.
//!
//! From [`STREAM_AFTER`] bytes on, the kernel's own read-ahead does at least as well as any
//! list: such accesses are disclosed, so that the place in the plan is known, and left to the kernel.

use rustc_hash::FxHashMap;

use foreread_plan::{Extent, FileId, ThreadId};

/// Bytes after which a sequential stream is left to the kernel: two of its default read-ahead
/// windows (128 KiB), time enough for its own detection to ramp up.
pub(crate) const STREAM_AFTER: u64 = 256 * 1024;
/// Bytes a stream may leave out between two reads: with more, a read misses the four pages that the
/// kernel's read-ahead begins with, and it never starts.
const SKIP: u64 = 12 * 1024;
/// Streams remembered at a time; beyond it the table starts afresh.
const STREAMS: usize = 1 << 16;

/// One thread's sequential run through one file.
#[derive(Clone, Copy, Debug)]
struct Stream {
    end: u64,
    run: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Streams(FxHashMap<(ThreadId, FileId), Stream>);

impl Streams {
    /// How many bytes the stream had run when this access continued it; 0 if it continues none.
    pub(crate) fn run(&mut self, thread: ThreadId, file: FileId, extent: Extent) -> u64 {
        if self.0.len() >= STREAMS {
            self.0.clear();
        }
        let offset = extent.offset;
        let before = match self.0.get(&(thread, file)) {
            Some(stream) if (stream.end..=stream.end.saturating_add(SKIP)).contains(&offset) => {
                stream.run + (offset - stream.end)
            }
            _ => 0,
        };
        self.0.insert(
            (thread, file),
            Stream {
                end: extent.end(),
                run: before.saturating_add(extent.len),
            },
        );
        before
    }

    /// Start afresh.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
