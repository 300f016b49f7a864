//! The identity of this process, also after a fork, and whether it reports.

use foreread_ring::Passage;

use crate::area::{self, area};
use crate::sys::{self, Allowed};
use crate::{home, paths, seat, table, threads};

pub extern "C" fn before_fork() {
    table::share_all();
}

pub extern "C" fn after_fork() {
    // The number of this child's only thread, which the C library has just stored.
    begin_anew(threads::number());
}

/// True in the process to which the library's memory belongs ([`home::at_home`]). A forked child finds out here that it is one.
pub fn at_home() -> bool {
    notice_fork();
    home::at_home()
}

/// This process's id, if it is known or the kernel may be asked.
pub fn pid() -> Option<u32> {
    if at_home() {
        Some(seat::owner())
    } else {
        Allowed::now().map(sys::getpid)
    }
}

#[inline(always)]
pub fn notice_fork() {
    if seat::owner() == 0 && area().is_some() {
        begin_anew(Allowed::now().map(sys::getpid));
    }
}

/// In a forked child, of this number: has no ring, shares every open file with its parent, and nobody
/// but this thread can be holding anything.
#[cold]
fn begin_anew(pid: Option<u32>) {
    let Some(area) = area() else {
        return;
    };
    let Some(pid) = pid else {
        return detach();
    };
    if pid == 1 {
        // The first of another PID namespace.
        if let Some(outer) = Allowed::now().and_then(outer_pid) {
            area.pass(outer, Passage::Apart);
        }
        return detach();
    }
    seat::own(pid);
    home::forget();
    seat::forget();
    paths::unlock();
    table::share_all();
}

/// The supervisor is gone, or the process reports no more: from now on the library only hands calls through.
pub fn detach() {
    area::detach();
    table::restore_all();
}

/// This process's number in /proc.
pub fn outer_pid(allowed: Allowed) -> Option<u32> {
    let mut buffer = [0; 16];
    let digits = sys::readlink(allowed, c"/proc/self", &mut buffer)?;
    Some(digits.iter().fold(0_u32, |n, digit| {
        n.wrapping_mul(10)
            .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    }))
}
