//! A client's reports about itself.

use foreread_engine::Ledger;
use foreread_sources::Counts;

/// A client's present counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Of the list: entries accepted, reads listed and not, entries skipped, reads outside regions.
    pub list: Counts,
    /// Entries ahead of the program now.
    pub ahead: u64,
    /// Times the callback was called.
    pub asked: u64,
    /// The account so far, in bytes; closed only in the [`Report`].
    pub ledger: Ledger,
}

/// The end of a client.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The last statistics, their account closed.
    pub stats: Stats,
    /// Files that could not be fetched, and why, in plain words.
    pub gone: Vec<String>,
    /// The differences between list and reads, if requested: the content of the check file.
    pub check: Option<String>,
}
