//! Decides which entries are requested: within the horizon and the budget, and where requesting gains more than it costs.
//!
//! A guess is admitted if its odds, weighed by the share of its strand's pages that were read in their turn, times the program's measured
//! wait for unfetched reads, are worth more than its transfer and memory. On a rotating disk they must also be worth the head's way there
//! and back, once for each series of wrong guesses. A strand's unread guesses are limited to twice the number of right ones: a guess with
//! no read is never passed, so it would never count as wrong. Pages that are certain to be read (of a file that was opened) count as right
//! at once, outside that limit.
//!
//! Invariant: an entry is admitted only if no other strand has requested all of it.

use foreread_plan::Pattern;

use super::plan::StrandPlan;
use super::{Devices, Scheduler, StrandId, lane};
use crate::{Entry, EntryState, Order};

/// Distance ahead of the program up to which the scheduler searches a stream for entries behind it, in entries (64 MiB of single pages).
pub(super) const STREAM_LEAD: u64 = 16_384;

impl Scheduler {
    /// Walk a strand's queue from where the last walk stopped.
    pub(super) fn admit(&mut self, strand: StrandId, devices: &mut impl Devices) {
        let plan = &mut self.plans[strand.0];
        plan.cursor = plan.cursor.max(plan.queue.floor());
        loop {
            let plan = &mut self.plans[strand.0];
            let ordinal = plan.cursor;
            let Some(entry) = plan.queue.get(ordinal) else {
                return;
            };
            let lead = ordinal.saturating_sub(plan.queue.position());
            if entry.pattern == Pattern::Sequential && lead > STREAM_LEAD {
                return;
            }
            if entry.state != EntryState::Waiting || entry.pattern == Pattern::Sequential {
                plan.cursor += 1;
                continue;
            }
            let Some(device) = devices.device(entry.file) else {
                plan.queue.set_state(ordinal, EntryState::Left);
                plan.cursor += 1;
                continue;
            };
            let lane = lane(&mut self.lanes, device, devices);
            let by_position = lane.profile.order == Order::Position;
            if lead > lane.neighbourhood() {
                return;
            }
            let pages = u64::from(entry.pages);
            if pages == 0 {
                devices.announce(entry.file);
                plan.queue.set_state(ordinal, EntryState::Left);
            } else if !lane.pays(plan.chance(ordinal), pages, &self.budget)
                || is_asked_elsewhere(&self.plans, strand, &entry)
            {
                self.plans[strand.0]
                    .queue
                    .set_state(ordinal, EntryState::Left);
            } else {
                let plan = &mut self.plans[strand.0];
                let spare = lane.spare_for_gaps(&self.budget, self.behind.is_some());
                // In order of position, reads must free enough room for a pass over the device: one page at a time would cost one seek
                // each.
                let half = (self.budget.target() - spare) / 2;
                if !plan.has_credit(ordinal, pages)
                    || by_position && plan.full && self.budget.held() > half
                {
                    return;
                }
                plan.full = !self.budget.admits(pages, spare);
                if plan.full {
                    return;
                }
                plan.hold(ordinal, pages, &mut self.budget);
                plan.queue.set_state(ordinal, EntryState::Admitted);
                self.place(strand, ordinal, devices);
            }
            self.plans[strand.0].cursor += 1;
        }
    }
}

/// True if another strand has requested all of an entry, and it is unread. An entry requested in part is requested as a whole: a backend
/// skips pages in memory or on their way.
fn is_asked_elsewhere(plans: &[StrandPlan], strand: StrandId, entry: &Entry) -> bool {
    let mut others = plans.iter().enumerate().filter(|&(at, _)| at != strand.0);
    others.any(|(_, plan)| plan.queue.has_admitted(entry.file, &entry.range()))
}
