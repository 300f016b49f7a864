//! The start: decides whether this process is observed, and prepares the observation.
//!
//! The environment names the area and its token. The area is a file in the supervisor's /proc. After the supervisor's death its process id
//! may be another process's, so the file must be of the right kind, this user's or root's, sealed, and must have the token. A program that
//! is not observed pays only for the search of its environment.

use core::ffi::{CStr, c_void};

use foreread_ring::{AREA_SIZE, Address, Clock, ENV, Mode, Passage, Shared, Writer, address};

use crate::sys::{self, Allowed, Regular};
use crate::{
    confined, direct, paths, process, real, report, root, seats, stdio, table, threads, uring,
};

/// Prefix of the variable.
const VARIABLE: &[u8] = b"FOREREAD_RING=";
const _: () = assert!(VARIABLE.len() == ENV.len() + 1);

pub fn start(allowed: Allowed) {
    real::look_up_all();
    let Some(address) = given() else {
        return;
    };
    // First, because all later steps make system calls that the loader has not made.
    if confined::has_inherited(allowed, address.filters) {
        return;
    }
    root::note();
    let Some(shared) = named(allowed, address) else {
        return;
    };
    let pid = sys::getpid(allowed);
    // The supervisor finds this process's threads in its own /proc, by the reported numbers. So both must see the same /proc, with the
    // same number for this process.
    let outer = process::outer_pid(allowed);
    if outer != Some(pid) {
        return shared.pass(outer.unwrap_or(pid), Passage::Apart);
    }
    if shared.clock() == Clock::Tsc && !sys::has_counter(allowed) {
        return;
    }
    if !table::ready(allowed) || !seats::ready(allowed, pid) {
        return;
    }
    sys::leave_out_of_cores(allowed, shared);
    // Rings of the program that this process executed before.
    if Writer::any_of(shared, pid) {
        Writer::release_all(shared, pid);
    }
    threads::ask(allowed);
    direct::ready();
    stdio::hook(allowed);
    uring::hook(allowed);
    report::attach(shared);
    shared.pass(pid, Passage::Here);
    if shared.mode() != Mode::Mute {
        paths::ask_working_directory(allowed);
        seats::sit(shared);
    }
}

/// The area's address in the environment. Its path is terminated.
fn given() -> Option<Address<'static>> {
    let value = root::variable(VARIABLE)?;
    let given = address(value.to_bytes())?;
    let path = value
        .to_bytes_with_nul()
        .get(value.count_bytes() - given.path.len()..)?;
    Some(Address { path, ..given })
}

/// The area at that address.
fn named(allowed: Allowed, address: Address<'_>) -> Option<&'static Shared> {
    // SAFETY: `given` returns a terminated path.
    let path = unsafe { CStr::from_bytes_with_nul_unchecked(address.path) };
    // A program with limited memory needs all of it itself.
    let is_limited = |resource| sys::limit(allowed, resource) != u64::MAX;
    if is_limited(libc::RLIMIT_AS) || is_limited(libc::RLIMIT_DATA) {
        return None;
    }
    let user = sys::effective_user(allowed);
    let fits = |found: Option<Regular>| {
        found.is_some_and(|file| {
            file.size == AREA_SIZE as u64 && (file.owner == user || file.owner == 0)
        })
    };
    // Checked before it is opened: opening a device, a terminal or a pipe may have an effect.
    if !fits(sys::regular_at(allowed, path)) {
        return None;
    }
    let fd = sys::open(
        allowed,
        path,
        libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK,
    )?;
    let area = if fits(sys::regular(allowed, fd)) && sys::is_sealed(allowed, fd) {
        sys::map_shared(allowed, fd, size_of::<Shared>())
    } else {
        None
    };
    sys::close(allowed, fd);
    // SAFETY: the mapping is as long as `Shared`, which consists of atomics, and stays; the file cannot shrink.
    let shared = unsafe { &*area?.cast_const().cast::<Shared>() };
    if shared.is_valid() && shared.token() == address.token {
        return Some(shared);
    }
    sys::unmap(
        allowed,
        shared as *const Shared as *const c_void,
        size_of::<Shared>(),
    );
    None
}
