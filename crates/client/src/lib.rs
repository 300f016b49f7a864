//! Application-directed prefetching: a program passes on a list of its future reads, and finds their pages in memory.
//!
//! The interface is libprefetch's (VanDeBogart, Frost and Kohler, USENIX 2009): regions select the reads that count, a list announces
//! reads, a callback asks for more when list and program differ or the list runs out. The session decides when, how much and in what order
//! to fetch.
//!
//! - [`prefetch`]: an iterator of accesses in, a guard out. Enough for most programs.
//! - [`Client`]: files, regions, lists, the callback, statistics; the basis of the C and Python interfaces.
//!
//! ```no_run
//! # fn main() -> Result<(), foreread_client::Error> {
//! let blocks = (0..1000u64).rev().map(|n| (0, n * 65536..n * 65536 + 4096));
//! let guard = foreread_client::prefetch(["data.bin"], blocks)?;
//! for n in 0..1000 {
//!     guard.at(n)?; // I am about to make the n-th read
//!     // … read it, by whatever means
//! }
//! println!("{:?}", guard.finish().stats.ledger);
//! # Ok(())
//! # }
//! ```
//!
//! Invariants: hints never harm (every failure of the session costs the speed-up and nothing
//! else); no descriptor of a registered file is ever opened or closed in the program's own
//! table, so its POSIX locks live on; no lock is held while the callback runs; a child made
//! by `fork` gets [`Error::Forked`] and nothing is touched.
//!
//! Data flow: [`Client::request`] → [`foreread_sources::AccessList`] → engine session → page cache. [`Client::reading`] matches the
//! program's read with the list, calls the callback, and passes the position to the session.

#![forbid(unsafe_code)]

mod ask;
mod check;
mod client;
mod error;
mod files;
mod flags;
mod inner;
mod lock;
mod options;
mod prefetch;
mod report;
mod stream;
mod threads;

pub use client::{Client, Missed};
pub use error::Error;
pub use flags::Flags;
pub use foreread_engine::Ledger;
pub use foreread_plan::{Advice, Extent, FileId};
pub use foreread_sources::{Entry, Match, RegionId};
pub use options::Options;
pub use prefetch::{Guard, prefetch};
pub use report::{Report, Stats};
