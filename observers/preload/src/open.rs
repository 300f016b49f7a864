//! Opens: a new descriptor, reported by the path it was opened by.
//!
//! No system call is added: the supervisor looks at the file itself.

use core::ffi::{CStr, c_char, c_int};

use foreread_ring::{
    Advice, OPEN_CREATED, OPEN_DIRECTORY, OPEN_TRUNCATED, OPEN_WRITTEN, Shared, encode,
};

use crate::files::{self, Entry};
use crate::{maps, paths, report, seats};

/// An open: `call` returns the new descriptor.
#[inline(always)]
pub fn opening(
    base: c_int,
    path: *const c_char,
    flags: c_int,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if report::area().is_none() {
        return call();
    }
    let start = report::stamp();
    let fd = call();
    if fd >= 0 {
        opened(fd, base, path, flags, start);
    }
    fd
}

/// An openat2, whose flags are the first word of what `how` points to.
pub fn opening_how(
    base: c_int,
    path: *const c_char,
    how: *const u64,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let start = report::stamp();
    let fd = call();
    if fd >= 0 && report::area().is_some() {
        // SAFETY: the kernel has just read it.
        opened(fd, base, path, unsafe { *how } as c_int, start);
    }
    fd
}

/// A descriptor was opened by a path, which the kernel has accepted.
pub fn opened(fd: c_int, base: c_int, path: *const c_char, flags: c_int, start: u64) {
    let took = report::stamp().wrapping_sub(start);
    if !report::at_home() || seats::in_helper() {
        return;
    }
    paths::forget(fd, fd);
    let Some(area) = report::active() else {
        return files::set(fd, Entry::UNKNOWN);
    };
    maps::report_new_objects(area);
    let mut buffer = paths::Buffer::new();
    // SAFETY: the kernel has just read the path.
    let entry = match unsafe { paths::absolute(base, path, &mut buffer) } {
        Some(path) => tell(area, fd, path, flags, (start, took)),
        None => Entry::UNKNOWN,
    };
    files::set(fd, entry);
}

fn tell(area: &Shared, fd: c_int, path: &[u8], flags: c_int, (start, took): (u64, u64)) -> Entry {
    let unnamed = flags & libc::O_TMPFILE == libc::O_TMPFILE;
    let directory = flags & libc::O_DIRECTORY != 0 && !unnamed;
    if directory {
        paths::remember(fd, path);
    }
    if unnamed || flags & libc::O_PATH != 0 {
        return Entry::IGNORED;
    }
    if !paths::is_watched(path) {
        // What a descriptor leads to is found out at the first read.
        return if paths::is_of_descriptor(path) {
            Entry::UNKNOWN
        } else {
            Entry::IGNORED
        };
    }
    let mode = flags & libc::O_ACCMODE;
    let mut said = 0;
    for (bit, meaning) in [
        (mode != libc::O_RDONLY, OPEN_WRITTEN),
        (flags & libc::O_CREAT != 0, OPEN_CREATED),
        (flags & libc::O_TRUNC != 0, OPEN_TRUNCATED),
        (directory, OPEN_DIRECTORY),
    ] {
        said |= if bit { meaning } else { 0 };
    }
    let inst = area.next_instance();
    let first = encode::open(inst, said, start, took, path.len());
    if !report::emit(area, |writer| writer.push_path(area, &first, path)) {
        // The supervisor has not heard of it: it gets another chance at the first read.
        return Entry::UNKNOWN;
    }
    if directory || mode == libc::O_WRONLY {
        return Entry::IGNORED;
    }
    let advice = area.advice(path);
    match advice {
        Some(Advice::Random) => files::advise_random(fd),
        Some(Advice::Sequential) => files::advise_sequential(fd),
        None => {}
    }
    let advised = advice == Some(Advice::Random);
    // Writes move the cursor of a descriptor opened for both unseen.
    Entry::tracked(inst, mode == libc::O_RDWR, advised)
}

/// An open of a stream: `call` returns it, opened in the mode it is given.
#[inline(always)]
pub fn opening_stream(
    path: *const c_char,
    mode: *const c_char,
    call: impl FnOnce(*const c_char) -> *mut libc::FILE,
) -> *mut libc::FILE {
    if report::area().is_none() {
        return call(mode);
    }
    let start = report::stamp();
    let stream = without_mapping(mode, call);
    if !stream.is_null() {
        // SAFETY: a stream the C library has just returned.
        let fd = unsafe { libc::fileno(stream) };
        if path.is_null() {
            // freopen without a path: the same file in another mode.
            files::closing(fd, fd);
        } else {
            opened(fd, libc::AT_FDCWD, path, stream_flags(mode), start);
        }
    }
    stream
}

/// Calls with a stream's mode without `m`, by which glibc maps the file and copies from there, unseen. A `b`, which
/// means nothing, takes its place. A program that nobody observes keeps its mapping.
pub fn without_mapping<T>(mode: *const c_char, call: impl FnOnce(*const c_char) -> T) -> T {
    /// Characters of a mode that glibc takes for flags.
    const FLAGS: usize = 7;
    if report::area().is_none() {
        return call(mode);
    }
    let mut other = [0; 64];
    // SAFETY: the C library is about to read it.
    let given = unsafe { CStr::from_ptr(mode) }.to_bytes_with_nul();
    let Some(own) = other.get_mut(..given.len()) else {
        return call(mode);
    };
    own.copy_from_slice(given);
    let flags = own.iter_mut().take(FLAGS).take_while(|flag| **flag != b',');
    for flag in flags.filter(|flag| **flag == b'm') {
        *flag = b'b';
    }
    call(other.as_ptr().cast())
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
