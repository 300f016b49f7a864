//! The daemon's own processor time is bounded, whatever the machine does.
//!
//! An account in ns: a share of the time that passes is paid in, up to a limit; what this process uses, all its threads
//! together, is paid out. Where nothing is left, files are only learnt from; deep in debt, events are let go. What a
//! device is waited for is worth more: then predictions go on to the deeper bound.

/// Of each so many ns one is paid in: 2.5 % of one core, where at most 3 % is allowed in a parallel build.
const SHARE: u64 = 40;
/// What is saved up, in ns: a build from a cold disk begins with a burst of 0.3 s.
const MOST: i64 = 300_000_000;
/// How far in debt events are let go, in ns.
const DEBT: i64 = -200_000_000;

/// What may be afforded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Means {
    /// Nothing: events are let go.
    None,
    /// To learn from events, and to predict where a device is waited for.
    Learn,
    /// To predict after each event.
    All,
}

/// The account.
#[derive(Debug)]
pub(crate) struct Upkeep {
    balance: i64,
    at: u64,
    used: u64,
}

impl Upkeep {
    /// From `now` on, when so much processor time was used; in ns.
    pub(crate) fn new(now: u64, used: u64) -> Self {
        Self {
            balance: MOST,
            at: now,
            used,
        }
    }

    /// Settles the account at `now`, when this process has used so much.
    pub(crate) fn settle(&mut self, now: u64, used: u64) -> Means {
        let paid = now.saturating_sub(self.at) / SHARE;
        let spent = used.saturating_sub(self.used);
        self.balance = self
            .balance
            .saturating_add_unsigned(paid)
            .min(MOST)
            .saturating_sub_unsigned(spent);
        (self.at, self.used) = (now, used);
        self.means()
    }

    pub(crate) fn means(&self) -> Means {
        match self.balance {
            1.. => Means::All,
            DEBT..=0 => Means::Learn,
            _ => Means::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_takes_no_more_than_the_share() {
        let (mut now, mut used) = (0, 0);
        let mut upkeep = Upkeep::new(now, used);
        for _ in 0..100_000 {
            // Ten times as much as there is for it, as long as it may.
            now += 1_000_000;
            used += match upkeep.settle(now, used) {
                Means::None => 5_000,
                Means::Learn | Means::All => 250_000,
            };
        }
        let allowed = now / SHARE + (MOST - DEBT) as u64 + 250_000;
        assert!(used <= allowed, "{used} of {allowed}");
        assert!(used * 100 / now <= 3);
    }
}
