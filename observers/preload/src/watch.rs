//! Reads: the real call first, then what it read.

use core::ffi::c_int;

use foreread_ring::{Shared, encode};

use crate::{files, report};

/// A read at the descriptor's cursor.
#[inline(always)]
pub fn at_cursor(kind: u8, fd: c_int, call: impl FnOnce() -> isize) -> isize {
    at(kind, fd, call, |_| None)
}

/// A read at the offset that `offset` tells after the call, given how much was read;
/// `None` for the cursor's.
#[inline(always)]
pub fn at(
    kind: u8,
    fd: c_int,
    call: impl FnOnce() -> isize,
    offset: impl FnOnce(u64) -> Option<u64>,
) -> isize {
    let Some(area) = report::active() else {
        files::unwatched();
        return call();
    };
    let start = report::stamp();
    let got = call();
    if got > 0 {
        seen(area, kind, fd, start, got as u64, offset(got as u64));
    }
    got
}

#[inline(always)]
fn seen(area: &Shared, kind: u8, fd: c_int, start: u64, got: u64, offset: Option<u64>) {
    let took = report::stamp().wrapping_sub(start);
    let Some(entry) = files::tracked(area, fd) else {
        return;
    };
    let offset = match offset {
        Some(offset) => offset,
        None => match files::read_from(fd, entry, got) {
            Some(offset) => offset,
            None => return,
        },
    };
    // No single call reads 2 GiB or more.
    report::emit_slot(
        area,
        &encode::access(entry.inst(), kind, start, took, offset, got as u32),
    );
}

/// A call that takes a pointer to its source's offset, or null for the cursor: the kernel
/// has advanced what it points to by what was read.
#[inline(always)]
pub fn at_pointer(kind: u8, fd: c_int, offset: *const i64, call: impl FnOnce() -> isize) -> isize {
    at(kind, fd, call, |got| {
        // SAFETY: null, or the pointer the kernel has just written through.
        let after = unsafe { offset.as_ref() }?;
        u64::try_from(*after).ok()?.checked_sub(got)
    })
}

/// A seek: `call` returns where the cursor now is.
#[inline(always)]
pub fn seek(fd: c_int, call: impl FnOnce() -> i64) -> i64 {
    let at = call();
    if report::area().is_some() && at >= 0 {
        files::moved(fd, at as u64);
    }
    at
}
