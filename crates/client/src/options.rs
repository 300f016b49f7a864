//! What may be chosen about a client.

use std::path::PathBuf;

/// Choices for one client; the defaults suit most programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Memory, in bytes, that may hold pages fetched and not yet read; `None` for three quarters of
    /// what is free when the client is made. It adapts from there.
    pub budget: Option<u64>,
    /// Entries the list holds ahead of the program, at most: 24 bytes of memory each.
    pub capacity: usize,
    /// Drop pages the session itself brought in and the program is past, once those and the unread
    /// ones together exceed the budget.
    pub evict_behind: bool,
    /// Fetch what is read first in a first short pass over a disk with a moving head, and the rest in longer ones after
    /// it: right for a program that computes between its reads. Without, all that the budget has room for is
    /// one pass, which takes the disk least time.
    pub passes: bool,
    /// Keep the first files open while they are registered, so that renaming or deleting one changes nothing. Without, none
    /// is open for longer than it takes to ask for its pages, so that it can be leased and its file system unmounted.
    pub keep_open: bool,
    /// Of which process it is to be told, with `passes`, whether it computes or mostly waits; `None` for the calling one.
    pub process: Option<u32>,
    /// Write a report of where list and reality part to this file (appended) when the client ends.
    /// `None` looks into the environment variable `FOREREAD_CHECK`, if the environment may be believed.
    pub check: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            budget: None,
            capacity: 1 << 20,
            evict_behind: true,
            passes: false,
            keep_open: true,
            process: None,
            check: None,
        }
    }
}
