//! The identity of this process, also after a fork.

use foreread_ring::Passage;

use crate::area::{self, area};
use crate::sys::{self, Allowed};
use crate::{home, paths, seat, table, threads};

pub extern "C" fn before_fork() {
    table::share_all();
}

pub extern "C" fn after_fork() {
    // The C library has just stored the number of this child's only thread.
    begin_anew(threads::number());
}

/// True in the process that owns the library's memory ([`home::at_home`]). A forked child detects the fork here.
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

/// Called in a forked child with this number. It has no ring yet, shares every open file with its parent, and has no other thread that
/// could hold a lock.
#[cold]
fn begin_anew(pid: Option<u32>) {
    let Some(area) = area() else {
        return;
    };
    let Some(pid) = pid else {
        return detach();
    };
    if pid == 1 {
        // The first process of another PID namespace.
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

/// The supervisor is gone, or the process may not report any more. From now on the library only passes calls on.
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
