//! Keeps threads off the processor on which the program reads.
//!
//! Purpose: a thread that wakes every 100 µs to make a request interrupts whatever runs on its processor, and the scheduler tends to wake
//! it beside the program. 20,000 reads a second with 50 µs of computing between them lose a quarter of their time by that, on two
//! processors of which one is idle.
//!
//! An I/O-bound program is not interrupted, and leaves its processor to the prefetching threads. So only the processor of a computing
//! program is published.
//!
//! Invariant: if a thread may use only one processor, or if the program's is unknown, the thread may run wherever it could before.
//!
//! Data flow: the thread that sees the program read publishes its processor ([`reader_is_on`]); each of the session's threads checks from
//! time to time, and moves itself ([`Aside::keep`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::procfs::{self, Stat};

/// A thread moves at most this often: a reader that wanders, and several of them, are not worth following.
const SETTLED: Duration = Duration::from_millis(5);

const NOWHERE: u32 = u32::MAX;
static READER: AtomicU32 = AtomicU32::new(NOWHERE);

/// Interval at which a reader's processor is looked up.
pub const LOOK: Duration = Duration::from_millis(10);

/// The program's one reading thread computes on this processor; `None` if it mostly waits, if there are
/// several, or if nobody knows where.
pub fn reader_is_on(processor: Option<u32>) {
    let processor = processor.unwrap_or(NOWHERE);
    if READER.load(Ordering::Relaxed) != processor {
        READER.store(processor, Ordering::Relaxed);
    }
}

/// Publishes the processor of the program's reading thread, from within that thread.
#[derive(Debug)]
pub struct Reader {
    since: Instant,
    used: Duration,
}

impl Reader {
    /// A reader that nothing is known of yet.
    pub fn new() -> Self {
        Self {
            since: Instant::now(),
            used: Duration::ZERO,
        }
    }

    /// The calling thread has read, at `now`.
    pub fn has_read(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < LOOK {
            return;
        }
        let used = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        // For another thread than last time the result is meaningless, and does little harm.
        let computes = used.saturating_sub(self.used) > elapsed / 2;
        reader_is_on(computes.then(current).flatten());
        self.since = now;
        self.used = used;
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

fn current() -> Option<u32> {
    u32::try_from(sched_getcpu()).ok()
}

/// The processor that a thread of process `pid` is on, or was last.
pub fn of(pid: u32, tid: u32) -> Option<u32> {
    let stat = procfs::stat_of_thread(pid, tid).ok()?;
    Stat::of(&stat)?.number(Stat::PROCESSOR)
}

/// Keeps one thread off the reader's processor. A clone is for a thread that this one starts, wherever
/// that is by then.
#[derive(Clone, Debug)]
pub struct Aside {
    /// The processors permitted before the thread, or its creator, was moved.
    all: Option<CpuSet>,
    from: u32,
    since: Instant,
}

impl Aside {
    /// For the calling thread or one that it starts; to be called before it is moved.
    pub fn new() -> Self {
        Self {
            all: sched_getaffinity(None).ok(),
            from: NOWHERE,
            since: Instant::now(),
        }
    }

    /// Move the calling thread, always the same, if the reader has moved: one load if not.
    pub fn keep(&mut self) {
        let reader = READER.load(Ordering::Relaxed);
        if reader == self.from || self.since.elapsed() < SETTLED {
            return;
        }
        self.from = reader;
        self.since = Instant::now();
        let Some(all) = &self.all else { return };
        let mut others = *all;
        if (reader as usize) < CpuSet::MAX_CPU {
            others.unset(reader as usize);
        }
        let allowed = if others.count() == 0 { all } else { &others };
        // A thread that cannot be moved stays, at its former cost.
        let _ = sched_setaffinity(None, allowed);
    }
}

impl Default for Aside {
    fn default() -> Self {
        Self::new()
    }
}

/// Processors that this thread may run on.
pub fn count() -> u64 {
    let allowed = rustix::thread::sched_getaffinity(None);
    allowed.map_or(1, |allowed| u64::from(allowed.count().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// The reader's processor is one variable for all tests.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_thread_leaves_the_readers_processor_and_may_come_back() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = || sched_getaffinity(None).unwrap();
        let all = allowed();
        let mut aside = Aside::new();
        if all.count() < 2 {
            eprintln!("skipped: one processor only");
            return;
        }
        let here = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).unwrap();
        let mut told = |processor| {
            reader_is_on(processor);
            std::thread::sleep(SETTLED);
            aside.keep();
            allowed()
        };
        let aside_of_it = told(Some(here as u32));
        assert!(!aside_of_it.is_set(here));
        assert_eq!(aside_of_it.count(), all.count() - 1);
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_ne!(of(std::process::id(), tid), Some(here as u32));
        assert_ne!(current(), Some(here as u32));
        assert_eq!(told(None), all);
    }

    #[test]
    fn a_reader_is_where_it_computes_and_nowhere_while_it_waits() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = Reader::new();
        // A machine with more to do may give it less than half a processor: as if it had had a whole one.
        let computed = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        while computed() < 2 * LOOK {
            std::hint::spin_loop();
        }
        reader.used = computed() - 2 * LOOK;
        reader.has_read(reader.since + 2 * LOOK);
        assert_ne!(READER.load(Ordering::Relaxed), NOWHERE);
        std::thread::sleep(2 * LOOK);
        reader.has_read(Instant::now());
        assert_eq!(READER.load(Ordering::Relaxed), NOWHERE);
    }
}
