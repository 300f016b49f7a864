//! The core: requests a recorded plan at full depth, in the program's order, and accounts for every page of it.
//!
//! A plan that fits in memory needs no pacing. The record is an access list; each entry becomes a [`Want`](wants::Want), and some threads
//! go through the wants as fast as the devices take requests. The program is observed only for the account, and to notice that it does
//! something else.
//!
//! - [`wants`]: accesses of a record → wants: pages and names, each once, neighbours joined.
//! - [`cold`]: whether fetching pays: a sample of the record is looked for in memory, once, before the program starts.
//! - [`fetch`]: which want is next.
//! - [`threads`]: the threads that bring the wants into memory.
//! - [`worker`]: the work of one thread; [`system`]: its calls.
//! - [`pages`]: sets of pages of files.
//! - [`account`]: the program's reads, and the account of the plan: issued = useful + late + evicted + wasted + infill + unknown.
//! - [`session`]: all of that together.
//! - [`fill`](mod@fill): the same without a program: pages are brought into memory.
//!
//! Data flow: record → [`wants`] → [`fetch`] → page cache; reads seen → [`account`].

#![forbid(unsafe_code)]

mod account;
mod backlog;
pub mod cold;
mod fates;
mod fetch;
mod fill;
#[cfg(test)]
mod on_a_machine;
mod pages;
mod price;
mod session;
mod system;
mod threads;
mod wants;
mod worker;

use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{FileId, FileMeta};

pub use account::{Account, Left, SoFar};
pub use fates::{Fate, Fates};
pub use fill::{Filled, fill};
pub use session::Session;
pub use wants::{JOINED, Trace};
pub use worker::Difference;

/// The files of a record.
pub trait Files: Send + Sync + 'static {
    /// A file as the record has it.
    fn file(&self, file: FileId) -> Option<&FileMeta>;

    /// The memory for pages that do not go to the page cache.
    fn cache(&self) -> Option<&dyn Cache> {
        None
    }
}

/// Memory outside the page cache, for some of the files. Its size is limited: pages leave it when they are read, and may be wanted again.
pub trait Cache: Send + Sync {
    /// True if pages of the file belong there. The answer may wait for a device.
    fn takes(&self, file: FileId) -> bool;
    /// Reads these pages ahead as soon as there is room. Returns at once.
    fn bring(&self, file: FileId, pages: Range<u64>);
    /// True if enough requests wait for room.
    fn is_full(&self) -> bool;
    /// Drops all requests that wait for room.
    fn stop(&self);
    /// Pages that were read so far, each time once.
    fn brought(&self) -> Vec<(FileId, Range<u64>)>;
}

impl Files for BTreeMap<FileId, FileMeta> {
    fn file(&self, file: FileId) -> Option<&FileMeta> {
        self.get(&file)
    }
}
