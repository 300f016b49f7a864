//! Entries whose pages are not in memory although they were asked for: gone again, or not written yet.
//!
//! Invariant: an entry that is left to the program holds no room in the budget.

use std::ops::Range;

use foreread_plan::{FileId, RequestId};

use super::{Devices, Scheduler};
use crate::State;

impl Scheduler {
    /// A page that was fetched is gone again before it was read. What begins with it is left to the program, for a page
    /// fetched twice counts as much used with the kernel, and pushes out others that are still to be read; but where
    /// little of the memory is held, it was not for want of memory, and is fetched again.
    pub fn lost(&mut self, file: FileId, page: u64, devices: &mut impl Devices) {
        let Some(ordinal) = self.queue.listed_at(file, page) else {
            return;
        };
        if self.budget.holds_little() {
            self.place(ordinal, devices);
        } else if let Some(entry) = self.queue.get(ordinal)
            && entry.state == State::Admitted
        {
            self.leave(ordinal, entry.range());
        }
    }

    /// These pages of a request under way lie past the end of their file, which may still grow: what begins with them
    /// holds no room until it has. Whether anything does.
    pub fn past_end(&mut self, id: RequestId, file: FileId, pages: Range<u64>) -> bool {
        if let Some(flight) = self.in_flight.get(&id)
            && let Some(asked) = self.asked.get_mut(&(flight.last, id))
            && asked.request.pages.start >= pages.start
        {
            self.budget.release(asked.let_go());
        }
        let mut any = false;
        for page in pages {
            if let Some(ordinal) = self.queue.listed_at(file, page)
                && let Some(entry) = self.queue.get(ordinal)
                && entry.state == State::Admitted
            {
                self.leave(ordinal, entry.range());
                any = true;
            }
        }
        any
    }

    /// The file has grown over these pages: what begins with them has its turn again.
    pub fn grown(&mut self, file: FileId, pages: Range<u64>) {
        for page in pages {
            if let Some(ordinal) = self.queue.listed_at(file, page)
                && let Some(entry) = self.queue.get(ordinal)
                && entry.state == State::Left
            {
                self.queue.set_state(ordinal, State::Waiting);
                self.cursor = self.cursor.min(ordinal);
            }
        }
    }
}
