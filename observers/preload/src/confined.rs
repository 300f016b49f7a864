//! Processes that confine themselves: by a system-call filter, or by giving up the time-stamp counter.
//!
//! A filter may kill its process for a system call that the program would not have made. So the library makes none from the moment at which
//! a filter is about to be installed ([`crate::sys::Allowed`]): it continues with its knowledge of descriptors, and anything else stays
//! unseen. If reading the counter becomes a fault, the library detaches.
//!
//! Filters are inherited by children and kept over exec. A forked child of a confined process finds this in its copy of the memory.
//! Programs executed by such processes are not given the library ([`root::leave_out`]). A program that has the library checks at its start
//! ([`has_inherited`]), whoever has installed a filter, with calls that its loader has made as well, and before all others.

use core::ffi::{c_int, c_long, c_ulong};

use foreread_ring::Clock;

use crate::area::area;
use crate::sys::{self, Allowed};
use crate::{process, root, table};

/// A `prctl`.
pub fn controlling(option: c_int, first: c_ulong, call: impl FnOnce() -> c_int) -> c_int {
    match (option, first as c_int) {
        (libc::PR_SET_SECCOMP, mode) if mode == libc::SECCOMP_MODE_FILTER as c_int => {
            filtering(call, |result| result >= 0)
        }
        // Strict mode takes the counter away, too.
        (libc::PR_SET_SECCOMP, _) | (libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) => {
            process::detach();
            call()
        }
        _ => call(),
    }
}

/// A `seccomp`, made as a raw system call.
pub fn secluding(operation: u32, call: impl FnOnce() -> c_long) -> c_long {
    match operation {
        libc::SECCOMP_SET_MODE_STRICT => {
            process::detach();
            call()
        }
        libc::SECCOMP_SET_MODE_FILTER => filtering(call, |result| result >= 0),
        _ => call(),
    }
}

/// Makes a call that installs a filter. Other threads that the filter applies to may be in a hook, so from before the call on, no thread
/// makes system calls of the library.
fn filtering<T: Copy>(call: impl FnOnce() -> T, succeeded: impl FnOnce(T) -> bool) -> T {
    if area().is_some_and(|area| area.clock() != Clock::Tsc) {
        // Some kernels cannot report the time without a system call.
        process::detach();
    }
    // No system call can restore the advice later.
    table::restore_all();
    let was_confined = sys::confine(true);
    let result = call();
    if !succeeded(result) {
        sys::confine(was_confined);
        return result;
    }
    if let (Some(area), false) = (area(), was_confined) {
        area.count_filtered();
    }
    // A loader makes calls of its own to load this library.
    root::leave_out();
    result
}

/// True if the process was under a filter when it executed this program, besides the `given` ones that foreread itself is under.
pub fn has_inherited(allowed: Allowed, given: u32) -> bool {
    let Some(fd) = sys::open(allowed, c"/proc/self/status", libc::O_RDONLY) else {
        return true;
    };
    let mut buffer = [0; 4096];
    let status = sys::read(allowed, fd, &mut buffer);
    sys::close(allowed, fd);
    let is_free = number(status, b"\nSeccomp:\t") == Some(0);
    let is_as_given = given > 0 && number(status, b"\nSeccomp_filters:\t") == Some(given);
    !is_free && !is_as_given
}

/// The number that follows a key.
fn number(status: &[u8], key: &[u8]) -> Option<u32> {
    let at = status.windows(key.len()).position(|part| part == key)?;
    let digits = status.get(at + key.len()..)?;
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number: u32, digit| {
        number
            .wrapping_mul(10)
            .wrapping_add(u32::from(digit - b'0'))
    }))
}
