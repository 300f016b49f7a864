//! Whatever reports events, and how much of a caller's time it may take.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Event;

/// How much of what processes do is to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: programs are left to themselves, and pay next to nothing for being observed.
    Nothing,
    /// Where programs are, and the names that they waited for. What cannot be reported at once is dropped.
    Progress,
    /// Everything: a program is held up, within bounds, rather than an event dropped.
    Everything,
}

/// Reports what processes do: those of one program, or those of the machine. The observing process is not reported.
pub trait Observer {
    /// Its name: `ebpf`, `fanotify` or `preload`.
    fn name(&self) -> &'static str;

    /// Says how much is wanted from now on. An observer of the machine always reports all that it sees.
    fn want(&mut self, _wanted: Wanted) {}

    /// How much is wanted.
    fn wanted(&self) -> Wanted {
        Wanted::Everything
    }

    /// Becomes readable when there is something to take. `None`: [`Observer::poll`] has to be called now and then.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Becomes readable when a process is about to wait for a device. `None` where nobody tells.
    fn alarm_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Hands out what has been reported, in the order in which it began, until the budget is spent. Never waits.
    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress;

    /// How many events were lost so far, by what has lost them; empty where none was.
    fn lost(&self) -> Vec<(&'static str, u64)>;

    /// The variable, and its value, by which programs find this observer; `None` where they need none.
    fn environment(&self) -> Option<(&'static str, String)> {
        None
    }
}

/// ns of `CLOCK_MONOTONIC`, of which the times of the machine's observers are.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// What a poll has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Reports that were taken.
    pub events: usize,
    /// Whether something is left to take: the budget was spent, or something was reported during the poll.
    pub more: bool,
}

/// How much one poll may take, in reports and in time, so that no flood of reports keeps its taker from everything else.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    reports: usize,
    end: Instant,
}

impl Budget {
    /// Reports between two looks at the clock: 25 ns for 64 reports of 30 ns and more.
    const STEP: usize = 64;

    /// So many reports, and so much time from now on.
    pub fn new(reports: usize, time: Duration) -> Self {
        Self {
            reports,
            end: Instant::now() + time,
        }
    }

    /// Takes one report off. Whether there may be another.
    #[inline]
    pub fn spend(&mut self) -> bool {
        self.reports = self.reports.saturating_sub(1);
        if self.reports.is_multiple_of(Self::STEP) && Instant::now() >= self.end {
            self.reports = 0;
        }
        self.reports > 0
    }

    /// Whether nothing may be taken any more.
    pub fn is_spent(&self) -> bool {
        self.reports == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports taken until the budget is spent.
    fn taken(mut budget: Budget) -> usize {
        let mut taken = 1;
        while budget.spend() {
            taken += 1;
        }
        assert!(budget.is_spent() && !budget.spend());
        taken
    }

    #[test]
    fn a_budget_is_spent_by_reports_or_by_time() {
        let hour = Duration::from_secs(3600);
        assert_eq!(taken(Budget::new(1000, hour)), 1000);
        assert!(taken(Budget::new(usize::MAX, Duration::ZERO)) <= Budget::STEP);
    }
}
