//! Entries whose pages are not in memory although they were requested: evicted, or not written yet.
//!
//! Invariant: an entry that is left to the program holds no room in the budget.

use std::ops::Range;

use foreread_plan::{FileId, RequestId};

use super::{Devices, Scheduler, StrandId};
use crate::EntryState;

impl Scheduler {
    /// A fetched page was evicted before it was read. Entries that begin with it are left to the program, because the kernel regards a page
    /// fetched twice as much used, and evicts other unread pages for it. But if only a small part of the memory is held, memory was not the
    /// reason, and the page is fetched again.
    pub fn lost(&mut self, strand: StrandId, file: FileId, page: u64, devices: &mut impl Devices) {
        let plan = &mut self.plans[strand.0];
        let Some(ordinal) = plan.queue.listed_at(file, page) else {
            return;
        };
        if self.budget.holds_little() {
            self.place(strand, ordinal, devices);
        } else if let Some(entry) = plan.queue.get(ordinal)
            && entry.state == EntryState::Admitted
        {
            plan.leave(ordinal, entry.range(), &mut self.budget);
        }
    }

    /// These pages of a request in flight are beyond the end of their file, which may still grow. Entries that begin with them hold no room
    /// until it has grown. True if there are any.
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
                && entry.state == EntryState::Admitted
            {
                plan.leave(ordinal, entry.range(), &mut self.budget);
                any = true;
            }
        }
        any
    }

    /// The file has grown over these pages: a strand's entries that begin with them are pending again.
    pub fn grown(&mut self, strand: StrandId, file: FileId, pages: Range<u64>) {
        let plan = &mut self.plans[strand.0];
        for page in pages {
            if let Some(ordinal) = plan.queue.listed_at(file, page)
                && let Some(entry) = plan.queue.get(ordinal)
                && entry.state == EntryState::Left
            {
                plan.queue.set_state(ordinal, EntryState::Waiting);
                plan.cursor = plan.cursor.min(ordinal);
            }
        }
    }
}
