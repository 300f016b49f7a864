//! Decides whether the program is I/O-bound or mostly computes.
//!
//! For an I/O-bound program, a device should do as much as it can each second, in any order. For a computing program, the pages needed
//! first should arrive first: the others arrive meanwhile.
//!
//! So an I/O-bound program gets one sweep over all entries. For a computing one, a rotating disk is read in passes: the first has 2 MiB,
//! each next one is half as large again, and none begins before the previous one is over, because a drive serves near requests before old
//! ones.

/// A program counts as I/O-bound when it waits this many times longer than it computes. Several passes over a disk cost the
/// program the seeks of each; one pass costs it the computing that it could have done meanwhile. At this ratio the two are
/// equal.
const MOSTLY: u64 = 4;
/// The least time that the ratio is judged over within a pass, in ns.
const LEAST: u64 = 100_000_000;
/// Least time for a judgement of a whole pass, in ns.
const LEAST_PASS: u64 = 30_000_000;

/// A moment, and the program's computing until then, in ns of processor time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: u64,
    pub(crate) computed: u64,
}

impl Moment {
    /// True if the program has mostly waited since `earlier`, for a complete pass or a part of one; `None` if the time was too short.
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

    /// The judgement after `took` ms with `computed` ms of computing.
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
