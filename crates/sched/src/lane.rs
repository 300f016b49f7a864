//! A device of a session: its pending entries, its requests in flight, and its measurements.
//!
//! Invariant: no more requests than the profile's depth are in flight, those of small files that are kin counted as one.

use foreread_plan::Odds;

use crate::feedback::{Service, Waits};
use crate::gaps::{PAGE_NS, Terms};
use crate::stall::Moment;
use crate::{Budget, Order, Profile, StrandId, Sweep};

/// A read of the program should wait no longer than this behind a queue of hints, in ns.
const DRAINED_NS: u64 = 4_000_000;

/// A device with this many pages in flight (4 MiB) gets no more requests: by then its transfers take longer than its seeks
/// and operations.
const FULL_PAGES: u64 = 1024;

/// From this many requests in flight on, the device sets the pace and not the program.
const BUSY: usize = 16;

/// Pages of the first pass over a device that is read by position (2 MiB), while it is unknown whether the program is I/O-bound. The
/// program stands still until the last page of its first pass has arrived. Measured with the paper's ray caster: bench/figures/slice.md,
/// Vol Vis.
const FIRST_PASS: u64 = 512;

/// Entries ahead of the program among which neighbours are searched (9 MiB of them). If a whole file is read in random order, each request
/// then serves many entries: 7,500 to 10,000 requests in place of 92,500.
const NEIGHBOURHOOD: u64 = 1 << 17;

/// The search for neighbours grows by this many entries for each request that the device served. The search is work for
/// nothing where all is in memory.
const EARNED: u64 = 32;

/// The passes over a device that is asked in passes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passes {
    /// Number of passes begun.
    begun: u32,
    /// From when on the program is judged, where that can be.
    since: Option<Moment>,
    /// The program is I/O-bound: the pass has all entries.
    whole: bool,
}

/// Pending entries of one strand.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) sweep: Sweep,
    /// Pages of the next pass by position.
    pass_pages: u64,
    passes: Passes,
    /// Pages of its requests in flight.
    pub(crate) pages_in_flight: u64,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            sweep: Sweep::in_passes(),
            pass_pages: FIRST_PASS,
            passes: Passes::default(),
            pages_in_flight: 0,
        }
    }
}

/// The estimate of a guess.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    /// Probability that it is right.
    pub(crate) odds: Odds,
    /// Probability that it is the first of several wrong ones.
    pub(crate) breaks: Odds,
}

/// Pending entries and measurements of one device.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) profile: Profile,
    /// By strand.
    pending: Vec<Pending>,
    pub(crate) service: Service,
    waits: Waits,
    /// True if any request was made since the program last missed a read.
    is_disturbed: bool,
    pub(crate) in_flight: usize,
    /// Requests for which the device was used.
    pub(crate) fetched: u64,
    /// Pages of the requests in flight.
    pub(crate) pages_in_flight: u64,
    /// Pages of all requests: those some entry asked for, and those read along.
    pub(crate) asked: u64,
    pub(crate) along: u64,
    /// True if some file's layout has arrived, and with it the kind of the device.
    pub(crate) settled: bool,
}

impl Lane {
    pub(crate) fn new(profile: Profile) -> Self {
        Self {
            service: Service::new(profile.service_ns),
            waits: Waits::default(),
            is_disturbed: false,
            pending: Vec::new(),
            in_flight: 0,
            fetched: 0,
            pages_in_flight: 0,
            asked: 0,
            along: 0,
            settled: false,
            profile,
        }
    }

    /// Go by another profile from now on: nothing is pending.
    pub(crate) fn settle(&mut self, profile: Profile) {
        self.settled = true;
        self.service = Service::new(profile.service_ns);
        self.profile = profile;
        for pending in &mut self.pending {
            pending.sweep = Sweep::in_passes();
        }
    }

    /// A strand's pending entries.
    pub(crate) fn of(&mut self, strand: StrandId) -> &mut Pending {
        if self.pending.len() <= strand.0 {
            self.pending.resize_with(strand.0 + 1, Pending::default);
        }
        &mut self.pending[strand.0]
    }

    /// A strand's pending entries; `None` if it has never had any.
    pub(crate) fn pending(&self, strand: StrandId) -> Option<&Pending> {
        self.pending.get(strand.0)
    }

    /// True if no strand has pending entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.iter().all(|pending| pending.sweep.is_empty())
    }

    /// True if fetching this many pages for a guess gains more than it costs. If the pages are needed, the program is spared a wait: as
    /// long as its unfetched reads of this device waited, or before any such read, the time of an operation and the transfer. If not, the
    /// transfer and the memory are wasted; memory is dearer the less of it is left. If distance costs time, each wrong guess also costs the
    /// head's way back.
    pub(crate) fn pays(&self, chance: Chance, pages: u64, budget: &Budget) -> bool {
        let transfer = u128::from(pages) * u128::from(PAGE_NS);
        let operation = u128::from(self.profile.service_ns.max(self.service.service_ns()));
        let wait = self.waits.ns().map_or(operation + transfer, u128::from);
        let way = match self.profile.order {
            Order::Position => u128::from(self.profile.service_ns),
            Order::Program => 0,
        };
        let target = u128::from(budget.target().max(1));
        let memory = transfer * u128::from(budget.held()).min(target) / target;
        let all = u128::from(u8::MAX);
        let right = u128::from(chance.odds.0);
        let breaks = u128::from(chance.breaks.0);
        right * wait >= (all - right) * (transfer + memory) + breaks * way
    }

    /// Requests to keep in flight: the profile's depth, or half of it if that many delay the program's own reads much.
    fn depth(&self) -> usize {
        let depth = self.profile.depth;
        let drained_in = self.service.service_ns().saturating_mul(depth as u64);
        if self.profile.order == Order::Program && drained_in > DRAINED_NS {
            depth.div_ceil(2)
        } else {
            depth
        }
    }

    /// The last ordinal that may be asked for by itself when the program is at `position`: equation 2.
    pub(crate) fn reach(&self, position: u64) -> u64 {
        position.saturating_add(self.profile.horizon.queue_threshold)
    }

    /// Entries ahead of the program that are pending: in the program's order, those beyond the queue threshold are there to join earlier
    /// requests.
    pub(crate) fn neighbourhood(&self) -> u64 {
        let threshold = self.profile.horizon.queue_threshold;
        match self.profile.order {
            Order::Program => threshold.max(self.fetched.saturating_mul(EARNED).min(NEIGHBOURHOOD)),
            // Whatever is pending is asked for by position.
            Order::Position => threshold,
        }
    }

    /// True if one more request may be made. A device that orders its requests serves the nearest first and neglects the others. Large
    /// requests gain nothing by that, and only arrive in another order than they are needed.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight < self.depth() && self.pages_in_flight < FULL_PAGES
    }

    /// A request of a strand was made, with this many pages, `along` of them in gaps.
    pub(crate) fn started(&mut self, strand: StrandId, pages: u64, along: u64, now: u64) {
        self.of(strand).pages_in_flight += pages;
        self.is_disturbed = true;
        if self.in_flight == 0 {
            self.service.started(now);
        }
        self.in_flight += 1;
        self.pages_in_flight += pages;
        self.asked += pages - along;
        self.along += along;
    }

    /// The program waited this many ns for an unfetched read. The session's own requests lengthen such waits, and that part is no gain of
    /// fetching.
    pub(crate) fn missed(&mut self, ns: u64) {
        let was_alone = !self.is_disturbed && self.in_flight == 0;
        self.is_disturbed = self.in_flight > 0;
        if was_alone {
            self.waits.add(ns);
        }
    }

    /// A request of a strand's is complete, one way or the other.
    pub(crate) fn ended(&mut self, strand: StrandId, pages: u64) {
        let pending = self.of(strand);
        pending.pages_in_flight = pending.pages_in_flight.saturating_sub(pages);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.pages_in_flight = self.pages_in_flight.saturating_sub(pages);
    }

    /// A request of `pages` that used the device is complete. With many requests in flight, or many pages in fewer, the device sets the
    /// pace and not the program.
    pub(crate) fn completed(&mut self, pages: u64, now: u64) {
        self.fetched += 1;
        let is_busy = self.in_flight >= BUSY || self.pages_in_flight >= FULL_PAGES / 2;
        self.service.completed(now, pages, is_busy);
    }

    /// Starts the next pass when this one is over, including its last request: a disk serves nearer requests before an old one. The next
    /// pass is half as large again, because the program has more to compute on by then. An I/O-bound program gets everything in one pass,
    /// which takes the least time, until it computes again. `moment` is the present, if it is known.
    pub(crate) fn turn(&mut self, strand: StrandId, mut moment: impl FnMut() -> Option<Moment>) {
        let (in_flight, gap) = (self.in_flight, self.profile.infill_pages);
        let Pending {
            sweep,
            pass_pages,
            passes,
            ..
        } = self.of(strand);
        let is_over = sweep.pass_is_over() && in_flight == 0;
        let is_used = !(is_over && sweep.is_empty());
        if is_used
            && let Some(since) = passes.since
            && let Some(now) = moment()
            // Every run begins with waiting, which says little.
            && let Some(waits) = now.mostly_waited_since(since, is_over && passes.begun > 1)
        {
            if passes.whole && !waits {
                // Entries listed from now on wait for the next pass.
                sweep.begin_pass(0, 0);
            }
            passes.whole = waits;
            passes.since = Some(now);
        }
        if passes.whole {
            sweep.pass_over_all();
        } else if is_over {
            let pages = sweep.begin_pass(*pass_pages, gap);
            *pass_pages = (*pass_pages).max(pages + pages / 2);
            passes.begun = passes.begun.saturating_add(u32::from(pages > 0));
            if pages > 0 && passes.begun <= 2 {
                passes.since = moment();
            }
        }
    }

    /// The largest gap that is read along now, in pages.
    pub(crate) fn largest_gap(&self, budget: &Budget) -> u64 {
        self.terms(budget).largest()
    }

    /// Pages of the budget to be left free for gaps.
    pub(crate) fn spare_for_gaps(&self, budget: &Budget, are_given_back: bool) -> u64 {
        self.terms(budget).spare(budget.target(), are_given_back)
    }

    /// The facts that determine the price of a gap here.
    fn terms(&self, budget: &Budget) -> Terms {
        Terms {
            order: self.profile.order,
            known_pages: self.profile.infill_pages,
            operation_ns: self.service.operation_ns(),
            wide: self.service.is_wide(),
            asked: self.asked,
            along: self.along,
            plentiful: budget.holds_little(),
            room: budget.room(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if a page with these odds is requested when reads wait this long.
    fn pays(profile: Profile, wait: u64, odds: Odds, breaks: Odds) -> bool {
        let mut lane = Lane::new(profile);
        for _ in 0..10 {
            lane.missed(wait);
        }
        lane.pays(Chance { odds, breaks }, 1, &Budget::new(1 << 16))
    }

    #[test]
    fn a_guess_pays_by_what_the_program_waits_for_such_reads() {
        let (half, seldom, often) = (Odds::of(1, 2), Odds::of(1, 200), Odds::of(1, 7));
        let disk = Profile::rotational;
        assert!(pays(disk(), 8_000_000, half, often), "each read is a seek");
        assert!(!pays(disk(), 700_000, half, often), "the head comes by");
        assert!(pays(disk(), 700_000, Odds::of(9, 10), seldom));
        // If distance costs nothing, a wrong guess costs only its transfer.
        let volume = Profile::solid_state;
        assert!(pays(volume(), 700_000, half, often));
        assert!(!pays(volume(), 700_000, Odds::of(1, 40), often));
    }

    #[test]
    fn what_is_waited_for_behind_requests_of_the_session_is_not_gained_by_more_of_them() {
        let mut lane = Lane::new(Profile::rotational());
        lane.missed(500_000);
        lane.started(StrandId(0), 1, 0, 0);
        lane.missed(20_000_000);
        lane.ended(StrandId(0), 1);
        lane.missed(12_000_000);
        assert_eq!(lane.waits.ns(), Some(500_000));
        lane.missed(600_000);
        lane.missed(700_000);
        assert_eq!(lane.waits.ns(), Some(550_000), "alone again");
    }
}
