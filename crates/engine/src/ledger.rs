//! What became of every byte issued.

use std::iter::Sum;

use foreread_plan::PAGE;
use serde::{Deserialize, Serialize};

use crate::pages::Unread;

/// An account in bytes (whole pages).
///
/// Invariant of a closed account: `issued = useful + late + wasted + evicted + infill + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Fetched from the device ahead of the program.
    pub issued: u64,
    /// In memory when the program read it.
    pub useful: u64,
    /// Still on its way when the program read it: part of the wait was saved.
    pub late: u64,
    /// Wanted, and never read by the program, which was watched all that time.
    pub wasted: u64,
    /// Gone from memory again before the program read it.
    pub evicted: u64,
    /// Never wanted, and never read by the program: read along because it lay between pages wanted
    /// of a device that is faster at reading than at skipping.
    #[serde(default)]
    pub infill: u64,
    /// Not seen to be read by the program, which was not watched all the time: it may have read them.
    #[serde(default)]
    pub unknown: u64,
    /// Read by the program from the device, not issued by anyone else: what was not foreseen
    /// in time. Not part of `issued`.
    pub missed: u64,
}

impl Sum for Ledger {
    fn sum<I: Iterator<Item = Self>>(ledgers: I) -> Self {
        ledgers.fold(Self::default(), |sum, one| Self {
            issued: sum.issued + one.issued,
            useful: sum.useful + one.useful,
            late: sum.late + one.late,
            wasted: sum.wasted + one.wasted,
            evicted: sum.evicted + one.evicted,
            infill: sum.infill + one.infill,
            unknown: sum.unknown + one.unknown,
            missed: sum.missed + one.missed,
        })
    }
}

impl Ledger {
    /// Whether every byte issued is accounted for.
    pub fn is_closed(&self) -> bool {
        let read = self.useful + self.late;
        self.issued == read + self.wasted + self.evicted + self.infill + self.unknown
    }

    /// Of the bytes issued because they were wanted, the share the program read: accuracy. `None` if that is known of none. Infill that
    /// was not read was no wrong prediction.
    pub fn accuracy(&self) -> Option<f64> {
        let known = self.issued - self.unknown - self.infill;
        (known > 0).then(|| (self.useful + self.late) as f64 / known as f64)
    }

    /// Of the bytes that the program needed from the device, the share that was fetched ahead of it: coverage. The device has given
    /// so many bytes to the program itself, as far as is known, seen by an observer or not.
    pub fn coverage(&self, device_bytes: Option<u64>) -> Option<f64> {
        let ahead = self.useful + self.late;
        let needed = ahead + self.missed.max(device_bytes.unwrap_or(0));
        (needed > 0).then(|| ahead as f64 / needed as f64)
    }

    /// Enter pages that the program was not seen to read.
    pub(crate) fn enter(&mut self, unread: Unread) {
        self.wasted += unread.wasted * PAGE;
        self.infill += unread.infill * PAGE;
        self.unknown += unread.unknown * PAGE;
    }

    /// Of the bytes issued and read, the share that was there in time: timeliness.
    pub fn timeliness(&self) -> Option<f64> {
        let read = self.useful + self.late;
        (read > 0).then(|| self.useful as f64 / read as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_saw_the_program_wait_for_was_not_covered() {
        let ledger = Ledger {
            issued: 30,
            useful: 20,
            late: 10,
            missed: 10,
            ..Ledger::default()
        };
        assert_eq!(ledger.coverage(None), Some(0.75));
        assert_eq!(ledger.coverage(Some(0)), Some(0.75));
        assert_eq!(ledger.coverage(Some(270)), Some(0.1));
        assert_eq!(Ledger::default().coverage(Some(0)), None);
    }

    #[test]
    fn infill_is_no_wrong_prediction() {
        let ledger = Ledger {
            issued: 100,
            useful: 30,
            late: 10,
            wasted: 10,
            infill: 30,
            unknown: 20,
            ..Ledger::default()
        };
        assert!(ledger.is_closed());
        assert_eq!(ledger.accuracy(), Some(0.8));
    }
}
