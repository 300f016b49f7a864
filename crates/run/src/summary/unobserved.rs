//! Parts of a program that were not observed, in this run and in the recorded one.

use foreread_plan::Summary;
use foreread_words::units::bytes;

use super::Account;
use crate::unseen::Explained;

/// Limits of a record's sentences that are repeated, in number and in characters: a record is untrusted.
const TOLD: usize = 4;
const TOLD_LENGTH: usize = 300;

impl Account {
    /// Enters bytes from devices that no observed read explains.
    pub(crate) fn unseen(&mut self, explained: &Explained) {
        self.unseen_bytes = self.device_bytes.and_then(|all| explained.unseen(all));
        if let (Some(unseen), Some(all)) = (self.unseen_bytes, self.device_bytes) {
            self.not_observed(format!(
                "{} of {} from the device came by reads that cannot be observed",
                bytes(unseen),
                bytes(all)
            ));
        }
    }

    /// Enters a part of the program that was not observed.
    pub(crate) fn not_observed(&mut self, said: String) {
        self.unobserved.push(said.clone());
        self.remark(said);
    }

    /// Enters the unobserved parts of the recorded run, by these sentences of its record.
    pub(crate) fn was_unobserved(&mut self, told: &[String]) {
        for said in told.iter().take(TOLD) {
            let said: String = said.chars().take(TOLD_LENGTH).collect();
            self.remark(format!("when recorded, {said}"));
        }
    }

    /// True if some reads were not observed, in the recorded run and in this one.
    pub(crate) fn is_observed_in_part(&self) -> bool {
        let tells = |foot: &Summary| !foot.unobserved.is_empty() || foot.by_kernel;
        !self.by_kernel && self.baseline.as_ref().is_some_and(tells)
    }

    /// Enters the unobserved parts of the recorded run, if this run has no such entry and was observed no better.
    pub(crate) fn as_unobserved_as_recorded(&mut self) {
        if !self.unobserved.is_empty() || !self.is_observed_in_part() {
            return;
        }
        if let Some(foot) = self.baseline.take() {
            self.was_unobserved(&foot.unobserved);
            self.baseline = Some(foot);
        }
    }
}
