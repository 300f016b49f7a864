//! The stored account of a run, for `foreread report` and `foreread explain`.
//!
//! Data flow: [`Account`](crate::summary::Account) and [`Went`] → [`RunAccount`], as JSON → the store; later, in another process, back.

use anyhow::Result;
use foreread_engine::{Ledger, NameLedger};
use foreread_plan::{Meta, Rank};
use foreread_store::Store;
use serde::{Deserialize, Serialize};

use crate::report::FileFates;
use crate::summary::{Outcome, Why};
use crate::timeline::Went;

/// The account of a run. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunAccount {
    /// Command, folder, and when the run began.
    pub meta: Meta,
    /// The machine's name.
    pub host: String,
    /// The program's name.
    pub program: String,
    /// The line after the run, without the name of foreread.
    pub line: String,
    /// The kind of the run.
    pub outcome: Outcome,
    /// Why nothing was gained, if nothing was.
    pub why: Option<Why>,
    /// Duration of the run.
    pub wall_ns: u64,
    /// Exit status of the program.
    pub exit_status: i32,
    /// Processor time of the program.
    pub cpu_ns: Option<u64>,
    /// Bytes that the program itself had from devices.
    pub device_bytes: Option<u64>,
    /// Bytes of these that no observed read explains.
    pub unseen_bytes: Option<u64>,
    /// Reads that came too fast to be reported.
    pub lost: u64,
    /// Time of the plain cold run that was recorded, and of the recorded run, however it was.
    pub cold_wall_ns: Option<u64>,
    /// Time of the recorded run.
    pub recorded_wall_ns: Option<u64>,
    /// The followed record.
    pub followed: Option<String>,
    /// True if the followed record is this command's own.
    pub followed_own: bool,
    /// The record that was written.
    pub recorded: Option<String>,
    /// The ledger; `None` if nothing was to be fetched.
    pub ledger: Option<Ledger>,
    /// The account of names.
    pub names: Option<NameLedger>,
    /// Reads seen, and of these, reads that were foreseen.
    pub reads_seen: Option<u64>,
    /// Reads that were foreseen.
    pub foreseen: Option<u64>,
    /// Errors of foreread and remarks, in sentences.
    pub notes: Vec<String>,
    /// Parts that were not observed, in sentences.
    pub unobserved: Vec<String>,
    /// Files that differ from the record, in sentences.
    pub files: Vec<String>,
    /// The rank of a parallel program.
    pub rank: Option<Rank>,
    /// The course of the run, over its time.
    pub went: Went,
    /// Fates of the pages of the files with most waiting in the recorded run, if the record was followed.
    #[serde(default)]
    pub fates: Vec<FileFates>,
}

impl RunAccount {
    /// Stores the account beside the command's record.
    pub(crate) fn keep(&self, store: &Store) -> Result<()> {
        store.keep_run(&self.meta.identity, &serde_json::to_vec(self)?)
    }
}
