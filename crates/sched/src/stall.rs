//! Whether the program mostly waits for what was asked for, or mostly computes.
//!
//! Where it mostly waits, a device had best do as much as it can in each second, in whatever order. Where it
//! computes, what it needs first had best come first: the rest arrives meanwhile.
//!
//! Taken from whether the next entry to be read has arrived, at each look: reads tell how long they took only
//! where somebody sees both their ends.

/// Waiting beyond which the program can be said to wait mostly, in ns. The beginning of every run is waiting.
const LEAST: u64 = 100_000_000;
/// How many times longer than its computing.
const MOSTLY: u64 = 2;
/// Time after which what was seen counts half, in ns.
const HALF: u64 = 1_000_000_000;

/// The two accounts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stall {
    /// When it was looked last, and what was seen.
    last: Option<(u64, bool)>,
    waited: u64,
    computed: u64,
}

impl Stall {
    /// At `now` the program waits, or it computes; `None` where that cannot be told.
    pub(crate) fn look(&mut self, now: u64, waits: Option<bool>) {
        if let Some((since, waited)) = self.last {
            let account = if waited {
                &mut self.waited
            } else {
                &mut self.computed
            };
            *account += now.saturating_sub(since);
            if self.waited + self.computed > HALF {
                self.waited /= 2;
                self.computed /= 2;
            }
        }
        self.last = waits.map(|waits| (now, waits));
    }

    /// Whether it mostly waits.
    pub(crate) fn mostly(&self) -> bool {
        self.waited > LEAST && self.waited > MOSTLY * self.computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Looks once a millisecond; of each ten, this many are waiting.
    fn after(ms: u64, of_ten: u64) -> bool {
        let mut stall = Stall::default();
        for n in 0..=ms {
            stall.look(n * MS, Some(n % 10 < of_ten));
        }
        stall.mostly()
    }

    #[test]
    fn what_waits_more_than_it_computes_mostly_waits() {
        assert!(after(1000, 9));
        assert!(!after(1000, 6));
        assert!(!after(1000, 1));
        assert!(after(10_000, 9) && !after(10_000, 6));
    }

    #[test]
    fn the_beginning_says_nothing() {
        assert!(!after(90, 10));
        assert!(after(110, 10));
    }

    #[test]
    fn what_cannot_be_told_counts_for_neither() {
        let mut stall = Stall::default();
        stall.look(0, Some(true));
        stall.look(MS, None);
        stall.look(1000 * MS, Some(true));
        assert_eq!((stall.waited, stall.computed), (MS, 0));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut stall = Stall::default();
        for n in 0..10_000 {
            stall.look(n * MS, Some(true));
        }
        for n in 10_000..11_500 {
            stall.look(n * MS, Some(false));
        }
        assert!(!stall.mostly());
    }
}
