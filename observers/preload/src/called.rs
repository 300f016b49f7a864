//! Functions by which foreread's other libraries in the program report calls of a layer above the C library.
//!
//! The libraries that intercept MPI-IO (`observers/pmpi`, `report.h`) call these functions after the real call. They report only while
//! everything is recorded: a program's position follows from its reads of files.

use core::ffi::{CStr, c_char};

use foreread_ring::{Mode, Shared, encode, kind};

use crate::{paths, report, seats};

/// The area, if calls are to be reported now.
fn recording() -> Option<&'static Shared> {
    let area = report::active().filter(|area| area.mode() == Mode::Record)?;
    (report::at_home() && !seats::in_helper()).then_some(area)
}

/// True if calls are to be reported now.
#[unsafe(no_mangle)]
extern "C" fn foreread_called_wanted() -> bool {
    recording().is_some()
}

/// The present time, in ticks of the ring's clock.
#[unsafe(no_mangle)]
extern "C" fn foreread_called_stamp() -> u64 {
    report::stamp()
}

/// Reports a file by its path. Returns its number in reports, 0 if it is not reported.
///
/// # Safety
/// `path` must be a terminated string.
#[unsafe(no_mangle)]
unsafe extern "C" fn foreread_called_open(path: *const c_char) -> u32 {
    let Some(area) = recording() else {
        return 0;
    };
    // Before the paths are locked, because claiming a seat locks them, too.
    seats::sit(area);
    let start = report::stamp();
    let say = |path: paths::Parts<'_>| {
        if !paths::is_watched(path) {
            return 0;
        }
        let inst = area.next_instance();
        let len = path.iter().map(|part| part.len()).sum();
        let first = encode::open(inst, 0, start, 0, len);
        let said = report::emit(area, |writer| writer.push_path(area, &first, path));
        if said { inst } else { 0 }
    };
    // SAFETY: the caller vouches for the string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    paths::absolute(libc::AT_FDCWD, path, say).unwrap_or(0)
}

/// A range of a file was read or written, in bytes, by a call of this kind; start and duration in ticks.
#[unsafe(no_mangle)]
extern "C" fn foreread_called_extent(
    inst: u32,
    kind: u8,
    start: u64,
    took: u64,
    offset: u64,
    len: u64,
) {
    let (Some(area), Ok(len)) = (recording(), u32::try_from(len)) else {
        return;
    };
    let slot = encode::access(inst, kind, start, took, offset, len);
    // Lost events are counted.
    report::emit(area, |writer| {
        if writer.add(area, (inst, kind), offset, len).is_some() {
            return Ok(());
        }
        writer.push_access(area, &slot)
    });
}

/// This process is one of the ranks of a parallel program.
#[unsafe(no_mangle)]
extern "C" fn foreread_called_rank(rank: u32, of: u32) {
    if let Some(area) = recording() {
        let slot = encode::rank(rank, of, report::stamp());
        report::emit(area, |writer| writer.push(area, &slot));
    }
}

/// The end of this thread's last read of a file, and its length, in bytes; false if unknown.
///
/// # Safety
/// Both must be valid for writing a number.
#[unsafe(no_mangle)]
unsafe extern "C" fn foreread_called_last(end: *mut u64, len: *mut u64) -> bool {
    let Some(area) = recording() else {
        return false;
    };
    seats::seated(area, |_, writer| {
        let Some((kind, last_end, last_len)) = writer.last_access() else {
            return false;
        };
        if matches!(kind, kind::MPI_READ | kind::MPI_WRITE) {
            return false;
        }
        // SAFETY: the caller vouches for both.
        unsafe {
            *end = last_end;
            *len = last_len.into();
        }
        true
    })
}
