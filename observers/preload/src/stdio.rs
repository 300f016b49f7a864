//! glibc's stdio, which calls its own read, seek and close directly.
//!
//! Its file streams use one table of functions, `_IO_file_jumps` (and `_IO_wfile_jumps` for wide ones). glibc checks the address of a
//! stream's table but not its content, so the constructor replaces the entries for read, seek and close by hooks that call the originals.
//! The hooks see every refill with its exact size, and cost nothing for calls served from the buffer. If the entries are not as expected,
//! they are left alone and stdio is reported as not observed.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::functions::Real;
use crate::sys::{self, Allowed};
use crate::{files, real, seats, watch};

type Read = unsafe extern "C" fn(*mut libc::FILE, *mut c_void, isize) -> isize;
type Seek = unsafe extern "C" fn(*mut libc::FILE, i64, c_int) -> i64;
type Close = unsafe extern "C" fn(*mut libc::FILE) -> c_int;

/// Slots of glibc's `struct _IO_jump_t` and its size, unchanged since 2.1.
const READ: usize = 14;
const SEEK: usize = 16;
const CLOSE: usize = 17;
const SLOTS: usize = 21;

const PAGE: usize = 4096;

/// Limit of bytes from the first page of the tables to their end.
const MOST: usize = 2 * PAGE;

static ORIGINAL_READ: AtomicUsize = AtomicUsize::new(0);
static ORIGINAL_SEEK: AtomicUsize = AtomicUsize::new(0);
static ORIGINAL_CLOSE: AtomicUsize = AtomicUsize::new(0);

/// Installs the hooks, if the tables of this C library are as expected.
pub fn hook(allowed: Allowed) {
    let find = |one: Real| one.found().unwrap_or(0);
    let hooks = [
        (
            READ,
            find(real::of::_IO_file_read),
            &ORIGINAL_READ,
            read as *const () as usize,
        ),
        (
            SEEK,
            find(real::of::_IO_file_seek),
            &ORIGINAL_SEEK,
            seek as *const () as usize,
        ),
        (
            CLOSE,
            find(real::of::_IO_file_close),
            &ORIGINAL_CLOSE,
            close as *const () as usize,
        ),
    ];
    let tables = [real::of::_IO_file_jumps, real::of::_IO_wfile_jumps].map(find);
    let fits = |table: usize| {
        table != 0
            && hooks.iter().all(|&(slot, original, ..)| {
                // SAFETY: the exported table has `SLOTS` entries.
                original != 0 && unsafe { *(table as *const usize).add(slot) } == original
            })
    };
    if !tables.iter().all(|&table| fits(table)) {
        return;
    }
    for (_, original, keep, _) in hooks {
        keep.store(original, Ordering::Relaxed);
    }
    // The tables are adjacent, usually on one page.
    let (low, high) = (tables[0].min(tables[1]), tables[0].max(tables[1]));
    let first = low & !(PAGE - 1);
    let len = (high + SLOTS * size_of::<usize>()).next_multiple_of(PAGE) - first;
    // SAFETY: pages of the C library's relocated read-only data, which are made read-only
    // again below and never become less accessible than they were.
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as above.
    if len > MOST || !unsafe { sys::protect(allowed, first, len, writable) } {
        return;
    }
    for (table, (slot, _, _, hook)) in tables
        .iter()
        .flat_map(|table| hooks.map(|hook| (table, hook)))
    {
        // SAFETY: an entry of the table, now writable, and a function of its type.
        unsafe { (*(*table as *const AtomicUsize).add(slot)).store(hook, Ordering::Release) };
    }
    // SAFETY: restores their protection.
    unsafe { sys::protect(allowed, first, len, libc::PROT_READ) };
    seats::see_stdio();
}

/// A stream's descriptor. Keeps errno, and takes no lock.
fn descriptor(stream: *mut libc::FILE) -> c_int {
    let errno = real::errno();
    // SAFETY: the C library's stream of this call.
    let fd = unsafe { libc::fileno(stream) };
    real::set_errno(errno);
    fd
}

unsafe extern "C" fn read(stream: *mut libc::FILE, buffer: *mut c_void, len: isize) -> isize {
    // SAFETY: stored before the hook was installed, and of this type.
    let real: Read = unsafe { core::mem::transmute(ORIGINAL_READ.load(Ordering::Relaxed)) };
    // SAFETY: the C library's arguments.
    watch::of_stream(
        || unsafe { real(stream, buffer, len) },
        || descriptor(stream),
    )
}

unsafe extern "C" fn seek(stream: *mut libc::FILE, offset: i64, whence: c_int) -> i64 {
    // SAFETY: stored before the hook was installed, and of this type.
    let real: Seek = unsafe { core::mem::transmute(ORIGINAL_SEEK.load(Ordering::Relaxed)) };
    // SAFETY: the C library's arguments.
    let at = unsafe { real(stream, offset, whence) };
    watch::sought(descriptor(stream), at);
    at
}

unsafe extern "C" fn close(stream: *mut libc::FILE) -> c_int {
    // SAFETY: stored before the hook was installed, and of this type.
    let real: Close = unsafe { core::mem::transmute(ORIGINAL_CLOSE.load(Ordering::Relaxed)) };
    // Before the real call: after it, another thread may have the number already.
    let fd = descriptor(stream);
    files::closing(fd, fd);
    // SAFETY: the C library's argument.
    unsafe { real(stream) }
}
