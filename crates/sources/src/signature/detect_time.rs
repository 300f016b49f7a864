//! Detects whether accesses come at regular times (the paper's temporal dimension).
//!
//! Intervals between the starts of accesses are compared with their mean: all of them, and those between bursts,
//! where an interval many times the mean begins a new burst. Memory is fixed, and each access costs a few additions
//! (Welford's algorithm).

use super::classify::Temporal;

/// Intervals seen before they are called regular: fewer agree by chance.
const SEEN: u64 = 8;
/// Standard deviation, as a share of the mean, up to which intervals are regular: timers of a busy system are late
/// by a few percent, and exponential intervals, which are random, have 1.
const SPREAD: f64 = 0.1;
/// A new burst begins after this many mean intervals.
const BURST: f64 = 8.0;

/// Intervals of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Intervals {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Intervals {
    fn add(&mut self, interval: f64) {
        self.count += 1;
        let off = interval - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (interval - self.mean);
    }

    fn regular(&self) -> bool {
        let variance = self.squares / self.count.max(1) as f64;
        self.count >= SEEN && variance.sqrt() <= SPREAD * self.mean
    }
}

/// The detector of the temporal pattern.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    last: Option<u64>,
    burst: Option<u64>,
    all: Intervals,
    bursts: Intervals,
    backward: bool,
}

impl Times {
    /// An access began at this time, in ns.
    pub fn push(&mut self, start: u64) {
        let Some(last) = self.last.replace(start) else {
            self.burst = Some(start);
            return;
        };
        let Some(interval) = start.checked_sub(last) else {
            self.backward = true;
            return;
        };
        let interval = interval as f64;
        let begins = self.all.count > 0 && interval > BURST * self.all.mean;
        if begins
            && let Some(burst) = self.burst.replace(start)
            && let Some(since) = start.checked_sub(burst)
        {
            self.bursts.add(since as f64);
        }
        self.all.add(interval);
    }

    /// The temporal pattern; irregular if times run backward.
    pub fn temporal(&self) -> Temporal {
        match self.last {
            Some(_) if self.all.count == 0 && !self.backward => Temporal::None,
            None => Temporal::None,
            Some(_) if !self.backward && (self.all.regular() || self.bursts.regular()) => {
                Temporal::Periodic
            }
            Some(_) => Temporal::Random,
        }
    }

    /// The interval from access to access, in microseconds, where each comes at a regular time.
    pub fn period(&self) -> Option<u64> {
        let regular = !self.backward && self.all.regular();
        regular.then_some((self.all.mean / 1000.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporal(starts: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        starts.into_iter().for_each(|start| times.push(start));
        times
    }

    #[test]
    fn regular_times_are_periodic_and_others_are_not() {
        let steady = temporal((0..50).map(|n| n * 5_000_000 + n % 3 * 20_000));
        assert_eq!(
            (steady.temporal(), steady.period()),
            (Temporal::Periodic, Some(5000))
        );
        let bursts = temporal(
            (0..20).flat_map(|burst| (0..25).map(move |n| burst * 1_000_000_000 + n * 40_000)),
        );
        assert_eq!(
            (bursts.temporal(), bursts.period()),
            (Temporal::Periodic, None)
        );
        let mut now = 0;
        let anyhow = temporal(super::super::tests::scattered(3).take(500).map(|n| {
            now += n % 1_000_000;
            now
        }));
        assert_eq!(anyhow.temporal(), Temporal::Random);
        assert_eq!(temporal([7]).temporal(), Temporal::None);
        assert_eq!(temporal([]).temporal(), Temporal::None);
    }

    #[test]
    fn times_that_run_backward_are_irregular() {
        let starts = (0..50).map(|n| if n == 30 { 5 } else { n * 1_000_000 });
        assert_eq!(temporal(starts).temporal(), Temporal::Random);
    }
}
