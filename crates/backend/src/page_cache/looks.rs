//! Decides when a worker checks again for the arrival of pages.
//!
//! A check costs a call per request, and a late one leaves a place in the device's queue empty. So a worker checks a few times in the
//! interval in which its device completes a request, learnt from the results of its checks.

use std::time::{Duration, Instant};

/// Looks in the time from one arrival to the next. 1,500 random reads on hdd-7200 took 0.25 s of processor time in
/// place of 0.81 s with a look each 160 µs, and 1.42 s in all in place of 1.41 s. With 2 and 8, 400 reads took as
/// much (34 ms to 36 ms).
const LOOKS: u32 = 4;
/// Between looks at a device that is quicker than they are: the kernel wakes a sleeper up to 50 µs late. 3,000 hints
/// on a local SSD took as much of the processor with 50 µs and 200 µs.
const LEAST: Duration = Duration::from_micros(100);
/// Interval of checks on a slow device: half of the shortest answer of a moving head. 400 random reads on hdd-7200 took 34 ms of processor
/// time, 45 ms with 1 ms, 34 ms with 4 ms.
const MOST: Duration = Duration::from_millis(2);
/// Added for each request under way there, while those are few: the device has nothing to do while the last arrival of a
/// pass is awaited. 400 random reads on hdd-7200 took 34 ms of processor time.
const MOST_EACH: Duration = Duration::from_micros(400);

/// When looks are due.
#[derive(Debug)]
pub(super) struct Looks {
    /// The time from one arrival to the next.
    spacing: Duration,
    /// Time of the last arrival, or of the first request after all had arrived.
    since: Instant,
    looked: Instant,
}

impl Looks {
    /// The state before any arrival.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            spacing: Duration::ZERO,
            since: now,
            looked: now,
        }
    }

    /// A request is under way, where none was.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// Time of the next check, with this many requests in flight.
    pub(super) fn due(&self, under_way: usize) -> Instant {
        let waited = self.looked.saturating_duration_since(self.since);
        let most = MOST.min(MOST_EACH * u32::try_from(under_way.max(1)).unwrap_or(u32::MAX));
        self.looked + (self.spacing.max(waited) / LOOKS).clamp(LEAST, most)
    }

    /// When the last look was.
    pub(super) fn last(&self) -> Instant {
        self.looked
    }

    /// A check found this many requests complete.
    pub(super) fn looked(&mut self, arrived: u32, now: Instant) {
        self.looked = now;
        if arrived == 0 {
            return;
        }
        let each = now.saturating_duration_since(self.since) / arrived;
        // Shortened at once: checking too seldom costs the program time, checking too often only processor time.
        self.spacing = if each < self.spacing {
            (self.spacing + each) / 2
        } else {
            self.spacing + (each - self.spacing) / 8
        };
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a device that has something ready every `each`, 200 times, and how late the last 100 of those were
    /// found on average.
    fn watch(each: Duration) -> (u32, Duration) {
        let begun = Instant::now();
        let mut looks = Looks::new(begun);
        looks.begin(begun);
        let (mut count, mut found, mut late) = (0, 0, Duration::ZERO);
        while found < 200 {
            let now = looks.due(32);
            count += 1;
            let ready = (((now - begun).as_nanos() / each.as_nanos()) as u32).min(200);
            for n in (found + 1).max(101)..=ready {
                late += now - (begun + each * n);
            }
            looks.looked(ready - found, now);
            found = ready;
        }
        (count, late / 100)
    }

    #[test]
    fn a_slow_device_is_asked_a_few_times_for_each_arrival() {
        let (count, late) = watch(Duration::from_millis(12));
        assert!(count < 200 * 8, "{count} looks for 200 arrivals");
        assert!(late < MOST, "{late:?} late");
    }

    #[test]
    fn a_quick_device_is_not_kept_waiting() {
        let (_, late) = watch(Duration::from_micros(20));
        assert!(late < LEAST, "{late:?} late");
        let (_, late) = watch(Duration::from_micros(700));
        assert!(late < LEAST, "{late:?} late");
    }

    #[test]
    fn a_device_that_was_slow_may_be_quick_again() {
        let mut now = Instant::now();
        let mut looks = Looks::new(now);
        looks.begin(now);
        for _ in 0..100 {
            now += Duration::from_millis(20);
            looks.looked(1, now);
        }
        assert_eq!(looks.due(32) - now, MOST);
        assert_eq!(looks.due(2) - now, 2 * MOST_EACH);
        for _ in 0..8 {
            now = looks.due(32);
            looks.looked(20, now);
        }
        assert_eq!(looks.due(32) - now, LEAST);
    }
}
