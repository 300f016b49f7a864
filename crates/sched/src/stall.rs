//! Whether the program mostly waits for what was asked for, or mostly computes.
//!
//! Where it mostly waits, a device had best do as much as it can in each second, in whatever order. Where it
//! computes, what it needs first had best come first: the rest arrives meanwhile.
//!
//! So a program that only reads gets one sweep over all that is known. For one that computes, a rotating disk is read in
//! passes: the first of 2 MiB, each next one half as large again, none begun before the one before is over, because a
//! drive serves near requests before old ones.

/// A program counts as I/O-bound when it waits this many times longer than it computes. Several passes over a disk cost the
/// program the seeks of each; one pass costs it the computing that it could have done meanwhile. At this ratio the two are
/// equal.
const MOSTLY: u64 = 4;
/// The least time that the ratio is judged over within a pass, in ns.
const LEAST: u64 = 100_000_000;
/// The least time that it is judged over for a whole pass, in ns.
const LEAST_PASS: u64 = 30_000_000;

/// A moment, and what the program had computed until then, in ns of processor time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: u64,
    pub(crate) computed: u64,
}

impl Moment {
    /// Whether the program has mostly waited since, for a pass that is over or a part of one; `None` if that was too short a time to
    /// say.
    pub(crate) fn mostly_waited_since(self, earlier: Self, pass_is_over: bool) -> Option<bool> {
        let least = if pass_is_over { LEAST_PASS } else { LEAST };
        let took = self.now.saturating_sub(earlier.now);
        let computed = self.computed.saturating_sub(earlier.computed);
        (took >= least).then_some(took.saturating_sub(computed) > MOSTLY * computed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Of so many ms, for so many it computed.
    fn mostly_waits(took: u64, computed: u64) -> Option<bool> {
        let earlier = Moment {
            now: 500 * MS,
            computed: 100 * MS,
        };
        let later = Moment {
            now: earlier.now + took * MS,
            computed: earlier.computed + computed * MS,
        };
        later.mostly_waited_since(earlier, true)
    }

    #[test]
    fn what_waits_far_more_than_it_computes_mostly_waits() {
        assert_eq!(mostly_waits(1000, 100), Some(true));
        assert_eq!(mostly_waits(1000, 300), Some(false));
        assert_eq!(mostly_waits(1000, 900), Some(false));
    }

    #[test]
    fn threads_may_compute_for_longer_than_it_took() {
        assert_eq!(mostly_waits(1000, 2000), Some(false));
    }

    #[test]
    fn a_moment_says_nothing() {
        assert_eq!(mostly_waits(29, 0), None);
        assert_eq!(mostly_waits(30, 0), Some(true));
    }
}
