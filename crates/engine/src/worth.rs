//! Whether a program is worth watching: by how many of its reads gained, or could have.

use crate::Phase;

/// Reads weighed at a time.
const WEIGHED: u64 = 8192;
/// Reads weighed at a time once the plan has run out.
const AFTERWARDS: u64 = 1024;
/// Reads that follow each other in less than this come from memory, in ns.
const FAST_NS: u64 = 5_000;
/// One read in this many has to gain for a program that fast to be worth watching.
const WORTH: u64 = 32;

/// Reads weighed since `since` ns, and how many of them gained or could have.
#[derive(Debug, Default)]
pub(crate) struct Worth {
    reads: u64,
    gained: u64,
    since: u64,
}

impl Worth {
    /// Begin anew at `now`.
    pub(crate) fn restart(&mut self, now: u64) {
        *self = Self {
            since: now,
            ..Self::default()
        };
    }

    /// Weigh a read that began at `start`. Gives up a plan that is as good as hot: where thousands of reads follow each
    /// other faster than any device answers and next to none of them gained or could have, watching costs more than
    /// it brings. The same where the plan has run out and next to no read since has waited.
    pub(crate) fn weigh(&mut self, start: u64, gained: bool, ran_out: bool) -> Option<Phase> {
        self.reads += 1;
        self.gained += u64::from(gained);
        let (enough, end) = if ran_out {
            (AFTERWARDS, Phase::Finished)
        } else {
            (WEIGHED, Phase::Hot)
        };
        if self.reads < enough {
            return None;
        }
        let fast = start.saturating_sub(self.since) < enough * FAST_NS;
        let few = self.gained * WORTH < enough;
        self.restart(start);
        ((fast || ran_out) && few).then_some(end)
    }
}
