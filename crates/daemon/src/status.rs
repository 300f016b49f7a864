//! Observed events, predictions and fetches of the daemon since its start. All parts are bounded.

use foreread_plan::Ledger;
use serde::{Deserialize, Serialize};

/// The whole status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// foreread's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// When it was started, in seconds since 1970.
    pub since: u64,
    /// The observer: `ebpf`, `fanotify` or `preload`.
    pub observer: String,
    /// Events taken from the observer.
    pub events: u64,
    /// Events that the observer lost, by probe.
    pub lost: Vec<(String, u64)>,
    /// Events of no use: files that are not fetched (proc, sys, devices, other namespaces, FUSE), or too many of one process tree.
    pub ignored: u64,
    /// The models.
    pub model: ModelStatus,
    /// Predictions of all programs.
    pub predictions: Predictions,
    /// From a prediction to the event that it foretold.
    pub lead: Lead,
    /// Bytes fetched for all programs.
    pub bytes: Ledger,
    /// Why nothing is fetched at present; `None` while it is.
    pub pressure: Option<String>,
    /// The last problems that the daemon survived, in sentences: a corrupt store, a full disk.
    pub problems: Vec<String>,
    /// Processor time used, in ns.
    pub processor_ns: u64,
    /// Memory of the daemon (resident set), in bytes.
    pub memory: u64,
    /// By program and user: those with most bytes fetched first.
    pub programs: Vec<Program>,
}

impl Status {
    /// Bytes fetched by the programs themselves; `None` where the observer sees opens alone, and no reads of devices.
    pub fn missed(&self) -> Option<u64> {
        (self.observer == "ebpf").then_some(self.bytes.missed)
    }
}

/// The models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelStatus {
    /// Its name: `last successor`, `PCM`, `EPCM`.
    pub kind: String,
    /// Files and program starts known.
    pub symbols: u64,
    /// Partitions on disk and in memory.
    pub partitions: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Seconds since 1970 of the last save; 0 if there was none.
    pub saved: u64,
    /// Why the last attempt to save them failed; `None` if it did not.
    #[serde(default)]
    pub unsaved: Option<String>,
}

/// Predicted files. `made = right + wrong` + those that are still to be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predictions {
    /// Files predicted at the threshold, each once until it is judged.
    pub made: u64,
    /// Opened by the process tree they were predicted for.
    pub right: u64,
    /// Not opened by it.
    pub wrong: u64,
    /// Events before which the file was predicted, of all events that could have been.
    pub foretold: u64,
    /// Events that could have been foretold.
    pub events: u64,
}

/// From a prediction to the event that it foretold, in ns; 0 where the observer reported both events together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    /// How many were measured.
    pub count: u64,
    /// Half of them were shorter.
    pub median: u64,
    /// A tenth of them were shorter.
    pub tenth: u64,
}

/// One program of one user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The name of the program, whose process opened the files or is predicted to.
    pub name: String,
    /// Whose processes they are.
    pub uid: u32,
    /// Its predictions.
    pub predictions: Predictions,
    /// Its leads.
    pub lead: Lead,
    /// Its bytes.
    pub bytes: Ledger,
}
