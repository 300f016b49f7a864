//! Lists drawn from an iterator: any number of entries in bounded memory.
//!
//! The iterator runs on a thread of its own, ahead of the program by at most the list's capacity. It may do anything, including reading
//! files: the thread shares the program's descriptors.
//!
//! Invariant: a thread adds to the list only while its stream is the current one. The number of the current stream is
//! read and changed under the list's lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foreread_sources::{AccessList, Entry};

use crate::lock::lock;

/// Entries added at a time.
const BATCH: usize = 1024;
/// Longest time from an entry's yield to its addition.
const PATIENCE: Duration = Duration::from_millis(1);

/// The number of the current stream, and whether it waits.
#[derive(Debug, Default)]
pub(crate) struct Streaming {
    current: AtomicU64,
    /// The thread waits for the list to be half empty.
    waits: AtomicBool,
    room: Condvar,
}

impl Streaming {
    /// End the current stream, under the list's lock; the number of the next.
    pub(crate) fn end(&self, _list: &MutexGuard<'_, AccessList>) -> u64 {
        let next = self.current.fetch_add(1, Ordering::Relaxed) + 1;
        self.room.notify_all();
        next
    }

    /// The list was used: wakes the thread if it is half empty.
    pub(crate) fn used(&self, list: &MutexGuard<'_, AccessList>) {
        if self.waits.load(Ordering::Relaxed) && half_empty(list) {
            self.waits.store(false, Ordering::Relaxed);
            self.room.notify_all();
        }
    }

    fn is_current(&self, stream: u64) -> bool {
        self.current.load(Ordering::Relaxed) == stream
    }

    /// The thread: draw and add until the iterator or the stream ends. `wake` is called after each addition.
    pub(crate) fn run(
        &self,
        stream: u64,
        list: &Mutex<AccessList>,
        mut entries: impl Iterator<Item = Entry>,
        wake: impl Fn(),
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            batch.clear();
            let since = Instant::now();
            let mut ended = false;
            while !ended && batch.len() < BATCH && since.elapsed() < PATIENCE {
                match entries.next() {
                    Some(entry) => batch.push(entry),
                    None => ended = true,
                }
            }
            let mut list = lock(list);
            let mut added = 0;
            loop {
                if !self.is_current(stream) {
                    return;
                }
                added += list.append(&batch[added..]);
                if added == batch.len() {
                    break;
                }
                self.waits.store(true, Ordering::Relaxed);
                list = self
                    .room
                    .wait_while(list, |list| self.is_current(stream) && !half_empty(list))
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if ended {
                list.done();
            }
            drop(list);
            wake();
            if ended {
                return;
            }
        }
    }
}

fn half_empty(list: &AccessList) -> bool {
    list.room() >= list.capacity().div_ceil(2)
}
