//! The part that one of those followed has in a round of telling: its next reads, and when each is expected.

use std::iter::Peekable;
use std::ops::Range;

use foreread_plan::{Extent, FileId, ThreadId};

use super::cursors::Line;
use super::lead::Lead;
use super::nest::Foretold;

/// Something that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follower {
    Nest(ThreadId, FileId),
    /// A slot of the file's cursors, and which of the cursors that the slot has had.
    Cursor(FileId, usize, u32),
}

/// The part that one of those followed has in a round.
pub(super) struct Flow {
    pub(super) follower: Follower,
    pub(super) thread: ThreadId,
    pub(super) file: FileId,
    pub(super) size: u64,
    /// Whether the kernel reads none of the file ahead.
    pub(super) unaided: bool,
    /// As it was before the round.
    pub(super) lead: Lead,
    /// Reads ahead told so far.
    pub(super) told: u64,
    /// When its next read is expected.
    pub(super) when: f32,
    pub(super) next: Next,
    /// The pages told last.
    pub(super) last: Range<u64>,
}

/// Where the reads of a flow come from.
pub(super) enum Next {
    Line(Line),
    Nest(Peekable<Foretold>),
}

impl Flow {
    /// The next read, as far as the file goes; none if enough is told, and for a read past the end: the file may grow.
    pub(super) fn next(&mut self) -> Option<Extent> {
        if self.told >= self.lead.reach() {
            return None;
        }
        let size = self.size;
        let read = match &mut self.next {
            Next::Line(line) => line.at(self.told).filter(|read| read.offset < size)?,
            Next::Nest(reads) => reads.next_if(|read| read.offset < size && !read.is_empty())?,
        };
        self.told += 1;
        self.when += self.lead.pace();
        Some(read.clipped(size))
    }
}
