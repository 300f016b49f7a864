//! The processes that an observer of the machine hears of, and how many of their events it looks at.
//!
//! Invariants: a fixed number of processes is kept, the latest ones with reports. The work for one process, and for all, is bounded by an
//! [`Allowance`] each; further events are counted and not examined. The end of a process that is not reported is found by a search.

use std::num::NonZeroUsize;

use lru::LruCache;

use crate::look::has_ended;
use crate::{Allowance, Rate};

/// Number of processes known at the same time.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Interval of the search for ended processes, in ns: 0.2 µs per known process.
pub(crate) const SWEEP: u64 = 1_000_000_000;

/// The processes, each with the observer's data.
#[derive(Debug)]
pub struct Processes<T> {
    known: LruCache<u32, (Allowance, T)>,
    all: Allowance,
    beyond: u64,
    swept: u64,
}

impl<T> Processes<T> {
    /// None yet, at a time in ns.
    pub fn new(at: u64) -> Self {
        Self {
            known: LruCache::new(KEPT),
            all: Allowance::new(Rate::ALL, at),
            beyond: 0,
            swept: at,
        }
    }

    /// The data of a process.
    pub fn get(&self, pid: u32) -> Option<&T> {
        self.known.peek(&pid).map(|(_, kept)| kept)
    }

    /// The same of one that is heard of now.
    pub fn get_mut(&mut self, pid: u32) -> Option<&mut T> {
        self.known.get_mut(&pid).map(|(_, kept)| kept)
    }

    /// Keeps this of a process from now on.
    pub fn put(&mut self, pid: u32, kept: T, at: u64) {
        self.known.put(pid, (Allowance::new(Rate::ONE, at), kept));
    }

    /// Keeps nothing of a process any more.
    pub fn forget(&mut self, pid: u32) -> Option<T> {
        self.known.pop(&pid).map(|(_, kept)| kept)
    }

    /// True if one more event of a known process is examined.
    pub fn admits(&mut self, pid: u32, at: u64) -> bool {
        let own = self.known.get_mut(&pid);
        let is_within = own.is_some_and(|(own, _)| own.take(at));
        is_within && self.all.take(at) || self.turns_away()
    }

    /// True if one more start of a program is examined, whatever the number of its process's events.
    pub fn admits_start(&mut self, at: u64) -> bool {
        self.all.take(at) || self.turns_away()
    }

    fn turns_away(&mut self) -> bool {
        self.beyond += 1;
        false
    }

    /// Number of events that were not examined.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Forgets ended processes that have had no event since the last search, so that all their events were taken. The search runs once a
    /// second.
    pub fn ended(&mut self, at: u64) -> Vec<(u32, T)> {
        if at.saturating_sub(self.swept) < SWEEP {
            return Vec::new();
        }
        self.swept = at;
        let is_silent = |own: &Allowance| at.saturating_sub(own.asked_at()) >= SWEEP;
        let known = self.known.iter();
        let silent = known.filter(|(_, (own, _))| is_silent(own));
        let silent = silent.map(|(pid, _)| *pid);
        let ended: Vec<u32> = silent.filter(|pid| has_ended(*pid)).collect();
        let forget = |pid| self.forget(pid).map(|kept| (pid, kept));
        ended.into_iter().filter_map(forget).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_each_process_and_all_have_an_allowance() {
        let mut processes = Processes::new(0);
        for pid in 1..=5000 {
            processes.put(pid, pid, 0);
        }
        assert_eq!(processes.known.len(), KEPT.get());
        assert_eq!((processes.get(1), processes.get(5000)), (None, Some(&5000)));
        assert!(!processes.admits(1, 0), "nothing is known of it");
        let mut looked_at = 0;
        for pid in 4000..4010 {
            let of_one = (0..10_000).filter(|_| processes.admits(pid, 0)).count() as u64;
            assert!(of_one <= Rate::ONE.at_once);
            looked_at += of_one;
        }
        assert_eq!(looked_at, Rate::ALL.at_once);
        assert!(!processes.admits_start(0));
        assert_eq!(processes.beyond(), 100_000 - looked_at + 2);
    }

    #[test]
    fn who_has_ended_has_no_new_allowance_for_events_that_are_still_taken() {
        let mut processes = Processes::new(0);
        processes.put(u32::MAX, (), 0);
        assert!(processes.admits(u32::MAX, SWEEP / 2));
        assert!(processes.ended(SWEEP).is_empty());
        assert_eq!(processes.ended(2 * SWEEP), [(u32::MAX, ())]);
    }

    #[test]
    fn who_has_ended_is_found_once_and_not_at_each_look() {
        let mut processes = Processes::new(0);
        processes.put(std::process::id(), "runs", 0);
        processes.put(u32::MAX, "is none", 0);
        assert!(processes.ended(SWEEP - 1).is_empty());
        assert_eq!(processes.ended(SWEEP), [(u32::MAX, "is none")]);
        assert!(processes.ended(2 * SWEEP).is_empty());
        assert_eq!(processes.get(std::process::id()), Some(&"runs"));
    }
}
