//! Sources of foreknowledge: who knows what will be read.
//!
//! A [`Source`] discloses, in the order it expects them, the accesses a program is about to
//! make. What is done about them is the scheduler's affair; a source makes no system call
//! and knows no clock. One source a file:
//!
//! - [`Replay`]: an earlier run, literally.
//! - [`AccessList`]: the program itself, handing over its list.
//! - [`Null`]: knows nothing; for measuring what the engine itself costs.

#![forbid(unsafe_code)]

mod access_list;
mod null;
mod replay;
pub mod signature;
mod streams;

use foreread_plan::{Access, Expected};

pub use access_list::{AccessList, Counts, Draft, Entry, Feed, Match, RegionId};
pub use null::Null;
pub use replay::{Replay, Trace};

/// Someone who knows what will be read.
pub trait Source: Send {
    /// Append up to `room` expected accesses to `out`, in order. Appending none means that
    /// nothing more is known.
    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>);

    /// Start over: the next disclosure is the first again.
    fn rewind(&mut self);

    /// Append up to `most` of the disclosures that come at about this share (0 to 1) of all that is known, in order, and
    /// where that is less work, further on. Shares are asked for in rising order, and then [`Source::rewind`] comes.
    fn sample(&mut self, _share: f64, most: usize, out: &mut Vec<Expected>) {
        self.disclose(most, out);
    }

    /// About how many disclosures are known, at most.
    fn size(&self) -> Option<u64> {
        None
    }

    /// Look whether what is known is sound, where nothing of it will be disclosed: whoever made the source hears of what
    /// is not. To be called at the beginning only.
    fn check(&mut self) {}

    /// The program reads something else than was disclosed; `recent` is what it read last,
    /// oldest first. Look for the place in what is known, so that the next disclosure goes on
    /// from there; `false` if it is nowhere.
    fn resync(&mut self, recent: &[Access]) -> bool;

    /// Whether the program itself says what it will read, and goes on saying it: more may be known
    /// later where nothing is now, and reads that were not disclosed are no reason to doubt what is.
    fn is_live(&self) -> bool {
        false
    }

    /// Whether everything disclosed so far is void; true once. Asked before each disclosure.
    fn is_void(&mut self) -> bool {
        false
    }
}
