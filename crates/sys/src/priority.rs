//! The weight of this process's reads against those of others.

use std::io;

use crate::checked;

/// `IOPRIO_WHO_PROCESS`: one thread.
const THREAD: libc::c_long = 1;
/// `IOPRIO_CLASS_BE`, and where the class is in a priority.
const BEST_EFFORT: libc::c_long = 2;
const CLASS_SHIFT: u32 = 13;
/// The last level of the class. Processes have level 4 by default.
const LAST: libc::c_long = 7;

/// Gives the reads of this thread, and of the threads that it starts from now on, the last level of the best-effort
/// class. BFQ gives such reads a quarter of an ordinary reader's share; other schedulers make no difference.
///
/// The idle class would be wrong. A page that is being read is locked, and a program that asks for the page waits until
/// the device has read it. mq-deadline holds idle reads back while any other read is at the device, and then for 4 to 12 ms
/// more: with the last successor, the link of a kernel took 1.33 s on a network volume instead of 0.86 s. At this level
/// it takes 0.76 s.
///
/// # Errors
/// If the kernel has no I/O priorities.
pub fn low_reads() -> io::Result<()> {
    let this: libc::c_long = 0;
    let low = BEST_EFFORT << CLASS_SHIFT | LAST;
    // SAFETY: numbers alone.
    let set = unsafe { libc::syscall(libc::SYS_ioprio_set, THREAD, this, low) };
    checked(set).map(drop)
}
