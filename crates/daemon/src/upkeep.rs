//! The daemon's own processor time is bounded, whatever the machine does.
//!
//! An account in ns. Income, up to a limit, is a share of the time that passes, a larger share of the processor time lost to devices, which
//! no one else uses, and a share of the waiting that programs were spared: the better the daemon works, the less time is lost. Waits of the
//! daemon's own threads count as lost, too. Expenses are all processor time of this process. With nothing left, files are only learnt from,
//! and predictions are made only while a device is waited for. Deep in debt, events are dropped.

/// One ns of income per this many ns: 2.5 % of one core, where at most 3 % is allowed in a parallel build.
const SHARE: u64 = 40;
/// One ns per this many ns in which no processor had work because all tasks waited for devices. A cold link of a kernel loses 0.40 s;
/// predicting and fetching its 790 files takes 0.2 s of processor time. With one in 8 of the time that some task waited, 60 and 73 % of the
/// events of two series of cold starts of Python were dropped.
const LOST: u64 = 2;
/// One ns per this many ns of waiting that programs were spared. A link of a kernel and a search in its sources, in turn, take the daemon
/// 0.6 s of processor time per 3 s. Without this allowance up to a third of the events were dropped from the fourth turn on.
const SPARED: u64 = 2;
/// Limit of savings, in ns: a build from a cold disk begins with a burst of 0.3 s.
const MOST: i64 = 500_000_000;
/// Debt at which events are dropped, in ns.
const DEBT: i64 = -200_000_000;

/// The affordable work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Means {
    /// None: events are dropped.
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
    lost: u64,
    spared: u64,
}

/// Sums since some time in the past, in ns, by which the account is settled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// Processor time that this process has used.
    pub(crate) used: u64,
    /// Processor time that was lost to devices.
    pub(crate) lost: u64,
    /// Waiting that prefetching has spared programs.
    pub(crate) spared: u64,
}

impl Upkeep {
    /// An account that begins at `now`, when this process had `used` this much processor time, in ns.
    pub(crate) fn new(now: u64, used: u64) -> Self {
        Self {
            balance: MOST,
            at: now,
            used,
            lost: 0,
            spared: 0,
        }
    }

    /// Settles the account at `now`.
    pub(crate) fn settle(&mut self, now: u64, sums: Sums) -> Means {
        let Sums { used, lost, spared } = sums;
        // Time lost before this account began, or no longer reported, is no income.
        let began = self.lost > 0;
        let more = lost.saturating_sub(self.lost);
        let paid = now.saturating_sub(self.at) / SHARE
            + if began { more / LOST } else { 0 }
            + spared.saturating_sub(self.spared) / SPARED;
        let spent = used.saturating_sub(self.used);
        self.balance = self
            .balance
            .saturating_add_unsigned(paid)
            .min(MOST)
            .saturating_sub_unsigned(spent);
        (self.at, self.used, self.lost) = (now, used, lost);
        self.spared = self.spared.max(spared);
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
            // Ten times the affordable work, while it is permitted.
            now += 1_000_000;
            let sums = Sums {
                used,
                ..Sums::default()
            };
            used += match upkeep.settle(now, sums) {
                Means::None => 5_000,
                Means::Learn | Means::All => 250_000,
            };
        }
        let allowed = now / SHARE + (MOST - DEBT) as u64 + 250_000;
        assert!(used <= allowed, "{used} of {allowed}");
        assert!(used * 100 / now <= 3);
    }

    /// For 5 s a quarter of the processor is used, while these sums grow as the time does.
    fn lasts(sums: impl Fn(u64) -> Sums) {
        const COLD: u64 = 5_000_000_000;
        let mut used = 0;
        let mut upkeep = Upkeep::new(0, used);
        for now in (0..COLD).step_by(1_000_000) {
            used += match upkeep.settle(now, Sums { used, ..sums(now) }) {
                Means::All => 250_000,
                Means::Learn | Means::None => panic!("half as much is used"),
            };
        }
    }

    #[test]
    fn half_of_what_is_lost_to_devices_may_be_used() {
        // Every task waits all the time.
        lasts(|now| Sums {
            lost: 1_000 + now,
            ..Sums::default()
        });
    }

    #[test]
    fn half_of_what_programs_were_spared_may_be_used() {
        lasts(|now| Sums {
            spared: now,
            ..Sums::default()
        });
    }
}
