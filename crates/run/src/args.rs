//! The command line of `foreread run` and `foreread record`.

use std::ffi::OsString;
use std::path::PathBuf;

use foreread_plan::{PathMap, Rank};
use foreread_sys::own;

use crate::observer::Choice;
use crate::record::part::Limits;

/// The command, and how to run it.
#[derive(Clone, Debug)]
pub struct RunArgs {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Add nothing to standard error.
    pub quiet: bool,
    /// Add the whole account to standard error instead of one line.
    pub explain: bool,
    /// Write the account to this file as JSON.
    pub json: Option<PathBuf>,
    /// Prefetch.
    pub prefetch: bool,
    /// The observer to use.
    pub observer: Choice,
    /// Keep a record.
    pub record: bool,
    /// Keep it in this file, not in the store.
    pub output: Option<PathBuf>,
    /// Keep hashes of the command's words in place of the words.
    pub redact: bool,
    /// Bytes of a rank's part of the collective cache, if not the usual.
    pub cache: Option<u64>,
    /// Present paths of the files in the followed record.
    pub map: PathMap,
    /// Limits of the record.
    pub limits: Limits,
}

impl RunArgs {
    /// The same for one of several ranks of a parallel program, which are given the same words: files of the user's own get
    /// the rank at the end of their names.
    pub(super) fn of_this_rank(&self) -> Self {
        let several = foreread_store::rank().filter(|rank| rank.of > 1);
        let named = |path: &Option<PathBuf>| {
            let mut path = path.clone()?.into_os_string();
            if let Some(Rank { rank, .. }) = several {
                path.push(format!(".{rank}"));
            }
            Some(PathBuf::from(path))
        };
        Self {
            json: named(&self.json),
            output: named(&self.output),
            ..self.clone()
        }
    }

    /// True if the program may replace this process. Then no process is left to print the account or to write it to the user's file, and
    /// the program is no child that the kernel's observer would see.
    pub(super) fn may_make_way(&self) -> bool {
        let has_files = self.json.is_some() || self.output.is_some();
        !has_files && !self.explain && self.observer != Choice::Ebpf
    }

    /// The program has been started: leaves the working directory and the descriptors that it shares with this process. Not if
    /// output files are named, which may be relative to that directory or one of the descriptors.
    pub(super) fn let_go(&self) {
        if self.json.is_none() && self.output.is_none() {
            own::let_go();
        }
    }
}
