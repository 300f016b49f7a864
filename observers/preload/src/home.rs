//! The owner of the library's memory: this process, or its parent, from which a child of `vfork` borrows it.

use core::sync::atomic::{AtomicUsize, Ordering};

use foreread_ring::thread;

use crate::seat;
use crate::sys::{self, Allowed};

/// The thread, in the form of [`thread`], whose child may be borrowing this process's memory, or [`NOBODY`] or [`ANYBODY`].
static LENT: AtomicUsize = AtomicUsize::new(NOBODY);
const NOBODY: usize = 0;
const ANYBODY: usize = usize::MAX;

/// From now on a child that this thread has made may be borrowing this process's memory, while the thread waits for it.
pub fn lending() {
    let own = thread().map_or(ANYBODY, |own| own.as_ptr() as usize);
    let lent = LENT.swap(own, Ordering::Relaxed);
    if lent != NOBODY && lent != own {
        LENT.store(ANYBODY, Ordering::Relaxed);
    }
}

/// From now on a child made by `clone` or a raw system call may have the process's memory, or a copy of it.
pub fn lending_to_anybody() {
    LENT.store(ANYBODY, Ordering::Relaxed);
}

/// True in the process to which the library's memory belongs, and false in a child that only borrows it (vfork). The kernel is asked only
/// if this thread has lent the memory.
pub fn at_home() -> bool {
    let lent = LENT.load(Ordering::Relaxed);
    let own = thread().map_or(ANYBODY, |own| own.as_ptr() as usize);
    if lent == NOBODY || lent != own && lent != ANYBODY {
        return true;
    }
    let at_home = Allowed::now().is_some_and(|allowed| seat::owner() == sys::getpid(allowed));
    if at_home && lent == own && own != ANYBODY {
        // The thread continues when its child has ended or has executed another program.
        LENT.store(NOBODY, Ordering::Relaxed);
    }
    at_home
}

/// A forked child has lent its memory to nobody.
pub fn forget() {
    LENT.store(NOBODY, Ordering::Relaxed);
}
