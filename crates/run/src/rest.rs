//! Looking up, now and then, from a program that is left to itself because its reads did not wait: it
//! may come to others that do.
//!
//! Nothing is observed meanwhile. The kernel's count of bytes fetched on behalf of the program, and of the processes
//! that come from it, says whether they wait for a device again; of a rank, also its reads that were looked for in the collective cache
//! in vain.
//!
//! Invariant: looks take at most a hundredth of the time.

use std::time::{Duration, Instant};

use foreread_backend::Collective;
use foreread_engine::COLD_PAGES;
use foreread_plan::PAGE;
use foreread_sys::process::IoCounters;

/// The first pause between two looks. A look at one process takes 2.5 µs, a four-thousandth of that, so the shortest pause costs
/// trees of up to 40 processes no more than the hundredth that looks may take.
const FIRST: Duration = Duration::from_millis(10);
/// And the longest: twice as long each time nothing is seen. A program that comes to cold files waits for 2,500 reads of a local
/// disk, of 100 µs each, at most until it is seen.
const LONGEST: Duration = Duration::from_millis(250);
/// The first pause after the program was looked after for nothing: it streams, and fetches all the time. To find its
/// place in a long plan takes 10 ms, 1 % of that. Twice as long each time that comes again.
const FRUITLESS: Duration = Duration::from_secs(1);
/// And the longest of these, after five fruitless ones: a place in the plan costs a three-thousandth of that time.
const MOST_FRUITLESS: Duration = Duration::from_secs(32);
/// Of the time, looks take one part in so many: the 1 % by which a program may at most be slower.
const PARTS: u32 = 100;

/// Bytes from the device, within [`FRUITLESS`], that are worth looking after: as many as must be missing for a plan to be worth
/// following.
const WORTH: u64 = COLD_PAGES * PAGE;

/// A rest of a program.
pub(super) struct Rest {
    /// The program.
    root: u32,
    /// Its part of the collective cache, if it is a rank.
    collective: Option<Collective>,
    /// What it had fetched at some time, in bytes.
    fetched: Option<u64>,
    since: Instant,
    pause: Duration,
    /// The shortest of the next rest.
    least: Duration,
}

impl Rest {
    /// Of this program.
    pub(super) fn of(root: u32, collective: Option<Collective>) -> Self {
        Self {
            root,
            collective,
            fetched: None,
            since: Instant::now(),
            pause: FIRST,
            least: FIRST,
        }
    }

    /// Whether the program has fetched from its device before it is left to itself for the first time.
    pub(super) fn has_fetched(&mut self) -> bool {
        self.look().is_some_and(|fetched| fetched >= WORTH)
    }

    /// The program is left to itself.
    pub(super) fn begin(&mut self) {
        self.fetched = self.look();
        self.pause = self.pause.max(self.least);
        self.least = (2 * self.least).clamp(FRUITLESS, MOST_FRUITLESS);
    }

    /// How long to wait until the next look; `None` where there is nothing to look at.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.fetched.map(|_| self.pause)
    }

    /// Whether the program has begun to wait for its device. One whose counts are not told is looked at no more.
    pub(super) fn is_over(&mut self) -> bool {
        let longer = (2 * self.pause).min(LONGEST);
        let before = self.since;
        let Some(fetched) = self.look() else {
            self.fetched = None;
            return false;
        };
        self.pause = self.pause.max(longer);
        // Less where a child has ended that nobody has waited for.
        let begun = self.fetched.unwrap_or(0).min(fetched);
        if fetched - begun >= WORTH {
            return true;
        }
        if before.elapsed() < FRUITLESS {
            self.since = before;
        } else {
            self.fetched = Some(fetched);
        }
        false
    }

    /// What the program has fetched by now, in bytes.
    fn look(&mut self) -> Option<u64> {
        self.since = Instant::now();
        let counts = IoCounters::of_tree(self.root).ok();
        self.pause = (self.since.elapsed() * PARTS).max(FIRST);
        // What is read past the page cache of a file system in user space, the kernel does not count.
        let missed = self
            .collective
            .as_ref()
            .map_or(0, |one| one.counts().missed);
        Some(
            counts?
                .read_bytes
                .saturating_add(missed.saturating_mul(PAGE)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_segment::Segment;
    use std::process::Command;

    #[test]
    fn a_program_that_fetches_nothing_is_looked_at_ever_more_seldom() {
        let mut idle = Command::new("sleep").arg("60").spawn().unwrap();
        let mut rest = Rest::of(idle.id(), None);
        rest.begin();
        assert!(rest.pause().is_some_and(|pause| pause >= FIRST));
        rest.begin();
        assert!(rest.pause().is_some_and(|pause| pause >= FRUITLESS));
        for _ in 0..10 {
            assert!(!rest.is_over());
        }
        assert!(rest.pause().is_some_and(|pause| pause >= LONGEST));
        idle.kill().unwrap();
        idle.wait().unwrap();
        assert!(!rest.is_over());
        assert_eq!(rest.pause(), None);
    }

    #[test]
    fn a_rank_that_reads_past_the_page_cache_is_seen_by_what_it_looks_for_in_vain() {
        let mut idle = Command::new("sleep").arg("60").spawn().unwrap();
        let segment = Segment::create(foreread_segment::PAGE).unwrap();
        let collective = Collective::new(segment, None);
        let mut rest = Rest::of(idle.id(), Some(collective.clone()));
        rest.begin();
        assert!(!rest.is_over());
        collective.segment().count_missed(COLD_PAGES - 1);
        assert!(!rest.is_over(), "a few");
        collective.segment().count_missed(1);
        assert!(rest.is_over());
        idle.kill().unwrap();
        idle.wait().unwrap();
    }
}
