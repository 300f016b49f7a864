//! Whether the program still does what was foreseen.
//!
//! The last [`WINDOW`] reads decide. While at least half of them were foreseen all is well;
//! when more than half were not, the plan is lost: prefetching stops until the place is found again.
//! Each search that fails makes the next one wait twice as long, and after [`TRIES`] of them
//! in a row the plan is given up for good. A place found from which not one read is foreseen was
//! a failure, too.

use std::collections::VecDeque;

use foreread_plan::Access;

/// Reads over which it is decided whether the program follows its plan.
const WINDOW: usize = 64;
/// Reads before anything is decided.
const ENOUGH: usize = WINDOW / 2;
/// If none of the first this many reads was foreseen, the decision is made at once.
const NONE_OF: usize = 8;
/// Recent reads that a search for the position compares.
const RECENT: usize = 24;
/// Searches in a row that may fail.
const TRIES: u32 = 4;
/// Searches in all. A program that is lost again and again is not worth following, and each search takes up to a second of
/// a processor.
const SEARCHES: u32 = 16;

/// What the latest read means for the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The program follows the plan.
    OnPlan,
    /// It has left it; wait.
    Lost,
    /// It has left it, and enough reads have gathered to look for the place again.
    Search,
    /// It has left it for good.
    GiveUp,
}

/// The running judgement.
#[derive(Debug, Default)]
pub(crate) struct Track {
    outcomes: VecDeque<bool>,
    foreseen: usize,
    recent: VecDeque<Access>,
    lost: bool,
    /// A place was found, and nothing has been foreseen from there yet.
    unproved: bool,
    failures: u32,
    wait: u32,
    searches: u32,
}

impl Track {
    /// A judgement that begins with the place unknown: it is searched when there is enough to go by.
    pub(crate) fn seeking() -> Self {
        Self {
            lost: true,
            wait: RECENT as u32,
            ..Self::default()
        }
    }

    /// The program read; `foreseen` tells whether the plan knew.
    pub(crate) fn read(&mut self, access: &Access, foreseen: bool) -> Course {
        self.recent.push_back(*access);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        self.outcomes.push_back(foreseen);
        self.foreseen += usize::from(foreseen);
        self.unproved &= !foreseen;
        if self.outcomes.len() > WINDOW && self.outcomes.pop_front() == Some(true) {
            self.foreseen -= 1;
        }
        if !self.lost {
            let seen = self.outcomes.len();
            let enough = if self.foreseen == 0 { NONE_OF } else { ENOUGH };
            if seen < enough || self.foreseen * 2 >= seen {
                return Course::OnPlan;
            }
            self.lost = true;
            if self.unproved {
                self.failed();
            } else {
                self.failures = 0;
                self.wait = 0;
            }
        }
        if self.failures >= TRIES {
            return Course::GiveUp;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return Course::Lost;
        }
        Course::Search
    }

    /// The last reads, oldest first.
    pub(crate) fn recent(&mut self) -> &[Access] {
        self.recent.make_contiguous()
    }

    /// What the search came to.
    pub(crate) fn searched(&mut self, found: bool) {
        self.searches += 1;
        if found && self.searches <= SEARCHES {
            self.lost = false;
            self.unproved = true;
            self.outcomes.clear();
            self.foreseen = 0;
        } else if found {
            self.failures = TRIES;
        } else {
            self.failed();
        }
    }

    fn failed(&mut self) {
        self.failures += 1;
        self.wait = (WINDOW as u32) << self.failures;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Extent, FileId, Kind, ThreadId};

    const READ: Access = Access {
        file: FileId(0),
        extent: Extent::new(0, 1),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    };

    #[test]
    fn a_few_unforeseen_reads_change_nothing() {
        let mut track = Track::default();
        for n in 0..1000 {
            assert_eq!(track.read(&READ, n % 3 != 0), Course::OnPlan);
        }
    }

    #[test]
    fn a_program_that_begins_with_something_else_is_lost_at_once() {
        let mut track = Track::default();
        for _ in 0..NONE_OF - 1 {
            assert_eq!(track.read(&READ, false), Course::OnPlan);
        }
        assert_eq!(track.read(&READ, false), Course::Search);
    }

    #[test]
    fn when_most_reads_are_unforeseen_the_place_is_searched_and_then_given_up() {
        let mut track = Track::default();
        let mut searches = 0;
        let mut reads = 0;
        loop {
            reads += 1;
            match track.read(&READ, false) {
                Course::Search => {
                    searches += 1;
                    track.searched(false);
                }
                Course::GiveUp => break,
                Course::OnPlan | Course::Lost => {}
            }
            assert!(reads < 10_000);
        }
        assert_eq!(searches, TRIES);
        assert!(reads > 800, "searches are spaced out: {reads}");
    }

    #[test]
    fn a_program_lost_again_and_again_is_given_up() {
        let mut track = Track::default();
        let mut searches = 0;
        for n in 0..100_000 {
            // One read in eight is foreseen: each place found proves to be one.
            match track.read(&READ, n % 8 == 0) {
                Course::Search => {
                    searches += 1;
                    track.searched(true);
                }
                Course::GiveUp => break,
                Course::OnPlan | Course::Lost => {}
            }
        }
        assert_eq!(searches, SEARCHES + 1);
    }

    #[test]
    fn places_that_prove_wrong_count_as_failures_and_are_spaced_out() {
        let mut track = Track::default();
        let mut searches = 0;
        let mut reads = 0;
        while track.read(&READ, false) != Course::GiveUp {
            reads += 1;
            if track.lost && track.wait == 0 && track.failures < TRIES {
                searches += 1;
                track.searched(true);
            }
            assert!(reads < 10_000);
        }
        assert!(searches <= TRIES, "{searches}");
        assert!(reads > 800, "searches are spaced out: {reads}");
    }

    #[test]
    fn a_found_place_starts_the_judgement_afresh() {
        let mut track = Track::default();
        while track.read(&READ, false) != Course::Search {}
        track.searched(true);
        assert_eq!(track.read(&READ, true), Course::OnPlan);
        for _ in 0..ENOUGH - 2 {
            assert_eq!(track.read(&READ, false), Course::OnPlan);
        }
        assert_eq!(track.read(&READ, false), Course::Search);
    }
}
