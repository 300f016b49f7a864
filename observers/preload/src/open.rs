//! Opens: a new descriptor, reported by the path it was opened by.
//!
//! No system call is added to examine the file: the supervisor does that.

use core::ffi::{CStr, c_char, c_int};

use foreread_ring::{
    Advice, OPEN_CREATED, OPEN_DIRECT, OPEN_DIRECTORY, OPEN_TRUNCATED, OPEN_UNREAD, OPEN_WRITTEN,
    Shared, Switches, encode,
};

use crate::files::{self, Entry};
use crate::names::{self, Look};
use crate::paths::{self, Parts};
use crate::{report, seats, threads};

/// An open: `call` returns the new descriptor.
#[inline(always)]
pub fn opening(
    base: c_int,
    path: *const c_char,
    flags: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let Some(area) = report::area() else {
        return call();
    };
    let begun = begin(area);
    let fd = call();
    if fd >= 0 {
        opened(fd, base, path, flags, begun);
    }
    fd
}

/// An openat2, with its flags in the first word at `how`.
pub fn opening_how(
    base: c_int,
    path: *const c_char,
    how: *const u64,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let Some(area) = report::area() else {
        return call();
    };
    let begun = begin(area);
    let fd = call();
    if fd >= 0 {
        // SAFETY: the kernel has just read it.
        opened(fd, base, path, unsafe { *how } as c_int, begun);
    }
    fd
}

/// An open begins. Returns its start, in ticks, and the place that shows whether the thread is switched out.
#[inline(always)]
fn begin(area: &Shared) -> (u64, Switches) {
    let switches = threads::switches(area);
    let start = report::stamp();
    switches.mark();
    (start, switches)
}

/// A descriptor was opened by a path, which the kernel has accepted.
fn opened(
    fd: c_int,
    base: c_int,
    path: *const c_char,
    flags: c_int,
    (start, switches): (u64, Switches),
) {
    let took = report::spent(start, switches);
    if !report::at_home() || seats::in_helper() {
        return;
    }
    paths::forget(fd, fd);
    let Some(area) = report::active() else {
        return files::set(fd, Entry::UNKNOWN);
    };
    // Before the paths are locked, because claiming a seat locks them, too.
    seats::sit(area);
    // SAFETY: the kernel has just read the path, to which an open writes nothing.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if flags & libc::O_DIRECTORY != 0 && !is_unnamed(flags) {
        paths::remember(fd, base, path);
    }
    let entry = paths::absolute(base, path, |path| say(area, fd, path, flags, (start, took)));
    files::set(fd, entry.unwrap_or(Entry::UNKNOWN));
}

/// True if the opened file has no name.
fn is_unnamed(flags: c_int) -> bool {
    flags & libc::O_TMPFILE == libc::O_TMPFILE
}

/// Reports an opened file. Returns the new state of its descriptor.
fn say(
    area: &Shared,
    fd: c_int,
    path: Parts<'_>,
    flags: c_int,
    (start, took): (u64, u64),
) -> Entry {
    let unnamed = is_unnamed(flags);
    let directory = flags & libc::O_DIRECTORY != 0 && !unnamed;
    if unnamed {
        return Entry::IGNORED;
    }
    if !paths::is_watched(path) {
        // The first read examines the descriptor.
        return if paths::is_of_descriptor(path) {
            Entry::UNKNOWN
        } else {
            Entry::IGNORED
        };
    }
    if flags & libc::O_PATH != 0 {
        // The name is looked up, and nothing can be read by the descriptor.
        let look = if flags & libc::O_NOFOLLOW == 0 {
            Look::Through
        } else {
            Look::At
        };
        names::say(area, path, look, (start, took), None);
        return Entry::IGNORED;
    }
    let mode = flags & libc::O_ACCMODE;
    let mut said = 0;
    for (bit, meaning) in [
        (mode != libc::O_RDONLY, OPEN_WRITTEN),
        (mode == libc::O_WRONLY, OPEN_UNREAD),
        (flags & libc::O_CREAT != 0, OPEN_CREATED),
        (flags & libc::O_TRUNC != 0, OPEN_TRUNCATED),
        (directory, OPEN_DIRECTORY),
        (flags & libc::O_DIRECT != 0, OPEN_DIRECT),
    ] {
        said |= if bit { meaning } else { 0 };
    }
    let inst = area.next_instance();
    let len = path.iter().map(|part| part.len()).sum();
    let first = encode::open(inst, said, start, took, len);
    if !report::emit(area, |writer| writer.push_path(area, &first, path)) {
        // The report was lost: the first read tries again.
        return Entry::UNKNOWN;
    }
    if directory || mode == libc::O_WRONLY {
        return Entry::IGNORED;
    }
    let advised = match area.advice(path) {
        Some(Advice::Random) => files::advise_random(fd),
        Some(Advice::Sequential) => {
            files::advise_sequential(fd);
            false
        }
        None => false,
    };
    // Writes move the cursor of a descriptor opened for both unseen.
    Entry::tracked(inst, mode == libc::O_RDWR, advised)
}

/// Opens a stream: `call` returns it. If its closing cannot be seen, its reads are not reported either.
#[inline(always)]
pub fn opening_stream(
    path: *const c_char,
    mode: *const c_char,
    call: impl FnOnce() -> *mut libc::FILE,
) -> *mut libc::FILE {
    let Some(area) = report::area().filter(|_| seats::sees_stdio()) else {
        return call();
    };
    let begun = begin(area);
    let stream = call();
    if !stream.is_null() {
        // SAFETY: a stream that the C library has just returned.
        let fd = unsafe { libc::fileno(stream) };
        if path.is_null() {
            // freopen without a path: the same file in another mode.
            files::closing(fd, fd);
        } else {
            opened(fd, libc::AT_FDCWD, path, stream_flags(mode), begun);
        }
    }
    stream
}

/// The flags of open that a stream's mode stands for.
fn stream_flags(mode: *const c_char) -> c_int {
    // SAFETY: the C library has just read it.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let create = match mode.first() {
        Some(b'w') => libc::O_CREAT | libc::O_TRUNC,
        Some(b'a') => libc::O_CREAT | libc::O_APPEND,
        _ => 0,
    };
    let access = match (mode.contains(&b'+'), create) {
        (true, _) => libc::O_RDWR,
        (false, 0) => libc::O_RDONLY,
        (false, _) => libc::O_WRONLY,
    };
    access | create
}
