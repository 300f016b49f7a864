//! The plan of one strand: its queue, the position of admission, its requests, and its record of right and wrong pages.

use std::ops::Range;

use foreread_plan::{FileId, Odds};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::asked::AllAsked;
use crate::lane::Chance;
use crate::{Budget, EntryState, Queue};

/// A strand's number within one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrandId(pub usize);

/// Pages credited as right to a guess before it was tried (256 KiB, the least length of a stream): one wrong first guess is
/// not enough to distrust the rest.
const BELIEVED: u64 = 64;
/// After this many judged pages (16 MiB) the older record counts half: a program may go from a predictable phase to an
/// unpredictable one.
const FADES: u64 = 4096;

/// Entries in a row credited as right to a guess before it was tried. On the modelled disk (`first_runs.rs` of the
/// simulated engine) the worst row of hyperslabs took 0.8 % longer than alone with 16, and 4.2 % with 48.
const UNBROKEN: u64 = 16;

/// Number of a strand's pages, and of those read in their turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proof {
    right: u64,
    wrong: u64,
    /// Entries that were right, and how often a wrong one followed.
    entries: u64,
    breaks: u64,
    is_broken: bool,
}

impl Proof {
    /// Adds the record of earlier sessions.
    pub(super) fn shown(&mut self, right: u64, wrong: u64) {
        self.right += right;
        self.wrong += wrong;
        self.fade();
    }

    pub(super) fn right(&mut self, pages: u64) {
        self.right += pages;
        self.entries += 1;
        self.is_broken = false;
        self.fade();
    }

    pub(super) fn wrong(&mut self, pages: u64) {
        self.wrong += pages;
        self.breaks += u64::from(!self.is_broken);
        self.is_broken = true;
        self.fade();
    }

    fn fade(&mut self) {
        while self.right + self.wrong > FADES {
            self.right /= 2;
            self.wrong /= 2;
            self.entries /= 2;
            self.breaks /= 2;
        }
    }

    /// Pages that may be unread at a time.
    pub(super) fn credit(self) -> u64 {
        BELIEVED + 2 * self.right
    }

    /// Probability that the next entry is the first of several wrong ones.
    fn breaks(self) -> Odds {
        Odds::of(self.breaks, UNBROKEN + self.entries + self.breaks)
    }

    /// The measured accuracy.
    fn odds(self) -> Odds {
        let right = self.right + BELIEVED;
        Odds::of(right, right + self.wrong)
    }
}

/// A strand's part of the scheduler.
#[derive(Debug)]
pub(super) struct StrandPlan {
    pub(super) queue: Queue,
    /// True if its source guesses.
    pub(super) is_guess: bool,
    /// True if requests may be made at present.
    pub(super) follows: bool,
    /// The next ordinal to admit.
    pub(super) cursor: u64,
    /// True if the budget had no room for the entry at the cursor.
    pub(super) full: bool,
    /// No entry below this ordinal is `Admitted`.
    pub(super) left_below: u64,
    /// Entries waiting for their file's layout.
    pub(super) unplaced: FxHashMap<FileId, Vec<u64>>,
    /// Files that may be of these entries and whose device has not shown whether positions matter; and the time since when there have been
    /// any, in the clock of [`Scheduler::next`](super::Scheduler::next).
    pub(super) unproved: Vec<FileId>,
    pub(super) unproved_since: Option<u64>,
    pub(super) asked: AllAsked,
    /// Pages of the entries that are `Admitted`, without those that have come true.
    pub(super) held: u64,
    /// Entries that have come true and are still to be read.
    pub(super) come_true: FxHashSet<u64>,
    pub(super) proof: Proof,
    /// Entries below this ordinal were judged.
    pub(super) judged_below: u64,
}

impl StrandPlan {
    pub(super) fn new(capacity: usize, is_guess: bool) -> Self {
        Self {
            queue: if is_guess {
                Queue::unordered(capacity)
            } else {
                Queue::new(capacity)
            },
            is_guess,
            follows: true,
            cursor: 0,
            full: false,
            left_below: 0,
            unplaced: FxHashMap::default(),
            unproved: Vec::new(),
            unproved_since: None,
            asked: AllAsked::default(),
            held: 0,
            come_true: FxHashSet::default(),
            proof: Proof::default(),
            judged_below: 0,
        }
    }

    /// The trust in its entries: less in guesses than in a record or a list.
    pub(super) fn weight(&self) -> Odds {
        if self.is_guess {
            self.proof.odds().min(Odds(Odds::SURE.0 - 1))
        } else {
            Odds::SURE
        }
    }

    /// The estimate of an entry: its odds weighed by the strand's record.
    pub(super) fn chance(&self, ordinal: u64) -> Chance {
        if self.is_guess {
            Chance {
                odds: self.queue.odds(ordinal).and(self.proof.odds()),
                breaks: self.proof.breaks(),
            }
        } else {
            Chance {
                odds: Odds::SURE,
                breaks: Odds(0),
            }
        }
    }

    /// True if this many more pages may be unread. For a guess the limit is twice the number of right pages: a guess with no read would
    /// never be seen to be wrong.
    pub(super) fn has_credit(&self, ordinal: u64, pages: u64) -> bool {
        let needs = self.is_guess && self.held > 0 && !self.come_true.contains(&ordinal);
        !needs || self.held + pages <= self.proof.credit()
    }

    /// Pages of an entry are admitted.
    pub(super) fn hold(&mut self, ordinal: u64, pages: u64, budget: &mut Budget) {
        if !self.come_true.contains(&ordinal) {
            self.held += pages;
        }
        budget.hold(pages);
    }

    /// Pages of an admitted entry were read or given up. Infill is released with the last entry of its request.
    pub(super) fn release(&mut self, ordinal: u64, pages: u64, budget: &mut Budget) {
        if !self.come_true.contains(&ordinal) {
            self.held = self.held.saturating_sub(pages);
        }
        budget.release(pages + self.asked.served(ordinal));
    }

    /// Leave an admitted entry to the program.
    pub(super) fn leave(&mut self, ordinal: u64, pages: Range<u64>, budget: &mut Budget) {
        self.release(ordinal, pages.end - pages.start, budget);
        self.queue.set_state(ordinal, EntryState::Left);
    }

    /// Entries in the queue that were not considered yet.
    pub(super) fn waiting(&self) -> u64 {
        self.queue.end().saturating_sub(self.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_wrong_guesses_is_one_break() {
        let mut proof = Proof::default();
        assert_eq!(proof.breaks(), Odds(0));
        for _ in 0..20 {
            for _ in 0..8 {
                proof.right(1);
            }
            for _ in 0..8 {
                proof.wrong(1);
            }
        }
        let often = proof.breaks();
        assert!(
            Odds::of(1, 12) < often && often < Odds::of(1, 8),
            "{often:?}"
        );
    }

    #[test]
    fn a_guess_is_believed_at_first_and_then_by_what_it_came_to() {
        let mut proof = Proof::default();
        assert_eq!(proof.odds(), Odds::SURE);
        proof.wrong(4);
        assert!(proof.odds() > Odds::of(9, 10));
        proof.wrong(10_000);
        assert!(proof.odds() < Odds::of(1, 20), "{proof:?}");
        for _ in 0..4 {
            proof.right(FADES);
        }
        assert!(
            proof.odds() > Odds::of(9, 10),
            "what was long ago is forgotten: {proof:?}"
        );
    }
}
