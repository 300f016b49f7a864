//! Whether the program mostly waits for what was asked for, or mostly computes.
//!
//! Where it mostly waits, a device had best do as much as it can in each second, in whatever order. Where it
//! computes, what it needs first had best come first: the rest arrives meanwhile.
//!
//! Taken from whether the next entry to be read has arrived, at each look: reads tell how long they took only
//! where somebody sees both their ends.

/// How many times longer than its computing the waiting of a program is that mostly waits. Passes over a disk cost it the
/// seeks of each, one pass over all the computing that could have been done meanwhile: those are equal there.
const MOSTLY: u64 = 4;
/// Time of which it can be said, in ns.
const LEAST: u64 = 30_000_000;

/// What the program has done, each in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    waited: u64,
    computed: u64,
}

impl Account {
    /// What it has done since an earlier account.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            waited: self.waited - earlier.waited,
            computed: self.computed - earlier.computed,
        }
    }

    /// Whether it has mostly waited; `None` if that was too short a time to say.
    pub(crate) fn mostly_waited(self) -> Option<bool> {
        let told = self.waited + self.computed >= LEAST;
        told.then_some(self.waited > MOSTLY * self.computed)
    }
}

/// Keeps the account.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stall {
    /// When it was looked last, and what was seen.
    last: Option<(u64, bool)>,
    account: Account,
}

impl Stall {
    /// At `now` the program waits, or it computes; `None` where that cannot be told. What it has done so far.
    pub(crate) fn look(&mut self, now: u64, waits: Option<bool>) -> Account {
        if let Some((since, waited)) = self.last {
            let account = if waited {
                &mut self.account.waited
            } else {
                &mut self.account.computed
            };
            *account += now.saturating_sub(since);
        }
        self.last = waits.map(|waits| (now, waits));
        self.account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Looks once a millisecond; of each ten, this many are waiting.
    fn after(ms: u64, of_ten: u64) -> Account {
        let mut stall = Stall::default();
        (0..ms).for_each(|n| {
            stall.look(n * MS, Some(n % 10 < of_ten));
        });
        stall.look(ms * MS, None)
    }

    #[test]
    fn what_waits_far_more_than_it_computes_mostly_waits() {
        assert_eq!(after(1000, 9).mostly_waited(), Some(true));
        assert_eq!(after(1000, 7).mostly_waited(), Some(false));
        assert_eq!(after(1000, 1).mostly_waited(), Some(false));
    }

    #[test]
    fn a_moment_says_nothing() {
        assert_eq!(after(29, 10).mostly_waited(), None);
        assert_eq!(after(30, 10).mostly_waited(), Some(true));
    }

    #[test]
    fn what_cannot_be_told_counts_for_neither() {
        let mut stall = Stall::default();
        stall.look(0, Some(true));
        stall.look(MS, None);
        let account = stall.look(1000 * MS, Some(true));
        let waited = Account {
            waited: MS,
            computed: 0,
        };
        assert_eq!(account, waited);
    }

    #[test]
    fn what_was_before_does_not_count() {
        let (before, now) = (after(100, 10), after(100, 10));
        let now = Account {
            computed: 100 * MS,
            ..now
        };
        assert_eq!(now.mostly_waited(), Some(false));
        assert_eq!(now.since(before).mostly_waited(), Some(false));
        assert_eq!(now.since(now).mostly_waited(), None);
    }
}
