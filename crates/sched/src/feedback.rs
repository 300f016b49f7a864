//! Measurements: C, the program's computing time between accesses, and T, a device's service time (AASFP §5.2). The scheduler counts K
//! itself.
//!
//! Both are exponentially weighted means. T is taken from the intervals between completions while the device is busy. At depth it is
//! therefore the time that a request *adds*, which `(K+1)·T` in the pacing rule requires.

use std::collections::VecDeque;

use foreread_plan::{Access, Kind, ThreadId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::gaps::worth;

/// Weight of a new sample, as a power of a half: 1/16. The mean follows a change within a few dozen accesses.
const WEIGHT: u32 = 4;
/// A sample counts as at most this many times the mean. A completion seen late because a processor was busy does not make a
/// device slow. Without this bound a first sample of milliseconds dropped the whole first window, and a sixth of the gain.
const OUTLIER: u64 = 8;
/// Threads whose last call is remembered, a bound on memory; beyond it the table is emptied.
const THREADS: usize = 4096;

/// An exponentially weighted mean of ns values.
#[derive(Clone, Copy, Debug, Default)]
struct Mean(Option<u64>);

impl Mean {
    fn add(&mut self, sample: u64) {
        self.0 = Some(match self.0 {
            None => sample,
            Some(mean) => mean - (mean >> WEIGHT) + (sample >> WEIGHT),
        });
    }
}

/// The last access of a thread. Touches that one sample has found share its time.
#[derive(Clone, Copy, Debug)]
struct Last {
    start: u64,
    end: u64,
    /// Touches of the sample, and the time since the access before it, in ns; 0 of anything else.
    touches: u64,
    gap: u64,
}

/// The program's side: C.
#[derive(Clone, Debug, Default)]
pub struct Feedback {
    compute: Mean,
    last: FxHashMap<ThreadId, Last>,
}

impl Feedback {
    /// The program made this access.
    pub fn observe(&mut self, access: &Access) {
        if self.last.len() >= THREADS {
            self.last.clear();
        }
        let &Access { start, took, .. } = access;
        let is_sampled = access.kind == Kind::Touch && took == 0;
        let mut now = Last {
            start,
            end: start + took,
            touches: u64::from(is_sampled),
            gap: 0,
        };
        let Some(last) = self.last.get_mut(&access.thread) else {
            self.last.insert(access.thread, now);
            return;
        };
        if is_sampled && last.touches > 0 && last.start == start {
            last.touches += 1;
            return;
        }
        // A sample's touches happened between it and the access before it: each took its part of that time.
        if last.gap > 0 {
            self.compute.add(last.gap / last.touches);
        }
        let gap = start.saturating_sub(last.end);
        if is_sampled {
            now.gap = gap;
        } else {
            self.compute.add(gap);
        }
        *last = now;
    }

    /// C: mean computing time between a thread's accesses, in ns, once it is measured.
    pub fn compute_ns(&self) -> Option<u64> {
        self.compute.0
    }
}

/// Reads over which the program's mean wait is computed. Few, because programs go from near reads to far ones; not fewer,
/// because the reads of one row differ.
const WAITS: usize = 16;

/// Waiting of the program's reads of one device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    latest: VecDeque<u64>,
    mean: Option<u64>,
}

impl Waits {
    /// Adds a read that waited this many ns.
    pub(crate) fn add(&mut self, ns: u64) {
        self.latest.truncate(WAITS - 1);
        self.latest.push_front(ns);
        let mut sorted: SmallVec<[u64; WAITS]> = self.latest.iter().copied().collect();
        sorted.sort_unstable();
        // The longest are the way to where the program reads, which guessing its next reads does not save.
        let longest = (sorted.len() / 4).max(1).min(sorted.len() - 1);
        sorted.truncate(sorted.len() - longest);
        self.mean = Some(sorted.iter().sum::<u64>() / sorted.len() as u64);
    }

    /// The mean of the latest but the longest quarter, in ns, once there are any.
    pub(crate) fn ns(&self) -> Option<u64> {
        self.mean
    }
}

/// Requests over which throughput is measured.
const WINDOW: u64 = 64;
/// A window counts only if completions were seen at least this many times. Requests that all completed while a busy
/// processor did not look say nothing about the device. With completions seen every 50 ms, 3,000 pages eleven apart fetched
/// 31,665 pages without the bounds from here to `SEVERAL`, and 15,256 with them.
const SIGHTS: u64 = 4;
/// Windows from which the cost of an operation is estimated.
const WINDOWS: usize = 4;
/// From this many windows on, the quickest one may be a measuring error.
const SEVERAL: usize = 3;
/// A request of at most this many pages, on average, is small: its operation costs more than its transfer. On a network
/// volume an operation costs as much as 8 pages.
const SMALL_PAGES: u64 = 4;
/// Measurements of one device: T, and the cost of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    mean: Mean,
    busy_since: u64,
    window: Window,
    /// Time of a small request at depth in the last few windows, in ns.
    small: VecDeque<u64>,
    /// True if gaps twice as large cost nothing either; `None` until enough was measured.
    wide: Option<bool>,
}

/// The last few requests made of a busy device.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    ns: u64,
    requests: u64,
    pages: u64,
    sights: u64,
}

impl Service {
    /// Until measured, T is `assumed` ns.
    pub(crate) fn new(assumed: u64) -> Self {
        Self {
            mean: Mean(Some(assumed)),
            busy_since: 0,
            window: Window::default(),
            small: VecDeque::with_capacity(WINDOWS),
            wide: None,
        }
    }

    /// The device went from idle to busy at `now`.
    pub(crate) fn started(&mut self, now: u64) {
        self.busy_since = now;
    }

    /// A request of `pages` completed at `now`, on a device that set the pace or did not.
    pub(crate) fn completed(&mut self, now: u64, pages: u64, is_busy: bool) {
        let sample = now.saturating_sub(self.busy_since);
        self.busy_since = self.busy_since.max(now);
        self.mean
            .add(sample.min(self.service_ns().saturating_mul(OUTLIER)));
        if !is_busy {
            self.window = Window::default();
            return;
        }
        self.window.ns += sample;
        self.window.requests += 1;
        self.window.pages += pages;
        self.window.sights += u64::from(sample > 0);
        if self.window.requests >= WINDOW && self.window.sights >= SIGHTS {
            let window = std::mem::take(&mut self.window);
            let each = window.ns / window.requests;
            self.weigh_gaps(each);
            let small = if window.pages <= SMALL_PAGES * window.requests {
                Some(each)
            } else {
                // Large ones take no less than a small one would.
                self.operation_ns().map(|ns| ns.min(each))
            };
            if let Some(ns) = small {
                self.small.truncate(WINDOWS - 1);
                self.small.push_front(ns);
            }
        }
    }

    /// Compares requests with gaps to small ones. If they do not take longer, only operations cost time, and gaps twice as large are tried;
    /// if they do, never again.
    fn weigh_gaps(&mut self, each_ns: u64) {
        let Some(small) = self.operation_ns().filter(|&ns| worth(Some(ns)) > 0) else {
            return;
        };
        let as_quick = each_ns <= small + small / 4;
        match self.wide {
            None if as_quick => self.wide = Some(true),
            Some(true) if !as_quick => self.wide = Some(false),
            _ => {}
        }
    }

    /// Cost of an operation in ns, once it is known: nearly the least value of the last windows. A busy machine adds time to some windows,
    /// which is no cost of an operation. A single window may be too short, because completions from before it were seen late.
    pub(crate) fn operation_ns(&self) -> Option<u64> {
        let mut sorted: SmallVec<[u64; WINDOWS]> = self.small.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(usize::from(sorted.len() >= SEVERAL)).copied()
    }

    /// True if gaps twice as large as an operation's worth were measured to cost nothing.
    pub(crate) fn is_wide(&self) -> bool {
        self.wide == Some(true)
    }

    /// T, in ns.
    pub(crate) fn service_ns(&self) -> u64 {
        self.mean.0.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Extent, FileId};

    /// The largest gap worth reading, by the measurements.
    fn gap_pages(service: &Service, plentiful: bool) -> u64 {
        let measured = worth(service.operation_ns());
        if plentiful && service.is_wide() {
            2 * measured
        } else {
            measured
        }
    }

    fn read(thread: u32, start: u64, took: u64) -> Access {
        Access {
            file: FileId(0),
            extent: Extent::new(0, 4096),
            thread: ThreadId(thread),
            kind: Kind::Pread,
            start,
            took,
        }
    }

    #[test]
    fn compute_time_is_the_gap_between_one_threads_calls() {
        let mut feedback = Feedback::default();
        for n in 0..200u64 {
            feedback.observe(&read(1, n * 1000, 400));
            feedback.observe(&read(2, n * 1000 + 500, 400));
        }
        let c = feedback.compute_ns().expect("reads");
        assert!((550..=600).contains(&c), "C = {c}, expected about 600 ns");
    }

    #[test]
    fn touches_that_one_sample_has_found_share_the_time_before_it() {
        let mut feedback = Feedback::default();
        let touch = |start| Access {
            kind: Kind::Touch,
            ..read(1, start, 0)
        };
        for sample in 1..200u64 {
            for _ in 0..10 {
                feedback.observe(&touch(sample * 5_000));
            }
        }
        let c = feedback.compute_ns().expect("touches");
        assert!((480..=500).contains(&c), "C = {c}, expected 500 ns");
    }

    #[test]
    fn what_a_read_waits_is_the_mean_without_the_way_to_where_the_program_reads() {
        let mut waits = Waits::default();
        assert_eq!(waits.ns(), None);
        waits.add(12_000_000);
        assert_eq!(waits.ns(), Some(12_000_000));
        for _ in 0..6 {
            waits.add(100_000);
            waits.add(300_000);
        }
        let mean = waits.ns().expect("reads");
        assert!((100_000..300_000).contains(&mean), "{mean}");
        for _ in 0..WAITS {
            waits.add(5_000_000);
        }
        assert_eq!(waits.ns(), Some(5_000_000), "the program goes further now");
    }

    #[test]
    fn one_completion_seen_late_does_not_make_a_slow_device() {
        let mut service = Service::new(80_000);
        service.started(0);
        service.completed(50_000_000, 1, false);
        let t = service.service_ns();
        assert!(
            t < 160_000,
            "T = {t}, 80 µs assumed and one sample of 50 ms"
        );
    }

    #[test]
    fn service_time_is_the_spacing_of_completions_while_busy() {
        let mut service = Service::new(80_000);
        assert_eq!(service.service_ns(), 80_000);
        service.started(1_000_000);
        for n in 1..=200u64 {
            service.completed(1_000_000 + n * 10_000, 1, true);
        }
        let t = service.service_ns();
        assert!(
            (9_000..=11_000).contains(&t),
            "T = {t}, expected about 10 µs"
        );
        assert_eq!(
            gap_pages(&service, true),
            0,
            "a page takes longer than 10 µs"
        );
    }

    #[test]
    fn a_gap_is_worth_what_an_operation_costs_where_the_device_is_what_is_waited_for() {
        let after = |requests: u64, each: u64, pages: u64, is_busy: bool| {
            let mut service = Service::new(80_000);
            service.started(0);
            for n in 1..=requests {
                // Seen eight at a time, as a look at the page cache sees them.
                service.completed(n.div_ceil(8) * 8 * each, pages, is_busy);
            }
            gap_pages(&service, true)
        };
        let network = 333_333;
        assert_eq!(
            after(WINDOW, network, 1, true),
            8,
            "3000 operations a second"
        );
        assert_eq!(after(WINDOW, 100_000, 1, true), 0, "10,000 of them");
        assert_eq!(after(WINDOW - 1, network, 1, true), 0, "not enough seen");
        assert_eq!(
            after(WINDOW, network, 256, true),
            0,
            "the transfer takes long"
        );
        assert_eq!(
            after(WINDOW, network, 1, false),
            0,
            "the program reads no faster"
        );
    }

    #[test]
    fn what_a_busy_machine_adds_is_no_cost_of_an_operation() {
        // A local disk whose completions are seen late: once when a whole window is complete, once in the middle of one.
        for late in [1, WINDOW / 2, WINDOW, WINDOW + 1, 3 * WINDOW] {
            let mut service = Service::new(80_000);
            service.started(0);
            let mut now = 0;
            for n in 1..=8 * WINDOW {
                now += if n == late { 300_000_000 } else { 80_000 };
                service.completed(now, 1, true);
                // A first window has nothing to be held against.
                if n >= 2 * WINDOW {
                    assert_eq!(gap_pages(&service, true), 0, "after {n}, late at {late}");
                }
            }
        }
    }

    #[test]
    fn requests_that_were_seen_complete_all_at_once_tell_nothing() {
        let mut service = Service::new(80_000);
        service.started(0);
        let mut now = 0;
        for n in 1..=8 * WINDOW {
            now += 333_333;
            // Four windows' worth completed before anybody looked.
            let seen = if n <= 4 * WINDOW {
                4 * WINDOW * 333_333
            } else {
                now
            };
            service.completed(seen, 1, true);
        }
        assert_eq!(gap_pages(&service, false), 8);
    }

    #[test]
    fn twice_the_gap_is_read_along_while_the_bandwidth_is_not_used_up() {
        let ends_at = |page_ns: u64| {
            let mut service = Service::new(80_000);
            service.started(0);
            let mut now = 0;
            for _ in 0..8 {
                let pages = 1 + gap_pages(&service, true) / 2;
                for _ in 0..WINDOW {
                    now += (pages * page_ns).max(333_333);
                    service.completed(now, pages, true);
                }
            }
            (gap_pages(&service, false), gap_pages(&service, true))
        };
        assert_eq!(ends_at(33_000), (8, 16), "125 MB/s");
        assert_eq!(ends_at(60_000), (8, 8), "70 MB/s");
    }
}
