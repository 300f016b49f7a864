//! Decides whether the program waits for its reads or computes, and when to poll it again.
//!
//! One rule for each. A read has waited if it took longer than a copy from memory ([`waited`]). The program is waiting if such reads took
//! at least half of the time since the last poll; otherwise it computes. The interval of polls depends on their use: for a program that
//! waits, a late poll requests its next reads too late.
//!
//! Data flow: events → [`Pace::saw`]; after each look [`Pace::looked`] → the pause until the next one, and, now and
//! then, the processor that foreread's own threads stay off.

use std::time::{Duration, Instant};

use foreread_observe::{Event, What};
use foreread_plan::waited;
use foreread_sys::processor;

/// The pause between two looks while reads wait and something is fetched for them: three reads of a cloud disk, which
/// take 80 µs each.
const WAITING: Duration = Duration::from_micros(250);
/// While reads are kept ahead of and do not wait: the lead, of tens of reads and more, outlasts the pause. And while a session that
/// has nothing to do yet follows a program that waits.
const AHEAD: Duration = Duration::from_millis(1);
/// While nothing is fetched, and events come in numbers: the ring holds 16,384 events a thread, and at a million reads a
/// second it fills in 16 ms.
const LOOKING_ON: Duration = Duration::from_millis(2);
/// The longest pause, and the only one while few reads are only written down: a quarter of the 16 ms above.
const LONGEST: Duration = Duration::from_millis(4);
/// Events of one look that are many: of a thread that had a slot for each, the ring would be an eighth full.
const MANY: usize = 2048;
/// The part of its time that a program that waits spends in reads that wait, at least, as `1 / WAITS`. Not tuned: the greater part
/// names the whole.
const WAITS: u128 = 2;

/// foreread's present work for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// Fetching: pages that it needs next may be on their way.
    Fetching,
    /// A session follows it, and has nothing to do.
    LookingOn,
    /// Only recording; `touching` if touched pages of mappings are being found.
    Recording { touching: bool },
}

/// The program's activity since the last poll, and since the last check of its processors.
pub(super) struct Pace {
    /// True if a read has waited since the last poll.
    has_waited: bool,
    /// True if one of the latest reads has waited: then the next one is probably in progress.
    waits: bool,
    pause: Duration,
    since: Instant,
    readers: Readers,
    /// In reads that waited for a device, ns; one from memory is computing too.
    waited: u64,
}

/// The threads that read since the last check of processors.
#[derive(Clone, Copy)]
enum Readers {
    Nobody,
    /// Process and thread.
    One(u32, u32),
    Several,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            has_waited: false,
            waits: false,
            pause: WAITING,
            since: Instant::now(),
            readers: Readers::Nobody,
            waited: 0,
        }
    }

    /// A thread reported something.
    pub(super) fn saw(&mut self, event: &Event) {
        let thread = (event.who.pid, event.who.tid);
        self.readers = match self.readers {
            Readers::Nobody => Readers::One(thread.0, thread.1),
            Readers::One(pid, tid) if (pid, tid) == thread => self.readers,
            Readers::One(..) | Readers::Several => Readers::Several,
        };
        match event.what {
            What::Read { took, extent, .. } | What::Touched { took, extent, .. }
                if waited(took, extent.len) =>
            {
                self.has_waited = true;
                self.waited += took;
            }
            What::Named { took, .. } | What::Open { took, .. } if waited(took, 0) => {
                self.waited += took;
            }
            _ => {}
        }
    }

    /// Time until the next poll.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// True if a read has waited since the last poll.
    pub(super) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// A poll has found this many events.
    pub(super) fn looked(&mut self, seen: usize, care: Care) {
        if seen > 0 {
            self.waits = self.has_waited;
        }
        let shortest = match care {
            Care::Fetching if self.waits => WAITING,
            Care::Fetching => AHEAD,
            Care::LookingOn if self.waits => AHEAD,
            Care::LookingOn => LOOKING_ON,
            Care::Recording { touching } if touching || seen > MANY => LOOKING_ON,
            Care::Recording { .. } => LONGEST,
        };
        self.pause = if seen > 0 {
            shortest
        } else {
            (self.pause * 2).clamp(shortest, LONGEST)
        };
        self.has_waited = false;
        self.keep_off();
    }

    /// From time to time, finds the processors on which the program computes: foreread's own threads avoid them.
    fn keep_off(&mut self) {
        let elapsed = self.since.elapsed();
        if elapsed < processor::LOOK || matches!(self.readers, Readers::Nobody) {
            return;
        }
        processor::reader_is_on(match self.readers {
            Readers::One(pid, tid) if !waits(self.waited, elapsed) => processor::of(pid, tid),
            _ => None,
        });
        self.since = Instant::now();
        self.readers = Readers::Nobody;
        self.waited = 0;
    }
}

/// True if the program is waiting, with `waited` ns of this time in reads that waited.
fn waits(waited: u64, elapsed: Duration) -> bool {
    u128::from(waited) * WAITS >= elapsed.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_observe::Who;
    use foreread_plan::{Extent, Kind};

    fn read(took: u64) -> Event {
        Event {
            who: Who::default(),
            at: 0,
            what: What::Read {
                handle: 1,
                kind: Kind::Pread,
                extent: Extent::new(0, 4096),
                took,
                more: 0,
            },
        }
    }

    #[test]
    fn a_program_that_waits_is_looked_at_sooner_than_one_that_is_kept_ahead_of() {
        let mut pace = Pace::new();
        pace.saw(&read(1_000));
        pace.looked(1, Care::Fetching);
        assert_eq!(pace.pause(), AHEAD);
        pace.saw(&read(100_000));
        pace.looked(1, Care::Fetching);
        assert_eq!(pace.pause(), WAITING);
        pace.looked(1, Care::Fetching);
        assert_eq!(pace.pause(), AHEAD, "it waited before the last look");
    }

    #[test]
    fn the_end_of_a_read_that_waits_is_seen_soon_though_looks_find_nothing_meanwhile() {
        let mut pace = Pace::new();
        pace.saw(&read(1_000_000));
        pace.looked(1, Care::Fetching);
        let pauses: Vec<_> = (0..3)
            .map(|_| {
                pace.looked(0, Care::Fetching);
                pace.pause()
            })
            .collect();
        assert_eq!(pauses, [2 * WAITING, 4 * WAITING, 8 * WAITING]);
        pace.saw(&read(1_000));
        pace.looked(1, Care::LookingOn);
        assert_eq!(pace.pause(), LOOKING_ON);
        pace.saw(&read(1_000_000));
        pace.looked(1, Care::LookingOn);
        assert_eq!(
            pace.pause(),
            AHEAD,
            "what it waits for may be foretold soon"
        );
    }

    #[test]
    fn looks_that_find_nothing_come_ever_later() {
        let mut pace = Pace::new();
        pace.saw(&read(1_000));
        pace.looked(1, Care::Fetching);
        let pauses: Vec<_> = (0..4)
            .map(|_| {
                pace.looked(0, Care::Fetching);
                pace.pause()
            })
            .collect();
        assert_eq!(pauses, [2 * AHEAD, LONGEST, LONGEST, LONGEST]);
    }

    #[test]
    fn what_is_only_written_down_is_looked_at_seldom_unless_it_is_much() {
        let mut pace = Pace::new();
        pace.saw(&read(100_000));
        pace.looked(10, Care::Recording { touching: false });
        assert_eq!(pace.pause(), LONGEST);
        pace.looked(MANY + 1, Care::Recording { touching: false });
        assert_eq!(pace.pause(), LOOKING_ON);
        pace.looked(1, Care::Recording { touching: true });
        assert_eq!(pace.pause(), LOOKING_ON);
    }

    #[test]
    fn a_program_waits_if_half_of_its_time_goes_into_reads_that_do() {
        let time = Duration::from_millis(10);
        assert!(waits(5_000_000, time) && !waits(4_999_999, time));
    }
}
