//! The accounts of predictions and of fetched bytes, for each program and for all.
//!
//! Invariant: at most [`PROGRAMS`] programs are kept; those with the fewest bytes issued go first. The sum of all keeps them.

use foreread_plan::Ledger;
use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;

use crate::programs::{Key, PROGRAMS};
use crate::proofs::{Proof, Proofs};
use crate::{Lead, Predictions, Program};

/// Times from a prediction to the event that it foretold, in ns: their distribution, to a tenth of each.
#[derive(Clone, Debug)]
pub(crate) struct Leads(Histogram<u32>);

impl Default for Leads {
    fn default() -> Self {
        Self(Histogram::new(1).expect("a digit that counts"))
    }
}

impl Leads {
    pub(crate) fn add(&mut self, ns: u64) {
        // Its range grows as needed.
        let _ = self.0.record(ns);
    }

    pub(crate) fn told(&self) -> Lead {
        let at = |share| self.0.lowest_equivalent(self.0.value_at_quantile(share));
        Lead {
            count: self.0.len(),
            median: at(0.5),
            tenth: at(0.1),
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
    fn leads_of_any_length_are_counted_to_a_tenth() {
        let mut leads = Leads::default();
        assert_eq!(leads.told(), Lead::default());
        leads.add(0);
        assert_eq!((leads.told().count, leads.told().median), (1, 0));
        let hours = 3600 * 1_000_000_000;
        (1..=100).for_each(|number| leads.add(number * hours));
        let Lead {
            count,
            median,
            tenth,
        } = leads.told();
        assert_eq!(count, 101);
        assert!((46 * hours..=50 * hours).contains(&median), "{median}");
        assert!((9 * hours..=10 * hours).contains(&tenth), "{tenth}");
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
