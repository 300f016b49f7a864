//! Sources of foreknowledge: they predict the reads of a program.
//!
//! A [`Source`] observes events, and discloses the accesses that a program is about to make, in the expected order. The scheduler decides
//! what to do with them; a source makes no system call and has no clock. One source per file:
//!
//! - [`Replay`]: accesses that are known in their order, for measurements.
//! - [`Rewritten`]: accesses of an earlier run to files that it wrote itself, in the files that this run writes in their place.
//! - [`AccessList`]: the program itself, handing over its list.
//! - [`Null`]: predicts nothing; for measurements of the engine's own cost.
//! - [`signature`]: patterns of reads, recognised in this run or learnt from earlier ones.
//!
//! [`files`] has the models of file successors, and [`Streams`] decides which reads are left to the kernel's read-ahead.

#![forbid(unsafe_code)]

mod access_list;
pub mod files;
mod null;
mod replay;
mod rewritten;
pub mod signature;
mod streams;

use foreread_plan::{Expected, Name, Seen};

pub use access_list::{AccessList, Counts, Draft, Entry, Feed, Match, RegionId};
pub use null::Null;
pub use replay::Replay;
pub use rewritten::Rewritten;
pub use streams::{Streams, goes_on, is_front_to_back};

/// The origin of a source's knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// From the program itself, which continues to announce accesses: undisclosed reads are no reason for doubt.
    Told,
    /// By inference from observations: it may be wrong, and must prove how often it is right.
    Guess,
}

/// What to expect of a source after a disclosure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// More may be available now.
    More,
    /// There is no more now; there may be when more was seen, or said.
    Later,
    /// There is no more.
    End,
    /// Everything disclosed so far is void. Returned once, with nothing disclosed: later disclosures hold.
    Void,
}

/// A source's record of right and wrong predictions in earlier sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Pages that it named and that were read.
    pub right: u64,
    /// Pages that it named and that were not.
    pub wrong: u64,
}

/// Predicts the reads of a program.
pub trait Source: Send {
    /// The nature of its knowledge.
    fn nature(&self) -> Nature;

    /// Its earlier hits and misses. A guess without any is believed little at first.
    fn shown(&self) -> Shown {
        Shown::default()
    }

    /// Something has happened. A guessing source sees the reads that no other source has foreseen; every source sees
    /// all the rest.
    fn see(&mut self, _seen: &Seen) {}

    /// Append up to `room` expected accesses to `out`, in order. With no room, only whether the former ones are void
    /// is of interest.
    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook;

    /// Appends up to `room` names that will be used to `out`, in order. Names are disclosed beside the accesses; if names are not taken,
    /// accesses may stop, too.
    fn names(&mut self, _room: usize, _out: &mut Vec<Name>) -> Outlook {
        Outlook::End
    }
}
