//! The account of a run as scripts read it, for `--json`.

use std::path::Path;

use foreread_engine::{Ledger, NameLedger};
use serde::Serialize;

use super::{Account, Outcome};
use crate::cache::CacheAccount;
use crate::report::{Phase, Strand};

/// The account as scripts read it. Times in ns, sizes in bytes.
#[derive(Serialize)]
pub(super) struct Json<'a> {
    mode: Outcome,
    reason: Option<String>,
    exit_status: i32,
    wall_ns: u64,
    /// Duration of the last run that is known to have started cold and without help, and duration of the recorded run.
    cold_wall_ns: Option<u64>,
    recorded_wall_ns: Option<u64>,
    device_bytes: Option<u64>,
    /// Bytes of these by reads that were not observed; null if few or unknown.
    unseen_bytes: Option<u64>,
    read_bytes: Option<u64>,
    /// The session's state at the end; null without a session.
    phase: Option<&'static str>,
    ledger: Option<Ledger>,
    /// The ledger of names that were looked up ahead.
    names: Option<NameLedger>,
    /// The account of a rank's part of the collective cache; null if this is no rank, or no library stands in front of MPI.
    collective_cache: Option<&'a CacheAccount>,
    /// Each source's part: the ledger is their sum.
    pub(super) sources: Vec<JsonSource>,
    /// Reads that were reported and set against the plan: not those of a program that was left to itself by then.
    reads_seen: Option<u64>,
    foreseen: Option<u64>,
    devices: &'a [String],
    followed: Option<&'a Path>,
    recorded: Option<&'a Path>,
    lost: u64,
    notes: Vec<&'a str>,
    files: &'a [String],
}

/// A source's part as scripts read it.
#[derive(Serialize)]
pub(super) struct JsonSource {
    pub(super) name: &'static str,
    phase: &'static str,
    pub(super) ledger: Ledger,
    names: NameLedger,
    reads_seen: u64,
    foreseen: u64,
}

impl From<&Strand> for JsonSource {
    fn from(report: &Strand) -> Self {
        Self {
            name: report.name,
            phase: phase_name(report.phase),
            ledger: report.ledger,
            names: report.names,
            reads_seen: report.reads,
            foreseen: report.foreseen,
        }
    }
}

/// The word for the state of a session or source.
fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Ahead => "ahead",
        Phase::GaveUp => "gave up",
        Phase::Hot => "hot",
        Phase::Finished => "finished",
    }
}

impl Account {
    /// The account as scripts read it.
    pub(super) fn json(&self) -> Json<'_> {
        let report = self.report.as_ref();
        Json {
            mode: self.outcome(),
            reason: self.reason(),
            exit_status: self.status,
            wall_ns: self.wall_ns,
            cold_wall_ns: self.baseline.as_ref().and_then(|base| base.cold_wall_ns),
            recorded_wall_ns: self.baseline.as_ref().map(|base| base.wall_ns),
            device_bytes: self.device_bytes,
            unseen_bytes: self.unseen_bytes,
            phase: report.map(|report| phase_name(report.phase)),
            read_bytes: self.baseline.as_ref().map(|base| base.bytes),
            ledger: report.map(|report| report.ledger),
            names: report.map(|report| report.names),
            collective_cache: self.cache.as_ref(),
            sources: report.map_or(Vec::new(), |report| {
                report.strands.iter().map(JsonSource::from).collect()
            }),
            reads_seen: report.map(|report| report.reads),
            foreseen: report.map(|report| report.foreseen),
            devices: report.map_or(&[], |report| &report.devices),
            followed: self.followed.as_ref().map(|found| found.path.as_path()),
            recorded: self.recorded.as_deref(),
            lost: self.lost,
            notes: self.told_beside().collect(),
            files: &self.files,
        }
    }
}
