//! Sources of foreknowledge: who knows what will be read.
//!
//! A [`Source`] sees what happens, and discloses, in the order it expects them, the accesses a program is about to
//! make. What is done about them is the scheduler's affair; a source makes no system call
//! and knows no clock. One source a file:
//!
//! - [`Replay`]: accesses that are known in their order, for measurements.
//! - [`AccessList`]: the program itself, handing over its list.
//! - [`Null`]: knows nothing; for measuring what the engine itself costs.
//!
//! Beside them, [`files`] has the models of which file follows which.

#![forbid(unsafe_code)]

mod access_list;
pub mod files;
mod null;
mod replay;
pub mod signature;
mod streams;

use foreread_plan::{Expected, Name, Seen};

pub use access_list::{AccessList, Counts, Draft, Entry, Feed, Match, RegionId};
pub use null::Null;
pub use replay::Replay;
pub use streams::{Streams, goes_on, is_front_to_back};

/// The origin of a source's knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// From the program itself, which goes on saying it: reads that were not disclosed are no reason to doubt what was.
    Told,
    /// By inference from what was seen: it may be wrong, and has to show how often it is not.
    Guess,
}

/// What is to be expected of a source after a disclosure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// There may be more at once.
    More,
    /// There is no more now; there may be when more was seen, or said.
    Later,
    /// There is no more.
    End,
    /// Everything disclosed so far is void. Said once, with nothing disclosed: what comes next holds.
    Void,
}

/// What a source was seen to be right and wrong about before this session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Pages that it named and that were read.
    pub right: u64,
    /// Pages that it named and that were not.
    pub wrong: u64,
}

/// Someone who knows what will be read.
pub trait Source: Send {
    /// How it knows.
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

    /// Append up to `room` of the names that will be used to `out`, in order. They are disclosed beside the accesses, and where the
    /// names are not taken, no more accesses may be.
    fn names(&mut self, _room: usize, _out: &mut Vec<Name>) -> Outlook {
        Outlook::End
    }
}
