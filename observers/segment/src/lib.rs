//! A rank's part of the collective prefetch cache: pages of files, in memory that the rank's foreread shares with the rank's
//! processes.
//!
//! For file systems without a page cache that ranks share. The rank's foreread fills its segment with the rank's future reads. The library
//! in front of MPI (`observers/pmpi`) reads pages from it and from the other segments on its host, and makes pages void that the rank
//! writes.
//!
//! Layout and rules are those of `observers/pmpi/src/segment.h`. Everything in a segment may be changed by another process at any time:
//! places in it are computed only from the number of slots, which is checked when the segment is mapped.
//!
//! - [`key`]: the name of a page, and its hash.
//! - [`slot`]: a slot's state, which filler, reader and writer share.
//! - [`layout`]: the areas and the counters.
//! - [`Segment`]: a mapped segment, with its owner's side: the assignment of slots to pages.

mod atomic;
pub mod key;
pub mod layout;
#[cfg(not(all(test, loom)))]
mod map;
#[cfg(all(test, loom))]
mod models;
#[cfg(not(all(test, loom)))]
mod segment;
pub mod slot;
#[cfg(all(test, not(loom)))]
mod tests;

pub use key::Key;
pub use layout::{ENV, Mode, PAGE, PART, PARTS, version};
#[cfg(not(all(test, loom)))]
pub use segment::{Claim, Counts, Error, Fill, Opened, Segment, runs};
