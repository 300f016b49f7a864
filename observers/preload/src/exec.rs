//! The end of this program: exit, or another program in its place.
//!
//! Invariant: whoever is about to become another program says so first, and takes it back when
//! that fails; who never reports from the new one ran unobserved, and is counted.

use core::ffi::{CStr, c_char, c_int};

use foreread_ring::{ENV, Passage};

use crate::{maps, report, seats};

/// A list of strings, terminated by a null.
pub type Strings = *const *const c_char;

/// The process is about to end: says what is left to say.
pub fn ending() {
    if let Some(area) = report::area() {
        // An exec may have failed without coming back here.
        area.stay(report::known_as());
        leaving();
    }
}

/// The process is about to become another program, with this environment.
fn replacing(environment: Strings) {
    if let Some(area) = report::area() {
        area.pass(report::known_as(), passage(environment));
        leaving();
    }
}

/// The process is about to become another program, with its own environment.
pub fn replacing_here() {
    replacing(own_environment());
}

/// An exec: `call` comes back only if it fails.
pub fn exec<T>(environment: Strings, call: impl FnOnce() -> T) -> T {
    replacing(environment);
    let result = call();
    if let Some(area) = report::area() {
        area.stay(report::known_as());
    }
    result
}

/// A child was made as another program, with this environment.
pub fn spawned(child: *const c_int, environment: Strings) {
    if let Some(area) = report::area() {
        // SAFETY: null, or where the C library has just put the child's number.
        let pid = unsafe { child.as_ref() }.and_then(|&pid| u32::try_from(pid).ok());
        if let Some(pid) = pid {
            area.pass_child(pid, passage(environment));
        }
    }
}

/// This process's environment.
pub fn own_environment() -> Strings {
    unsafe extern "C" {
        static environ: Strings;
    }
    // SAFETY: the C library's; read as every exec without an environment does.
    unsafe { environ }
}

/// Where a process with this environment goes.
fn passage(mut environment: Strings) -> Passage {
    // SAFETY: the program's list of strings, terminated by a null as the kernel asks for; the
    // kernel takes a null for an empty list.
    unsafe {
        while !environment.is_null() && !(*environment).is_null() {
            let rest = CStr::from_ptr(*environment)
                .to_bytes()
                .strip_prefix(ENV.as_bytes());
            if rest.is_some_and(|rest| rest.first() == Some(&b'=')) {
                return if report::is_apart() {
                    Passage::Apart
                } else {
                    Passage::Gone
                };
            }
            environment = environment.add(1);
        }
    }
    Passage::Cleared
}

/// Says what is left to say. An exec may yet fail, so nothing is taken down but this thread's
/// ring, which the next event claims again.
fn leaving() {
    if !report::at_home() {
        return;
    }
    if let Some(area) = report::active().filter(|_| !report::is_mere_fork()) {
        maps::report_objects();
        maps::report_all_touched();
        report::emit_exit(area);
    }
    seats::leave_seat();
}
