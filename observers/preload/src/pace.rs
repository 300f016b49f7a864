//! Which reads the clock is asked about.
//!
//! Asking it takes a third of what watching a read costs. A thread that reads quickly, one read after another, is
//! taken to go on so as long as the kernel does not tell that it waited: then only the start of a read is looked up,
//! and of a read like the one before, of the same file, call and length, not even that. After [`MEASURED`] of the first sort,
//! or as many of the second as the ring takes together, one is measured all the same.

use crate::area::stamp;

/// A read is quick, in ticks, if it takes less, and begins less after the one before: no device answers in that time.
const QUICK: u64 = 1 << 14;

/// What a call that found all in memory is said to have taken at most, in ticks, and one for each byte that was copied: it may have been
/// interrupted, but has waited for nothing. A read that took longer counts as one that waited (`foreread_plan::waited`).
const AT_ONCE: u64 = 1 << 13;

/// Unless it took longer than this, in ticks, and one for each byte: some virtual disks answer before the reader is switched out.
const LONG: u64 = 1 << 16;

/// So many quick reads in a row are measured before that many are taken to be as quick, and between them.
const MEASURED: u8 = 16;

/// Longer reads take their time in copying, each its own; bytes.
const SHORT: u64 = 16 << 10;

/// What a call in which the thread was not switched out is said to have taken, in ticks; `len` bytes were copied.
pub fn at_once(took: u64, len: u64) -> u64 {
    match took < LONG + len {
        true => took.min(AT_ONCE + len),
        false => took,
    }
}

/// How quick a thread's reads are. Times are in ticks.
#[derive(Clone, Copy)]
pub struct Pace {
    /// When the last read began that did not merely go on.
    began: u64,
    /// What the last measured one took, and from one to the next.
    took: u64,
    period: u64,
    /// Quick ones measured in a row, up to [`MEASURED`].
    quick: u8,
    /// Reads that need not be measured.
    left: u8,
}

/// The times of a read, in ticks.
pub struct Times {
    pub start: u64,
    pub took: u64,
    /// Whether it was quick, as others before it, and the next may be taken to be so too.
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

    /// The times of a read of `len` bytes that has ended, `more` after the last one that was asked about. `begun` is `None` where that
    /// was not looked up, `ended` where that was just now.
    #[inline(always)]
    pub fn times(&mut self, begun: Option<u64>, ended: Option<u64>, len: u64, more: u16) -> Times {
        let since = u64::from(more) + 1;
        let due = self.began + (self.took + QUICK) * since;
        // One not looked up may have begun later, by what else the thread has done since one was.
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
