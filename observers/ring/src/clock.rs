//! Ticks to nanoseconds.
//!
//! Each poll measures one pair (ticks, ns); between two pairs time is interpolated, so
//! the result is exact at every poll, continuous and never decreasing, without any
//! calibration in advance.

use rustix::time::{ClockId, clock_gettime};

use crate::layout::Clock;

/// The kernel's own choice of clock says whether the counter can be trusted.
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

impl Clock {
    /// The cheapest clock that is right on this machine.
    pub fn detect() -> Self {
        let source = std::fs::read_to_string(CLOCKSOURCE).unwrap_or_default();
        if cfg!(target_arch = "x86_64") && source.trim() == "tsc" {
            Clock::Tsc
        } else {
            Clock::Monotonic
        }
    }

    /// Now, in ticks.
    pub fn now(self) -> u64 {
        match self {
            Clock::Monotonic => monotonic(),
            Clock::Tsc => tsc(),
        }
    }
}

/// Converts ticks to ns since its creation.
#[derive(Debug)]
pub(crate) struct Calibration {
    clock: Clock,
    origin: Pair,
    before: Pair,
    last: Pair,
    /// From `origin` to `before`, from there to `last`, and over all.
    earlier: Rate,
    lately: Rate,
    whole: Rate,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    ns: u64,
}

impl Calibration {
    pub(crate) fn new(clock: Clock) -> Self {
        let origin = Pair::measure(clock);
        Self {
            clock,
            origin,
            before: origin,
            last: origin,
            earlier: Rate(0),
            lately: Rate(0),
            whole: Rate(0),
        }
    }

    /// Measures the present, and returns it in ticks.
    pub(crate) fn tick(&mut self) -> u64 {
        let now = Pair::measure(self.clock);
        if now.ticks > self.last.ticks && now.ns > self.last.ns {
            self.before = self.last;
            self.last = now;
            self.earlier = Rate::of(self.origin, self.before);
            self.lately = Rate::of(self.before, self.last);
            self.whole = Rate::of(self.origin, self.last);
        }
        now.ticks
    }

    /// A stamp in ns since the creation.
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        // A stamp from before the last segment belongs to a call that was still going
        // on at the previous poll: the whole run's rate serves it.
        let (from, rate) = if ticks >= self.before.ticks {
            (self.before, self.lately)
        } else {
            (self.origin, self.earlier)
        };
        let past = rate.ns(ticks.saturating_sub(from.ticks));
        (from.ns - self.origin.ns).saturating_add(past)
    }

    /// A duration in ns.
    pub(crate) fn span(&self, ticks: u64) -> u64 {
        self.whole.ns(ticks)
    }
}

impl Pair {
    fn measure(clock: Clock) -> Self {
        match clock {
            Clock::Monotonic => {
                let ns = monotonic();
                Self { ticks: ns, ns }
            }
            Clock::Tsc => {
                let (a, ns, b) = (tsc(), monotonic(), tsc());
                Self {
                    ticks: a + b.saturating_sub(a) / 2,
                    ns,
                }
            }
        }
    }
}

/// Ns of 2^32 ticks. A division for all stamps of a poll, not one for each.
#[derive(Clone, Copy, Debug)]
struct Rate(u64);

impl Rate {
    fn of(from: Pair, to: Pair) -> Self {
        let (run, rise) = (to.ticks - from.ticks, to.ns - from.ns);
        // Rounded down: no stamp passes the end of its segment.
        let rate = (u128::from(rise) << 32).checked_div(run.into());
        Self(rate.map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX)))
    }

    fn ns(self, ticks: u64) -> u64 {
        let ns = (u128::from(ticks) * u128::from(self.0)) >> 32;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it has no preconditions.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> u64 {
    monotonic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_agree_with_the_monotonic_clock_and_never_go_back() {
        let mut calibration = Calibration::new(Clock::detect());
        let zero = monotonic();
        let mut last = 0;
        for _ in 0..50 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            // The thread may be interrupted between two clocks.
            let before = monotonic() - zero;
            let ticks = calibration.clock.now();
            let after = monotonic() - zero;
            calibration.tick();
            let got = calibration.ns(ticks);
            assert!(got >= last, "{got} ns after {last} ns");
            assert!(
                got + 1_000_000 > before && got < after + 1_000_000,
                "{got} ns, the clock says {before} to {after} ns"
            );
            last = got;
        }
    }

    #[test]
    fn absurd_stamps_convert_without_overflow() {
        let mut calibration = Calibration::new(Clock::Monotonic);
        calibration.tick();
        assert_eq!(calibration.ns(0), 0);
        calibration.ns(u64::MAX);
        calibration.span(u64::MAX);
    }
}
