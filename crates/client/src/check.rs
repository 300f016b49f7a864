//! The debugging aid: where the list and the program part.
//!
//! Data flow: each read that is not on the list, or that skips entries, is a difference; the first
//! [`KEPT`] are kept, all are counted; [`Check::report`] puts them into words.

use std::fmt::Write as _;
use std::path::PathBuf;

use foreread_plan::{Extent, FileId};
use foreread_sources::Entry;

use crate::Stats;
use crate::files::Files;

/// Differences that are kept.
const KEPT: usize = 32;

/// A read that was not the next expected entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// Number and contents of the entry that was expected; `None` at the end of the list.
    pub(crate) expected: Option<(u64, Entry)>,
    /// The actual read.
    pub(crate) got: (FileId, Extent),
    /// Entries that it skipped; 0 if it was not on the list.
    pub(crate) skipped: u64,
}

/// The findings so far.
#[derive(Debug)]
pub(crate) struct Check {
    path: PathBuf,
    first: Vec<Difference>,
    all: u64,
    written: bool,
}

impl Check {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            first: Vec::new(),
            all: 0,
            written: false,
        }
    }

    pub(crate) fn add(&mut self, difference: Difference) {
        self.all += 1;
        if self.first.len() < KEPT {
            self.first.push(difference);
        }
    }

    /// In readable form.
    pub(crate) fn report(&self, stats: &Stats, files: &Files) -> String {
        let list = &stats.list;
        let mut text = format!(
            "foreread: where the list and the reads of process {} part\n\
             entries accepted {}, skipped {}, still ahead {}\n\
             reads listed {}, not listed {}, outside all regions {}\n\
             callback called {} times\n",
            std::process::id(),
            list.accepted,
            list.skipped,
            stats.ahead,
            list.listed,
            list.unlisted,
            list.outside,
            stats.asked,
        );
        if self.all == 0 {
            text.push_str("no differences\n");
            return text;
        }
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "differences {}, the first {}:",
            self.all,
            self.first.len()
        );
        for difference in &self.first {
            let Difference {
                expected,
                got: (file, extent),
                skipped,
            } = difference;
            let expected = match expected {
                Some((number, entry)) => format!(
                    "entry {number}: expected {} bytes at {} of {}",
                    entry.extent.len,
                    entry.extent.offset,
                    files.name(entry.file)
                ),
                None => "end of the list: expected nothing".to_owned(),
            };
            let how = match skipped {
                0 => "which is not on the list".to_owned(),
                1 => "which skips 1 entry".to_owned(),
                more => format!("which skips {more} entries"),
            };
            let _ = writeln!(
                text,
                "  {expected}; got {} bytes at {} of {}, {how}",
                extent.len,
                extent.offset,
                files.name(*file)
            );
        }
        text
    }

    /// The path for a report, the first time; `None` after that.
    pub(crate) fn place(&mut self) -> Option<PathBuf> {
        let first = !std::mem::replace(&mut self.written, true);
        first.then(|| self.path.clone())
    }
}
