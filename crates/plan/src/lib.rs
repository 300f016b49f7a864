//! Accesses, files, and the durable format that keeps them.
//!
//! A recorded trace is an access list, and an access list is a stored plan: observers write one, `sources` disclose one, reports read one.
//! This crate has the vocabulary ([`Extent`], [`Access`], [`FileMeta`]) and the one durable format ([`format`]). Its only I/O is on the
//! record file itself.

#![forbid(unsafe_code)]

mod access;
mod expected;
mod file;
pub mod format;
mod ledger;
mod meta;
mod odds;
mod path_map;
mod request;
mod seen;

pub use access::{Access, Extent, Kind, PAGE, Sequence, waited};
pub use expected::{Expected, Name, Pattern};
pub use file::{Advice, FileId, FileMeta};
pub use ledger::{Ledger, NameLedger};
pub use meta::{Identity, Meta, Rank, Summary, ThreadId, ThreadMeta};
pub use odds::Odds;
pub use path_map::PathMap;
pub use request::{Kin, Request, RequestId};
pub use seen::{Role, Seen};
