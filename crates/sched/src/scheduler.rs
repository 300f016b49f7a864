//! The scheduler: from the plan queue to requests.
//!
//! Each strand of a session has a plan here: its queue, the position of admission, and its requests. Devices, budget and eviction are
//! shared. Strands are served in the order of their probability of being right; equal strands in the order of their pages in flight, fewest
//! first.
//!
//! Each call has two steps. *Admit*: continue through each queue as far as the budget permits, and pass each entry to the sweep of its
//! device. An entry that another strand has requested is left to that strand, and a guess that would cost more than it gains is left to the
//! program. *Issue*: while a device has fewer requests in flight than its depth, take the next request from its sweep that the pacing rule
//! permits; on devices served in passes, from the present pass. If the session evicts behind, there is a third step: evict pages that the
//! program has passed.
//!
//! Invariants: an entry's pages count in the budget exactly while it is `Admitted`, which ends when it is read or skipped. A request's
//! infill counts until all the request's entries are read or skipped, or, if the session evicts behind, until it has arrived. A lane with
//! its depth in flight gets no more requests, except for small files that are kin of the last one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{Access, FileId, Odds, Pattern, Request, RequestId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::asked::Asked;
use crate::behind::Behind;
use crate::lane::Lane;
use crate::stall::Moment;
use crate::{Budget, Config, DeviceId, Devices, EntryState, Feedback, Matched, Order, Queue};
pub use plan::StrandId;
use plan::StrandPlan;

/// Pages that no entry asked for.
type Gaps = SmallVec<[Range<u64>; 1]>;

/// Strands in the order in which they have their turn.
type Turns = SmallVec<[(Reverse<Odds>, StrandId); 4]>;

/// A request under way.
#[derive(Debug)]
struct Flight {
    strand: StrandId,
    device: DeviceId,
    /// The last ordinal it serves.
    last: u64,
    pages: u64,
    infill: Gaps,
}

/// Queues, pacing, order and budget of one session.
#[derive(Debug)]
pub struct Scheduler {
    /// By strand.
    plans: Vec<StrandPlan>,
    queue_entries: usize,
    budget: Budget,
    feedback: Feedback,
    /// True if devices are served in passes.
    passes: bool,
    lanes: BTreeMap<DeviceId, Lane>,
    /// The target that the last entries were admitted under.
    target: u64,
    in_flight: FxHashMap<RequestId, Flight>,
    /// Pages that the program has passed, if they are to be evicted.
    behind: Option<Behind>,
    next_request: u64,
    too_late: u64,
}

impl Scheduler {
    /// A scheduler without strands.
    pub fn new(config: Config) -> Self {
        Self {
            plans: Vec::new(),
            queue_entries: config.queue_entries,
            budget: if config.adapt {
                Budget::new(config.budget_pages)
            } else {
                Budget::fixed(config.budget_pages)
            },
            feedback: Feedback::default(),
            passes: config.passes,
            lanes: BTreeMap::new(),
            target: 0,
            in_flight: FxHashMap::default(),
            behind: config.evict_behind.then(Behind::default),
            next_request: 0,
            too_late: 0,
        }
    }

    /// Adds a strand with an empty queue; `is_guess`: its source guesses.
    pub fn add(&mut self, is_guess: bool) -> StrandId {
        self.plans
            .push(StrandPlan::new(self.queue_entries, is_guess));
        StrandId(self.plans.len() - 1)
    }

    /// Adds a strand's record of earlier sessions: right about `right` pages and wrong about `wrong`.
    pub fn shown(&mut self, strand: StrandId, right: u64, wrong: u64) {
        self.plans[strand.0].proof.shown(right, wrong);
    }

    /// Switches requests for a strand on or off.
    pub fn follow(&mut self, strand: StrandId, follows: bool) {
        self.plans[strand.0].follows = follows;
    }

    /// A strand's plan queue, to disclose into.
    pub fn queue(&mut self, strand: StrandId) -> &mut Queue {
        &mut self.plans[strand.0].queue
    }

    /// The kernel does not read this file ahead: entries of disclosed streams are considered again.
    pub fn unaided(&mut self, file: FileId) {
        for plan in &mut self.plans {
            plan.queue.scatter(file);
            plan.cursor = plan.cursor.min(plan.queue.floor());
        }
    }

    /// The memory budget.
    pub fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Requests in flight on all devices (the paper's K).
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The strand that a request under way was made for.
    pub fn strand(&self, id: RequestId) -> Option<StrandId> {
        self.in_flight.get(&id).map(|flight| flight.strand)
    }

    /// Time that a request in flight adds to its device's work, in ns; 0 if it is not in flight.
    pub fn service_ns(&self, id: RequestId) -> u64 {
        let flight = self.in_flight.get(&id);
        let lane = flight.and_then(|flight| self.lanes.get(&flight.device));
        lane.map_or(0, |lane| lane.service.service_ns())
    }

    /// Entries left to the program because equation 1 said they would arrive too late.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    /// True if a request may be made now, or an entry waits for its file's layout.
    pub fn is_due(&self) -> bool {
        let mut plans = self.plans.iter().enumerate();
        plans.any(|(at, plan)| {
            let position = plan.queue.position();
            let due = |lane: &Lane| {
                let pending = lane.pending(StrandId(at));
                pending.is_some_and(|one| one.sweep.is_due(lane.reach(position)))
            };
            plan.follows && (!plan.unplaced.is_empty() || self.lanes.values().any(due))
        })
    }

    /// True if there is nothing to do until more is disclosed or a long stream is read: reads in between decide nothing.
    pub fn rests(&self) -> bool {
        let is_done = |plan: &StrandPlan| {
            let next = plan.queue.get(plan.cursor);
            let is_left = next.is_none_or(|entry| entry.pattern == Pattern::Sequential);
            plan.unplaced.is_empty() && is_left
        };
        self.lanes.values().all(Lane::is_empty)
            && self.in_flight.is_empty()
            && self.plans.iter().all(is_done)
    }

    /// Entries in a strand's queue that were not considered yet.
    pub fn waiting(&self, strand: StrandId) -> u64 {
        self.plans[strand.0].waiting()
    }

    /// The program made this access.
    pub fn saw(&mut self, access: &Access) {
        self.feedback.observe(access);
        if let Some(behind) = &mut self.behind {
            behind.read(access.file, access.extent.pages());
        }
    }

    /// The program waited this many ns for an unfetched read of this file.
    pub fn missed(&mut self, file: FileId, ns: u64, devices: &mut impl Devices) {
        if let Some(device) = devices.device(file)
            && let Some(lane) = self.lanes.get_mut(&device)
        {
            lane.missed(ns);
        }
    }

    /// Matches an access with a strand's plan. [`Scheduler::saw`] must come before.
    pub fn observe(&mut self, strand: StrandId, access: &Access) -> Matched {
        // The next match of the same page drops skipped entries from the queue.
        self.leave_behind(strand);
        let plan = &mut self.plans[strand.0];
        let matched = plan.queue.observe(access.file, access.extent.pages());
        for &(ordinal, ref taken) in &matched.consumed {
            let pages = taken.pages.end - taken.pages.start;
            if taken.admitted {
                plan.release(ordinal, pages, &mut self.budget);
            }
            // Knowing pages that are in memory anyway proves nothing.
            let is_judged = plan.come_true.remove(&ordinal);
            if !is_judged && plan.is_guess {
                plan.proof.right(pages);
            }
        }
        for &(ordinal, pages) in &matched.passed {
            plan.release(ordinal, pages, &mut self.budget);
            if !plan.come_true.remove(&ordinal) && plan.is_guess {
                plan.proof.wrong(pages);
            }
        }
        while let Some((ordinal, entry)) = plan.queue.expire() {
            if entry.state == EntryState::Admitted {
                plan.release(ordinal, u64::from(entry.pages), &mut self.budget);
            }
            plan.come_true.remove(&ordinal);
        }
        self.leave_behind(strand);
        matched
    }

    /// The program waited for a read that no request brings: an entry of it that was requested earlier, and found in memory, was evicted
    /// since, as a fetched page may be.
    pub fn waited(&mut self, strand: StrandId, file: FileId, matched: &Matched) {
        let asked = &self.plans[strand.0].asked;
        for (ordinal, taken) in matched.consumed.iter().filter(|(_, taken)| taken.admitted) {
            let start = taken.pages.start;
            let mut requests = asked.from(*ordinal).map(|asked| &asked.request);
            let request = requests.find(|one| one.file == file && one.pages.contains(&start));
            if request.is_some_and(|one| !self.in_flight.contains_key(&one.id)) {
                self.budget.lost(taken.pages.end - start);
            }
        }
    }

    /// These pages will not be read after all: they no longer count in the budget, and count as wrong for the strand.
    pub fn give_up(&mut self, strand: StrandId, file: FileId, pages: Range<u64>) {
        self.drop_out(strand, file, pages, true);
    }

    /// These pages are requested again, under another number of their file: they no longer count in the budget, and whether they are read
    /// is unknown.
    pub fn take_back(&mut self, strand: StrandId, file: FileId, pages: Range<u64>) {
        self.drop_out(strand, file, pages, false);
    }

    fn drop_out(&mut self, strand: StrandId, file: FileId, pages: Range<u64>, is_wrong: bool) {
        let plan = &mut self.plans[strand.0];
        for (ordinal, pages, is_admitted) in plan.queue.give_up(file, pages) {
            if is_admitted {
                plan.release(ordinal, pages, &mut self.budget);
            }
            let is_judged = plan.come_true.remove(&ordinal);
            if is_admitted && is_wrong && !is_judged {
                plan.proof.wrong(pages);
            }
        }
    }

    /// Confirms that these pages will be read, some of them later. They count as right at once, and no longer limit the strand's unread
    /// pages.
    pub fn come_true(&mut self, strand: StrandId, file: FileId, pages: Range<u64>) {
        let plan = &mut self.plans[strand.0];
        if !plan.is_guess {
            return;
        }
        for (ordinal, entry) in plan.queue.listed_in(file, pages) {
            if !plan.come_true.insert(ordinal) {
                continue;
            }
            let pages = u64::from(entry.pages);
            if entry.state == EntryState::Admitted {
                plan.held = plan.held.saturating_sub(pages);
            }
            plan.proof.right(pages);
        }
    }

    /// Hold nothing for entries the program has passed over: some thousands of them are kept to be
    /// matched, more than a small budget has room for.
    fn leave_behind(&mut self, strand: StrandId) {
        let plan = &mut self.plans[strand.0];
        let floor = plan.queue.floor();
        for ordinal in plan.left_below..floor {
            let Some(entry) = plan.queue.get(ordinal) else {
                continue;
            };
            if entry.state == EntryState::Consumed {
                continue;
            }
            let is_judged = ordinal < plan.judged_below || plan.come_true.contains(&ordinal);
            if plan.is_guess && !is_judged {
                plan.proof.wrong(entry.pages.into());
            }
            if entry.state == EntryState::Admitted {
                plan.leave(ordinal, entry.range(), &mut self.budget);
            }
        }
        plan.judged_below = plan.judged_below.max(floor);
        // Back with the floor, which falls when the plan turns out to be of several threads.
        plan.left_below = floor;
    }

    /// The next request of a strand whose entries the program has all passed: its unread pages are no longer expected.
    pub fn passed(&mut self, strand: StrandId) -> Option<Asked> {
        let plan = &mut self.plans[strand.0];
        let horizon = plan.queue.floor().saturating_sub(crate::queue::REORDER);
        let mut asked = plan.asked.passed(horizon)?;
        self.budget.release(asked.let_go());
        Some(asked)
    }

    /// The program has read these pages, which the session brought in, or will not read them any more.
    pub fn pass(&mut self, file: FileId, pages: Range<u64>) {
        if let Some(behind) = &mut self.behind {
            behind.pass(file, pages);
        }
    }

    /// A part of a request has arrived. Infill is to be given back before anything that will be read: where
    /// pages are given back at all it holds no room, but lies with those the program is past.
    pub fn arrived(&mut self, id: RequestId, file: FileId, pages: &Range<u64>) {
        let (Some(behind), Some(flight)) = (&mut self.behind, self.in_flight.get(&id)) else {
            return;
        };
        let plan = &self.plans[flight.strand.0];
        let Some(asked) = plan.asked.get(flight.last, id) else {
            return;
        };
        for gap in &asked.infill {
            let part = gap.start.max(pages.start)..gap.end.min(pages.end);
            if !part.is_empty() {
                behind.pass(file, part);
            }
        }
    }

    /// The pages of a request under way that no entry asked for.
    pub fn infill(&self, id: RequestId) -> &[Range<u64>] {
        self.in_flight.get(&id).map_or(&[], |one| &one.infill)
    }

    /// True if pages that the program has passed are evicted.
    pub fn gives_back(&self) -> bool {
        self.behind.is_some()
    }

    /// The pages to give back now.
    pub fn give_back(&mut self) -> Vec<(FileId, Range<u64>)> {
        let plans = &self.plans;
        self.behind.as_mut().map_or_else(Vec::new, |behind| {
            let (held, target) = (self.budget.held(), self.budget.target());
            behind.give_back(held, target, |file, pages, out| {
                unlisted(plans, file, pages, out);
            })
        })
    }

    /// A request is complete, at `now`; `fetched` is true if the device was used.
    pub fn completed(&mut self, id: RequestId, fetched: bool, now: u64) {
        let Some(flight) = self.in_flight.remove(&id) else {
            return;
        };
        let plan = &mut self.plans[flight.strand.0];
        if self.behind.is_some()
            && let Some(asked) = plan.asked.get_mut(flight.last, id)
        {
            self.budget.release(asked.let_go());
        }
        if let Some(lane) = self.lanes.get_mut(&flight.device) {
            if fetched {
                lane.completed(flight.pages, now);
            }
            lane.ended(flight.strand, flight.pages);
        }
    }

    /// Drops all pending entries of a strand and starts with an empty queue, because the program has left the plan. Requests in flight
    /// complete.
    pub fn restart(&mut self, strand: StrandId) {
        let plan = &mut self.plans[strand.0];
        plan.queue.restart();
        while let Some((ordinal, entry)) = plan.queue.pop() {
            if entry.state == EntryState::Admitted {
                plan.release(ordinal, u64::from(entry.pages), &mut self.budget);
            }
            let is_judged = ordinal < plan.judged_below || plan.come_true.contains(&ordinal);
            if plan.is_guess && !is_judged && entry.state != EntryState::Consumed {
                plan.proof.wrong(entry.pages.into());
            }
        }
        plan.come_true.clear();
        plan.cursor = plan.queue.end();
        plan.judged_below = plan.cursor;
        plan.unplaced.clear();
        plan.unproved.clear();
        for lane in self.lanes.values_mut() {
            lane.of(strand).sweep.drain().for_each(drop);
        }
    }

    /// Admits entries, and returns the requests to make at `now`.
    pub fn next(&mut self, now: u64, devices: &mut impl Devices) -> Vec<Request> {
        let target = self.budget.target();
        if target < std::mem::replace(&mut self.target, target) {
            self.recall();
            let fetched = self.budget.held();
            self.let_go(devices);
            self.budget.fell(fetched);
        }
        let turns = self.turns();
        for &(_, strand) in &turns {
            self.admit(strand, devices);
            self.place_unproved(strand, now, devices);
        }
        let mut requests = Vec::new();
        let mut lanes = std::mem::take(&mut self.lanes);
        for (&device, lane) in &mut lanes {
            for &(_, strand) in &turns {
                if self.passes {
                    lane.turn(strand, || {
                        let computed = devices.computed()?;
                        Some(Moment { now, computed })
                    });
                } else {
                    lane.of(strand).sweep.pass_over_all();
                }
            }
            while lane.has_room()
                && let Some((strand, kin)) = self.serve(&turns, device, lane, now, &mut requests)
            {
                // Adjacent pages are fetched with it, whatever is in flight: the device merges the two.
                let whole = lane.pages_in_flight + lane.profile.request_pages;
                while let Some(kin) = kin
                    && lane.pages_in_flight < whole
                    && let Some(issued) = self.issue(strand, Some(kin), lane, now)
                {
                    requests.push(self.depart(strand, device, issued));
                }
            }
        }
        self.lanes = lanes;
        requests
    }

    /// The strands that follow, those that are believed most first.
    fn turns(&self) -> Turns {
        let plans = self.plans.iter().enumerate();
        let follow = plans.filter(|(_, plan)| plan.follows);
        let mut turns: Turns = follow
            .map(|(at, plan)| (Reverse(plan.weight()), StrandId(at)))
            .collect();
        turns.sort_unstable();
        turns
    }

    /// Withdraws entries that are admitted and not yet requested: they were admitted to a larger target.
    fn recall(&mut self) {
        for (at, plan) in self.plans.iter_mut().enumerate() {
            for lane in self.lanes.values_mut() {
                for ordinal in lane.of(StrandId(at)).sweep.drain() {
                    if let Some(entry) = plan.queue.get(ordinal)
                        && entry.state == EntryState::Admitted
                    {
                        plan.release(ordinal, u64::from(entry.pages), &mut self.budget);
                        plan.queue.set_state(ordinal, EntryState::Waiting);
                        plan.cursor = plan.cursor.min(ordinal);
                    }
                }
            }
        }
    }

    /// Pages fetched by position for a larger target are read all over the list: until most of them are read there would be no room for the
    /// next reads. So the last-needed pages no longer count. They stay while memory lasts, and are fetched again in their turn. Entries of
    /// the least trusted strands go first.
    fn let_go(&mut self, devices: &mut impl Devices) {
        let mut strands: Vec<usize> = (0..self.plans.len()).collect();
        strands.sort_by_key(|&at| self.plans[at].weight());
        for at in strands {
            let queue = &self.plans[at].queue;
            for ordinal in (queue.floor()..queue.end()).rev() {
                if !self.budget.is_stuck() {
                    return;
                }
                if let Some(entry) = self.plans[at].queue.get(ordinal)
                    && entry.state == EntryState::Admitted
                    && let Some(device) = devices.device(entry.file)
                    && self.lane(device, devices).profile.order == Order::Position
                {
                    let plan = &mut self.plans[at];
                    plan.release(ordinal, entry.pages.into(), &mut self.budget);
                    plan.queue.set_state(ordinal, EntryState::Waiting);
                    plan.cursor = plan.cursor.min(ordinal);
                }
            }
        }
    }

    fn lane(&mut self, device: DeviceId, devices: &mut impl Devices) -> &mut Lane {
        lane(&mut self.lanes, device, devices)
    }
}

fn lane<'a>(
    lanes: &'a mut BTreeMap<DeviceId, Lane>,
    device: DeviceId,
    devices: &mut impl Devices,
) -> &'a mut Lane {
    lanes
        .entry(device)
        .or_insert_with(|| Lane::new(devices.profile(device)))
}

/// Append the pages of a range that no strand expects to be read.
fn unlisted(plans: &[StrandPlan], file: FileId, pages: Range<u64>, out: &mut Vec<u64>) {
    let Some((first, others)) = plans.split_first() else {
        return;
    };
    let before = out.len();
    first.queue.unlisted(file, pages, out);
    let mut found = Vec::new();
    for plan in others {
        let mut kept = before;
        for at in before..out.len() {
            found.clear();
            let page = out[at];
            plan.queue.unlisted(file, page..page + 1, &mut found);
            if !found.is_empty() {
                out[kept] = page;
                kept += 1;
            }
        }
        out.truncate(kept);
    }
}

mod admit;
mod anew;
mod issue;
mod placing;
mod plan;
#[cfg(test)]
mod tests;
