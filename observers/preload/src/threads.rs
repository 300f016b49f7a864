//! Facts about the process's threads: the place where the kernel notes that a thread was switched out, whether there are several, and
//! whether a thread belongs to the program.

use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering,
};

use foreread_ring::{Shared, Switches, thread};

use crate::real;
use crate::sys::{self, Allowed};

/// Distance of a thread's number in glibc from the thread pointer, in bytes; unchanged since 2.4.
const NUMBER: usize = 0x2d0;

/// True if [`NUMBER`] is valid in this process, as tested in its first thread.
static HAS_NUMBER: AtomicBool = AtomicBool::new(false);

/// [`Switches::raw`].
static SWITCHES: AtomicIsize = AtomicIsize::new(0);

/// The C library's byte that is 0 if the process may have a second thread; null if it has no such byte.
static ALONE: AtomicPtr<AtomicU8> = AtomicPtr::new(ptr::null_mut());

/// Asks the C library at the program's start for the number of this thread.
pub fn ask(allowed: Allowed) {
    HAS_NUMBER.store(kept_number() == sys::gettid(allowed), Ordering::Relaxed);
    let (offset, size) = (real::of::__rseq_offset, real::of::__rseq_size);
    if let (Some(offset), Some(size)) = (offset.found(), size.found()) {
        // SAFETY: a C library that has these variables has them with these types.
        let switches = unsafe { Switches::at(*(offset as *const isize), *(size as *const u32)) };
        SWITCHES.store(switches.raw(), Ordering::Relaxed);
    }
    let alone = real::of::__libc_single_threaded.found().unwrap_or(0);
    ALONE.store(alone as *mut AtomicU8, Ordering::Relaxed);
}

/// The number at the place where glibc stores that of this thread.
fn kept_number() -> u32 {
    let Some(own) = thread().filter(|_| cfg!(target_arch = "x86_64")) else {
        return 0;
    };
    // SAFETY: glibc's description of a thread begins at its pointer and is longer than that.
    unsafe { (*own.as_ptr().add(NUMBER).cast::<AtomicU32>()).load(Ordering::Relaxed) }
}

/// This thread's number. If the C library does not store it, the kernel is asked, if that is permitted. In a child that the C library has
/// forked, the first thread has the child's number.
pub fn number() -> Option<u32> {
    if HAS_NUMBER.load(Ordering::Relaxed) {
        Some(kept_number())
    } else {
        Allowed::now().map(sys::gettid)
    }
}

/// The place that shows whether this thread was switched out.
#[inline(always)]
pub fn switches(area: &Shared) -> Switches {
    if !area.tells_switches() {
        return Switches::UNKNOWN;
    }
    // SAFETY: the value that [`ask`] has stored.
    unsafe { Switches::from_raw(SWITCHES.load(Ordering::Relaxed)) }
}

/// True if this thread has certainly not been switched out since the last [`Switches::mark`].
#[inline(always)]
pub fn is_marked() -> bool {
    // SAFETY: the value that [`ask`] has stored.
    unsafe { Switches::from_raw(SWITCHES.load(Ordering::Relaxed)) }.is_marked()
}

/// Adds to a number that no other thread of the process changes, and returns its former value. It is a single instruction, which no signal
/// handler can interrupt. Between threads it would have to wait for all earlier stores, which takes as long as the rest of watching a read.
#[inline(always)]
pub fn add_alone(number: &AtomicU64, by: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut was = by;
        // SAFETY: the memory is `number`'s.
        unsafe {
            core::arch::asm!(
                "xadd [{}], {}",
                in(reg) number.as_ptr(),
                inout(reg) was,
                options(nostack)
            );
        }
        was
    }
    #[cfg(not(target_arch = "x86_64"))]
    number.fetch_add(by, Ordering::Release)
}

/// True if this is certainly the process's only thread.
#[inline(always)]
pub fn is_alone() -> bool {
    // SAFETY: null or the C library's byte.
    let byte = unsafe { ALONE.load(Ordering::Relaxed).as_ref() };
    byte.is_some_and(|byte| byte.load(Ordering::Relaxed) != 0)
}

/// True if this thread belongs to libforeread or the SQLite extension, recognised by its name. These threads have their own tables of
/// descriptors, in which the same numbers mean other files.
pub fn is_helper() -> bool {
    let Some(allowed) = Allowed::now() else {
        return false;
    };
    let name = sys::thread_name(allowed);
    name.starts_with(b"foreread-engine") || name.starts_with(b"foreread-hint")
}
