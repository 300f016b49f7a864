//! How far ahead of the program to fetch: AASFP's pacing rule (long paper, §5.2). How far ahead a pattern is disclosed is another
//! question, decided in `crates/sources/src/signature/lead.rs`.
//!
//! The program has just made its `i`-th access; the entry in question is its `j`-th.
//! The program reaches `j` in about `C·(j−i)`; a request issued now completes in
//! about `(K+1)·T`. The entry is worth fetching while
//!
//! ```text
//! C·(j−i) − (K+1)·T ≥ time_threshold      (1)  it will arrive in time
//! j − i ≤ queue_threshold                 (2)  it is not too far ahead
//! ```
//!
//! The sign is that of the paper's prose. One print of equation 1 has `≤`, the other lost the sign; both say that it "ensures that the disk
//! block is prefetched before it is needed". The left side is the time left when the block arrives, so it must not be less than the
//! threshold.
//!
//! The paper found both thresholds by experiment, once per machine. Here they belong to the
//! device's [`crate::Profile`], and `foreread calibrate` measures them. A calibrated time threshold is negative as a rule: a read that
//! arrives a little late still waits less than one not asked for at all, because the device serves many requests
//! side by side while the program alone asks for one at a time.
//!
//! On a device that was not calibrated, depth and budget decide the number of requests, and equation 1 hardly matters. On a disk with a
//! moving head both equations are off, because the order is the head's and not the program's (bench/figures/slice.md has their effect). On
//! a solid-state disk at its depth of 128, or 64 if requests take long, equation 1 drops entries from a service time of 15 ms on, a hundred
//! times that of such disks.

/// The two thresholds of the pacing rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// The least slack worth fetching for, in ns; negative allows being late by that much.
    pub time_threshold: i64,
    /// The largest lead, in accesses.
    pub queue_threshold: u64,
}

/// The rule's decision about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Fetch it now.
    Fetch,
    /// Too far ahead as yet: ask again when the program has moved on.
    Wait,
    /// It can no longer arrive in time: leave it to the program.
    TooLate,
}

impl Horizon {
    /// Decide on the entry `lead = j − i` accesses ahead, with compute time `c` ns an access,
    /// service time `t` ns a request, and `k` requests in flight.
    pub fn judge(&self, lead: u64, c: u64, t: u64, k: usize) -> Verdict {
        if lead > self.queue_threshold {
            return Verdict::Wait;
        }
        let reached_in = i128::from(c) * i128::from(lead);
        let served_in = (k as i128 + 1).saturating_mul(i128::from(t));
        if reached_in - served_in >= i128::from(self.time_threshold) {
            Verdict::Fetch
        } else {
            Verdict::TooLate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Horizon = Horizon {
        time_threshold: 0,
        queue_threshold: 100,
    };

    #[test]
    fn an_entry_beyond_the_queue_threshold_waits() {
        assert_eq!(RULE.judge(101, 1_000_000, 1, 0), Verdict::Wait);
        assert_eq!(RULE.judge(100, 1_000_000, 1, 0), Verdict::Fetch);
    }

    #[test]
    fn equation_one_holds_at_equality_and_fails_one_below() {
        // C·(j−i) = 10·50 = 500; (K+1)·T = 5·100 = 500.
        assert_eq!(RULE.judge(10, 50, 100, 4), Verdict::Fetch);
        assert_eq!(RULE.judge(10, 50, 101, 4), Verdict::TooLate);
    }

    #[test]
    fn a_negative_time_threshold_admits_what_arrives_that_late() {
        let lenient = Horizon {
            time_threshold: -1_000,
            ..RULE
        };
        assert_eq!(lenient.judge(1, 0, 250, 3), Verdict::Fetch);
        assert_eq!(lenient.judge(1, 0, 251, 3), Verdict::TooLate);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        assert_eq!(RULE.judge(100, u64::MAX, 0, 0), Verdict::Fetch);
        assert_eq!(RULE.judge(0, 0, u64::MAX, usize::MAX), Verdict::TooLate);
    }
}
