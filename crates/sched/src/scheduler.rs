//! The scheduler: from the plan queue to requests.
//!
//! Two steps, each time the engine asks. *Admit*: walk the queue from where the last walk
//! stopped, as far as the pacing rule and the budget allow, and hand each entry to the sweep
//! of its device. *Issue*: while a device has fewer than its depth in flight, take the next
//! run from its sweep. Where the session evicts behind, a third: *give back* what the program is past.
//!
//! Invariants: an entry's pages are held in the budget exactly while it is `Admitted`, which ends when
//! it is read or passed over; its request's infill until the program is past the request's last entry, or,
//! where the session evicts behind, until it has arrived; a lane never has more than its profile's depth in
//! flight.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use foreread_plan::{Access, FileId, Request, RequestId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::behind::Behind;
use crate::feedback::Service;
use crate::{
    Budget, DeviceId, Feedback, Layout, Matched, Order, Place, Profile, Queue, State, Sweep,
    Verdict,
};

/// How far ahead of the program a stream is looked through for what comes after it, in entries: 64 MiB
/// in 4 KiB reads.
const STREAM_LEAD: u64 = 16_384;
/// A read of the program's own should wait no longer behind a queue of hints than this, in ns.
const DRAINED_NS: u64 = 4_000_000;

/// What the scheduler needs to know about files. The engine answers from what its backend told it.
pub trait Devices {
    /// The device a file is on; `None` if the file cannot be fetched at all.
    fn device(&mut self, file: FileId) -> Option<DeviceId>;
    /// A device's constants.
    fn profile(&mut self, device: DeviceId) -> Profile;
    /// Where a file lies; `None` while that is still being found out (asking starts it).
    fn layout(&mut self, file: FileId) -> Option<Arc<Layout>>;
    /// The file will soon be opened: have its metadata in memory.
    fn announce(&mut self, file: FileId);
}

/// Sizes of one session.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Entries the plan queue holds.
    pub queue_entries: usize,
    /// The budget to start from, in pages.
    pub budget_pages: u64,
    /// Give pages back that the session brought in and the program is past, once they and the unread
    /// ones exceed the budget: right where nobody else reads them.
    pub evict_behind: bool,
    /// Adapt the budget by AIMD; without, it stays where it starts.
    pub adapt: bool,
}

impl Default for Config {
    /// A queue of 256 Ki entries (under 6 MiB), a budget of 256 MiB, and nothing given back.
    fn default() -> Self {
        Self {
            queue_entries: 1 << 18,
            budget_pages: 1 << 16,
            evict_behind: false,
            adapt: true,
        }
    }
}

/// Pages in flight beyond which a device is asked for no more (4 MiB): by then its transfers take
/// longer than its seeks and operations.
const FULL_PAGES: u64 = 1024;

/// One device's pending entries and measurements.
#[derive(Debug)]
struct Lane {
    profile: Profile,
    sweep: Sweep,
    service: Service,
    in_flight: usize,
    /// Pages of the requests in flight.
    pages_in_flight: u64,
    /// Whether some file's layout has come, and with it what kind of device this is.
    settled: bool,
}

impl Lane {
    fn new(profile: Profile) -> Self {
        Self {
            service: Service::new(profile.service_ns),
            sweep: Sweep::default(),
            in_flight: 0,
            pages_in_flight: 0,
            settled: false,
            profile,
        }
    }

    /// Requests to keep in flight: the profile's depth, or half of it where that many keep a read of
    /// the program's own waiting for long.
    fn depth(&self) -> usize {
        let depth = self.profile.depth;
        let drained_in = self.service.service_ns().saturating_mul(depth as u64);
        if self.profile.order == Order::Program && drained_in > DRAINED_NS {
            depth.div_ceil(2)
        } else {
            depth
        }
    }

    /// Whether one more request may be made. A device that orders what it is asked does so by what is nearest,
    /// and leaves the far ones lying: large requests gain nothing by that and only come in another order
    /// than they are needed.
    fn has_room(&self) -> bool {
        self.in_flight < self.depth() && self.pages_in_flight < FULL_PAGES
    }

    /// The largest gap that is read along, in pages: the profile's, or what was measured meanwhile.
    fn infill_pages(&self) -> u64 {
        match self.profile.order {
            Order::Program => self.profile.infill_pages.max(self.service.gap_pages()),
            Order::Position => self.profile.infill_pages,
        }
    }
}

/// A request whose entries the program has not all passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The request.
    pub request: Request,
    /// Pages of it that no entry asked for.
    pub infill: SmallVec<[Range<u64>; 1]>,
    /// Whether the infill is held in the budget.
    held: bool,
}

impl Asked {
    /// The pages that some entry asked for.
    pub fn wanted(&self) -> impl Iterator<Item = Range<u64>> {
        let pages = &self.request.pages;
        let starts = std::iter::once(pages.start).chain(self.infill.iter().map(|gap| gap.end));
        let ends = self.infill.iter().map(|gap| gap.start);
        starts
            .zip(ends.chain(std::iter::once(pages.end)))
            .map(|(start, end)| start..end)
    }

    /// Pages to release from the budget, once.
    fn let_go(&mut self) -> u64 {
        if std::mem::take(&mut self.held) {
            self.infill.iter().map(|gap| gap.end - gap.start).sum()
        } else {
            0
        }
    }
}

/// Queue, pacing, order and budget of one session.
#[derive(Debug)]
pub struct Scheduler {
    queue: Queue,
    budget: Budget,
    feedback: Feedback,
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
    /// Keyed by (last ordinal served, request).
    asked: BTreeMap<(u64, RequestId), Asked>,
    /// Requests before this key hold no infill.
    infill_below: (u64, RequestId),
    /// With the last ordinal served and the pages.
    in_flight: FxHashMap<RequestId, (DeviceId, u64, u64)>,
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
            lanes: BTreeMap::new(),
            cursor: 0,
            target: 0,
            full: false,
            left_below: 0,
            unplaced: FxHashMap::default(),
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

    /// Entries left to the program because equation 1 said they would arrive too late.
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    /// Whether anything is admitted and not yet asked for, or waits for its file's layout.
    pub fn has_pending(&self) -> bool {
        !self.unplaced.is_empty() || self.lanes.values().any(|lane| !lane.sweep.is_empty())
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

    /// The next request whose every entry the program is past: what remains unread of it will not
    /// be read.
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

    /// The requests the program is not past yet, at the end of the session.
    pub fn rest(&mut self) -> impl Iterator<Item = Asked> + use<> {
        std::mem::take(&mut self.asked).into_values()
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
        let (Some(behind), Some(&(_, last, _))) = (&mut self.behind, self.in_flight.get(&id))
        else {
            return;
        };
        let Some(asked) = self.asked.get_mut(&(last, id)) else {
            return;
        };
        for gap in &asked.infill {
            let part = gap.start.max(pages.start)..gap.end.min(pages.end);
            if !part.is_empty() {
                behind.pass(file, part);
            }
        }
    }

    /// Whether pages the program is past are given back.
    pub fn gives_back(&self) -> bool {
        self.behind.is_some()
    }

    /// The pages that were not given back, at the end of the session.
    pub fn kept(&mut self) -> Vec<(FileId, Range<u64>)> {
        self.behind.as_mut().map_or_else(Vec::new, Behind::rest)
    }

    /// The pages to give back now.
    pub fn give_back(&mut self) -> Vec<(FileId, Range<u64>)> {
        self.behind.as_mut().map_or_else(Vec::new, |behind| {
            let (held, target) = (self.budget.held(), self.budget.target());
            behind.give_back(held, target, &self.queue)
        })
    }

    /// The layout of `file` has become known, and perhaps more about its device.
    pub fn placed(&mut self, file: FileId, devices: &mut impl Devices) {
        if let Some(device) = devices.device(file) {
            self.reconsider(device, devices);
        }
        for ordinal in self.unplaced.remove(&file).unwrap_or_default() {
            self.place(ordinal, devices);
        }
    }

    /// If a device has turned out to be of another kind, order its pending entries anew.
    fn reconsider(&mut self, device: DeviceId, devices: &mut impl Devices) {
        let profile = devices.profile(device);
        let lane = self.lane(device, devices);
        if lane.profile == profile && lane.settled {
            return;
        }
        let mut pending: Vec<u64> = lane.sweep.drain().collect();
        *lane = Lane {
            in_flight: lane.in_flight,
            pages_in_flight: lane.pages_in_flight,
            settled: true,
            ..Lane::new(profile)
        };
        pending.extend(std::mem::take(&mut self.unplaced).into_values().flatten());
        pending.sort_unstable();
        for ordinal in pending {
            self.place(ordinal, devices);
        }
    }

    /// The backend is done with a request, at `now`; `fetched` tells whether the device was used.
    pub fn completed(&mut self, id: RequestId, fetched: bool, now: u64) {
        let Some((device, last, pages)) = self.in_flight.remove(&id) else {
            return;
        };
        if self.behind.is_some()
            && let Some(asked) = self.asked.get_mut(&(last, id))
        {
            self.budget.release(asked.let_go());
        }
        if let Some(lane) = self.lanes.get_mut(&device) {
            let in_flight = lane.in_flight;
            lane.in_flight = in_flight.saturating_sub(1);
            lane.pages_in_flight = lane.pages_in_flight.saturating_sub(pages);
            if fetched {
                lane.service.completed(now, pages, in_flight);
            }
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
        }
        self.admit(devices);
        let mut requests = Vec::new();
        let mut lanes = std::mem::take(&mut self.lanes);
        for (&device, lane) in &mut lanes {
            while lane.has_room() {
                let Some((last, request)) = self.issue(lane) else {
                    break;
                };
                if lane.in_flight == 0 {
                    lane.service.started(now);
                }
                let pages = request.pages.end - request.pages.start;
                lane.in_flight += 1;
                lane.pages_in_flight += pages;
                self.in_flight.insert(request.id, (device, last, pages));
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

    fn admit(&mut self, devices: &mut impl Devices) {
        self.cursor = self.cursor.max(self.queue.floor());
        while let Some(entry) = self.queue.get(self.cursor) {
            let ordinal = self.cursor;
            let lead = ordinal.saturating_sub(self.queue.position());
            if entry.sequential && lead > STREAM_LEAD {
                return;
            }
            if entry.state != State::Waiting || entry.sequential {
                self.cursor += 1;
                continue;
            }
            let Some(device) = devices.device(entry.file) else {
                self.queue.set_state(ordinal, State::Left);
                self.cursor += 1;
                continue;
            };
            let lane = self.lane(device, devices);
            let infill_pages = lane.infill_pages();
            let by_position = lane.profile.order == Order::Position;
            if lead > lane.profile.horizon.queue_threshold {
                return;
            }
            if entry.pages == 0 {
                devices.announce(entry.file);
                self.queue.set_state(ordinal, State::Left);
            } else {
                // A device that is read with its gaps needs room for them too: less where they make room
                // for the rest once they are there.
                let spare = match (infill_pages, &self.behind) {
                    (0, _) => 0,
                    (_, None) => self.budget.target() / 2,
                    (_, Some(_)) => self.budget.target() / 4,
                };
                // By position, what is read makes room for a whole pass over the device, not for one page that
                // lies anywhere.
                let filled = (self.budget.target() - spare) / 2;
                if by_position && self.full && self.budget.held() > filled {
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

    /// Put an admitted entry into its device's sweep, or aside until its file's layout is known.
    fn place(&mut self, ordinal: u64, devices: &mut impl Devices) {
        let Some(entry) = self.queue.get(ordinal) else {
            return;
        };
        if entry.state != State::Admitted {
            return;
        }
        let Some(device) = devices.device(entry.file) else {
            self.leave(ordinal, entry.range());
            return;
        };
        let order = self.lane(device, devices).profile.order;
        let place = match order {
            Order::Program => Place::InTurn(entry.file, entry.first),
            Order::Position => match devices.layout(entry.file) {
                Some(layout) => Place::At(layout.position(entry.first)),
                None => {
                    self.unplaced.entry(entry.file).or_default().push(ordinal);
                    return;
                }
            },
        };
        self.lane(device, devices).sweep.push(place, ordinal);
    }

    fn leave(&mut self, ordinal: u64, pages: Range<u64>) {
        self.budget.release(pages.end - pages.start);
        self.queue.set_state(ordinal, State::Left);
    }

    /// The next request of one lane, by its order and the pacing rule, and the last ordinal it serves.
    fn issue(&mut self, lane: &mut Lane) -> Option<(u64, Request)> {
        let (position, floor) = (self.queue.position(), self.queue.floor());
        let (c, t) = (self.feedback.compute_ns(), lane.service.service_ns());
        let k = lane.in_flight;
        let horizon = lane.profile.horizon;
        let queue = &self.queue;
        let mut dropped = Vec::new();
        let mut late = 0;
        let profile = Profile {
            infill_pages: lane.infill_pages().min(self.budget.room()),
            ..lane.profile.clone()
        };
        let batch = lane.sweep.next(
            &profile,
            |ordinal| {
                let entry = queue.get(ordinal)?;
                if entry.state != State::Admitted || ordinal < floor {
                    return None;
                }
                let lead = ordinal.saturating_sub(position);
                // Behind the position (threads, samples) the rule has nothing to say.
                let in_time =
                    ordinal < position || horizon.judge(lead, c, t, k) != Verdict::TooLate;
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
            infill: batch.infill,
            held: true,
        };
        let infill = asked.infill.iter().map(|gap| gap.end - gap.start).sum();
        self.budget.hold(infill);
        self.asked.insert((last, id), asked);
        Some((last, request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Horizon;
    use foreread_plan::{Expected, Extent, Kind, PAGE, ThreadId};

    /// One file on one device.
    struct OneDisk(Profile);

    impl Devices for OneDisk {
        fn device(&mut self, _: FileId) -> Option<DeviceId> {
            Some(DeviceId(0))
        }
        fn profile(&mut self, _: DeviceId) -> Profile {
            self.0.clone()
        }
        fn layout(&mut self, _: FileId) -> Option<Arc<Layout>> {
            Some(Arc::default())
        }
        fn announce(&mut self, _: FileId) {}
    }

    fn ssd(queue_threshold: u64, depth: usize) -> OneDisk {
        OneDisk(Profile {
            depth,
            horizon: Horizon {
                time_threshold: i64::MIN,
                queue_threshold,
            },
            ..Profile::solid_state()
        })
    }

    fn expected(page: u64) -> Expected {
        Expected {
            file: FileId(0),
            pages: page..page + 1,
            thread: ThreadId(0),
            sequential: false,
            loose: false,
        }
    }

    fn scheduler(pages: &[u64], budget_pages: u64) -> Scheduler {
        let mut scheduler = Scheduler::new(Config {
            queue_entries: 1 << 16,
            budget_pages,
            ..Config::default()
        });
        for &page in pages {
            scheduler.queue().push(&expected(page));
        }
        scheduler
    }

    fn read(page: u64) -> Access {
        Access {
            file: FileId(0),
            extent: Extent::new(page * PAGE, PAGE),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: 0,
            took: 0,
        }
    }

    /// Pages two apart, so that nothing merges.
    fn scattered(count: u64) -> Vec<u64> {
        (0..count).map(|n| n * 2).collect()
    }

    #[test]
    fn no_more_than_the_depth_is_in_flight() {
        let mut disk = ssd(1000, 4);
        let mut scheduler = scheduler(&scattered(50), 1000);
        let first = scheduler.next(0, &mut disk);
        assert_eq!(first.len(), 4);
        assert!(scheduler.next(1, &mut disk).is_empty());
        scheduler.completed(first[0].id, true, 2);
        assert_eq!(scheduler.next(3, &mut disk).len(), 1);
    }

    #[test]
    fn nothing_beyond_the_queue_threshold_is_fetched() {
        let mut disk = ssd(10, 1000);
        let mut scheduler = scheduler(&scattered(50), 1000);
        assert_eq!(scheduler.next(0, &mut disk).len(), 11, "leads 0 to 10");
        for page in scattered(20) {
            scheduler.observe(&read(page));
        }
        let more: Vec<u64> = scheduler
            .next(1, &mut disk)
            .iter()
            .map(|r| r.pages.start)
            .collect();
        assert!(!more.is_empty() && more.iter().all(|&page| page >= 22));
    }

    #[test]
    fn the_budget_bounds_what_lies_unread_and_reading_frees_it() {
        let mut disk = ssd(100_000, 100_000);
        let mut scheduler = scheduler(&scattered(1000), 300);
        assert_eq!(scheduler.next(0, &mut disk).len(), 300);
        assert!(scheduler.next(0, &mut disk).is_empty());
        for page in scattered(100) {
            scheduler.observe(&read(page));
        }
        assert_eq!(scheduler.next(0, &mut disk).len(), 100);
    }

    #[test]
    fn a_smaller_target_takes_back_what_is_not_asked_for_yet() {
        let mut disk = ssd(100_000, 8);
        let mut scheduler = scheduler(&scattered(2000), 1024);
        assert_eq!(scheduler.next(0, &mut disk).len(), 8);
        assert_eq!(scheduler.budget().held(), 1024);
        scheduler.budget().lost(100);
        assert_eq!(scheduler.budget().target(), 512);
        scheduler.next(1, &mut disk);
        assert_eq!(scheduler.budget().held(), 512);
        // What was taken back is still fetched in its turn.
        for page in scattered(8) {
            scheduler.observe(&read(page));
        }
        scheduler.completed(RequestId(0), true, 2);
        assert_eq!(scheduler.next(3, &mut disk)[0].pages.start, 16);
    }

    #[test]
    fn entries_the_program_is_past_are_never_fetched() {
        let mut disk = ssd(1000, 8);
        let mut scheduler = scheduler(&scattered(200), 1000);
        for page in scattered(100) {
            scheduler.observe(&read(page));
        }
        let requests = scheduler.next(0, &mut disk);
        assert!(
            requests.iter().all(|request| request.pages.start >= 190),
            "{requests:?}"
        );
    }

    #[test]
    fn entries_passed_over_hold_no_room_in_a_small_budget() {
        let mut disk = ssd(100_000, 100_000);
        let mut scheduler = scheduler(&scattered(8000), 256);
        let mut issued = 0;
        for (at, page) in scattered(4000).into_iter().enumerate() {
            let requests = scheduler.next(0, &mut disk);
            for request in requests {
                issued += request.pages.end - request.pages.start;
                scheduler.completed(request.id, true, 0);
            }
            // One in eight is in the program's own cache, and read by nobody.
            if at % 8 != 0 {
                scheduler.observe(&read(page));
            }
        }
        assert!(issued > 4000, "{issued}");
        assert!(scheduler.budget().held() <= 256);
    }

    /// A disk that reads every second page with the one between.
    fn with_infill(evict_behind: bool) -> (OneDisk, Scheduler, Vec<Request>) {
        let mut disk = OneDisk(Profile {
            depth: 100,
            ..Profile::rotational()
        });
        let mut scheduler = Scheduler::new(Config {
            evict_behind,
            ..Config::default()
        });
        for page in scattered(8) {
            scheduler.queue().push(&expected(page));
        }
        let requests = scheduler.next(0, &mut disk);
        assert_eq!(requests.len(), 1);
        assert_eq!(scheduler.budget().held(), 8 + 7, "on its way");
        (disk, scheduler, requests)
    }

    #[test]
    fn infill_holds_room_until_the_program_is_past_its_request() {
        let (_, mut scheduler, requests) = with_infill(false);
        scheduler.completed(requests[0].id, true, 1);
        assert_eq!(scheduler.budget().held(), 8 + 7);
        // The position lags behind by some entries.
        for page in 100..108 {
            scheduler.queue().push(&expected(page));
        }
        for page in scattered(8).into_iter().chain(100..108) {
            scheduler.observe(&read(page));
        }
        assert_eq!(scheduler.budget().held(), 0);
    }

    #[test]
    fn infill_that_can_be_given_back_holds_room_until_it_arrives() {
        let (_, mut scheduler, requests) = with_infill(true);
        let pages = requests[0].pages.clone();
        scheduler.arrived(requests[0].id, FileId(0), &pages);
        scheduler.completed(requests[0].id, true, 1);
        assert_eq!(scheduler.budget().held(), 8);
        let kept: Vec<u64> = scheduler
            .kept()
            .into_iter()
            .flat_map(|(_, run)| run)
            .collect();
        assert_eq!(kept, [1, 3, 5, 7, 9, 11, 13]);
        let wanted: Vec<_> = scheduler
            .rest()
            .flat_map(|asked| asked.wanted().collect::<Vec<_>>())
            .collect();
        assert_eq!(wanted.len(), 8, "{wanted:?}");
    }

    #[test]
    fn what_cannot_arrive_in_time_is_left_to_the_program() {
        let mut disk = OneDisk(Profile {
            depth: 1000,
            service_ns: 100,
            horizon: Horizon {
                time_threshold: 0,
                queue_threshold: 1000,
            },
            ..Profile::solid_state()
        });
        let mut scheduler = scheduler(&scattered(100), 1000);
        // C = 0: by equation 1 nothing can ever be in time.
        assert!(scheduler.next(0, &mut disk).is_empty());
        assert_eq!(scheduler.too_late(), 100);
        assert_eq!(scheduler.budget().held(), 0);
    }

    #[test]
    fn a_rotational_device_is_swept_by_position() {
        let mut disk = OneDisk(Profile {
            depth: 100,
            infill_pages: 0,
            ..Profile::rotational()
        });
        let mut scheduler = scheduler(&[90, 10, 50, 30, 70], 1000);
        let order: Vec<u64> = scheduler
            .next(0, &mut disk)
            .iter()
            .map(|r| r.pages.start)
            .collect();
        assert_eq!(order, [10, 30, 50, 70, 90]);
    }

    #[test]
    fn a_device_that_turns_out_to_be_another_kind_is_asked_in_the_other_order() {
        let mut disk = OneDisk(Profile {
            depth: 1,
            infill_pages: 0,
            ..Profile::rotational()
        });
        let mut scheduler = scheduler(&[90, 10, 50], 1000);
        let first = scheduler.next(0, &mut disk);
        assert_eq!(first[0].pages, 10..11, "by position");
        disk.0 = ssd(1000, 4).0;
        scheduler.placed(FileId(0), &mut disk);
        let rest: Vec<u64> = scheduler
            .next(1, &mut disk)
            .iter()
            .map(|r| r.pages.start)
            .collect();
        assert_eq!(rest, [90, 50], "in program order");
    }

    #[test]
    fn all_held_pages_are_released_when_the_plan_is_given_up() {
        let mut disk = ssd(1000, 8);
        let mut scheduler = scheduler(&scattered(200), 1000);
        scheduler.next(0, &mut disk);
        scheduler.restart();
        assert_eq!(scheduler.budget().held(), 0);
        assert!(!scheduler.has_pending() && scheduler.waiting() == 0);
    }
}
