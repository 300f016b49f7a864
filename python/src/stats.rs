//! Where a session stands, for Python.

use pyo3::prelude::*;

/// Where a session stands: reads and entries are counts, the rest is bytes.
#[pyclass(frozen, get_all, module = "foreread", skip_from_py_object)]
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Stats {
    /// Entries handed over so far.
    accepted: u64,
    /// Reads that were on the list.
    listed: u64,
    /// Reads of listed files that were not.
    unlisted: u64,
    /// Entries passed over without being read.
    skipped: u64,
    /// Entries ahead of the program.
    ahead: u64,
    /// Bytes fetched ahead of the program.
    issued: u64,
    /// Of those, in memory when they were read.
    useful: u64,
    /// Of those, still on their way when they were read.
    late: u64,
    /// Of those, never read.
    wasted: u64,
    /// Of those, gone from memory again before they were read.
    evicted: u64,
    /// Of those, read along because they lay between others, and never read by the program.
    infill: u64,
    /// Bytes the program read from the device by itself.
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
