//! When the start-up of a service is over: then its record is written, and nobody observes the service any more.
//!
//! A service runs for months and reads for its clients. Those reads are useless for the next start, so the record ends with the start-up:
//! at the first pause, without reads and computing, that is longer than the service had run until then. The measure is relative because the
//! duration of a start depends on the disk. A service without such a pause is observed to its end.
//!
//! Data flow: each look of the supervisor → [`StartUp::looked`] → the end of the observation.

use std::time::Duration;

use foreread_sys::process::{self, IoCounts};
use foreread_sys::procfs::{self, Stat};

use super::helper::Finished;

/// The shortest pause that ends a start-up: servers wait for others while they start, such as a name server. Not tuned: a longer
/// pause costs observing an idle program, a shorter one may leave out the rest of a start.
const LEAST: Duration = Duration::from_secs(1);

/// The observed part of a service's start-up.
pub(super) struct StartUp {
    pid: u32,
    counts: Option<IoCounts>,
    /// When something was reported last, since the run began.
    last: Duration,
    /// Processor time used until then, once nothing more was reported.
    computed: Option<u64>,
    /// When it may be over at the earliest.
    due: Duration,
}

impl StartUp {
    /// The start-up of a program that was just started.
    pub(super) fn of(pid: u32) -> Self {
        Self {
            pid,
            counts: IoCounts::open(pid).ok(),
            last: Duration::ZERO,
            computed: None,
            due: LEAST,
        }
    }

    /// A poll at time `now` of the run has found this many reports. True if the start-up is over.
    pub(super) fn looked(&mut self, reports: usize, now: Duration) -> bool {
        let pid = self.pid;
        let is_over = self.judge(reports, now, || process::computed(pid));
        is_over && is_asleep(pid)
    }

    /// The same, with `computed` to measure the program's processor time, in ns.
    fn judge(
        &mut self,
        reports: usize,
        now: Duration,
        computed: impl FnOnce() -> Option<u64>,
    ) -> bool {
        if reports > 0 {
            self.last = now;
            self.computed = None;
            return false;
        }
        if self.computed.is_some() && now < self.due {
            return false;
        }
        let Some(computed) = computed() else {
            return false;
        };
        let before = *self.computed.get_or_insert(computed);
        let busy = Duration::from_nanos(computed.saturating_sub(before));
        self.due = self.last + self.last.max(LEAST) + busy;
        now >= self.due
    }

    /// Duration of the start-up, to the last report.
    pub(super) fn took(&self) -> Duration {
        self.last
    }

    /// The figures of the service, which is left to itself after this time. The kernel counts bytes from devices of the service and of
    /// those of its children that have ended, and processor time of the service alone.
    pub(super) fn finished(&self, wall: Duration) -> Finished {
        let io = self.counts.as_ref().and_then(|counts| counts.read().ok());
        let device_bytes = io.map(|io| io.read_bytes);
        Finished::not_yet(wall, device_bytes, process::computed(self.pid))
    }
}

/// True if a process waits for something other than a processor or a device.
fn is_asleep(pid: u32) -> bool {
    let stat = procfs::stat(pid).unwrap_or_default();
    let state = Stat::of(&stat).and_then(|stat| stat.field(Stat::STATE));
    state == Some(b"S")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls a program by (time in ms, reports, processor time in ms). Returns the time at which its start-up was over.
    fn over(looks: impl IntoIterator<Item = (u64, usize, u64)>) -> Option<u64> {
        let mut start_up = StartUp {
            pid: 0,
            counts: None,
            last: Duration::ZERO,
            computed: None,
            due: LEAST,
        };
        let mut looks = looks.into_iter();
        let found = looks.find(|&(now, reports, computed)| {
            let now = Duration::from_millis(now);
            start_up.judge(reports, now, || Some(computed * 1_000_000))
        });
        found.map(|(now, ..)| now)
    }

    #[test]
    fn a_start_up_is_over_once_a_pause_was_longer_than_it() {
        let reads_until = |end| (0..100_000).map(move |ms| (ms, usize::from(ms <= end), 0));
        assert_eq!(over(reads_until(200)), Some(1200));
        assert_eq!(over(reads_until(30_000)), Some(60_000));
        assert_eq!(over(reads_until(60_000)), None);
    }

    #[test]
    fn a_service_that_computes_is_still_starting() {
        // The program reads for 100 ms, computes until 5 s, and reads again 400 ms later.
        let looks = (0..20_000).map(|ms| {
            let reports = usize::from(ms <= 100 || ms == 5_400);
            (ms, reports, ms.min(5_000))
        });
        assert_eq!(over(looks), Some(10_800));
    }
}
