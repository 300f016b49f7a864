//! The scheduler: from the plan queue to requests.
//!
//! Two steps, each time the engine asks. *Admit*: walk the queue from where the last walk stopped, as far
//! as the budget allows, and hand each entry to the sweep of its device. *Issue*: while a device has fewer
//! than its depth in flight, take the next run from its sweep that the pacing rule allows: of the present
//! pass, where devices are asked in passes. Where the session evicts behind, a third: *give back* what the
//! program is past.
//!
//! Invariants: an entry's pages are held in the budget exactly while it is `Admitted`, which ends when
//! it is read or passed over; its request's infill until the program is past the request's last entry, or,
//! where the session evicts behind, until it has arrived; a lane never has more than its depth in flight.

use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{Access, FileId, Pattern, Request, RequestId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::asked::Asked;
use crate::behind::Behind;
use crate::lane::Lane;
use crate::stall::Moment;
use crate::{
    Budget, Config, DeviceId, Devices, Feedback, Matched, Order, Profile, Queue, State, Verdict,
};

/// How far ahead of the program a stream is looked through for what comes after it, in entries.
const STREAM_LEAD: u64 = 16_384;

/// Pages that no entry asked for.
type Gaps = SmallVec<[Range<u64>; 1]>;

/// A request under way.
#[derive(Debug)]
struct Flight {
    device: DeviceId,
    /// The last ordinal it serves.
    last: u64,
    pages: u64,
    infill: Gaps,
}

/// Queue, pacing, order and budget of one session.
#[derive(Debug)]
pub struct Scheduler {
    queue: Queue,
    budget: Budget,
    feedback: Feedback,
    /// Where devices are asked in passes.
    passes: bool,
    lanes: BTreeMap<DeviceId, Lane>,
    /// The next ordinal to admit, and the target the last ones were admitted under.
    cursor: u64,
    target: u64,
    /// Whether the budget had no room for the entry at the cursor.
    full: bool,
    /// No entry below this ordinal is `Admitted`.
    left_below: u64,
    /// Entries waiting for their file's layout.
    unplaced: FxHashMap<FileId, Vec<u64>>,
    /// Since when there have been any, in the clock of [`Scheduler::next`].
    unplaced_since: Option<u64>,
    /// Keyed by (last ordinal served, request).
    asked: BTreeMap<(u64, RequestId), Asked>,
    /// Requests before this key hold no infill.
    infill_below: (u64, RequestId),
    in_flight: FxHashMap<RequestId, Flight>,
    /// What the program is past, where that is given back.
    behind: Option<Behind>,
    next_request: u64,
    too_late: u64,
}

impl Scheduler {
    /// A scheduler with an empty queue.
    pub fn new(config: Config) -> Self {
        Self {
            queue: Queue::new(config.queue_entries),
            budget: if config.adapt {
                Budget::new(config.budget_pages)
            } else {
                Budget::fixed(config.budget_pages)
            },
            feedback: Feedback::default(),
            passes: config.passes,
            lanes: BTreeMap::new(),
            cursor: 0,
            target: 0,
            full: false,
            left_below: 0,
            unplaced: FxHashMap::default(),
            unplaced_since: None,
            asked: BTreeMap::new(),
            infill_below: (0, RequestId(0)),
            in_flight: FxHashMap::default(),
            behind: config.evict_behind.then(Behind::default),
            next_request: 0,
            too_late: 0,
        }
    }

    /// The plan queue, to disclose into.
    pub fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    /// The memory budget.
    pub fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Requests in flight on all devices (the paper's K).
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// What a request under way adds to what its device has to do, in ns; 0 for one that is not.
    pub fn service_ns(&self, id: RequestId) -> u64 {
        let flight = self.in_flight.get(&id);
        let lane = flight.and_then(|flight| self.lanes.get(&flight.device));
        lane.map_or(0, |lane| lane.service.service_ns())
    }

    /// Entries left to the program because equation 1 said they would arrive too late.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    /// Whether something may be asked for now, or waits for its file's layout.
    pub fn is_due(&self) -> bool {
        let position = self.queue.position();
        let due = |lane: &Lane| lane.sweep.is_due(lane.reach(position));
        !self.unplaced.is_empty() || self.lanes.values().any(due)
    }

    /// Whether nothing of what was disclosed is left to ask for, or under way.
    pub fn is_out(&self) -> bool {
        let asked = self.lanes.values().all(|lane| lane.sweep.is_empty());
        asked && self.unplaced.is_empty() && self.waiting() == 0 && self.in_flight.is_empty()
    }

    /// Whether there is nothing to do until more is disclosed or a long stream is read: what the program reads meanwhile
    /// decides nothing.
    pub fn rests(&self) -> bool {
        let asked = self.lanes.values().all(|lane| lane.sweep.is_empty());
        let next = self.queue.get(self.cursor);
        asked
            && self.unplaced.is_empty()
            && self.in_flight.is_empty()
            && next.is_none_or(|entry| entry.pattern == Pattern::Sequential)
    }

    /// Entries in the queue that were not looked at yet.
    pub fn waiting(&self) -> u64 {
        self.queue.end().saturating_sub(self.cursor)
    }

    /// The program made this access to pages of a planned file.
    pub fn observe(&mut self, access: &Access) -> Matched {
        self.feedback.observe(access);
        let pages = access.extent.pages();
        if let Some(behind) = &mut self.behind {
            behind.read(access.file, pages.clone());
        }
        // What was passed over drops out of the queue by the next match of the same page.
        self.leave_behind();
        let matched = self.queue.observe(access.file, pages);
        for (_, taken) in &matched.consumed {
            if taken.admitted {
                self.budget.release(taken.pages.end - taken.pages.start);
            }
        }
        while let Some((_, entry)) = self.queue.expire() {
            if entry.state == State::Admitted {
                self.budget.release(u64::from(entry.pages));
            }
        }
        self.leave_behind();
        matched
    }

    /// Hold nothing for entries the program has passed over: some thousands of them are kept to be
    /// matched, more than a small budget has room for.
    fn leave_behind(&mut self) {
        let floor = self.queue.floor();
        for ordinal in self.left_below..floor {
            if let Some(entry) = self.queue.get(ordinal)
                && entry.state == State::Admitted
            {
                self.leave(ordinal, entry.range());
            }
        }
        // Back with the floor, which falls when the plan turns out to be of several threads.
        self.left_below = floor;
        let past = (floor, RequestId(0));
        if self.infill_below < past {
            for asked in self.asked.range_mut(self.infill_below..past) {
                self.budget.release(asked.1.let_go());
            }
        }
        self.infill_below = past;
    }

    /// The next request whose every entry the program is past: nobody waits for what remains unread of it.
    pub fn passed(&mut self) -> Option<Asked> {
        let horizon = self.queue.floor().saturating_sub(crate::queue::REORDER);
        let first = self.asked.first_entry()?;
        if first.key().0 >= horizon {
            return None;
        }
        let mut asked = first.remove();
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
        let Some(asked) = self.asked.get_mut(&(flight.last, id)) else {
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

    /// Whether pages the program is past are given back.
    pub fn gives_back(&self) -> bool {
        self.behind.is_some()
    }

    /// The pages to give back now.
    pub fn give_back(&mut self) -> Vec<(FileId, Range<u64>)> {
        self.behind.as_mut().map_or_else(Vec::new, |behind| {
            let (held, target) = (self.budget.held(), self.budget.target());
            behind.give_back(held, target, &self.queue)
        })
    }

    /// The backend is done with a request, at `now`; `fetched` tells whether the device was used.
    pub fn completed(&mut self, id: RequestId, fetched: bool, now: u64) {
        let Some(flight) = self.in_flight.remove(&id) else {
            return;
        };
        if self.behind.is_some()
            && let Some(asked) = self.asked.get_mut(&(flight.last, id))
        {
            self.budget.release(asked.let_go());
        }
        if let Some(lane) = self.lanes.get_mut(&flight.device) {
            if fetched {
                lane.completed(flight.pages, now);
            }
            lane.in_flight = lane.in_flight.saturating_sub(1);
            lane.pages_in_flight = lane.pages_in_flight.saturating_sub(flight.pages);
        }
    }

    /// Give up everything pending and start over with an empty queue: the plan and the program
    /// have parted. What is in flight completes.
    pub fn restart(&mut self) {
        self.queue.restart();
        while let Some((_, entry)) = self.queue.pop() {
            if entry.state == State::Admitted {
                self.budget.release(u64::from(entry.pages));
            }
        }
        self.cursor = self.queue.end();
        self.unplaced.clear();
        for lane in self.lanes.values_mut() {
            lane.sweep.drain().for_each(drop);
        }
    }

    /// Admit what may be admitted, and return the requests to make at `now`.
    pub fn next(&mut self, now: u64, devices: &mut impl Devices) -> Vec<Request> {
        let target = self.budget.target();
        if target < std::mem::replace(&mut self.target, target) {
            self.recall();
            let fetched = self.budget.held();
            self.let_go(devices);
            self.budget.fell(fetched);
        }
        self.admit(devices);
        self.place_unproved(now, devices);
        let mut requests = Vec::new();
        let mut lanes = std::mem::take(&mut self.lanes);
        for (&device, lane) in &mut lanes {
            if self.passes {
                lane.turn(|| {
                    let computed = devices.computed()?;
                    Some(Moment { now, computed })
                });
            } else {
                lane.sweep.pass_over_all();
            }
            while lane.has_room() {
                let Some((last, request, infill)) = self.issue(lane, now) else {
                    break;
                };
                let pages = request.pages.end - request.pages.start;
                let flight = Flight {
                    device,
                    last,
                    pages,
                    infill,
                };
                self.in_flight.insert(request.id, flight);
                requests.push(request);
            }
        }
        self.lanes = lanes;
        requests
    }

    /// Take back what is admitted and not yet asked for: it was admitted to a larger target.
    fn recall(&mut self) {
        for lane in self.lanes.values_mut() {
            for ordinal in lane.sweep.drain() {
                if let Some(entry) = self.queue.get(ordinal)
                    && entry.state == State::Admitted
                {
                    self.budget.release(u64::from(entry.pages));
                    self.queue.set_state(ordinal, State::Waiting);
                    self.cursor = self.cursor.min(ordinal);
                }
            }
        }
    }

    /// Pages fetched by position for a larger target are read all through what is listed: until most of those are read
    /// there would be no room for what is read next. So what is read last is not counted on any more: the pages stay
    /// while the memory lasts, and its turn comes again.
    fn let_go(&mut self, devices: &mut impl Devices) {
        for ordinal in (self.queue.floor()..self.queue.end()).rev() {
            if !self.budget.is_stuck() {
                return;
            }
            if let Some(entry) = self.queue.get(ordinal)
                && entry.state == State::Admitted
                && let Some(device) = devices.device(entry.file)
                && self.lane(device, devices).profile.order == Order::Position
            {
                self.budget.release(entry.pages.into());
                self.queue.set_state(ordinal, State::Waiting);
                self.cursor = self.cursor.min(ordinal);
            }
        }
    }

    fn admit(&mut self, devices: &mut impl Devices) {
        self.cursor = self.cursor.max(self.queue.floor());
        while let Some(entry) = self.queue.get(self.cursor) {
            let ordinal = self.cursor;
            let lead = ordinal.saturating_sub(self.queue.position());
            let streams = matches!(entry.pattern, Pattern::Sequential | Pattern::Gapped);
            if streams && lead > STREAM_LEAD {
                return;
            }
            if entry.state != State::Waiting || entry.pattern == Pattern::Sequential {
                self.cursor += 1;
                continue;
            }
            let Some(device) = devices.device(entry.file) else {
                self.queue.set_state(ordinal, State::Left);
                self.cursor += 1;
                continue;
            };
            let lane = self.lane(device, devices);
            let infill_pages = lane.infill_pages(false);
            let by_position = lane.profile.order == Order::Position;
            if by_position && entry.pattern == Pattern::Gapped {
                self.cursor += 1;
                continue;
            }
            if lead > lane.neighbourhood() {
                return;
            }
            if entry.pages == 0 {
                devices.announce(entry.file);
                self.queue.set_state(ordinal, State::Left);
            } else {
                let spare = if infill_pages > 0 {
                    self.budget.for_gaps(self.behind.is_some())
                } else {
                    0
                };
                // By position, what is read has to make room for a pass over the device: for each page by
                // itself it would be a seek.
                let half = (self.budget.target() - spare) / 2;
                if by_position && self.full && self.budget.held() > half {
                    return;
                }
                self.full = !self.budget.admits(u64::from(entry.pages), spare);
                if self.full {
                    return;
                }
                self.budget.hold(u64::from(entry.pages));
                self.queue.set_state(ordinal, State::Admitted);
                self.place(ordinal, devices);
            }
            self.cursor += 1;
        }
    }

    fn lane(&mut self, device: DeviceId, devices: &mut impl Devices) -> &mut Lane {
        self.lanes
            .entry(device)
            .or_insert_with(|| Lane::new(devices.profile(device)))
    }

    fn leave(&mut self, ordinal: u64, pages: Range<u64>) {
        self.budget.release(pages.end - pages.start);
        self.queue.set_state(ordinal, State::Left);
    }

    /// The next request of one lane, by its order and the pacing rule, the last ordinal it serves, and its infill.
    fn issue(&mut self, lane: &mut Lane, now: u64) -> Option<(u64, Request, Gaps)> {
        let (position, floor) = (self.queue.position(), self.queue.floor());
        let (c, t) = (self.feedback.compute_ns(), lane.service.service_ns());
        let k = lane.in_flight;
        let horizon = lane.profile.horizon;
        let queue = &self.queue;
        let mut dropped = Vec::new();
        let mut late = 0;
        let infill_pages = lane.infill_pages(self.budget.holds_little());
        let profile = Profile {
            infill_pages: infill_pages.min(self.budget.room()),
            ..lane.profile.clone()
        };
        let batch = lane.sweep.next(
            &profile,
            lane.reach(position),
            |ordinal| {
                let entry = queue.get(ordinal)?;
                if entry.state != State::Admitted || ordinal < floor {
                    return None;
                }
                let lead = ordinal.saturating_sub(position);
                // Behind the position (threads, samples), and before C is measured, the rule has nothing to say.
                let c = c.filter(|_| ordinal >= position);
                let in_time = c.is_none_or(|c| horizon.judge(lead, c, t, k) != Verdict::TooLate);
                late += u64::from(!in_time);
                in_time.then(|| (entry.file, entry.range()))
            },
            &mut dropped,
        );
        self.too_late += late;
        for ordinal in dropped {
            if let Some(entry) = self.queue.get(ordinal)
                && entry.state == State::Admitted
            {
                self.leave(ordinal, entry.range());
            }
        }
        let batch = batch?;
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let request = Request {
            id,
            file: batch.file,
            pages: batch.pages,
        };
        let last = batch.ordinals.iter().copied().max().unwrap_or(0);
        let asked = Asked {
            request: request.clone(),
            infill: batch.infill.clone(),
            held: true,
        };
        let infill = asked.infill.iter().map(|gap| gap.end - gap.start).sum();
        self.budget.hold(infill);
        lane.started(request.pages.end - request.pages.start, infill, now);
        self.asked.insert((last, id), asked);
        Some((last, request, batch.infill))
    }
}

mod anew;
mod placing;
#[cfg(test)]
mod tests;
