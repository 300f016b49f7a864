//! The interposers: functions that stand in front of the C library's calls for reading, closing and advice.
//!
//! Invariant: the real call is made exactly once, with the program's arguments, while no lock is held and nothing can
//! unwind. The program gets its result and errno. A read of a descriptor without a region costs one load. While the
//! real call runs, nothing on the stack needs cleaning up, so a thread that is cancelled in it ends as it would
//! without the library.
//!
//! Data flow: [`before`] passes a read to the clients, which may call their callbacks; the C library reads; [`after`]
//! passes on the duration.

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::time::Instant;

use foreread_client::Extent;
use libc::{iovec, off_t, size_t, ssize_t};

use crate::descriptors::{self, Descriptor};
use crate::inside;
use crate::process::{self, Process};
use crate::real::{self, real};

/// A read under way. It has no destructor, because a cancelled thread leaves it behind.
struct Pending {
    descriptor: *const Descriptor,
    extent: Extent,
    start: Instant,
}

/// Where a read begins.
enum ReadStart {
    Cursor,
    Offset(off_t),
}

/// Passes the coming read to the clients; `None` if no client has a region for it. Called for flagged descriptors only.
#[inline(never)]
fn before(fd: c_int, place: ReadStart, wanted: impl FnOnce() -> Option<u64>) -> Option<Pending> {
    if !inside::outside() {
        return None;
    }
    let errno = real::errno();
    let pending = catch_unwind(std::panic::AssertUnwindSafe(|| prepare(fd, place, wanted)));
    real::set_errno(errno);
    pending.ok().flatten()
}

fn prepare(fd: c_int, place: ReadStart, wanted: impl FnOnce() -> Option<u64>) -> Option<Pending> {
    let inside = inside::enter().ok()?;
    let descriptor = Process::current()?.descriptors.get(fd)?;
    let offset = match place {
        ReadStart::Cursor => real::cursor(fd)?,
        ReadStart::Offset(offset) => u64::try_from(offset).ok()?,
    };
    let length = descriptor.span(fd, offset, wanted()?)?;
    let extent = Extent::new(offset, length);
    descriptor.reading(fd, extent);
    drop(inside);
    Some(Pending {
        descriptor: Arc::into_raw(descriptor),
        extent,
        start: Instant::now(),
    })
}

/// The read is over; its result goes to the program.
#[inline(never)]
fn after(pending: Pending, result: ssize_t) -> ssize_t {
    let errno = real::errno();
    let _ = catch_unwind(std::panic::AssertUnwindSafe(|| {
        // `before` has returned `None` for a signal handler's read inside the library.
        let Ok(_inside) = inside::enter() else { return };
        // A child forked in the callback has no clients.
        if Process::current().is_none() {
            return;
        }
        // SAFETY: `prepare` made the pointer from an Arc, and this is the only place that turns it back.
        let descriptor = unsafe { Arc::from_raw(pending.descriptor) };
        descriptor.read_done(pending.extent, pending.start);
    }));
    real::set_errno(errno);
    result
}

/// Defines interposers of reads: name, arguments, start, length, and the system call that replaces the C library's
/// function where there is none.
macro_rules! reads {
    ($($(#[$doc:meta])* $name:ident = $real:ident ($fd:ident, $($arg:ident: $type:ty),*)
        at $place:expr, of $wanted:expr, else $($call:expr),+;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int, $($arg: $type),*) -> ssize_t {
            let pending = if descriptors::flagged($fd) {
                before($fd, $place, || $wanted)
            } else {
                None
            };
            let result = real!(
                $real as unsafe extern "C-unwind" fn(c_int, $($type),*) -> ssize_t,
                ($fd, $($arg),*),
                // SAFETY: the system call of the same meaning, with the program's arguments.
                else unsafe { libc::syscall($($call),+) as ssize_t }
            );
            match pending {
                None => result,
                Some(pending) => after(pending, result),
            }
        }
    )*};
}

/// The size of a read into a buffer with this much space. Ends the process if the buffer is too small, as the C
/// library's own function does, which this replaces where there is none.
fn checked(size: size_t, space: size_t) -> size_t {
    if size > space {
        // SAFETY: only ends the process.
        unsafe { __chk_fail() }
    }
    size
}

// A function of the C library that the libc crate does not declare.
unsafe extern "C" {
    fn __chk_fail() -> !;
}

/// The start of a `preadv2`, whose offset -1 stands for the cursor.
fn cursor_or(offset: off_t) -> ReadStart {
    if offset == -1 {
        ReadStart::Cursor
    } else {
        ReadStart::Offset(offset)
    }
}

reads! {
    /// `read(2)`.
    read = READ(fd, buffer: *mut c_void, size: size_t)
        at ReadStart::Cursor, of Some(size as u64),
        else libc::SYS_read, fd, buffer, size;
    /// `pread(2)`.
    pread = PREAD(fd, buffer: *mut c_void, size: size_t, offset: off_t)
        at ReadStart::Offset(offset), of Some(size as u64),
        else libc::SYS_pread64, fd, buffer, size, offset;
    /// `pread(2)` with large offsets, as compiled with `_FILE_OFFSET_BITS=64`.
    pread64 = PREAD64(fd, buffer: *mut c_void, size: size_t, offset: off_t)
        at ReadStart::Offset(offset), of Some(size as u64),
        else libc::SYS_pread64, fd, buffer, size, offset;
    /// `readv(2)`.
    readv = READV(fd, vector: *const iovec, count: c_int)
        at ReadStart::Cursor, of real::wanted(vector, count),
        else libc::SYS_readv, fd, vector, count;
    /// `preadv(2)`.
    preadv = PREADV(fd, vector: *const iovec, count: c_int, offset: off_t)
        at ReadStart::Offset(offset), of real::wanted(vector, count),
        else libc::SYS_preadv, fd, vector, count, offset, 0;
    /// `preadv(2)` with large offsets.
    preadv64 = PREADV64(fd, vector: *const iovec, count: c_int, offset: off_t)
        at ReadStart::Offset(offset), of real::wanted(vector, count),
        else libc::SYS_preadv, fd, vector, count, offset, 0;
    /// `preadv2(2)`.
    preadv2 = PREADV2(fd, vector: *const iovec, count: c_int, offset: off_t, flags: c_int)
        at cursor_or(offset), of real::wanted(vector, count),
        else libc::SYS_preadv2, fd, vector, count, offset, 0, flags;
    /// `preadv2(2)` with large offsets.
    preadv64v2 = PREADV64V2(fd, vector: *const iovec, count: c_int, offset: off_t, flags: c_int)
        at cursor_or(offset), of real::wanted(vector, count),
        else libc::SYS_preadv2, fd, vector, count, offset, 0, flags;
    /// `read(2)` as programs compiled with `_FORTIFY_SOURCE` call it; `space` is the buffer's size.
    __read_chk = READ_CHK(fd, buffer: *mut c_void, size: size_t, space: size_t)
        at ReadStart::Cursor, of Some(size as u64),
        else libc::SYS_read, fd, buffer, checked(size, space);
    /// `pread(2)` as programs compiled with `_FORTIFY_SOURCE` call it.
    __pread_chk = PREAD_CHK(fd, buffer: *mut c_void, size: size_t, offset: off_t, space: size_t)
        at ReadStart::Offset(offset), of Some(size as u64),
        else libc::SYS_pread64, fd, buffer, checked(size, space), offset;
    /// The same with large offsets.
    __pread64_chk = PREAD64_CHK(fd, buffer: *mut c_void, size: size_t, offset: off_t, space: size_t)
        at ReadStart::Offset(offset), of Some(size as u64),
        else libc::SYS_pread64, fd, buffer, checked(size, space), offset;
}

/// True if a closing of this descriptor changes the program's table. The library's threads have a table of their own,
/// and so has a child made by `vfork`, which shares this process's memory.
#[inline(always)]
fn ours(fd: c_int) -> bool {
    descriptors::known(fd) && !inside::own_thread() && process::in_own_memory()
}

/// The program is about to close or replace a descriptor. In a child made by `fork` the read-ahead is left as it is:
/// the parent may share the opening.
#[inline(always)]
fn closing(fd: c_int) {
    if ours(fd) && Process::current().is_some() {
        descriptors::restore(fd);
    }
}

/// `close(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    // Before the real call: after it, another thread may have the number already.
    closing(fd);
    if ours(fd) {
        descriptors::closed(fd);
    }
    real!(
        CLOSE as unsafe extern "C-unwind" fn(c_int) -> c_int,
        (fd),
        // SAFETY: as the program asked.
        else unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
    )
}

/// `dup2(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(old: c_int, new: c_int) -> c_int {
    if old != new {
        closing(new);
    }
    let result = real!(
        DUP2 as unsafe extern "C-unwind" fn(c_int, c_int) -> c_int,
        (old, new),
        // dup3 refuses equal descriptors, for which dup2 does nothing.
        else if old == new {
            // SAFETY: asks for flags only.
            if unsafe { libc::fcntl(old, libc::F_GETFD) } < 0 { -1 } else { new }
        } else {
            // SAFETY: as the program asked.
            unsafe { libc::syscall(libc::SYS_dup3, old, new, 0) as c_int }
        }
    );
    if result == new && old != new && ours(new) {
        descriptors::closed(new);
    }
    result
}

/// `dup3(2)`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int {
    if old != new {
        closing(new);
    }
    let result = real!(
        DUP3 as unsafe extern "C-unwind" fn(c_int, c_int, c_int) -> c_int,
        (old, new, flags),
        // SAFETY: as the program asked.
        else unsafe { libc::syscall(libc::SYS_dup3, old, new, flags) as c_int }
    );
    if result == new && ours(new) {
        descriptors::closed(new);
    }
    result
}

/// `posix_fadvise(2)`: the library does not change read-ahead that the program has chosen.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_fadvise(
    fd: c_int,
    offset: off_t,
    length: off_t,
    advice: c_int,
) -> c_int {
    let advised = Advised::before(fd, advice);
    advised.after(real!(
        POSIX_FADVISE as unsafe extern "C-unwind" fn(c_int, off_t, off_t, c_int) -> c_int,
        (fd, offset, length, advice),
        else fadvise(fd, offset, length, advice)
    ))
}

/// `posix_fadvise(2)` with large offsets.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_fadvise64(
    fd: c_int,
    offset: off_t,
    length: off_t,
    advice: c_int,
) -> c_int {
    let advised = Advised::before(fd, advice);
    advised.after(real!(
        POSIX_FADVISE64 as unsafe extern "C-unwind" fn(c_int, off_t, off_t, c_int) -> c_int,
        (fd, offset, length, advice),
        else fadvise(fd, offset, length, advice)
    ))
}

/// Advice of the program under way: its descriptor, if it is the first on read-ahead there.
struct Advised(Option<c_int>);

impl Advised {
    /// Called before the real call. From then on the library gives no advice, which might come after the program's.
    fn before(fd: c_int, advice: c_int) -> Self {
        let choice = matches!(
            advice,
            libc::POSIX_FADV_NORMAL | libc::POSIX_FADV_RANDOM | libc::POSIX_FADV_SEQUENTIAL
        );
        let first = choice && !inside::own_thread() && descriptors::chosen(fd);
        Self(first.then_some(fd))
    }

    /// Called after the real call: refused advice does not count.
    fn after(self, answer: c_int) -> c_int {
        if let Some(fd) = self.0.filter(|_| answer != 0) {
            descriptors::not_chosen(fd);
        }
        answer
    }
}

/// The system call, in the convention of `posix_fadvise`: the error is the result, and errno stays unchanged.
fn fadvise(fd: c_int, offset: off_t, length: off_t, advice: c_int) -> c_int {
    let errno = real::errno();
    // SAFETY: a hint, with the program's arguments.
    let result = unsafe { libc::syscall(libc::SYS_fadvise64, fd, offset, length, advice) };
    let answer = if result < 0 { real::errno() } else { 0 };
    real::set_errno(errno);
    answer
}
