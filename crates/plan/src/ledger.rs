//! The fate of every issued byte: the one account of a run, a plan, a strand, a program of the daemon's, and a client.

use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::PAGE;

/// An account in bytes (whole pages).
///
/// Invariant of a closed account: `issued = useful + late + wasted + evicted + infill + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Fetched from the device ahead of the program.
    pub issued: u64,
    /// In memory when the program read it.
    pub useful: u64,
    /// Still on its way when the program read it: part of the wait was saved.
    pub late: u64,
    /// Wanted, and never read by the program, which was observed all the time.
    pub wasted: u64,
    /// Evicted from memory before the program read it.
    pub evicted: u64,
    /// Not wanted, and never read by the program: read along because it was between wanted pages, on a device that is faster at reading
    /// than at skipping.
    pub infill: u64,
    /// Not seen to be read by the program, which was not observed all the time: it may have read them.
    pub unknown: u64,
    /// Read by the program from the device, and not issued by any other process: reads that were not foreseen in time. Not part of
    /// `issued`.
    pub missed: u64,
}

impl AddAssign for Ledger {
    fn add_assign(&mut self, mut other: Self) {
        for (column, more) in self.columns().into_iter().zip(other.columns()) {
            *column += *more;
        }
    }
}

impl Sum for Ledger {
    fn sum<I: Iterator<Item = Self>>(ledgers: I) -> Self {
        ledgers.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

impl Ledger {
    fn columns(&mut self) -> [&mut u64; 8] {
        let Self {
            issued,
            useful,
            late,
            wasted,
            evicted,
            infill,
            unknown,
            missed,
        } = self;
        [
            issued, useful, late, wasted, evicted, infill, unknown, missed,
        ]
    }

    /// The account of this many pages, in bytes.
    pub fn of_pages(mut pages: Self) -> Self {
        for column in pages.columns() {
            *column *= PAGE;
        }
        pages
    }

    /// Issued bytes that were read.
    pub fn read(&self) -> u64 {
        self.useful + self.late
    }

    /// Issued bytes that the program was not seen to read, and that were not evicted.
    pub fn unread(&self) -> u64 {
        self.wasted + self.infill + self.unknown
    }

    /// Issued bytes whose fate is known.
    pub fn judged(&self) -> u64 {
        self.read() + self.evicted + self.unread()
    }

    /// True if every issued byte is accounted for.
    pub fn is_closed(&self) -> bool {
        self.issued == self.judged()
    }

    /// Accuracy: among bytes issued because they were wanted, the share that the program read; `None` if no fate is known. Unread infill is
    /// no wrong prediction.
    pub fn accuracy(&self) -> Option<f64> {
        let known = self.issued - self.unknown - self.infill;
        (known > 0).then(|| self.read() as f64 / known as f64)
    }

    /// Coverage: among bytes that the program needed from the device, the share that was fetched ahead of it. `device_bytes` is the number
    /// of bytes that the device has given to the program itself, as far as is known, observed or not.
    pub fn coverage(&self, device_bytes: Option<u64>) -> Option<f64> {
        let ahead = self.read();
        let needed = ahead + self.missed.max(device_bytes.unwrap_or(0));
        (needed > 0).then(|| ahead as f64 / needed as f64)
    }

    /// Timeliness: among issued bytes that were read, the share that was in memory in time.
    pub fn timeliness(&self) -> Option<f64> {
        let read = self.read();
        (read > 0).then(|| self.useful as f64 / read as f64)
    }
}

/// The fate of every name that was looked up ahead of a program, in names, because these have no bytes.
///
/// Invariant of a closed account: `asked = used + unused + unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameLedger {
    /// Looked up ahead of the program.
    pub asked: u64,
    /// Names of these whose lookup waited.
    pub fetched: u64,
    /// Used by the program after the lookup, or during it.
    pub used: u64,
    /// Names of these that were still in progress at their use.
    pub late: u64,
    /// Not used by the program, which was observed all the time.
    pub unused: u64,
    /// Not seen to be used by the program, which was not observed all the time.
    pub unknown: u64,
}

impl Sum for NameLedger {
    fn sum<I: Iterator<Item = Self>>(ledgers: I) -> Self {
        ledgers.fold(Self::default(), |sum, one| Self {
            asked: sum.asked + one.asked,
            fetched: sum.fetched + one.fetched,
            used: sum.used + one.used,
            late: sum.late + one.late,
            unused: sum.unused + one.unused,
            unknown: sum.unknown + one.unknown,
        })
    }
}

impl NameLedger {
    /// True if every requested name is accounted for.
    pub fn is_closed(&self) -> bool {
        self.asked == self.used + self.unused + self.unknown
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

    #[test]
    fn each_column_is_added_and_counted_in_pages() {
        let one = Ledger {
            issued: 21,
            useful: 1,
            late: 2,
            wasted: 3,
            evicted: 4,
            infill: 5,
            unknown: 6,
            missed: 7,
        };
        assert!(one.is_closed());
        let sum: Ledger = [one; 4096].into_iter().sum();
        assert_eq!(sum, Ledger::of_pages(one));
        assert_eq!(sum.missed, 7 * PAGE);
        assert!(sum.is_closed());
    }

    #[test]
    fn an_account_that_was_written_with_fewer_columns_can_be_read() {
        let text = r#"{"issued":2,"useful":1,"late":1,"wasted":0,"evicted":0,"missed":3}"#;
        let read: Ledger = serde_json::from_str(text).expect("a ledger");
        assert!(read.is_closed());
        assert_eq!((read.issued, read.missed), (2, 3));
    }
}
