//! The accounts of predictions and of fetched bytes, for each program and for all.
//!
//! Invariant: at most [`PROGRAMS`] programs are kept; those with the fewest bytes issued go first. The sum of all keeps them.

use foreread_plan::Ledger;
use rustc_hash::FxHashMap;

use crate::programs::{Key, PROGRAMS};
use crate::proofs::{Proof, Proofs};
use crate::{Lead, Predictions, Program};

/// Steps of the distribution of leads for each doubling, and all of them: from 1 ns to 18 minutes, each 19 % longer. No time at all
/// is in the first.
const STEPS: u32 = 4;
const BUCKETS: usize = 40 * STEPS as usize;

/// Times from a prediction to the event that it foretold, as a distribution.
#[derive(Clone, Debug)]
pub(crate) struct Leads {
    buckets: [u32; BUCKETS],
    count: u64,
}

impl Default for Leads {
    fn default() -> Self {
        Self {
            buckets: [0; BUCKETS],
            count: 0,
        }
    }
}

impl Leads {
    pub(crate) fn add(&mut self, ns: u64) {
        let step = (ns.max(1) as f64).log2() * f64::from(STEPS);
        let bucket = (step as usize).min(BUCKETS - 1);
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.count += 1;
    }

    /// The quantile of the leads at this share, in ns.
    fn quantile(&self, share: f64) -> u64 {
        let rank = (self.count as f64 * share) as u64;
        let mut before = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            before += u64::from(*count);
            if before > rank {
                return match bucket {
                    0 => 0,
                    bucket => (bucket as f64 / f64::from(STEPS)).exp2() as u64,
                };
            }
        }
        0
    }

    pub(crate) fn told(&self) -> Lead {
        Lead {
            count: self.count,
            median: self.quantile(0.5),
            tenth: self.quantile(0.1),
        }
    }
}

/// One account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) predictions: Predictions,
    pub(crate) leads: Leads,
    pub(crate) bytes: Ledger,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    pub(crate) all: Account,
    pub(crate) proofs: Proofs,
    programs: FxHashMap<Key, Account>,
}

impl Accounts {
    /// Enters the same for a program and for all.
    pub(crate) fn enter(&mut self, key: &Key, enter: impl Fn(&mut Account)) {
        enter(&mut self.all);
        if let Some(known) = self.programs.get_mut(key) {
            enter(known);
            return;
        }
        if self.programs.len() >= PROGRAMS {
            let weight = |one: &Account| (one.bytes.issued, one.predictions.events);
            let least = self.programs.iter().min_by_key(|(_, one)| weight(one));
            if let Some(least) = least.map(|(key, _)| key.clone()) {
                self.programs.remove(&least);
            }
        }
        enter(self.programs.entry(key.clone()).or_default());
    }

    /// A program's share of a session that is over.
    pub(crate) fn close(&mut self, key: &Key, bytes: &Ledger) {
        self.enter(key, |account| account.bytes += *bytes);
        let proof = Proof {
            right: bytes.read(),
            wrong: bytes.wasted,
        };
        self.proofs.add(key, proof);
    }

    /// By program, those with most bytes first; what runs at present is added.
    pub(crate) fn told(&self, running: &[(Key, Ledger)]) -> Vec<Program> {
        let mut programs: Vec<Program> = self
            .programs
            .iter()
            .map(|((name, uid), one)| Program {
                name: name.to_string(),
                uid: *uid,
                predictions: one.predictions,
                lead: one.leads.told(),
                bytes: one.bytes,
            })
            .collect();
        for ((name, uid), bytes) in running {
            let known = programs
                .iter_mut()
                .find(|one| one.name == **name && one.uid == *uid);
            if let Some(known) = known {
                known.bytes += *bytes;
            }
        }
        let weight = |one: &Program| (one.bytes.issued, one.predictions.events);
        programs.sort_by(|one, other| {
            (weight(other), &one.name, one.uid).cmp(&(weight(one), &other.name, other.uid))
        });
        programs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn quantiles_of_leads_are_within_a_fifth() {
        let mut leads = Leads::default();
        for ms in 1..=100_u64 {
            leads.add(ms * 1_000_000);
        }
        let told = leads.told();
        let close = |is: u64, ms: f64| (is as f64 / 1e6 / ms).log2().abs() < 0.3;
        assert_eq!(told.count, 100);
        assert!(
            close(told.median, 50.0) && close(told.tenth, 10.0),
            "{told:?}"
        );
    }

    #[test]
    fn what_was_foretold_as_it_was_seen_has_no_lead() {
        let mut leads = Leads::default();
        leads.add(0);
        let told = leads.told();
        assert_eq!((told.count, told.median, told.tenth), (1, 0, 0));
    }

    #[test]
    fn programs_are_bounded_and_those_with_most_bytes_stay() {
        let mut accounts = Accounts::default();
        for number in 0..2000 {
            let key = (Arc::from(format!("program {number}")), 1000);
            accounts.enter(&key, |one| one.bytes.issued += number);
        }
        let told = accounts.told(&[]);
        assert_eq!(told.len(), PROGRAMS);
        assert_eq!(told[0].name, "program 1999");
        assert_eq!(accounts.all.bytes.issued, 1999 * 1000);
    }
}
