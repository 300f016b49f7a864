//! The functions this library defines in place of the C library's.
//!
//! Each hook is one line: its prototype, and the actions around the real call, which `call` makes with the program's own arguments. Actions
//! before the call are those that the crate's documentation permits. Data behind the arguments are read after it, when the kernel or the C
//! library has accepted them.
//!
//! Files that the C library opens and closes itself, such as directories, are not seen. Nor need they be: a descriptor counts as a file's
//! only if a hook has seen its opening or has examined it. For the same reason lookups of `nftw`, `fts_read` or `glob` are not seen.

mod raw;

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};

use foreread_ring::kind;
use libc::{AT_FDCWD, FILE, aiocb, gid_t, iovec, off_t, size_t, ssize_t, uid_t};

use crate::names::{Answer, Look};
use crate::real::{self, real};
use crate::root::Strings;
use crate::{confined, direct, exec, files, names, open, paths, report, root, seat, watch};

const CREAT: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

macro_rules! hooks {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $ret:ty = |$call:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> $ret {
            let real = real!($name as unsafe extern "C" fn($($type),*) -> $ret);
            // SAFETY: the program's own call.
            let $call = || unsafe { real($($arg),*) };
            $body
        }
    )*};
}

/// The same as [`hooks`], for frequent calls. The actions are in a function of their own, so that without any the call is passed on without
/// saving a register. A call with a system-call number is made directly if [`direct`] permits it.
macro_rules! reads {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> ssize_t $([$number:ident])? = |$call:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $type),*) -> ssize_t {
            type Function = unsafe extern "C" fn($($type),*) -> ssize_t;
            use real::of::$name as own;
            #[inline(never)]
            unsafe extern "C" fn watched($($arg: $type),*) -> ssize_t {
                const NUMBER: Option<c_long> = number!($($number)?);
                let $call = || {
                    if let Some(number) = NUMBER && direct::is_possible() {
                        // SAFETY: the program's own call, by the number of the function's.
                        return unsafe { direct::call(number, [$($arg as usize),*]) };
                    }
                    // SAFETY: the address is that of the C library's function of this name and type.
                    let real = unsafe { core::mem::transmute::<usize, Function>(own.address()) };
                    // SAFETY: the program's own call.
                    unsafe { real($($arg),*) }
                };
                $body
            }
            match own.known() {
                Some(real) if report::is_idle() => {
                    // SAFETY: as above.
                    unsafe { core::mem::transmute::<usize, Function>(real)($($arg),*) }
                }
                // SAFETY: the program's own call.
                _ => unsafe { watched($($arg),*) },
            }
        }
    )*};
}

macro_rules! number {
    () => {
        None
    };
    ($number:ident) => {
        Some(libc::$number)
    };
}

type Path = *const c_char;

// Opening.
hooks! {
    fn open(path: Path, flags: c_int, mode: c_uint) -> c_int = |call| open::opening(AT_FDCWD, path, flags, call);
    fn open64(path: Path, flags: c_int, mode: c_uint) -> c_int = |call| open::opening(AT_FDCWD, path, flags, call);
    fn openat(base: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int = |call| open::opening(base, path, flags, call);
    fn openat64(base: c_int, path: Path, flags: c_int, mode: c_uint) -> c_int = |call| open::opening(base, path, flags, call);
    fn __open_2(path: Path, flags: c_int) -> c_int = |call| open::opening(AT_FDCWD, path, flags, call);
    fn __open64_2(path: Path, flags: c_int) -> c_int = |call| open::opening(AT_FDCWD, path, flags, call);
    fn __openat_2(base: c_int, path: Path, flags: c_int) -> c_int = |call| open::opening(base, path, flags, call);
    fn __openat64_2(base: c_int, path: Path, flags: c_int) -> c_int = |call| open::opening(base, path, flags, call);
    fn creat(path: Path, mode: c_uint) -> c_int = |call| open::opening(AT_FDCWD, path, CREAT, call);
    fn creat64(path: Path, mode: c_uint) -> c_int = |call| open::opening(AT_FDCWD, path, CREAT, call);
}

hooks! {
    fn fopen(path: Path, mode: Path) -> *mut FILE = |call| open::opening_stream(path, mode, call);
    fn fopen64(path: Path, mode: Path) -> *mut FILE = |call| open::opening_stream(path, mode, call);
    fn freopen(path: Path, mode: Path, stream: *mut FILE) -> *mut FILE = |call| open::opening_stream(path, mode, call);
    fn freopen64(path: Path, mode: Path, stream: *mut FILE) -> *mut FILE = |call| open::opening_stream(path, mode, call);
}

// Reading.

type Read = unsafe extern "C" fn(c_int, *mut c_void, size_t) -> ssize_t;

/// As in [`reads`], with another separate function for a read that may continue a streak.
#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    match real::of::read.known() {
        // SAFETY: as in `reads`; the program's own call.
        Some(real) if report::is_idle() => unsafe {
            core::mem::transmute::<usize, Read>(real)(fd, buffer, len)
        },
        // SAFETY: the program's own call.
        _ => unsafe { read_on(fd, buffer, len) },
    }
}

#[inline(never)]
unsafe extern "C" fn read_on(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    let streak = seat::streak();
    if !streak.may_go_on(fd, len) {
        return watched_read(fd, buffer, len);
    }
    // SAFETY: the program's own call, by the number of the function's.
    let got = unsafe { direct::call(libc::SYS_read, [fd as usize, buffer as usize, len]) };
    if seat::goes_on(fd, got) {
        got
    } else {
        watch::apart(fd, got)
    }
}

#[inline(never)]
fn watched_read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    watch::at_cursor(kind::READ, fd, || {
        if direct::is_possible() {
            // SAFETY: as in `read_on`.
            return unsafe { direct::call(libc::SYS_read, [fd as usize, buffer as usize, len]) };
        }
        // SAFETY: as in `read`.
        unsafe { core::mem::transmute::<usize, Read>(real::of::read.address())(fd, buffer, len) }
    })
}

reads! {
    fn __read_chk(fd: c_int, buffer: *mut c_void, len: size_t, room: size_t) -> ssize_t = |call| watch::at_cursor(kind::READ, fd, call);
    fn pread(fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t) -> ssize_t [SYS_pread64] = |call| watch::at(kind::PREAD, fd, call, given(offset));
    fn pread64(fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t) -> ssize_t [SYS_pread64] = |call| watch::at(kind::PREAD, fd, call, given(offset));
    fn __pread_chk(fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t, room: size_t) -> ssize_t = |call| watch::at(kind::PREAD, fd, call, given(offset));
    fn __pread64_chk(fd: c_int, buffer: *mut c_void, len: size_t, offset: off_t, room: size_t) -> ssize_t = |call| watch::at(kind::PREAD, fd, call, given(offset));
    fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t = |call| watch::at_cursor(kind::READV, fd, call);
    fn preadv(fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> ssize_t = |call| watch::at(kind::PREADV, fd, call, given(offset));
    fn preadv64(fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> ssize_t = |call| watch::at(kind::PREADV, fd, call, given(offset));
    fn preadv2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t = |call| reading_with(fd, flags, || watch::at(kind::PREADV, fd, call, given(offset)));
    fn preadv64v2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t = |call| reading_with(fd, flags, || watch::at(kind::PREADV, fd, call, given(offset)));
    fn sendfile(to: c_int, from: c_int, offset: *mut off_t, len: size_t) -> ssize_t = |call| watch::at_pointer(kind::SENDFILE, from, offset, call);
    fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, len: size_t) -> ssize_t = |call| watch::at_pointer(kind::SENDFILE, from, offset, call);
    fn copy_file_range(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: c_uint) -> ssize_t = |call| watch::at_pointer(kind::COPY_FILE_RANGE, from, from_at, call);
    fn splice(from: c_int, from_at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: c_uint) -> ssize_t = |call| watch::at_pointer(kind::SPLICE, from, from_at, call);
    fn aio_return(block: *mut aiocb) -> ssize_t = |call| finishing(block, call);
    fn aio_return64(block: *mut aiocb) -> ssize_t = |call| finishing(block, call);
}

hooks! {
    fn lseek(fd: c_int, offset: off_t, whence: c_int) -> off_t = |call| seeking(fd, call);
    fn lseek64(fd: c_int, offset: off_t, whence: c_int) -> off_t = |call| seeking(fd, call);
}

fn seeking(fd: c_int, call: impl FnOnce() -> off_t) -> off_t {
    let at = call();
    watch::sought(fd, at);
    at
}

/// The offset argument of a call; negative for the cursor (`preadv2`).
#[inline(always)]
fn given(offset: off_t) -> impl FnOnce(u64) -> Option<u64> {
    move |_| u64::try_from(offset).ok()
}

/// The program asks for the result of an asynchronous call. For a read, which a thread of the C library has made, it is the number of
/// bytes.
fn finishing(block: *const aiocb, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let got = call();
    if got > 0 {
        // SAFETY: the program's own block, of a call that has ended with a result.
        let block = unsafe { &*block };
        if block.aio_lio_opcode == libc::LIO_READ {
            let offset = given(block.aio_offset);
            watch::at(kind::PREAD, block.aio_fildes, || got, offset);
        }
    }
    got
}

// Descriptors and directories.
hooks! {
    fn close(fd: c_int) -> c_int = |call| {
        files::closing(fd, fd);
        call()
    };
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int = |call| closing_range(first, last, flags, call);
    fn closefrom(first: c_int) -> () = |call| {
        files::closing(first, c_int::MAX);
        call()
    };
    fn fdopendir(fd: c_int) -> *mut libc::DIR = |call| names::listing_open(fd, || {
        let directory = call();
        paths::handed_to(fd, directory.cast());
        directory
    });
    fn closedir(directory: *mut libc::DIR) -> c_int = |call| {
        paths::closing_stream(directory.cast());
        call()
    };
    fn dup(old: c_int) -> c_int = |call| duplicating(old, call);
    fn dup2(old: c_int, new: c_int) -> c_int = |call| duplicating(old, call);
    fn dup3(old: c_int, new: c_int, flags: c_int) -> c_int = |call| duplicating(old, call);
    fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int = |call| controlling(fd, command, argument, call);
    fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int = |call| controlling(fd, command, argument, call);
    fn posix_fadvise(fd: c_int, offset: off_t, len: off_t, advice: c_int) -> c_int = |call| advising(fd, advice, call);
    fn posix_fadvise64(fd: c_int, offset: off_t, len: off_t, advice: c_int) -> c_int = |call| advising(fd, advice, call);
    fn chdir(path: Path) -> c_int = |call| moving(path, call);
    fn fchdir(fd: c_int) -> c_int = |call| moving_to(fd, call);
}

fn closing_range(first: c_uint, last: c_uint, flags: c_int, call: impl FnOnce() -> c_int) -> c_int {
    // Not all versions of the C library have this constant.
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if flags & CLOSE_RANGE_CLOEXEC == 0 {
        let clamp = |fd| c_int::try_from(fd).unwrap_or(c_int::MAX);
        files::closing(clamp(first), clamp(last));
    }
    call()
}

fn duplicating(old: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let new = call();
    files::duplicated(old, new);
    new
}

fn controlling(fd: c_int, command: c_int, argument: usize, call: impl FnOnce() -> c_int) -> c_int {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicating(fd, call),
        libc::F_SETLEASE if argument as c_int == libc::F_WRLCK => {
            if let Some(area) = report::area() {
                area.leasing();
            }
            call()
        }
        libc::F_SETFL if argument as c_int & libc::O_DIRECT != 0 => {
            let result = call();
            if result == 0 {
                files::passes_cache_by(fd);
            }
            result
        }
        _ => call(),
    }
}

/// A read with flags; one of them restricts it to bytes in memory.
fn reading_with(fd: c_int, flags: c_int, read: impl FnOnce() -> ssize_t) -> ssize_t {
    let got = read();
    if flags & libc::RWF_NOWAIT != 0 {
        watch::dropped(fd);
    }
    got
}

fn advising(fd: c_int, advice: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if result == 0 {
        watch::advised(fd, advice);
    }
    result
}

fn moving(path: Path, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if result == 0 && report::area().is_some() && report::at_home() {
        // SAFETY: the kernel has just read the path.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        paths::remember(AT_FDCWD, AT_FDCWD, path);
    }
    result
}

fn moving_to(fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    let result = call();
    if result == 0 && report::area().is_some() && report::at_home() {
        paths::remember_working_directory(fd);
    }
    result
}

// Lookups of names.
hooks! {
    fn stat(path: Path, into: *mut libc::stat) -> c_int = |call| names::answering(AT_FDCWD, path, Look::Through, Answer::of(into), call);
    fn stat64(path: Path, into: *mut libc::stat) -> c_int = |call| names::answering(AT_FDCWD, path, Look::Through, Answer::of(into), call);
    fn lstat(path: Path, into: *mut c_void) -> c_int = |call| names::stating(AT_FDCWD, path, Look::At, into.cast(), call);
    fn lstat64(path: Path, into: *mut c_void) -> c_int = |call| names::stating(AT_FDCWD, path, Look::At, into.cast(), call);
    fn fstatat(base: c_int, path: Path, into: *mut c_void, flags: c_int) -> c_int = |call| names::stating(base, path, Look::by(flags), into.cast(), call);
    fn fstatat64(base: c_int, path: Path, into: *mut c_void, flags: c_int) -> c_int = |call| names::stating(base, path, Look::by(flags), into.cast(), call);
    fn statx(base: c_int, path: Path, flags: c_int, wanted: c_uint, into: *mut c_void) -> c_int = |call| names::stating_more(base, path, Look::by(flags), into.cast(), call);
    fn __xstat(version: c_int, path: Path, into: *mut libc::stat) -> c_int = |call| names::answering(AT_FDCWD, path, Look::Through, Answer::of(into), call);
    fn __xstat64(version: c_int, path: Path, into: *mut libc::stat) -> c_int = |call| names::answering(AT_FDCWD, path, Look::Through, Answer::of(into), call);
    fn __lxstat(version: c_int, path: Path, into: *mut c_void) -> c_int = |call| names::stating(AT_FDCWD, path, Look::At, into.cast(), call);
    fn __lxstat64(version: c_int, path: Path, into: *mut c_void) -> c_int = |call| names::stating(AT_FDCWD, path, Look::At, into.cast(), call);
    fn __fxstatat(version: c_int, base: c_int, path: Path, into: *mut c_void, flags: c_int) -> c_int = |call| names::stating(base, path, Look::by(flags), into.cast(), call);
    fn __fxstatat64(version: c_int, base: c_int, path: Path, into: *mut c_void, flags: c_int) -> c_int = |call| names::stating(base, path, Look::by(flags), into.cast(), call);
    fn access(path: Path, mode: c_int) -> c_int = |call| names::looking(AT_FDCWD, path, Look::Through, call);
    fn faccessat(base: c_int, path: Path, mode: c_int, flags: c_int) -> c_int = |call| names::looking(base, path, Look::by(flags), call);
    fn eaccess(path: Path, mode: c_int) -> c_int = |call| names::looking(AT_FDCWD, path, Look::Through, call);
    fn euidaccess(path: Path, mode: c_int) -> c_int = |call| names::looking(AT_FDCWD, path, Look::Through, call);
    fn readlink(path: Path, into: *mut c_char, len: size_t) -> ssize_t = |call| names::answering(AT_FDCWD, path, Look::At, Answer::up_to(into, len), call);
    fn readlinkat(base: c_int, path: Path, into: *mut c_char, len: size_t) -> ssize_t = |call| names::answering(base, path, Look::At, Answer::up_to(into, len), call);
    fn __readlink_chk(path: Path, into: *mut c_char, len: size_t, room: size_t) -> ssize_t = |call| names::answering(AT_FDCWD, path, Look::At, Answer::up_to(into, len), call);
    fn __readlinkat_chk(base: c_int, path: Path, into: *mut c_char, len: size_t, room: size_t) -> ssize_t = |call| names::answering(base, path, Look::At, Answer::up_to(into, len), call);
}

/// The arguments of `scandir`: the place for the list, a filter, an order.
type Any = *const c_void;

hooks! {
    fn opendir(path: Path) -> *mut libc::DIR = |call| names::looking(AT_FDCWD, path, Look::In, call);
    fn scandir(path: Path, list: Any, filter: Any, order: Any) -> c_int = |call| names::looking(AT_FDCWD, path, Look::In, call);
    fn scandir64(path: Path, list: Any, filter: Any, order: Any) -> c_int = |call| names::looking(AT_FDCWD, path, Look::In, call);
    fn scandirat(base: c_int, path: Path, list: Any, filter: Any, order: Any) -> c_int = |call| names::looking(base, path, Look::In, call);
    fn scandirat64(base: c_int, path: Path, list: Any, filter: Any, order: Any) -> c_int = |call| names::looking(base, path, Look::In, call);
    fn getdents64(fd: c_int, into: *mut c_void, len: size_t) -> ssize_t = |call| names::listing_open(fd, call);
}

// Calls that change where the library can be read, by whom, and its resources.
hooks! {
    fn chroot(path: Path) -> c_int = |call| root::changing(call);
    fn setns(fd: c_int, kind: c_int) -> c_int = |call| root::changing(call);
    fn unshare(flags: c_int) -> c_int = |call| root::changing(call);
    fn mount(source: Path, target: Path, kind: Path, flags: c_ulong, data: *const c_void) -> c_int = |call| root::changing(call);
    fn umount(target: Path) -> c_int = |call| root::changing(call);
    fn umount2(target: Path, flags: c_int) -> c_int = |call| root::changing(call);
    fn setuid(user: uid_t) -> c_int = |call| root::changing(call);
    fn seteuid(user: uid_t) -> c_int = |call| root::changing(call);
    fn setreuid(real: uid_t, effective: uid_t) -> c_int = |call| root::changing(call);
    fn setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int = |call| root::changing(call);
    fn setgid(group: gid_t) -> c_int = |call| root::changing(call);
    fn setegid(group: gid_t) -> c_int = |call| root::changing(call);
    fn setregid(real: gid_t, effective: gid_t) -> c_int = |call| root::changing(call);
    fn setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int = |call| root::changing(call);
    fn setgroups(count: size_t, groups: *const gid_t) -> c_int = |call| root::changing(call);
    fn initgroups(user: Path, group: gid_t) -> c_int = |call| root::changing(call);
    fn capset(header: *mut c_void, data: *const c_void) -> c_int = |call| root::changing(call);
    fn setrlimit(resource: c_int, limits: *const u64) -> c_int = |call| root::limiting(0, resource, limits, call);
    fn setrlimit64(resource: c_int, limits: *const u64) -> c_int = |call| root::limiting(0, resource, limits, call);
    fn prlimit(process: c_int, resource: c_int, limits: *const u64, before: *mut c_void) -> c_int = |call| root::limiting(process, resource, limits, call);
    fn prlimit64(process: c_int, resource: c_int, limits: *const u64, before: *mut c_void) -> c_int = |call| root::limiting(process, resource, limits, call);
    fn prctl(option: c_int, first: c_ulong, second: c_ulong, third: c_ulong, fourth: c_ulong) -> c_int = |call| confined::controlling(option, first, call);
}

// Threads.
hooks! {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int = |call| {
        direct::end();
        call()
    };
}

// Processes.
hooks! {
    fn execv(path: Path, arguments: Strings) -> c_int = |call| exec::exec(call);
    fn execve(path: Path, arguments: Strings, environment: Strings) -> c_int = |call| exec::exec_with(environment, call);
    fn execvp(path: Path, arguments: Strings) -> c_int = |call| exec::exec(call);
    fn execvpe(path: Path, arguments: Strings, environment: Strings) -> c_int = |call| exec::exec_with(environment, call);
    fn fexecve(fd: c_int, arguments: Strings, environment: Strings) -> c_int = |call| exec::exec_with(environment, call);
    fn posix_spawn(pid: *mut c_int, path: Path, actions: *const c_void, attributes: *const c_void, arguments: Strings, environment: Strings) -> c_int = |call| spawning(pid, environment, call);
    fn posix_spawnp(pid: *mut c_int, path: Path, actions: *const c_void, attributes: *const c_void, arguments: Strings, environment: Strings) -> c_int = |call| spawning(pid, environment, call);
    fn system(command: Path) -> c_int = |call| handing_on(call);
    fn popen(command: Path, mode: Path) -> *mut FILE = |call| handing_on(call);
    fn wordexp(words: Path, expansion: *mut c_void, flags: c_int) -> c_int = |call| handing_on(call);
    fn _exit(status: c_int) -> c_int = |call| {
        exec::ending();
        call()
    };
    fn _Exit(status: c_int) -> c_int = |call| {
        exec::ending();
        call()
    };
}

fn spawning(pid: *mut c_int, environment: Strings, call: impl FnOnce() -> c_int) -> c_int {
    sharing();
    root::handing_on(environment);
    let result = call();
    if result == 0 {
        exec::spawned(pid);
    }
    result
}

/// The C library starts a shell in this call.
fn handing_on<T>(call: impl FnOnce() -> T) -> T {
    sharing();
    call()
}

/// A child is about to inherit the descriptors.
fn sharing() {
    if report::area().is_some() && report::at_home() {
        files::share_all();
    }
}

/// A child is about to inherit the descriptors and perhaps to borrow the memory.
fn lending() {
    sharing();
    report::lending();
}

/// Defines a function that first calls `$before` with its own arguments and then jumps to the returned address, with all registers and the
/// stack unchanged: for functions whose arguments cannot be passed on (`execl`) or that return twice (`vfork`).
macro_rules! gates {
    ($(fn $name:ident => $before:ident;)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "endbr64",
                "push rax",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "call {before}",
                "mov r11, rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "pop rax",
                "jmp r11",
                before = sym $before,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "hint #34",
                "stp x29, x30, [sp, #-80]!",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "stp x4, x5, [sp, #48]",
                "stp x6, x7, [sp, #64]",
                "bl {before}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldp x2, x3, [sp, #32]",
                "ldp x4, x5, [sp, #48]",
                "ldp x6, x7, [sp, #64]",
                "ldp x29, x30, [sp], #80",
                "br x16",
                before = sym $before,
            );
        }
    )*};
}

gates! {
    fn vfork => before_vfork;
    fn clone => before_clone;
    fn execl => before_execl;
    fn execle => before_execle;
    fn execlp => before_execlp;
    fn syscall => before_syscall;
}

type Function = unsafe extern "C" fn();

extern "C" fn before_vfork() -> Function {
    lending();
    real!(vfork as Function)
}

extern "C" fn before_clone() -> Function {
    sharing();
    report::lending_to_anybody();
    real!(clone as Function)
}

extern "C" fn before_execl() -> Function {
    exec::replacing();
    real!(execl as Function)
}

extern "C" fn before_execle() -> Function {
    exec::replacing();
    real!(execle as Function)
}

extern "C" fn before_execlp() -> Function {
    exec::replacing();
    real!(execlp as Function)
}

extern "C" fn before_syscall(number: c_long) -> Function {
    let real = real!(syscall as Function);
    #[cfg(target_arch = "x86_64")]
    let makes_child = matches!(number, libc::SYS_vfork | libc::SYS_fork);
    #[cfg(not(target_arch = "x86_64"))]
    let makes_child = false;
    if makes_child || matches!(number, libc::SYS_clone | libc::SYS_clone3) {
        sharing();
        report::lending_to_anybody();
    }
    if report::area().is_some() && raw::is_watched(number) {
        // SAFETY: called with the arguments of `syscall`, which it takes.
        unsafe { core::mem::transmute::<*const (), Function>(raw::watched as *const ()) }
    } else {
        real
    }
}
