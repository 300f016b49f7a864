//! Decides at which reads the clock is read.
//!
//! Reading the clock takes a third of the cost of watching a read. A thread with quick reads, one after another, is assumed to continue so
//! while the kernel does not report a switch: then only the start of a read is measured, and not even that for a read like the previous
//! one, with the same file, call and length. After [`MEASURED`] reads of the first kind, or as many of the second as one ring slot counts,
//! a read is measured in any case.

use crate::area::stamp;

/// A read is quick if its duration, and the time since the previous one, are less than this, in ticks: no device answers in that time.
const QUICK: u64 = 1 << 14;

/// Largest reported duration of a call that found all bytes in memory, in ticks, plus one tick per copied byte: it may have been
/// interrupted, but has waited for nothing. A longer read counts as one that waited (`foreread_plan::waited`).
const AT_ONCE: u64 = 1 << 13;

/// A call that took longer than this, in ticks, plus one tick per byte, has waited even if the thread was not switched out: some virtual
/// disks answer before that.
const LONG: u64 = 1 << 16;

/// This many consecutive quick reads are measured before as many are assumed to be quick, and again between them.
const MEASURED: u8 = 16;

/// Longest read, in bytes, whose duration may be assumed: the time for copying more bytes varies.
const SHORT: u64 = 16 << 10;

/// Reported duration of a call in which the thread was not switched out, in ticks; `len` bytes were copied.
pub fn at_once(took: u64, len: u64) -> u64 {
    match took < LONG + len {
        true => took.min(AT_ONCE + len),
        false => took,
    }
}

/// The pace of a thread's reads. Times are in ticks.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Start of the last read that was not merely counted.
    began: u64,
    /// Duration of the last measured read, and time from one read to the next.
    took: u64,
    period: u64,
    /// Number of consecutive quick reads that were measured, up to [`MEASURED`].
    quick: u8,
    /// Reads that need not be measured.
    left: u8,
}

/// The times of a read, in ticks.
pub struct Times {
    pub start: u64,
    pub took: u64,
    /// True if it was quick like others before it, and the next one may be assumed to be quick.
    pub quick: bool,
}

impl Pace {
    pub const NEW: Self = Self {
        began: 0,
        took: 0,
        period: 0,
        quick: 0,
        left: 0,
    };

    /// The times of a read of `len` bytes that has ended, after `more` reads that were only counted since the last call. `begun` is `None`
    /// if the clock was not read at the start, `ended` if the read has just ended.
    #[inline(always)]
    pub fn times(&mut self, begun: Option<u64>, ended: Option<u64>, len: u64, more: u16) -> Times {
        let since = u64::from(more) + 1;
        let due = self.began + (self.took + QUICK) * since;
        // An unmeasured read may have begun later, because of other work of the thread since the last measurement.
        let (looked_up, start) = match begun {
            Some(start) => (true, start),
            None => (false, self.began + self.period * since),
        };
        let in_time = start < due;
        let gone = start.saturating_sub(self.began);
        self.began = start;
        let short = ended.is_none() && len <= SHORT;
        self.left = self.left.saturating_sub(more as u8);
        if short && self.left > 0 {
            self.left -= 1;
        } else {
            let took = ended.unwrap_or_else(stamp).saturating_sub(start);
            if in_time && looked_up {
                self.period = gone / since;
            }
            let quick = short && in_time && took < QUICK;
            self.took = match ended {
                None => at_once(took, len),
                Some(_) => took,
            };
            self.quick = if quick {
                (self.quick + 1).min(MEASURED)
            } else {
                0
            };
            self.left = if self.quick == MEASURED { MEASURED } else { 0 };
        }
        Times {
            start,
            took: self.took,
            quick: in_time && self.left > 0,
        }
    }
}
