//! The limit of prefetched, unread pages in memory: libprefetch's memory target.
//!
//! Memory for prefetching behaves like bandwidth for TCP: free memory changes quickly, and taking too much hurts everybody. So the target
//! starts at the free memory and moves by AIMD. It is halved when a prefetched page is evicted before its read, and raised step by step
//! while all pages stay. If the target was much too large, the pages found in memory show how much room there was, and the target falls to
//! that at once. Pages admitted before the fall belong to the old target, so their eviction does not halve it again.
//!
//! Invariant: `held` pages are those admitted and neither read nor given up.

/// Least number of pages judged before the target is raised.
const ROUND: u64 = 256;
/// One evicted page in this many is tolerated: four in a round, which are accidental.
const TOLERATED: u64 = 64;
/// The additive step: this fraction of the initial target per round. It is small because several sessions may each regard all memory as
/// free, and all raise their targets together.
const STEPS: u64 = 128;
/// The part of the pages found in memory that becomes the target when it falls: pages already read stay for a while, too. 1,500 reads of 32
/// KiB with a target of 64 MiB in 16 MiB of memory took 3.2 s with this on hdd-7200, and 5.5 s with halving step by step,
/// 2.9 s by the right target.
const ROOM: (u64, u64) = (3, 4);
/// Less than one page in this many of the target is little.
const LITTLE: u64 = 8;
/// The target never falls below this, in pages (1 MiB), so that a session can recover.
const FLOOR: u64 = 256;

/// A memory target in pages, adapted by AIMD.
#[derive(Clone, Debug)]
pub struct Budget {
    initial: u64,
    /// The most that the target rises to.
    ceiling: u64,
    /// True if the target is at its ceiling, filled, and no page was evicted.
    presses: bool,
    target: u64,
    held: u64,
    seen: u64,
    evicted: u64,
    /// Verdicts still to come on pages that were admitted under a larger target.
    older: u64,
    /// The most pages that were found in memory unread at a look since the target last fell.
    there: u64,
    /// True if the target may move.
    adapts: bool,
}

impl Budget {
    /// A budget that starts with `pages`.
    pub fn new(pages: u64) -> Self {
        let pages = pages.max(FLOOR);
        Self {
            initial: pages,
            ceiling: pages,
            presses: false,
            target: pages,
            held: 0,
            seen: 0,
            evicted: 0,
            older: 0,
            there: 0,
            adapts: true,
        }
    }

    /// A budget that stays at `pages`, whatever happens to the pages: the reference that AIMD is compared with.
    pub fn fixed(pages: u64) -> Self {
        Self {
            adapts: false,
            ..Self::new(pages)
        }
    }

    /// Sets a limit for good: there is room for `pages` and never was for more.
    pub fn limit(&mut self, pages: u64) {
        self.initial = self.initial.min(pages.max(FLOOR));
        self.ceiling = self.ceiling.min(pages.max(FLOOR));
        self.target = self.target.min(self.ceiling);
    }

    /// True if more memory would be used and kept, since the last call.
    pub fn presses(&mut self) -> bool {
        std::mem::take(&mut self.presses)
    }

    /// Notes that `pages` are free now: the target may rise to that, step by step.
    pub fn rise(&mut self, pages: u64) {
        self.ceiling = self.ceiling.max(pages);
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

    /// True if only a small part of the target is used.
    pub fn holds_little(&self) -> bool {
        self.held < self.target / LITTLE
    }

    /// True if so much is held after a fall of the target that no room is left for a pass over a device.
    pub fn is_stuck(&self) -> bool {
        self.held > self.target / 4
    }

    /// True if `pages` more may be admitted while `spare` pages of the target stay free. An empty budget admits anything: a read larger
    /// than the target would otherwise wait for ever.
    pub fn admits(&self, pages: u64, spare: u64) -> bool {
        self.held == 0 || self.held + pages + spare <= self.target
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

    /// A check of unread prefetched pages found `there` of them in memory and `gone` of them evicted.
    pub fn looked(&mut self, there: u64, gone: u64) {
        self.there = self.there.max(there);
        if gone == 0 {
            return;
        }
        let before = self.target;
        // If only a small part is held, the pages were evicted for another reason than a lack of memory.
        let filled = !self.holds_little();
        self.count(gone, gone);
        if self.target < before && filled {
            let (part, of) = ROOM;
            self.target = self.target.min(self.there * part / of).max(FLOOR);
        }
        if self.target < before {
            self.there = there;
        }
    }

    /// The target has fallen while `fetched` pages were in memory or on their way. Pages that are no longer held, or beyond the target,
    /// belong to the old target.
    pub fn fell(&mut self, fetched: u64) {
        self.older = fetched.saturating_sub(self.held.min(self.target));
    }

    fn count(&mut self, seen: u64, evicted: u64) {
        if self.older > 0 || !self.adapts {
            self.older = self.older.saturating_sub(seen);
            return;
        }
        self.seen += seen;
        self.evicted += evicted;
        // Pages admitted now are judged when everything held has been read.
        let round = self.held.max(ROUND);
        if self.evicted > round / TOLERATED {
            self.target = (self.target / 2).max(FLOOR);
            self.older = self.held.saturating_sub(self.target);
        } else if self.seen >= round {
            self.target = (self.target + self.initial / STEPS).min(self.ceiling);
            self.presses = self.target == self.ceiling && self.held > self.target / 2;
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
        budget.lost(ROUND / TOLERATED);
        assert_eq!(budget.target(), 4096, "a few strays are tolerated");
        budget.lost(1);
        assert_eq!(budget.target(), 2048);
    }

    #[test]
    fn the_target_stays_within_the_room_there_is() {
        let mut budget = Budget::new(4096);
        budget.limit(1024);
        for _ in 0..2 * STEPS {
            budget.kept(ROUND);
        }
        assert_eq!(budget.target(), 1024);
        budget.limit(8192);
        assert_eq!(budget.target(), 1024, "there never was more");
    }

    #[test]
    fn the_target_grows_back_step_by_step_and_no_further() {
        let mut budget = Budget::new(4096);
        budget.lost(8);
        for _ in 0..3 {
            budget.kept(ROUND);
        }
        assert_eq!(budget.target(), 2048 + 3 * 4096 / STEPS);
        for _ in 0..STEPS {
            budget.kept(ROUND);
        }
        assert_eq!(budget.target(), 4096);
    }

    #[test]
    fn the_target_rises_above_its_start_where_it_is_filled_and_memory_has_become_free() {
        let mut budget = Budget::new(4096);
        budget.kept(ROUND);
        assert!(!budget.presses(), "nothing is held");
        budget.hold(3000);
        budget.kept(3000);
        assert!(budget.presses());
        assert!(!budget.presses(), "once for a round");
        budget.rise(8192);
        budget.kept(3000);
        assert_eq!(budget.target(), 4096 + 4096 / STEPS, "step by step");
        budget.rise(1024);
        for _ in 0..2 * STEPS {
            budget.kept(3000);
        }
        assert_eq!(budget.target(), 8192);
        budget.lost(100);
        assert_eq!(budget.target(), 4096);
    }

    #[test]
    fn pages_admitted_under_the_old_target_do_not_halve_the_new_one() {
        let mut budget = Budget::new(4096);
        budget.hold(3000);
        for _ in 0..900 {
            budget.lost(1);
            budget.release(1);
        }
        assert_eq!((budget.target(), budget.held()), (2048, 2100));
        for _ in 0..200 {
            budget.lost(1);
            budget.release(1);
        }
        assert_eq!(budget.target(), 1024, "what is held now was admitted to it");
    }

    #[test]
    fn a_target_far_too_large_falls_to_what_there_was_room_for() {
        let mut budget = Budget::new(16_384);
        budget.hold(12_000);
        budget.looked(2800, 0);
        budget.looked(2600, 200);
        assert_eq!(budget.target(), 2100);
        // Seen while memory is being filled anew, fewer say nothing of its size.
        let mut budget = Budget::new(4096);
        budget.hold(2000);
        budget.looked(3500, 0);
        budget.looked(400, 40);
        assert_eq!(budget.target(), 2048);
    }

    #[test]
    fn of_a_target_that_little_is_held_of_half_is_left() {
        let mut budget = Budget::new(1 << 20);
        budget.hold(3000);
        budget.looked(2700, 300);
        assert_eq!(budget.target(), 1 << 19);
    }

    #[test]
    fn pages_let_go_for_a_smaller_target_do_not_halve_it_again() {
        let mut budget = Budget::new(16_384);
        budget.hold(12_000);
        budget.looked(2800, 200);
        // Withdrawn before they were requested, and released.
        budget.release(9000);
        budget.release(2475);
        budget.fell(3000);
        for _ in 0..24 {
            budget.looked(1000, 100);
        }
        assert_eq!(budget.target(), 2100);
        budget.looked(1000, 200);
        budget.looked(1000, 100);
        assert!(budget.target() < 2100, "these were fetched for it");
    }

    #[test]
    fn a_fixed_target_stays_whatever_is_lost() {
        let mut budget = Budget::fixed(4096);
        budget.lost(1000);
        budget.kept(10_000);
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
        assert!(budget.admits(10_000, 0));
        budget.hold(10_000);
        assert!(!budget.admits(1, 0));
        budget.release(10_000);
        assert!(budget.admits(1, 0));
    }
}
