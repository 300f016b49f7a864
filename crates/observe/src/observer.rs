//! Sources of events, and their share of a caller's time.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::Event;

/// The extent of reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: programs are left alone, and observation costs them next to nothing.
    Nothing,
    /// The positions of programs, and the names that they waited for. A report that would have to wait is dropped.
    Progress,
    /// Everything: a program is held up, within bounds, rather than an event dropped.
    Everything,
}

/// Reports the activities of processes: those of one program, or of the whole machine. The observing process is excluded.
pub trait Observer {
    /// Its name: `ebpf`, `fanotify` or `preload`.
    fn name(&self) -> &'static str;

    /// Sets the extent of reporting from now on. An observer of the machine always reports everything that it sees.
    fn want(&mut self, _wanted: Wanted) {}

    /// The extent of reporting.
    fn wanted(&self) -> Wanted {
        Wanted::Everything
    }

    /// Becomes readable when there are reports. `None`: call [`Observer::poll`] from time to time.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Becomes readable when a process is about to wait for a device. `None` if this is not reported.
    fn alarm_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Passes on reports in the order of their starts, within the budget. Never waits.
    fn poll(&mut self, budget: &mut Budget, out: &mut dyn FnMut(Event)) -> Progress;

    /// Number of lost events by cause; empty if none were lost.
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

/// Result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of reports taken.
    pub events: usize,
    /// True if reports are left: the budget was spent, or new reports came during the poll.
    pub more: bool,
}

/// Limit of one poll, in reports and in time, so that a flood of reports does not keep its receiver from other work.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    reports: usize,
    end: Instant,
}

impl Budget {
    /// Reports between two looks at the clock: 25 ns for 64 reports of 30 ns and more.
    const STEP: usize = 64;

    /// A budget of this many reports, and this much time from now on.
    pub fn new(reports: usize, time: Duration) -> Self {
        Self {
            reports,
            end: Instant::now() + time,
        }
    }

    /// Counts one report. True if another may follow.
    #[inline]
    pub fn spend(&mut self) -> bool {
        self.reports = self.reports.saturating_sub(1);
        if self.reports.is_multiple_of(Self::STEP) && Instant::now() >= self.end {
            self.reports = 0;
        }
        self.reports > 0
    }

    /// True if the budget is spent.
    pub fn is_spent(&self) -> bool {
        self.reports == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of reports taken until the budget is spent.
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
