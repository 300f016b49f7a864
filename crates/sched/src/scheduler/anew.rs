//! Entries whose pages are not in memory although they were asked for: gone again, or not written yet.
//!
//! Invariant: an entry that is left to the program holds no room in the budget.

use std::ops::Range;

use foreread_plan::{FileId, RequestId};

use super::{Devices, Scheduler, StrandId};
use crate::State;

impl Scheduler {
    /// A page that was fetched is gone again before it was read. What begins with it is left to the program, for a page
    /// fetched twice counts as much used with the kernel, and pushes out others that are still to be read; but where
    /// little of the memory is held, it was not for want of memory, and is fetched again.
    pub fn lost(&mut self, strand: StrandId, file: FileId, page: u64, devices: &mut impl Devices) {
        let plan = &mut self.plans[strand.0];
        let Some(ordinal) = plan.queue.listed_at(file, page) else {
            return;
        };
        if self.budget.holds_little() {
            self.place(strand, ordinal, devices);
        } else if let Some(entry) = plan.queue.get(ordinal)
            && entry.state == State::Admitted
        {
            plan.leave(ordinal, entry.range(), &mut self.budget);
        }
    }

    /// These pages of a request under way lie past the end of their file, which may still grow: what begins with them
    /// holds no room until it has. Whether anything does.
    pub fn past_end(&mut self, id: RequestId, file: FileId, pages: Range<u64>) -> bool {
        let Some(flight) = self.in_flight.get(&id) else {
            return false;
        };
        let plan = &mut self.plans[flight.strand.0];
        if let Some(asked) = plan.asked.get_mut(flight.last, id)
            && asked.request.pages.start >= pages.start
        {
            self.budget.release(asked.let_go());
        }
        let mut any = false;
        for page in pages {
            if let Some(ordinal) = plan.queue.listed_at(file, page)
                && let Some(entry) = plan.queue.get(ordinal)
                && entry.state == State::Admitted
            {
                plan.leave(ordinal, entry.range(), &mut self.budget);
                any = true;
            }
        }
        any
    }

    /// The file has grown over these pages: what of a strand's begins with them has its turn again.
    pub fn grown(&mut self, strand: StrandId, file: FileId, pages: Range<u64>) {
        let plan = &mut self.plans[strand.0];
        for page in pages {
            if let Some(ordinal) = plan.queue.listed_at(file, page)
                && let Some(entry) = plan.queue.get(ordinal)
                && entry.state == State::Left
            {
                plan.queue.set_state(ordinal, State::Waiting);
                plan.cursor = plan.cursor.min(ordinal);
            }
        }
    }
}
