//! A rank's part of the collective prefetch cache: pages of files, in memory that the rank's foreread shares with the rank's
//! processes.
//!
//! For file systems without a page cache that ranks share. The rank's foreread fills its segment with what the rank will read;
//! the library in front of MPI (`observers/pmpi`) takes pages out of it, and out of the other segments on its host, and makes
//! void what the rank writes.
//!
//! Layout and rules are those of `observers/pmpi/src/segment.h`. Everything in a segment may be changed by another process at
//! any time: nothing but the number of slots, checked when a segment is mapped, says where anything is in it.
//!
//! - [`key`]: the name of a page, and its hash.
//! - [`slot`]: a slot's state, which filler, reader and writer share.
//! - [`layout`]: the areas, and what is counted.
//! - [`Segment`]: a mapped segment, with its owner's side: which page gets which slot.

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
