//! Processes that confine themselves: by a system-call filter, or by giving up the time-stamp counter.
//!
//! A filter may kill its process for a system call that the program would not have made. So the library makes none from
//! the moment at which one is about to be put in place ([`crate::sys::Allowed`]): what it knows of descriptors it goes
//! on with, and what it would have to ask for stays unseen. Where reading the counter becomes a fault the library lets go.
//!
//! Filters pass to children and over exec. A forked child of a confined process is told by its copy of the memory; one
//! that has become another program looks itself ([`has_inherited`]), once the area says that there are filters.

use core::ffi::{c_int, c_long, c_ulong};

use foreread_ring::Clock;

use crate::sys::{self, Allowed};
use crate::{files, report};

/// A `prctl`.
pub fn controlling(option: c_int, first: c_ulong, call: impl FnOnce() -> c_int) -> c_int {
    match (option, first as c_int) {
        (libc::PR_SET_SECCOMP, mode) if mode == libc::SECCOMP_MODE_FILTER as c_int => {
            filtering(call, |result| result >= 0)
        }
        // Strict mode takes the counter away, too.
        (libc::PR_SET_SECCOMP, _) | (libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) => {
            report::detach();
            call()
        }
        _ => call(),
    }
}

/// A `seccomp`, made as a raw system call.
pub fn secluding(operation: u32, call: impl FnOnce() -> c_long) -> c_long {
    match operation {
        libc::SECCOMP_SET_MODE_STRICT => {
            report::detach();
            call()
        }
        libc::SECCOMP_SET_MODE_FILTER => filtering(call, |result| result >= 0),
        _ => call(),
    }
}

/// Puts a filter in place. Threads that it applies to may be in a hook at that moment: nobody asks the kernel anything
/// from before the call on.
fn filtering<T: Copy>(call: impl FnOnce() -> T, succeeded: impl FnOnce(T) -> bool) -> T {
    if report::area().is_some_and(|area| area.clock() != Clock::Tsc) {
        // Not every kernel tells the time without a system call.
        report::detach();
    }
    // The last chance to do so.
    files::restore_all();
    let was_confined = sys::confine(true);
    let result = call();
    if !succeeded(result) {
        sys::confine(was_confined);
    } else if let (Some(area), false) = (report::area(), was_confined) {
        area.count_filtered();
    }
    result
}

/// Whether the process was under a filter when it became this program. Asked by calls that its loader has made, too.
pub fn has_inherited(allowed: Allowed) -> bool {
    const KEY: &[u8] = b"\nSeccomp:\t";
    let Some(fd) = sys::open(allowed, c"/proc/self/status", libc::O_RDONLY) else {
        return true;
    };
    let mut buffer = [0; 4096];
    let status = sys::read(allowed, fd, &mut buffer);
    let mode = status
        .windows(KEY.len())
        .position(|part| part == KEY)
        .and_then(|at| status.get(at + KEY.len()));
    let is_free = mode == Some(&b'0');
    sys::close(allowed, fd);
    !is_free
}
