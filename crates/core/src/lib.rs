//! The core: a recorded plan is requested at full depth, in the program's order, and every page of it is accounted for.
//!
//! A plan that fits in memory needs no pacing. The record is an access list; each entry becomes a [`Want`], and some threads go
//! through the wants as fast as the devices take requests. The program is observed only for the account, and to find out that it
//! does something else.
//!
//! - [`wants`]: accesses of a record → wants: pages and names, each once, neighbours joined.
//! - [`cold`]: whether it is worth it: a sample of the record, held against memory, once, before the program starts.
//! - [`fetch`]: threads that bring the wants into memory.
//! - [`pages`]: sets of pages of files.
//! - [`session`]: all of that together, and the account: issued = useful + late + wasted + unknown.
//!
//! Data flow: record → [`wants`] → [`fetch`] → page cache; reads seen → [`session`] → account.

#![forbid(unsafe_code)]

pub mod cold;
mod fetch;
mod pages;
mod session;
mod wants;

use std::collections::BTreeMap;

use foreread_plan::{FileId, FileMeta};

pub use fetch::Difference;
pub use session::{Account, Session};
pub use wants::Trace;

/// The files of a record.
pub trait Files: Send + Sync + 'static {
    /// A file as the record has it.
    fn file(&self, file: FileId) -> Option<&FileMeta>;
}

impl Files for BTreeMap<FileId, FileMeta> {
    fn file(&self, file: FileId) -> Option<&FileMeta> {
        self.get(&file)
    }
}
