//! The part that one of those followed has in a round of telling: its next reads, and when each is expected.

use std::iter::Peekable;
use std::ops::Range;

use foreread_plan::{Extent, FileId, ThreadId};

use super::cursors::Line;
use super::lead::Lead;
use super::nest::Predicted;

/// Something that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follower {
    Nest(ThreadId, FileId),
    /// A slot of the file's cursors, and which of the cursors that the slot has had.
    Cursor(FileId, usize, u32),
}

/// The part that one follower has in a round of disclosing.
pub(super) struct Flow {
    pub(super) follower: Follower,
    pub(super) thread: ThreadId,
    pub(super) file: FileId,
    pub(super) size: u64,
    /// True if the kernel does not read the file ahead.
    pub(super) unaided: bool,
    /// As it was before the round.
    pub(super) lead: Lead,
    /// Reads ahead disclosed so far.
    pub(super) disclosed: u64,
    /// When its next read is expected.
    pub(super) when: f32,
    pub(super) next: Next,
    /// The pages disclosed last.
    pub(super) last: Range<u64>,
}

/// The origin of a flow's reads.
pub(super) enum Next {
    Line(Line),
    Nest(Peekable<Predicted>),
}

impl Flow {
    /// The next read within the file; none if enough reads are disclosed, and for a read past the end, as the file may grow.
    pub(super) fn next(&mut self) -> Option<Extent> {
        if self.disclosed >= self.lead.reach() {
            return None;
        }
        let size = self.size;
        let read = match &mut self.next {
            Next::Line(line) => line.at(self.disclosed).filter(|read| read.offset < size)?,
            Next::Nest(reads) => reads.next_if(|read| read.offset < size && !read.is_empty())?,
        };
        self.disclosed += 1;
        self.when += self.lead.pace();
        Some(read.clipped(size))
    }
}
