//! Sources of foreknowledge: who knows what will be read.
//!
//! A [`Source`] discloses, in the order it expects them, the accesses a program is about to
//! make. What is done about them is the scheduler's affair; a source makes no system call
//! and knows no clock. One source a file:
//!
//! - [`Replay`]: an earlier run, literally.
//! - [`Null`]: knows nothing; for measuring what the engine itself costs.

#![forbid(unsafe_code)]

mod null;
mod replay;

use std::ops::Range;

use foreread_plan::{Access, FileId, ThreadId};

pub use null::Null;
pub use replay::{Replay, Trace};

/// One access a source expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosed {
    /// The file.
    pub file: FileId,
    /// The pages, `[start, end)`; empty when the file is only about to be opened.
    pub pages: Range<u64>,
    /// The thread expected to read.
    pub thread: ThreadId,
    /// Part of a sequential stream that the kernel's own read-ahead will serve.
    pub sequential: bool,
}

/// Someone who knows what will be read.
pub trait Source: Send {
    /// Append up to `room` expected accesses to `out`, in order. Appending none means that
    /// nothing more is known.
    fn disclose(&mut self, room: usize, out: &mut Vec<Disclosed>);

    /// The program reads something else than was disclosed; `recent` is what it read last,
    /// oldest first. Look for the place in what is known, so that the next disclosure goes on
    /// from there; `false` if it is nowhere.
    fn resync(&mut self, recent: &[Access]) -> bool;
}
