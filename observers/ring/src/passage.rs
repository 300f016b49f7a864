//! Which processes became another program and were not heard of again.
//!
//! The library says so when its process is about to become another program, and the library in
//! the new program says that it is there. Whoever is not back by the end ran unobserved: the new
//! program is statically linked, has other privileges, is in another PID namespace, or was given an
//! environment without us. Who finds itself in such a namespace says so,
//! if it can.
//!
//! Invariant: a process has one place, by its number; a place that another process takes over is
//! counted first. No entry costs more than one atomic exchange.
//!
//! Data flow: exec hook → [`Shared::pass`] → constructor → [`Shared::pass`]; [`Shared::unobserved`]
//! for the supervisor.

use core::sync::atomic::Ordering;

use crate::layout::Shared;

/// Places, a power of two: processes that can be on their way at once.
pub const PASSAGES: usize = 1024;

/// Where a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Passage {
    /// In a program that reports.
    Here = 1,
    /// On the way to another program, or in one that does not report.
    Gone = 2,
    /// The same, and the environment it took along does not name the ring.
    Cleared = 3,
    /// In another PID namespace, where no program reports.
    Apart = 4,
}

/// How many processes became a program that did not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    /// With an environment that does not name the ring.
    pub cleared: u32,
    /// In another PID namespace, or without the supervisor's /proc: its number there is another one than the
    /// supervisor would look for it by.
    pub apart: u32,
    /// For another reason: statically linked or privileged, as a rule.
    pub other: u32,
}

fn word(pid: u32, passage: Passage) -> u64 {
    u64::from(pid) << 8 | passage as u64
}

impl Shared {
    /// Process `pid` is where `passage` says.
    pub fn pass(&self, pid: u32, passage: Passage) {
        let place = &self.passages[pid as usize % PASSAGES];
        self.count_evicted(place.swap(word(pid, passage), Ordering::Relaxed), pid);
    }

    /// Process `pid`, a child made as another program, is where `passage` says, unless it has
    /// said itself already where it is.
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
        let found = place.load(Ordering::Relaxed);
        if found >> 8 == u64::from(pid) && found != word(pid, Passage::Here) {
            place.store(word(pid, Passage::Here), Ordering::Relaxed);
        }
    }

    /// Who has not come back by now.
    pub fn unobserved(&self) -> Unobserved {
        let [cleared, apart, other] = &self.header.unobserved;
        let mut count = Unobserved {
            cleared: cleared.load(Ordering::Relaxed),
            apart: apart.load(Ordering::Relaxed),
            other: other.load(Ordering::Relaxed),
        };
        for place in &self.passages {
            match place.load(Ordering::Relaxed) as u8 {
                code if code == Passage::Gone as u8 => count.other += 1,
                code if code == Passage::Cleared as u8 => count.cleared += 1,
                code if code == Passage::Apart as u8 => count.apart += 1,
                _ => {}
            }
        }
        count
    }

    fn count_evicted(&self, found: u64, pid: u32) {
        if found >> 8 == u64::from(pid) {
            return;
        }
        let [cleared, apart, other] = &self.header.unobserved;
        match found as u8 {
            code if code == Passage::Gone as u8 => other.fetch_add(1, Ordering::Relaxed),
            code if code == Passage::Cleared as u8 => cleared.fetch_add(1, Ordering::Relaxed),
            code if code == Passage::Apart as u8 => apart.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}
