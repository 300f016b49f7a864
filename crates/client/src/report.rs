//! What a client has to say of itself.

use foreread_engine::Ledger;
use foreread_sources::Counts;

/// Where a client stands.
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
    /// Where list and reality parted, if that was asked for: what is written to the check file.
    pub check: Option<String>,
}
