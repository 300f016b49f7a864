//! The statistics of a session, for Python.

use pyo3::prelude::*;

/// Statistics of a session: counts of entries and reads, and bytes.
#[pyclass(frozen, get_all, module = "foreread", skip_from_py_object)]
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Entries that the list has accepted so far.
    accepted: u64,
    /// Reads that were on the list.
    listed: u64,
    /// Reads of listed files that were not on the list.
    unlisted: u64,
    /// Entries that the program passed and has not read.
    skipped: u64,
    /// Entries ahead of the program.
    ahead: u64,
    /// Bytes fetched ahead of the program; after the end, the sum of useful, late, wasted, evicted and infill.
    issued: u64,
    /// Issued bytes that were in memory when the program read them.
    useful: u64,
    /// Issued bytes that were still on their way when the program read them.
    late: u64,
    /// Issued bytes of entries that the program never read.
    wasted: u64,
    /// Issued bytes that were gone from memory before the program read them.
    evicted: u64,
    /// Issued bytes between entries, fetched along with them, that the program never read.
    infill: u64,
    /// Bytes of reads that waited for the device, because they were not prefetched in time.
    missed: u64,
}

impl From<foreread_client::Stats> for Stats {
    fn from(stats: foreread_client::Stats) -> Self {
        Self {
            accepted: stats.list.accepted,
            listed: stats.list.listed,
            unlisted: stats.list.unlisted,
            skipped: stats.list.skipped,
            ahead: stats.ahead,
            issued: stats.ledger.issued,
            useful: stats.ledger.useful,
            late: stats.ledger.late,
            wasted: stats.ledger.wasted,
            evicted: stats.ledger.evicted,
            infill: stats.ledger.infill,
            missed: stats.ledger.missed,
        }
    }
}

#[pymethods]
impl Stats {
    fn __repr__(&self) -> String {
        let Self {
            accepted,
            listed,
            unlisted,
            skipped,
            ahead,
            ..
        } = self;
        let Self {
            issued,
            useful,
            late,
            wasted,
            evicted,
            infill,
            missed,
            ..
        } = self;
        format!(
            "Stats(accepted={accepted}, listed={listed}, unlisted={unlisted}, skipped={skipped}, ahead={ahead}, \
             issued={issued}, useful={useful}, late={late}, wasted={wasted}, evicted={evicted}, infill={infill}, \
             missed={missed})"
        )
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }
}
