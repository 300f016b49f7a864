//! How this process's reads are weighed against those of others.

use std::io;

use crate::checked;

/// `IOPRIO_WHO_PROCESS`: one thread.
const THREAD: libc::c_long = 1;
/// `IOPRIO_CLASS_IDLE` and where the class is in a priority.
const IDLE: libc::c_long = 3;
const CLASS_SHIFT: u32 = 13;

/// Has the reads of this thread, and of the threads that it starts from now on, wait for those of everybody else where the
/// device's scheduler knows priorities (BFQ, mq-deadline).
///
/// # Errors
/// Where the kernel has no priorities.
pub fn idle_reads() -> io::Result<()> {
    let this: libc::c_long = 0;
    // SAFETY: numbers alone.
    let set = unsafe { libc::syscall(libc::SYS_ioprio_set, THREAD, this, IDLE << CLASS_SHIFT) };
    checked(set).map(drop)
}
