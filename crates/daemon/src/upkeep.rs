//! The daemon's own processor time is bounded, whatever the machine does.
//!
//! An account in ns: a share of the time that passes is paid in, and one of the time that tasks wait for devices, up to a limit;
//! what this process uses, all its threads together, is paid out. Where nothing is left, files are only learnt from; deep in debt, events are let go. What a
//! device is waited for is worth more: then predictions go on to the deeper bound.

/// Of each so many ns one is paid in: 2.5 % of one core, where at most 3 % is allowed in a parallel build.
const SHARE: u64 = 40;
/// And of each so many ns that tasks wait for devices: they leave the processors to others meanwhile, and what is fetched ahead
/// shortens that. Beside a compile that is started cold again and again, and waits two thirds of its time, the daemon takes 5 to
/// 8 % of a core.
const WAITED: u64 = 8;
/// What is saved up, in ns: a build from a cold disk begins with a burst of 0.3 s.
const MOST: i64 = 500_000_000;
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
    waited: u64,
}

impl Upkeep {
    /// From `now` on, when so much processor time was used; in ns.
    pub(crate) fn new(now: u64, used: u64) -> Self {
        Self {
            balance: MOST,
            at: now,
            used,
            waited: 0,
        }
    }

    /// Settles the account at `now`, when this process has used so much, and tasks have waited so much for devices.
    pub(crate) fn settle(&mut self, now: u64, used: u64, waited: u64) -> Means {
        // What was waited before this account began, and what nobody tells of any more, is not paid.
        let began = self.waited > 0;
        let more = waited.saturating_sub(self.waited);
        let paid = now.saturating_sub(self.at) / SHARE + if began { more / WAITED } else { 0 };
        let spent = used.saturating_sub(self.used);
        self.balance = self
            .balance
            .saturating_add_unsigned(paid)
            .min(MOST)
            .saturating_sub_unsigned(spent);
        (self.at, self.used, self.waited) = (now, used, waited);
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
        for _ in 0..1_000_000 {
            // Ten times as much as there is for it, as long as it may.
            now += 1_000_000;
            used += match upkeep.settle(now, used, 0) {
                Means::None => 5_000,
                Means::Learn | Means::All => 250_000,
            };
        }
        let allowed = now / SHARE + (MOST - DEBT) as u64 + 250_000;
        assert!(used <= allowed, "{used} of {allowed}");
        assert!(used * 100 / now <= 3);
    }
}
