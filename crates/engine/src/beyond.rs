//! Requests beyond the end of a file that may still grow.
//!
//! Invariants: a request is kept from its answer until its file has grown or the program has passed it, so there are never more of them
//! than entries ahead of the program. Each file has at most one open question.
//!
//! Data flow: the backend's answers → [`Beyond`] → questions how long the files are now → [`Beyond::answered`] → the
//! scheduler, which asks again.

use std::ops::Range;

use foreread_plan::{FileId, RequestId};
use foreread_sched::{Asked, Scheduler, StrandId};
use rustc_hash::FxHashMap;

use crate::engine::look::{EVERY, EVERY_FILE};

/// Added to [`EVERY`] and [`EVERY_FILE`] for each request that waits for its file to grow, in ns. Going through the
/// requests takes about a fiftieth of that.
const EVERY_REQUEST: u64 = 1_000;

/// A file that was too short.
#[derive(Debug)]
struct Short {
    /// The part of each request past its end.
    requests: FxHashMap<RequestId, Range<u64>>,
    /// The first page of them all, or one before.
    first: u64,
    /// True if its length is being asked for.
    asked: bool,
}

/// The files that were too short for their requests.
#[derive(Debug, Default)]
pub(crate) struct Beyond {
    files: FxHashMap<FileId, Short>,
    /// When to look next.
    at: u64,
}

impl Beyond {
    /// Notes that these pages of a request are beyond the end of its file.
    pub(crate) fn add(&mut self, id: RequestId, file: FileId, pages: Range<u64>) {
        let short = self.files.entry(file).or_insert_with(|| Short {
            requests: FxHashMap::default(),
            first: u64::MAX,
            asked: false,
        });
        short.first = short.first.min(pages.start);
        short.requests.insert(id, pages);
    }

    /// The program is past this request.
    pub(crate) fn forget(&mut self, asked: &Asked) {
        let request = &asked.request;
        if let Some(short) = self.files.get_mut(&request.file) {
            short.requests.remove(&request.id);
            if short.requests.is_empty() {
                self.files.remove(&request.file);
            }
        }
    }

    /// Files whose lengths are due to be asked for.
    pub(crate) fn due(&mut self, now: u64) -> Vec<FileId> {
        if self.files.is_empty() || now < self.at {
            return Vec::new();
        }
        let mut price = 0;
        let mut due = Vec::new();
        for (&file, short) in self.files.iter_mut().filter(|(_, short)| !short.asked) {
            price += EVERY_FILE + short.requests.len() as u64 * EVERY_REQUEST;
            short.asked = true;
            due.push(file);
        }
        self.at = now + EVERY.max(price);
        due
    }

    /// The answer about a file's length: `pages`, if known. Pages that were beyond the end before are wanted again by this strand.
    pub(crate) fn answered(
        &mut self,
        file: FileId,
        pages: Option<u64>,
        strand: StrandId,
        scheduler: &mut Scheduler,
    ) {
        let Some(short) = self.files.get_mut(&file) else {
            return;
        };
        short.asked = false;
        let pages = pages.unwrap_or(0);
        if pages <= short.first {
            return;
        }
        short.first = u64::MAX;
        short.requests.retain(|_, asked| {
            if asked.start < pages {
                scheduler.grown(strand, file, asked.clone());
                return false;
            }
            short.first = short.first.min(asked.start);
            true
        });
        if short.requests.is_empty() {
            self.files.remove(&file);
        }
    }
}
