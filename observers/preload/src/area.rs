//! The area: the shared memory by which this process reports, with the wishes of the supervisor.
//!
//! The library is attached if the area that the environment names could be mapped and has this layout. Otherwise it does nothing.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use foreread_ring::{Clock, Shared, Wishes};

use crate::sys;

static AREA: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
static TSC: AtomicBool = AtomicBool::new(false);

/// The supervisor's wishes in the area, if there is one.
static WANTED: AtomicPtr<Wishes> = AtomicPtr::new((&raw const NOTHING).cast_mut());
static NOTHING: Wishes = Wishes::nothing();

/// [`Wishes::once_done`] at the time when all advice was withdrawn.
static DONE: AtomicU32 = AtomicU32::new(Wishes::NOT_DONE);

/// The area, if attached.
#[inline(always)]
pub fn area() -> Option<&'static Shared> {
    // SAFETY: null, or a mapping of `Shared` that is never taken away.
    unsafe { AREA.load(Ordering::Relaxed).as_ref() }
}

/// True if a read needs no action besides the call.
#[inline(always)]
pub fn is_idle() -> bool {
    // SAFETY: a static, or in the area, which is never taken away.
    unsafe { (*WANTED.load(Ordering::Relaxed)).is_nothing(DONE.load(Ordering::Relaxed)) }
}

/// The present wishes: a different number for each change.
#[inline(always)]
pub fn wanted() -> u32 {
    // SAFETY: as above.
    unsafe { (*WANTED.load(Ordering::Relaxed)).word() }
}

/// All advice was withdrawn when [`Wishes::once_done`] had this value.
pub fn settled(done: u32) {
    DONE.store(done, Ordering::Relaxed);
}

/// The present time, in the area's ticks.
#[inline(always)]
pub fn stamp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if TSC.load(Ordering::Relaxed) {
        // SAFETY: every x86-64 processor has the instruction.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    stamp_by_call()
}

#[cold]
fn stamp_by_call() -> u64 {
    sys::clock(libc::CLOCK_MONOTONIC)
}

/// Uses this area from now on.
pub fn attach(area: &'static Shared) {
    TSC.store(area.clock() == Clock::Tsc, Ordering::Relaxed);
    AREA.store(ptr::from_ref(area).cast_mut(), Ordering::Release);
    WANTED.store(ptr::from_ref(area.wanted()).cast_mut(), Ordering::Relaxed);
}

/// Uses no area from now on.
pub fn detach() {
    WANTED.store((&raw const NOTHING).cast_mut(), Ordering::Relaxed);
    AREA.store(ptr::null_mut(), Ordering::Relaxed);
}
