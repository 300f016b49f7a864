//! A thread's end of its ring, and all data that a fork must not copy.
//!
//! A process's data about its rings are on one page that the kernel zeroes in forked children, so a child can never write into its parent's
//! rings, however it was forked. A child that shares memory (vfork) borrows its parent's ring while the parent waits.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use foreread_ring::{RINGS, Writer, thread};

use crate::pace::Pace;
use crate::streak::Streak;
use crate::{key, threads};

/// The states of a [`Seat`].
const WIPED: u32 = 0;
pub const QUIET: u32 = 1;
pub const BUSY: u32 = 2;
const NOBODYS: u32 = 3;

/// The process's main thread, in the form of [`thread`], and its seat, if it has one. Only that thread changes them, so a thread that finds
/// itself in `MAIN` also finds its own seat. Most programs read in no other thread.
static MAIN: AtomicUsize = AtomicUsize::new(0);
static MAIN_SEAT: AtomicPtr<Seat> = AtomicPtr::new(ptr::null_mut());

/// Data that a fork must not copy.
#[repr(C, align(4096))]
pub struct Own {
    /// This process's number; 0 in a forked child that has not noticed the fork yet.
    pid: AtomicU32,
    streak: Streak,
    pub seats: [Seat; RINGS],
}

/// A thread's end of the ring with the same index.
#[repr(C, align(128))]
pub struct Seat {
    /// [`WIPED`] in a forked child, [`NOBODYS`] in [`HELPERS`], [`BUSY`] while an event is being written, so that a signal handler writes
    /// none in between, and otherwise [`QUIET`].
    pub state: AtomicU32,
    /// True if the start time of this thread's next read need not be recorded.
    pub goes_on: AtomicBool,
    /// Number of events that were lost while another one was being written.
    pub unsaid: AtomicU32,
    pub tid: AtomicU32,
    /// On the same cache line as the fields before: a read that continues the previous one needs only this line.
    pub writer: UnsafeCell<MaybeUninit<Writer<'static>>>,
    pub pace: UnsafeCell<Pace>,
}

// SAFETY: a seat is used only by the thread that owns the ring with its index, after that thread has filled it.
unsafe impl Sync for Seat {}

impl Seat {
    const fn new(state: u32) -> Self {
        Self {
            state: AtomicU32::new(state),
            tid: AtomicU32::new(0),
            unsaid: AtomicU32::new(0),
            writer: UnsafeCell::new(MaybeUninit::uninit()),
            pace: UnsafeCell::new(Pace::NEW),
            goes_on: AtomicBool::new(false),
        }
    }
}

/// In place of a seat, for threads that are not the program's and report nothing ([`threads::is_helper`]).
pub static HELPERS: Seat = Seat::new(NOBODYS);

pub static OWN: Own = Own {
    pid: AtomicU32::new(0),
    streak: Streak::new(),
    seats: [const { Seat::new(WIPED) }; RINGS],
};

/// The process that owns the rings; 0 in a forked child that has not noticed the fork yet.
#[inline(always)]
pub fn owner() -> u32 {
    OWN.pid.load(Ordering::Relaxed)
}

/// The main thread's reads that are only counted.
#[inline(always)]
pub fn streak() -> &'static Streak {
    &OWN.streak
}

/// From now on the rings belong to process `pid`.
pub fn own(pid: u32) {
    OWN.pid.store(pid, Ordering::Relaxed);
}

/// Called in a forked child, where this thread's seat belonged to its parent.
pub fn forget() {
    key::set(ptr::null());
    forget_main();
}

/// A thread's end of its ring while an event is written, during which signal handlers of this thread cannot use it.
pub struct Busy<'a>(&'a Seat);

impl<'a> Busy<'a> {
    #[inline(always)]
    pub fn at(seat: &'a Seat) -> Self {
        seat.state.store(BUSY, Ordering::Relaxed);
        seat.unsaid.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Self(seat)
    }

    /// The same, unless an event is being written already.
    #[inline(always)]
    pub fn quietly(seat: &'a Seat) -> Option<Self> {
        (seat.state.load(Ordering::Relaxed) == QUIET).then(|| Self::at(seat))
    }

    #[inline(always)]
    pub fn writer(&mut self) -> &mut Writer<'static> {
        // SAFETY: this thread owns the seat and has filled it.
        let writer = unsafe { (*self.0.writer.get()).assume_init_mut() };
        streak().settle(writer);
        writer
    }
}

impl Drop for Busy<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.state.store(QUIET, Ordering::Relaxed);
    }
}

/// This thread's seat, if it is the main thread and has one.
#[inline(always)]
pub fn main_seat() -> Option<&'static Seat> {
    let own = thread()?.as_ptr() as usize;
    if MAIN.load(Ordering::Relaxed) != own {
        return None;
    }
    // SAFETY: null or a seat.
    unsafe { MAIN_SEAT.load(Ordering::Relaxed).as_ref() }
}

/// Counts a read as part of the main thread's streak, if it is one.
#[inline(always)]
pub fn goes_on(fd: c_int, got: isize) -> bool {
    let Some(seat) = main_seat() else {
        return false;
    };
    let Some(_busy) = Busy::quietly(seat) else {
        return false;
    };
    let goes_on = streak().goes_on(fd, got);
    if goes_on == Some(false) {
        seat.goes_on.store(false, Ordering::Relaxed);
    }
    goes_on.is_some()
}

/// True if this thread is not the program's ([`threads::is_helper`]): its calls on descriptors are ignored.
pub fn in_helper() -> bool {
    if threads::is_alone() || main_seat().is_some() {
        return false;
    }
    let seat = key::get();
    if seat.is_null() {
        sit_with_helpers()
    } else {
        ptr::eq(seat.cast(), &raw const HELPERS)
    }
}

/// True if this thread, which has no seat, is a helper. It gets the helpers' seat then.
#[cold]
fn sit_with_helpers() -> bool {
    let helps = threads::is_helper();
    if helps {
        // If this fails, the thread's name is checked at each call.
        key::set((&raw const HELPERS).cast());
    }
    helps
}

/// The main thread has this seat, and is this thread.
pub fn take_main(own: usize, seat: &'static Seat) {
    MAIN_SEAT.store(ptr::from_ref(seat).cast_mut(), Ordering::Relaxed);
    MAIN.store(own, Ordering::Relaxed);
}

/// The main thread has no seat.
pub fn forget_main() {
    MAIN_SEAT.store(ptr::null_mut(), Ordering::Relaxed);
    MAIN.store(0, Ordering::Relaxed);
}
