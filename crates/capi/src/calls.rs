//! The calls of `foreread.h`.
//!
//! Invariant: each call enters the library ([`inside`](crate::inside)), converts arguments and results, and
//! catches panics. The work itself is done in other modules. The calls' comments are the header's.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::foreread_client::{Extent, Flags, Options, Stats};

use crate::abi::{
    FOREREAD_APPEND, FOREREAD_BRIEF, FOREREAD_CLEAR, FOREREAD_DONE, FOREREAD_KEEP, FOREREAD_PASSES,
    FOREREAD_SET, FOREREAD_TIMED, foreread_callback, foreread_client, foreread_entry,
    foreread_options, foreread_stats,
};
use crate::errors::{code, sentence};
use crate::handle::Handle;
use crate::inside;
use crate::process::{self, Process};
use crate::{real, regions};

/// Limit of the options' size in any future version, in bytes. A larger size is garbage, and the memory behind it
/// may not be mapped.
const LONGEST_OPTIONS: usize = 4096;

/// Runs a call inside the library. A panic becomes `-ENOTRECOVERABLE`. The program's errno stays unchanged.
fn call<T: From<c_int>>(body: impl FnOnce() -> Result<T, c_int>) -> T {
    let errno = real::errno();
    let inside = match inside::enter() {
        Ok(inside) => inside,
        Err(code) => return code.into(),
    };
    let answer = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(-libc::ENOTRECOVERABLE));
    drop(inside);
    real::set_errno(errno);
    answer.unwrap_or_else(T::from)
}

fn client(client: *mut foreread_client) -> Result<Arc<Handle>, c_int> {
    process::find(client.addr())
}

/// Registers a client.
///
/// A client is one list of the program's next reads. A process may have several clients, and a
/// file may be in several.
///
/// The callback, unless it is null, is called as callback(arg, marked_fd, marked_offset,
/// requested_fd, requested_offset)
/// - when a read in one of the client's regions is not on its list, and
/// - when a complete list (FOREREAD_DONE) runs out: at the read that matches its last entry.
///
/// It is called on the reading thread, before the read, without any lock held. It may call any
/// function of this library, especially foreread_request_prefetching(), and may read: its own
/// reads are not matched with any list. Its arguments are the most recent marked access (-1 and -1
/// if there was none; it may be the requested one) and the requested access. One callback runs at
/// a time for each client: reads on other threads meanwhile neither call it nor wait for it. A
/// callback that supplies no entries is called again only after 1, 2, 4 and so on up to 1024 such
/// reads. A callback that never returns blocks only its own thread. It must end by returning, not
/// by longjmp(), pthread_exit() or a C++ exception. It is never called from a signal handler.
///
/// @param client   receives the client.
/// @param options  null for the defaults.
/// @return 0, or
///         -EFAULT if client is null;
///         -EINVAL if options->struct_size is too small, a flag has no meaning, or process is no
///         process number;
///         -E2BIG if options has members that this version does not know, and they are not zero,
///         or if options->struct_size is more than 4096;
///         -EAGAIN if the threads cannot be started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_register_client(
    client: *mut *mut foreread_client,
    options: *const foreread_options,
    callback: foreread_callback,
    arg: *mut c_void,
) -> c_int {
    call(|| {
        if client.is_null() {
            return Err(-libc::EFAULT);
        }
        // SAFETY: null, or the program's options, of the size that they state.
        let (options, timed) = unsafe { chosen(options) }?;
        let process = Process::begin()?;
        let number = process.add(Handle::new(options, timed, callback, arg)?);
        // SAFETY: not null, and the program's memory for the result.
        unsafe { client.write(std::ptr::without_provenance_mut(number)) };
        Ok(0)
    })
}

/// Ends a client: stops fetching, removes its regions, and writes its report if one was
/// requested.
///
/// May be called from the callback. Calls and callbacks that are still running on the client finish
/// first: only then the fetching stops and the report is written. The callback's argument has to
/// outlive them. Fetched pages stay in memory.
///
/// @return 0, -EINVAL (not a client), or -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_unregister_client(client: *mut foreread_client) -> c_int {
    call(|| Process::remove(client.addr()).map(|_| 0))
}

/// Registers a file by its path, for programs whose reads are not intercepted (mmap, io_uring)
/// and that report them by foreread_reading() or foreread_at().
///
/// @return a pseudo-descriptor of this client, FOREREAD_FIRST_FILE or more, which is valid only
///         where this header expects a descriptor. The same file has the same one each time. Or
///         -EFAULT (null path), -ENOENT, -EACCES and other errors of open(), -ENODEV (not a
///         regular file), -EINVAL (not a client), -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_register_file(
    client: *mut foreread_client,
    path: *const c_char,
) -> c_int {
    call(|| {
        let handle = self::client(client)?;
        // SAFETY: null, or the program's string.
        let path = unsafe { text(path) }.ok_or(-libc::EFAULT)?;
        handle.add_path(path)
    })
}

/// Registers a region: reads of these bytes through this descriptor are matched with the list.
///
/// Regions may overlap. Entries may name any bytes of the file; the regions decide which reads are
/// matched and may call the callback. Reads through another descriptor of the file, one made by
/// dup() included, are not matched unless it is registered too. Closing the descriptor ends the
/// matching but not the prefetching, because the library opens the file itself. A new descriptor
/// with the same number is a different one.
///
/// While most of the file's entries do not continue the one before, the library turns the kernel's
/// read-ahead off on the descriptor (POSIX_FADV_RANDOM). While the list reads 2 MiB or more of the
/// file from front to back, it doubles the read-ahead (POSIX_FADV_SEQUENTIAL). It restores the
/// read-ahead when the list has run out, the descriptor is closed, or the client or the program
/// ends. If the program itself gave such advice, the library gives none.
///
/// @param fd     a descriptor of a regular file, open for reading, or a pseudo-descriptor.
/// @param start  first byte.
/// @param end    one past the last byte; UINT64_MAX for the rest of the file, however it grows.
/// @return the region's number, 0 or more, or
///         -EINVAL if start is not below end, or if client is none;
///         -EBADF if the descriptor is closed or not open for reading, or no pseudo-descriptor of
///         this client;
///         -ENODEV if it is not a regular file;
///         -ERANGE if the region begins at or past the end of the file (in an empty file it may
///         begin at 0);
///         -EMFILE if the descriptor is 1048576 or more; -ECHILD. Or, if the library cannot open
///         the file itself, -EACCES (this user may not), -ENOENT (there is no /proc) and other
///         errors of open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_register_region(
    client: *mut foreread_client,
    fd: c_int,
    start: u64,
    end: u64,
) -> c_int {
    call(|| regions::add(&self::client(client)?, fd, start, end))
}

/// Removes a region. When no descriptor of a file has a region left, and the file is not
/// registered by its path either, its entries are no longer fetched.
///
/// @return 0, -ENOENT (no such region), -EINVAL (not a client), or -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_unregister_region(
    client: *mut foreread_client,
    region: c_int,
) -> c_int {
    call(|| regions::remove(&self::client(client)?, region).map(|()| 0))
}

/// Passes on the list of the program's next reads, or more of it.
///
/// Entries are numbered from 0 at each FOREREAD_SET; FOREREAD_APPEND continues the numbering. A
/// read is on the list if it shares a byte with an entry ahead, or with one of the last 4096
/// passed. The matched entry is passed then, with all before it. A match more than 4096 entries
/// ahead passes nothing until a second read, within 4096 entries after it, confirms it.
///
/// Entries may repeat, overlap, or be in holes or past the end of their file: no page is fetched
/// twice, holes are not fetched, and only fetched bytes count as issued. An entry is fetched up to
/// the end that its file has when its turn comes. An entry that begins past the end uses no budget,
/// and is fetched once the file has grown that far, unless the program has passed it.
///
/// @param entries  n entries, in the order of the reads; may be null if n is 0. They are copied.
/// @param flags    FOREREAD_SET (the default), FOREREAD_APPEND, FOREREAD_CLEAR, FOREREAD_DONE,
///                 combined.
/// @return the number of accepted entries, the first ones. If it is less than n, the list is full:
///         pass on the other entries later, or from the callback. Or
///         -EFAULT if entries is null and n is not 0;
///         -EINVAL if flags contradict each other or have no meaning, if an entry has flags without
///         meaning or ends past 2^63 - 1, or if client is none;
///         -EBADF if an entry's descriptor is closed, refers to another file by now, or has no
///         region;
///         -ENOMEM if there is no memory for them; -ECHILD. After an error the list is unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_request_prefetching(
    client: *mut foreread_client,
    entries: *const foreread_entry,
    n: usize,
    flags: c_uint,
) -> i64 {
    call(|| {
        let handle = self::client(client)?;
        let flags = how(flags).ok_or(-libc::EINVAL)?;
        if n > isize::MAX as usize / size_of::<foreread_entry>() {
            return Err(-libc::EINVAL);
        }
        let entries = match (entries.is_null(), n) {
            (_, 0) => &[],
            (true, _) => return Err(-libc::EFAULT),
            // SAFETY: the program says that there are n.
            (false, _) => unsafe { std::slice::from_raw_parts(entries, n) },
        };
        let accepted = handle.request(entries, flags)?;
        Ok(i64::try_from(accepted).unwrap_or(i64::MAX))
    })
}

/// Reports that the program is at entry n: equivalent to reading it. For programs whose reads
/// are not intercepted. A report for every few entries is enough. An entry that is not listed
/// yet will be passed when it is.
///
/// @return 0, -ERANGE (the list is complete and has no such entry), -EINVAL (not a client), or
///         -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_at(client: *mut foreread_client, n: u64) -> c_int {
    call(|| {
        let at = self::client(client)?.client.at(n);
        at.map(|_| 0).map_err(|error| code(&error))
    })
}

/// Reports that the program is about to read these bytes. For reads that are not intercepted
/// (stdio, mmap, io_uring): call it just before each.
///
/// @return 0, -EBADF (the client has no region for this descriptor), -EINVAL (not a client, or
///         the bytes end past 2^63 - 1), or -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_reading(
    client: *mut foreread_client,
    fd: c_int,
    offset: u64,
    length: u64,
) -> c_int {
    call(|| {
        let handle = self::client(client)?;
        handle.announce(fd, read(offset, length)?).map(|()| 0)
    })
}

/// Reports that a read announced by foreread_reading() is over, and how long it took. The wait
/// shows the library how far ahead to fetch, and how much. For a client with FOREREAD_TIMED, fetched
/// bytes count as read only when the read is reported here. For other clients this call does nothing.
///
/// @param length       bytes read, which may be fewer than announced.
/// @param nanoseconds  duration of the read, which ends now.
/// @return 0, -EBADF (the client has no region for this descriptor), -EINVAL (not a client, or
///         the bytes end past 2^63 - 1), or -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_read_done(
    client: *mut foreread_client,
    fd: c_int,
    offset: u64,
    length: u64,
    nanoseconds: u64,
) -> c_int {
    call(|| {
        let handle = self::client(client)?;
        let took = Duration::from_nanos(nanoseconds);
        handle.done(fd, read(offset, length)?, took).map(|()| 0)
    })
}

/// Writes a client's statistics to stats: as many members as its struct_size covers.
///
/// @return 0, -EFAULT (null stats), -EINVAL (not a client, or struct_size too small), or -ECHILD.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_get_stats(
    client: *mut foreread_client,
    stats: *mut foreread_stats,
) -> c_int {
    call(|| {
        let handle = self::client(client)?;
        // SAFETY: null, or the program's structure.
        let size = unsafe { covered(stats) }?;
        // SAFETY: of the size that it states.
        unsafe { tell(stats, size, handle.client.stats()) };
        Ok(0)
    })
}

/// Ends a client, and writes its final statistics to stats: as many members as its struct_size
/// covers. Their account is closed: each byte issued is useful, late, wasted, evicted or infill.
///
/// Unlike after foreread_unregister_client(), the client has ended when this returns, even if other
/// threads are in calls on it.
///
/// @return 0;
///         -EFAULT (null stats), -EINVAL (not a client, or one that has ended, or struct_size too
///         small), or -ECHILD: the client continues;
///         -ENOTRECOVERABLE after an internal failure: the client has ended, and the account in
///         stats may not be closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn foreread_finish_client(
    client: *mut foreread_client,
    stats: *mut foreread_stats,
) -> c_int {
    call(|| {
        self::client(client)?;
        // SAFETY: null, or the program's structure.
        let size = unsafe { covered(stats) }?;
        let handle = Process::remove(client.addr())?;
        let last = handle.client.close().ok_or(-libc::EINVAL)?.stats;
        // SAFETY: of the size that it states.
        unsafe { tell(stats, size, last) };
        if last.ledger.is_closed() {
            Ok(0)
        } else {
            Err(-libc::ENOTRECOVERABLE)
        }
    })
}

/// The meaning of a code, as a sentence without a full stop. Never null; not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn foreread_strerror(code: c_int) -> *const c_char {
    sentence(code).as_ptr()
}

/// The library's version, as in "1.2.3". Never null; not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn foreread_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version holds no zero"),
        };
    VERSION.as_ptr()
}

/// The bytes of a read; -EINVAL if they end past 2^63 - 1.
fn read(offset: u64, length: u64) -> Result<Extent, c_int> {
    match offset.checked_add(length) {
        Some(end) if i64::try_from(end).is_ok() => Ok(Extent::new(offset, length)),
        _ => Err(-libc::EINVAL),
    }
}

/// The flags of a request; `None` if they contradict each other or have no meaning.
fn how(bits: c_uint) -> Option<Flags> {
    let meanings = [
        (FOREREAD_SET, Flags::SET),
        (FOREREAD_APPEND, Flags::APPEND),
        (FOREREAD_CLEAR, Flags::CLEAR),
        (FOREREAD_DONE, Flags::DONE),
    ];
    let mut left = bits;
    let mut flags = Flags::default();
    for (bit, flag) in meanings {
        if bits & bit != 0 {
            flags = flags | flag;
            left &= !bit;
        }
    }
    let both = FOREREAD_SET | FOREREAD_APPEND;
    (left == 0 && bits & both != both).then_some(flags)
}

/// The size of the program's structure in bytes, as its first member states.
///
/// # Errors
/// `-EFAULT` if it is null, `-EINVAL` if it has no room for its first member.
///
/// # Safety
/// `stats` is null or begins with its size.
unsafe fn covered(stats: *const foreread_stats) -> Result<u64, c_int> {
    if stats.is_null() {
        return Err(-libc::EFAULT);
    }
    // SAFETY: the first member is there in every version.
    let size = unsafe { stats.cast::<u64>().read() };
    if size < size_of::<u64>() as u64 {
        return Err(-libc::EINVAL);
    }
    Ok(size)
}

/// Writes as many members of the statistics as the program's structure has.
///
/// # Safety
/// `stats` points to `size` bytes.
unsafe fn tell(stats: *mut foreread_stats, size: u64, now: Stats) {
    let told = foreread_stats {
        struct_size: size,
        ..now.into()
    };
    let length = size_of::<foreread_stats>().min(usize::try_from(size).unwrap_or(usize::MAX));
    // SAFETY: no more bytes than either structure has.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const told).cast::<u8>(), stats.cast::<u8>(), length);
    }
}

/// The program's options, of any version, and true if it reports the ends of its reads.
///
/// # Errors
/// As documented for `foreread_register_client`.
///
/// # Safety
/// `options` is null or points to as many bytes as its first member says.
unsafe fn chosen(options: *const foreread_options) -> Result<(Options, bool), c_int> {
    let mut chosen = Options::default();
    if options.is_null() {
        return Ok((chosen, false));
    }
    // SAFETY: the first member is there in every version.
    let size = unsafe { options.cast::<u64>().read() };
    let size = usize::try_from(size).map_err(|_| -libc::E2BIG)?;
    let known = size_of::<foreread_options>();
    if size < size_of::<u64>() {
        return Err(-libc::EINVAL);
    }
    if size > LONGEST_OPTIONS {
        return Err(-libc::E2BIG);
    }
    // SAFETY: zero is a value of every member.
    let mut ours: foreread_options = unsafe { std::mem::zeroed() };
    let bytes = options.cast::<u8>();
    // SAFETY: no more bytes than either structure has.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes, (&raw mut ours).cast::<u8>(), size.min(known));
    }
    for n in known..size {
        // SAFETY: within the size that the program states.
        if unsafe { bytes.add(n).read() } != 0 {
            return Err(-libc::E2BIG);
        }
    }
    if ours.flags & !u64::from(FOREREAD_KEEP | FOREREAD_TIMED | FOREREAD_PASSES | FOREREAD_BRIEF)
        != 0
    {
        return Err(-libc::EINVAL);
    }
    chosen.evict_behind = ours.flags & u64::from(FOREREAD_KEEP) == 0;
    chosen.keep_open = ours.flags & u64::from(FOREREAD_BRIEF) == 0;
    chosen.passes = ours.flags & u64::from(FOREREAD_PASSES) != 0;
    if ours.process > 0 {
        chosen.process = Some(u32::try_from(ours.process).map_err(|_| -libc::EINVAL)?);
    }
    if ours.budget > 0 {
        chosen.budget = Some(ours.budget);
    }
    if ours.capacity > 0 {
        chosen.capacity = usize::try_from(ours.capacity).map_err(|_| -libc::EINVAL)?;
    }
    // SAFETY: null, or the program's string.
    chosen.check = unsafe { text(ours.check) }.map(Path::to_owned);
    Ok((chosen, ours.flags & u64::from(FOREREAD_TIMED) != 0))
}

/// A string of the program's as a path; `None` if it is null.
///
/// # Safety
/// `text` is null or ends with a zero.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a Path> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    Some(Path::new(OsStr::from_bytes(text.to_bytes())))
}
