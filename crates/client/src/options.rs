//! Options of a client.

use std::path::PathBuf;

/// Choices for one client; the defaults suit most programs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Memory for fetched, unread pages, in bytes; `None` for three quarters of the free memory at the client's creation. It adapts from
    /// there.
    pub budget: Option<u64>,
    /// Entries the list holds ahead of the program, at most: 24 bytes of memory each.
    pub capacity: usize,
    /// Drop pages the session itself brought in and the program is past, once those and the unread
    /// ones together exceed the budget.
    pub evict_behind: bool,
    /// On a disk with a moving head, fetch the first reads in a short first pass, and the others in longer ones: suits a program that
    /// computes between its reads. Without it, everything that fits in the budget is one pass, which takes the disk the least time.
    pub passes: bool,
    /// Keep the first files open while they are registered, so that renaming or deleting one changes nothing. Without it, a file is open
    /// only while its pages are requested, so it can be leased and its file system unmounted.
    pub keep_open: bool,
    /// The process whose computing is measured, with `passes`; `None` for the calling one.
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
