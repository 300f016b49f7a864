//! The files that a worker has open.
//!
//! An open file cannot be leased, its file system cannot be unmounted, and the space of a deleted one is not free. So each file is closed
//! as soon as its job is done. Only between requests for one file that follow each other closely does it stay open: the program is in the
//! middle of reading it, and opening it anew for each page would cost as much as the request itself.
//!
//! Invariant: between jobs only files of [`OFTEN`] or more requests in a row are open, and none for longer than [`STAY`]
//! after its last.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use foreread_plan::FileId;

use super::file::Opened;

/// Time for which a file may stay open after a request, and within which the next request must follow to be in a series with it. Among
/// 1,300 requests for one file in 0.4 s a worker gets one in 1.2 ms. With 2 ms the file was opened 2,000 times, each with seven system
/// calls where paths are looked up name by name; with 10 ms 300 times, and processor time fell from 128 to 97 ms.
pub(crate) const STAY: Duration = Duration::from_millis(10);
/// Requests in a row from which on a file stays open: small files, which a program opens, reads and closes, have
/// fewer. 3,000 hints about one file took as much of the processor with 4 and 16.
const OFTEN: u32 = 8;

/// A file that was recently requested.
#[derive(Default)]
struct RecentFile {
    opened: Option<Opened>,
    /// Requests in a row.
    requests: u32,
    /// Time of the last request; `None` for a file that is only examined.
    last: Option<Instant>,
}

/// The files of one worker.
#[derive(Default)]
pub(super) struct Held(HashMap<FileId, RecentFile>);

impl Held {
    /// A request for a file came at `now`.
    pub(super) fn requested(&mut self, file: FileId, now: Instant) {
        let place = self.0.entry(file).or_default();
        let follows = place.last.is_some_and(|last| now < last + STAY);
        place.requests = if follows { place.requests + 1 } else { 1 };
        place.last = Some(now);
    }

    /// A file was opened, to be worked on now.
    pub(super) fn open(&mut self, file: FileId, opened: Opened) {
        self.0.entry(file).or_default().opened = Some(opened);
    }

    pub(super) fn has(&self, file: FileId) -> bool {
        self.get(file).is_some()
    }

    pub(super) fn get(&self, file: FileId) -> Option<&Opened> {
        self.0.get(&file)?.opened.as_ref()
    }

    pub(super) fn get_mut(&mut self, file: FileId) -> Option<&mut Opened> {
        self.0.get_mut(&file)?.opened.as_mut()
    }

    /// The work on a file is done: close it, if requests for it are not many.
    pub(super) fn settle(&mut self, file: FileId) {
        if let Some(place) = self.0.get_mut(&file)
            && place.requests < OFTEN
        {
            place.opened = None;
        }
    }

    /// Closes a file and forgets it.
    pub(super) fn close(&mut self, file: FileId) {
        self.0.remove(&file);
    }

    /// When [`Held::close_idle`] has something to do.
    pub(super) fn idle_at(&self) -> Option<Instant> {
        let open = self.0.values().filter(|place| place.opened.is_some());
        open.filter_map(|place| Some(place.last? + STAY)).min()
    }

    /// Closes files without requests for some time, at `now`.
    pub(super) fn close_idle(&mut self, now: Instant) {
        self.0
            .retain(|_, place| place.last.is_some_and(|last| now < last + STAY));
    }
}
