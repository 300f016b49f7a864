//! The end of this program: exit, or another program in its place.
//!
//! Invariant: a process about to execute another program reports that first, and withdraws the report if that fails. A process that never
//! reports from the new program ran unobserved, and is counted. The arguments of the new program are unchecked, so only the kernel reads
//! them ([`root::handing_on`]).

use core::ffi::c_int;

use foreread_ring::Passage;

use crate::root::{self, Strings};
use crate::{report, seats, sys};

/// The process is about to end: makes its last reports.
pub fn ending() {
    if let (Some(area), Some(pid)) = (report::area(), report::pid()) {
        // An exec may have failed without returning to a hook.
        area.stay(pid);
        leaving();
    }
}

/// The process is about to execute another program. Under a filter it will not be observed.
pub fn replacing() {
    if let (Some(area), Some(pid)) = (report::area(), report::pid()) {
        if sys::is_confined() {
            area.count_filtered();
        } else {
            area.pass(pid, Passage::Gone);
        }
        leaving();
    }
}

/// An exec: `call` returns only if it fails.
pub fn exec<T>(call: impl FnOnce() -> T) -> T {
    replacing();
    let result = call();
    if let (Some(area), Some(pid)) = (report::area(), report::pid()) {
        if sys::is_confined() {
            area.uncount_filtered();
        } else {
            area.stay(pid);
        }
    }
    result
}

/// An exec with an environment as its argument.
pub fn exec_with<T>(environment: Strings, call: impl FnOnce() -> T) -> T {
    root::handing_on(environment);
    exec(call)
}

/// A child was started with another program.
pub fn spawned(child: *const c_int) {
    if let Some(area) = report::area() {
        // SAFETY: null, or the C library has just stored the child's number there.
        let pid = unsafe { child.as_ref() }.and_then(|&pid| u32::try_from(pid).ok());
        if sys::is_confined() {
            area.count_filtered();
        } else if let Some(pid) = pid {
            area.pass_child(pid, Passage::Gone);
        }
    }
}

/// Makes the last reports. An exec may still fail, so only this thread's ring is released, which the next event claims again.
fn leaving() {
    if !report::at_home() {
        return;
    }
    if let Some(area) = report::active().filter(|_| seats::is_seated()) {
        report::emit_exit(area);
    }
    seats::leave_seat();
}
