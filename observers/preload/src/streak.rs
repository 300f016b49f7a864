//! Reads that are only counted.
//!
//! A program that reads a file from front to back makes one equal call after another. When such a read has been published, and the ring
//! slot can count more, their common properties are stored ([`Streak::begin`]). While calls match them, they are compared before and after
//! the call, and the ring's counter is increased. All other actions of a read are left to the next event in the ring ([`Streak::settle`]).
//!
//! Invariant: the counter is increased by one instruction, so a signal handler's reads of the same streak come before or after it. Only the
//! main thread of a process without other threads has a streak, and makes these calls without the C library ([`direct`]).

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use foreread_ring::{Writer, thread};

use crate::descriptor::Descriptor;
use crate::{area, direct, threads};

/// No descriptor.
const NONE: c_int = -1;

/// The common properties of the reads, on one cache line.
#[repr(C, align(64))]
pub struct Streak {
    /// In the form of [`thread`]; 0 without a streak, as in a forked child.
    thread: AtomicUsize,
    /// The supervisor's wishes.
    wanted: AtomicU32,
    /// The descriptor at whose cursor they are made; [`NONE`] if no more reads can be counted.
    fd: AtomicI32,
    /// Length requested and returned by each, in bytes.
    len: AtomicU64,
    descriptor: AtomicPtr<Descriptor>,
    entry: AtomicU64,
    /// The ring's counter, and the number of reads that it can still count.
    counter: AtomicPtr<AtomicU64>,
    left: AtomicU64,
}

impl Streak {
    /// No streak: all zeros, the state to which a fork clears this memory.
    pub const fn new() -> Self {
        Self {
            thread: AtomicUsize::new(0),
            wanted: AtomicU32::new(0),
            fd: AtomicI32::new(0),
            len: AtomicU64::new(0),
            descriptor: AtomicPtr::new(ptr::null_mut()),
            entry: AtomicU64::new(0),
            counter: AtomicPtr::new(ptr::null_mut()),
            left: AtomicU64::new(0),
        }
    }

    /// True if a read at the cursor that is about to be made may continue the streak.
    #[inline(always)]
    pub fn may_go_on(&self, fd: c_int, len: usize) -> bool {
        self.fd.load(Ordering::Relaxed) == fd
            && self.len.load(Ordering::Relaxed) == len as u64
            && self.is_own()
            && self.wanted.load(Ordering::Relaxed) == area::wanted()
            && direct::is_possible()
            && threads::is_marked()
    }

    /// Counts the read if it continues the streak; `None` if it does not. True if another read may follow. The caller has marked its seat
    /// as busy, so that no signal handler writes an event meanwhile.
    #[inline(always)]
    pub fn goes_on(&self, fd: c_int, got: isize) -> Option<bool> {
        let len = self.len.load(Ordering::Relaxed);
        // SAFETY: in the table of descriptors.
        let descriptor = unsafe { &*self.descriptor.load(Ordering::Relaxed) };
        // A signal handler may have ended the streak during the call.
        if self.fd.load(Ordering::Relaxed) != fd
            || got as u64 != len
            || descriptor.entry.load(Ordering::Relaxed) != self.entry.load(Ordering::Relaxed)
            || !threads::is_marked()
        {
            return None;
        }
        threads::add_alone(&descriptor.offset, len);
        // SAFETY: in the area, which is never taken away.
        let counter = unsafe { &*self.counter.load(Ordering::Relaxed) };
        threads::add_alone(counter, Writer::ONE_MORE);
        let is_last = threads::add_alone(&self.left, u64::MAX) == 1;
        if is_last {
            self.fd.store(NONE, Ordering::Relaxed);
        }
        Some(!is_last)
    }

    /// Begins a streak after a published read by the main thread, at a cursor that belongs to its descriptor alone.
    pub fn begin(&self, writer: &Writer, fd: c_int, descriptor: &'static Descriptor, len: u64) {
        let Some((counter, left)) = writer.counter() else {
            return;
        };
        if !direct::is_possible() {
            return;
        }
        self.wanted.store(area::wanted(), Ordering::Relaxed);
        self.fd.store(fd, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.entry
            .store(descriptor.entry.load(Ordering::Relaxed), Ordering::Relaxed);
        self.descriptor
            .store(ptr::from_ref(descriptor).cast_mut(), Ordering::Relaxed);
        self.counter
            .store(ptr::from_ref(counter).cast_mut(), Ordering::Relaxed);
        self.left.store(left.into(), Ordering::Relaxed);
        let own = thread().map_or(0, |own| own.as_ptr() as usize);
        self.thread.store(own, Ordering::Relaxed);
    }

    /// Enters the count in the thread's end of the ring, if the thread has a streak, and ends the streak.
    #[inline(always)]
    pub fn settle(&self, writer: &mut Writer) {
        if self.is_own() {
            self.thread.store(0, Ordering::Relaxed);
            self.fd.store(NONE, Ordering::Relaxed);
            writer.counted(self.left.load(Ordering::Relaxed) as u16);
        }
    }

    /// The cursor was moved by other means: the next read does not continue the streak.
    pub fn pause(&self) {
        if self.is_own() {
            self.fd.store(NONE, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn is_own(&self) -> bool {
        thread().is_some_and(|own| own.as_ptr() as usize == self.thread.load(Ordering::Relaxed))
    }
}
