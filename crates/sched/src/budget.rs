//! How many prefetched pages may lie in memory unread: libprefetch's memory target.
//!
//! Memory for prefetching behaves like bandwidth to TCP: what is free changes quickly, and
//! taking too much hurts everybody. So the target starts at what is free and moves by AIMD:
//! halved when a prefetched page is gone at its read, raised step by step while all stay.
//!
//! Invariant: `held` pages are those admitted and neither read nor given up.

/// Verdicts gathered before the target moves once; keeps one stray page from halving it twice.
const ROUND: u32 = 256;
/// Evicted pages in a round that count as "memory is short".
const TOLERATED: u32 = 4;
/// The additive step: this fraction of the initial target a round.
const STEPS: u64 = 16;
/// The target never falls below this, in pages (1 MiB), so that a session can recover.
const FLOOR: u64 = 256;

/// A memory target in pages, adapted by AIMD.
#[derive(Clone, Debug)]
pub struct Budget {
    initial: u64,
    target: u64,
    held: u64,
    seen: u32,
    evicted: u32,
}

impl Budget {
    /// A budget that starts with `pages`.
    pub fn new(pages: u64) -> Self {
        let pages = pages.max(FLOOR);
        Self {
            initial: pages,
            target: pages,
            held: 0,
            seen: 0,
            evicted: 0,
        }
    }

    /// The present target, in pages.
    pub fn target(&self) -> u64 {
        self.target
    }

    /// Pages admitted and not yet read or given up.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Pages that still fit under the target.
    pub fn room(&self) -> u64 {
        self.target.saturating_sub(self.held)
    }

    /// Whether `pages` more may be admitted to one `reserve`th of the target. An empty budget
    /// admits anything, or a read larger than the target would wait for ever.
    pub fn admits(&self, pages: u64, reserve: u64) -> bool {
        self.held == 0 || self.held + pages <= self.target / reserve
    }

    /// Count `pages` as held.
    pub fn hold(&mut self, pages: u64) {
        self.held += pages;
    }

    /// `pages` were read or given up.
    pub fn release(&mut self, pages: u64) {
        self.held = self.held.saturating_sub(pages);
    }

    /// A prefetched page was there when the program read it.
    pub fn kept(&mut self, pages: u64) {
        self.count(pages, 0);
    }

    /// A prefetched page was gone when the program read it.
    pub fn lost(&mut self, pages: u64) {
        self.count(pages, pages);
    }

    fn count(&mut self, seen: u64, evicted: u64) {
        self.seen = self.seen.saturating_add(seen.min(u64::from(ROUND)) as u32);
        self.evicted = self
            .evicted
            .saturating_add(evicted.min(u64::from(ROUND)) as u32);
        if self.evicted > TOLERATED {
            self.target = (self.target / 2).max(FLOOR);
        } else if self.seen >= ROUND {
            let ceiling = self.initial;
            self.target = (self.target + self.initial / STEPS).min(ceiling);
        } else {
            return;
        }
        self.seen = 0;
        self.evicted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_halves_when_prefetched_pages_are_gone() {
        let mut budget = Budget::new(4096);
        budget.lost(u64::from(TOLERATED));
        assert_eq!(budget.target(), 4096, "a few strays are tolerated");
        budget.lost(1);
        assert_eq!(budget.target(), 2048);
    }

    #[test]
    fn the_target_grows_back_step_by_step_and_no_further() {
        let mut budget = Budget::new(4096);
        budget.lost(8);
        for _ in 0..3 {
            budget.kept(u64::from(ROUND));
        }
        assert_eq!(budget.target(), 2048 + 3 * 256);
        for _ in 0..100 {
            budget.kept(u64::from(ROUND));
        }
        assert_eq!(budget.target(), 4096);
    }

    #[test]
    fn the_target_keeps_a_floor_to_recover_from() {
        let mut budget = Budget::new(1024);
        for _ in 0..50 {
            budget.lost(100);
        }
        assert_eq!(budget.target(), FLOOR);
    }

    #[test]
    fn one_read_larger_than_the_target_is_admitted_alone() {
        let mut budget = Budget::new(FLOOR);
        assert!(budget.admits(10_000, 1));
        budget.hold(10_000);
        assert!(!budget.admits(1, 1));
        budget.release(10_000);
        assert!(budget.admits(1, 1));
    }
}
