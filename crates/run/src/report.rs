//! Results of plans and guesses, in one form for the account.
//!
//! Data flow: the core's account, or a report of the engine's → [`Report`] → the summary.

use std::collections::HashSet;
use std::fmt::Write as _;

use foreread_backend::Change;
use foreread_core::Fate;
use foreread_engine::{Ledger, NameLedger};
use foreread_plan::FileId;
use foreread_words::units::bytes;
use serde::{Deserialize, Serialize};

/// The name of the strand that follows a record.
pub(super) const REPLAY: &str = "replay";

/// The name of the strand that expects the recorded reads of files that the program writes itself.
pub(super) const REWRITTEN: &str = "rewritten";

/// The state of prefetching at the program's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Prefetching was still keeping ahead of the program.
    Ahead,
    /// The program had left the plan for good.
    GaveUp,
    /// There was nothing to do: the plan was in memory before.
    Hot,
    /// All of the plan was fetched.
    Finished,
}

/// Fates of the pages of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFates {
    /// Its path.
    pub path: String,
    /// Bytes of each fate, in the order of [`Fate::ALL`].
    pub bytes: [u64; Fate::ALL.len()],
    /// Runs of pages: the first page, and the fate of all that were read or fetched up to the next run.
    pub runs: Vec<(u64, Fate)>,
}

/// The part of one source.
#[derive(Clone, Debug)]
pub(super) struct Strand {
    pub(super) name: &'static str,
    pub(super) phase: Phase,
    pub(super) ledger: Ledger,
    pub(super) names: NameLedger,
    /// Reads that it was held against, and how many of them it had foreseen.
    pub(super) reads: u64,
    pub(super) foreseen: u64,
}

/// The end of following.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) phase: Phase,
    /// The sum of the strands'.
    pub(super) ledger: Ledger,
    pub(super) names: NameLedger,
    pub(super) strands: Vec<Strand>,
    /// Reads observed, and how many of them were foreseen.
    pub(super) reads: u64,
    pub(super) foreseen: u64,
    /// True if the whole plan was in memory.
    pub(super) was_hot: bool,
    /// Files that differ from the record.
    pub(super) changed: Vec<(FileId, Change)>,
    /// Files that could not be fetched, and why.
    pub(super) gone: Vec<(FileId, String)>,
    /// Files that are others than those recorded, of the same size and time.
    pub(super) copied: HashSet<FileId>,
    /// Names of the devices fetched from.
    pub(super) devices: Vec<String>,
}

impl From<foreread_engine::Report> for Report {
    fn from(report: foreread_engine::Report) -> Self {
        let strands = report.strands.into_iter().map(|one| Strand {
            name: one.name,
            phase: Phase::Ahead,
            ledger: one.ledger,
            names: one.names,
            reads: one.reads,
            foreseen: one.foreseen,
        });
        Self {
            phase: Phase::Ahead,
            ledger: report.ledger,
            names: report.names,
            strands: strands.collect(),
            reads: report.reads,
            foreseen: report.foreseen,
            was_hot: false,
            changed: report.changed,
            gone: report.gone,
            copied: HashSet::new(),
            devices: report.devices,
        }
    }
}

/// The ledger of the issued bytes, in words. Rare columns are left out if they are empty.
pub(super) fn became(ledger: &Ledger) -> String {
    let mut text = format!(
        "{} useful, {} late, {} wasted",
        bytes(ledger.useful),
        bytes(ledger.late),
        bytes(ledger.wasted)
    );
    for (part, what) in [
        (ledger.evicted, "evicted"),
        (ledger.infill, "infill"),
        (ledger.unknown, "unknown"),
    ] {
        if part > 0 {
            let _ = write!(text, ", {} {what}", bytes(part));
        }
    }
    text
}
