//! Reads: the real call first, then the report.

use core::ffi::c_int;

use foreread_ring::{Shared, Switches, kind};

use crate::report::{self, Read, Start};
use crate::sys::{self, Allowed};
use crate::{files, seats, threads};

/// A read at the descriptor's cursor.
#[inline(always)]
pub fn at_cursor(kind: u8, fd: c_int, call: impl FnOnce() -> isize) -> isize {
    at(kind, fd, call, |_| None)
}

/// A read at the offset that `offset` returns after the call, from the number of bytes read; `None` stands for the cursor.
#[inline(always)]
pub fn at(
    kind: u8,
    fd: c_int,
    call: impl FnOnce() -> isize,
    offset: impl FnOnce(u64) -> Option<u64>,
) -> isize {
    let Some(area) = report::active() else {
        report::settle();
        return call();
    };
    let (switches, start) = report::begin(area);
    let got = call();
    after(area, (kind, fd, got), (switches, start), offset);
    got
}

/// A read that fills a stream's buffer. After it, `fd` returns the stream's descriptor.
#[inline(always)]
pub fn of_stream(call: impl FnOnce() -> isize, fd: impl FnOnce() -> c_int) -> isize {
    let Some(area) = report::active() else {
        report::settle();
        return call();
    };
    let (switches, start) = report::begin(area);
    let got = call();
    if got > 0 {
        after(area, (kind::STDIO, fd(), got), (switches, start), |_| None);
    }
    got
}

/// Actions after a read.
#[inline(always)]
fn after(
    area: &Shared,
    (kind, fd, got): (u8, c_int, isize),
    (switches, start): (Switches, Start),
    offset: impl FnOnce(u64) -> Option<u64>,
) {
    if got > 0 {
        let len = got as u64;
        let (ended, entry) = match files::known(area, fd) {
            Some(entry) if switches.is_marked() => (None, Some(entry)),
            _ => (Some(report::stamp()), files::tracked(area, fd)),
        };
        let place = entry.and_then(|entry| {
            let offset = offset(len).or_else(|| files::read_from(fd, entry, len));
            Some((entry.inst(), offset?))
        });
        if let Some((inst, offset)) = place {
            if let (Start::AtOnce(seat), None) = (start, ended)
                && report::goes_on(area, seat, (inst, kind), offset, len)
            {
                if kind == kind::READ {
                    report::begin_streak(seat, fd, len);
                }
                return;
            }
            let read = Read {
                inst,
                kind,
                start,
                ended,
                offset,
                len,
            };
            report::emit_read(area, &read);
        }
    }
}

/// A read at the cursor that was expected to continue a [`Streak`](crate::streak::Streak), but does not. Returns its result.
#[inline(never)]
pub fn apart(fd: c_int, got: isize) -> isize {
    if let (Some(area), Some(seat)) = (report::area(), seats::main_seat()) {
        let times = (threads::switches(area), Start::AtOnce(seat));
        after(area, (kind::READ, fd, got), times, |_| None);
    }
    got
}

/// A read that was submitted by a call from `start` to `end`, in ticks. Its result is not seen; it is assumed to read all bytes up to the
/// end of the file.
pub fn asked(area: &Shared, fd: c_int, (offset, len): (u64, u64), (start, end): (u64, u64)) {
    let Some(entry) = files::tracked(area, fd) else {
        return;
    };
    let Some(file) = Allowed::now().and_then(|allowed| sys::regular(allowed, fd)) else {
        return;
    };
    let len = len.min(file.size.saturating_sub(offset));
    if len > 0 {
        let read = Read {
            inst: entry.inst(),
            kind: kind::PREAD,
            start: Start::At(start),
            ended: Some(end),
            offset,
            len,
        };
        report::emit_read(area, &read);
    }
}

/// The program depends on the residency of a file's pages, or changes it.
#[cold]
pub fn dropped(fd: c_int) {
    let Some(area) = report::area().filter(|_| report::at_home()) else {
        return;
    };
    let now = report::stamp();
    if let Some(entry) = files::tracked(area, fd) {
        let read = Read {
            inst: entry.inst(),
            kind: kind::DROPPED,
            start: Start::At(now),
            ended: Some(now),
            offset: 0,
            len: 1,
        };
        report::emit_read(area, &read);
    }
}

/// The program has advised the kernel on the order of a file's reads, or has dropped its pages.
pub fn advised(fd: c_int, advice: c_int) {
    if matches!(advice, libc::POSIX_FADV_DONTNEED | libc::POSIX_FADV_NOREUSE) {
        dropped(fd);
    }
    files::advised(fd, advice);
}

/// A call with a pointer to its source's offset, or null for the cursor: the kernel has advanced the offset by the bytes read.
#[inline(always)]
pub fn at_pointer(kind: u8, fd: c_int, offset: *const i64, call: impl FnOnce() -> isize) -> isize {
    at(kind, fd, call, |got| {
        // SAFETY: null, or the kernel has just written there.
        let after = unsafe { offset.as_ref() }?;
        u64::try_from(*after).ok()?.checked_sub(got)
    })
}

/// A seek has moved a descriptor's cursor to `at`; a negative value is an error.
#[inline(always)]
pub fn sought(fd: c_int, at: i64) {
    if report::area().is_some() && at >= 0 && !seats::in_helper() {
        files::moved(fd, at as u64);
    }
}
