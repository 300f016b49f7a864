//! Finds processes that executed another program and did not report again.
//!
//! The library reports that its process is about to execute another program, and the library in the new program reports its presence. Only
//! the supervisor finds out why one did not return ([`Shared::gone`]): the library must not read arguments that the kernel has not checked
//! yet.
//!
//! Invariant: a process has one place, by its number; a place that another process takes over is
//! counted first. No entry costs more than one atomic exchange.
//!
//! Data flow: exec hook → [`Shared::pass`] → constructor → [`Shared::pass`]; [`Shared::gone`] and [`Shared::unobserved`]
//! for the supervisor.

use crate::atomic::Ordering;
use crate::layout::{PASSAGES, Shared};

/// The place of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Passage {
    /// In a program that reports.
    Here = 1,
    /// On the way to another program, or in one that does not report.
    Gone = 2,
    /// In another PID namespace, where no program reports.
    Apart = 3,
}

/// Number of processes that reported nothing, or not everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    /// Became a program that does not report.
    pub gone: u32,
    /// In another PID namespace, or without the supervisor's /proc: its id there differs from the one that the supervisor would search for.
    pub apart: u32,
    /// Under a system-call filter: no more is observed of them than takes no system call.
    pub filtered: u32,
}

fn word(pid: u32, passage: Passage) -> u64 {
    u64::from(pid) << 8 | passage as u64
}

/// The process in a place, if its state is `passage`.
fn process(found: u64, passage: Passage) -> Option<u32> {
    (found as u8 == passage as u8).then_some((found >> 8) as u32)
}

impl Shared {
    /// Process `pid` is where `passage` says.
    pub fn pass(&self, pid: u32, passage: Passage) {
        let place = &self.passages[pid as usize % PASSAGES];
        self.count_evicted(place.swap(word(pid, passage), Ordering::Relaxed), pid);
    }

    /// Sets the state of process `pid`, a child created with another program, unless it has set its state already.
    pub fn pass_child(&self, pid: u32, passage: Passage) {
        let place = &self.passages[pid as usize % PASSAGES];
        let found = place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |found| {
            (found >> 8 != u64::from(pid)).then_some(word(pid, passage))
        });
        if let Ok(evicted) = found {
            self.count_evicted(evicted, pid);
        }
    }

    /// Process `pid` did not become another program after all, if it was about to.
    pub fn stay(&self, pid: u32) {
        let place = &self.passages[pid as usize % PASSAGES];
        let (found, here) = (place.load(Ordering::Relaxed), word(pid, Passage::Here));
        if found >> 8 == u64::from(pid) && found != here {
            // A failure means that another process has taken the place.
            let _ = place.compare_exchange(found, here, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The processes that have not returned by now, except for those whose place was reused.
    pub fn gone(&self) -> impl Iterator<Item = u32> {
        self.those(Passage::Gone)
    }

    fn those(&self, passage: Passage) -> impl Iterator<Item = u32> {
        self.passages
            .iter()
            .filter_map(move |place| process(place.load(Ordering::Relaxed), passage))
    }

    /// Number of processes that were not fully observed.
    pub fn unobserved(&self) -> Unobserved {
        let header = &self.header;
        Unobserved {
            gone: header.evicted.load(Ordering::Relaxed) + self.gone().count() as u32,
            apart: header.apart.load(Ordering::Relaxed) + self.those(Passage::Apart).count() as u32,
            filtered: header.filtered.load(Ordering::Relaxed),
        }
    }

    fn count_evicted(&self, found: u64, pid: u32) {
        let header = &self.header;
        for (passage, count) in [
            (Passage::Gone, &header.evicted),
            (Passage::Apart, &header.apart),
        ] {
            if process(found, passage).is_some_and(|evicted| evicted != pid) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
