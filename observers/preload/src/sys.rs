//! The library's own system calls, made directly.
//!
//! Calls through the C library would enter the hooks again, change the program's errno, and be cancellation points. Errors are negative
//! errno values.
//!
//! Invariant: each call needs an [`Allowed`]. It exists while the program starts, when the loader has just made the same calls, and later
//! only while the process is under no system-call filter ([`crate::confined`]), because a filter may kill the process for a call that the
//! program would not have made.

use core::arch::asm;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// True if a filter may be in force.
static CONFINED: AtomicBool = AtomicBool::new(false);

/// Permission to make a system call that the program would not make by itself.
#[derive(Clone, Copy)]
pub struct Allowed(());

impl Allowed {
    /// For the program's start.
    pub fn at_start() -> Self {
        Self(())
    }

    /// For any later time; `None` under a filter.
    #[inline(always)]
    pub fn now() -> Option<Self> {
        (!is_confined()).then_some(Self(()))
    }
}

/// True if the process is, or may be, under a filter.
#[inline(always)]
pub fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}

/// From now on the process is, or is not, under a filter. Returns the former state.
pub fn confine(is_confined: bool) -> bool {
    CONFINED.swap(is_confined, Ordering::SeqCst)
}

/// A system call.
///
/// # Safety
/// The arguments must be valid for the call, and pointers for its use of them.
#[inline(always)]
pub unsafe fn call(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2],
            in("x3") args[3], in("x4") args[4], in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// The directory of a path that is relative to none.
const HERE: usize = libc::AT_FDCWD as usize;

pub fn getpid(_: Allowed) -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

pub fn getppid(_: Allowed) -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getppid, [0; 6]) as u32 }
}

pub fn gettid(_: Allowed) -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

pub fn effective_user(_: Allowed) -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_geteuid, [0; 6]) as u32 }
}

/// This thread's name, with zeros after it.
pub fn thread_name(_: Allowed) -> [u8; 16] {
    let mut name = [0; 16];
    let at = name.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe {
        call(
            libc::SYS_prctl,
            [libc::PR_GET_NAME as usize, at, 0, 0, 0, 0],
        )
    };
    name
}

/// True if reading the time-stamp counter is permitted.
pub fn has_counter(_: Allowed) -> bool {
    let mut state: c_int = 0;
    let at = &raw mut state as usize;
    // SAFETY: the kernel writes one word.
    let result = unsafe { call(libc::SYS_prctl, [libc::PR_GET_TSC as usize, at, 0, 0, 0, 0]) };
    result != 0 || state == libc::PR_TSC_ENABLE
}

pub fn exit_group(status: c_int) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Sleeps one millisecond, or until a signal.
pub fn nap(_: Allowed) {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    // SAFETY: `time` outlives the call, which writes no remainder.
    unsafe {
        call(
            libc::SYS_nanosleep,
            [&raw const time as usize, 0, 0, 0, 0, 0],
        )
    };
}

/// Reads a clock, in ns, through the C library, which makes no system call.
pub fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is writable. The clocks that are used exist, so errno does not change.
    unsafe { libc::clock_gettime(id, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The soft limit of a resource.
pub fn limit(_: Allowed, resource: u32) -> u64 {
    let mut limits = [u64::MAX; 2];
    let args = [0, resource as usize, 0, limits.as_mut_ptr() as usize, 0, 0];
    // SAFETY: two words are written.
    unsafe { call(libc::SYS_prlimit64, args) };
    limits[0]
}

/// Opens an existing file.
pub fn open(_: Allowed, path: &CStr, flags: c_int) -> Option<c_int> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    let args = [HERE, path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: the path is terminated and outlives the call.
    let fd = unsafe { call(libc::SYS_openat, args) };
    c_int::try_from(fd).ok().filter(|&fd| fd >= 0)
}

/// Closes one of the library's own descriptors.
pub fn close(_: Allowed, fd: c_int) {
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Reads at a descriptor's cursor. Returns the bytes read.
pub fn read(_: Allowed, fd: c_int, buffer: &mut [u8]) -> &[u8] {
    let args = [
        fd as usize,
        buffer.as_mut_ptr() as usize,
        buffer.len(),
        0,
        0,
        0,
    ];
    // SAFETY: the buffer is writable for its length.
    let got = unsafe { call(libc::SYS_read, args) };
    buffer
        .get(..usize::try_from(got).unwrap_or(0))
        .unwrap_or(&[])
}

/// True if this process may read the file or directory at a path; `None` if the kernel has no such call.
pub fn may_read(_: Allowed, path: &CStr) -> Option<bool> {
    const FACCESSAT2: libc::c_long = 439;
    let mode = libc::R_OK as usize;
    let args = [
        HERE,
        path.as_ptr() as usize,
        mode,
        libc::AT_EACCESS as usize,
        0,
        0,
    ];
    // SAFETY: the path is terminated and outlives the call.
    match unsafe { call(FACCESSAT2, args) } {
        0 => Some(true),
        unknown if unknown == -(libc::ENOSYS as isize) => None,
        _ => Some(false),
    }
}

/// True if programs may be executed from the mount of a path; true also if that is unknown.
pub fn may_hold_programs(_: Allowed, path: &CStr) -> bool {
    /// The kernel's `struct statfs`, in words, and which of them are the mount's flags.
    const WORDS: usize = 15;
    const FLAGS: usize = 10;
    let mut mount: [libc::c_ulong; WORDS] = [0; WORDS];
    let (path, at) = (path.as_ptr() as usize, mount.as_mut_ptr() as usize);
    // SAFETY: the path is terminated and outlives the call; `mount` is writable, and as long as the structure.
    let result = unsafe { call(libc::SYS_statfs, [path, at, 0, 0, 0, 0]) };
    result != 0 || mount[FLAGS] & libc::ST_NOEXEC == 0
}

/// The position of a descriptor's cursor, in bytes.
pub fn tell(_: Allowed, fd: c_int) -> Option<u64> {
    // SAFETY: no memory is involved.
    let at = unsafe {
        call(
            libc::SYS_lseek,
            [fd as usize, 0, libc::SEEK_CUR as usize, 0, 0, 0],
        )
    };
    u64::try_from(at).ok()
}

fn fcntl(_: Allowed, fd: c_int, command: c_int) -> c_int {
    let args = [fd as usize, command as usize, 0, 0, 0, 0];
    // SAFETY: commands that return a number; no memory is involved.
    unsafe { call(libc::SYS_fcntl, args) as c_int }
}

/// `F_GETFL`.
pub fn status_flags(allowed: Allowed, fd: c_int) -> c_int {
    fcntl(allowed, fd, libc::F_GETFL)
}

/// True if a file in memory can no longer change its length.
pub fn is_sealed(allowed: Allowed, fd: c_int) -> bool {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let found = fcntl(allowed, fd, libc::F_GET_SEALS);
    found >= 0 && found & seals == seals
}

/// A regular file.
pub struct Regular {
    /// In bytes.
    pub size: u64,
    pub owner: u32,
}

/// The file of a descriptor; `None` for anything but a regular file.
pub fn regular(_: Allowed, fd: c_int) -> Option<Regular> {
    stat(|at| [libc::SYS_fstat as usize, fd as usize, at, 0, 0])
}

/// The file at a path, through links; `None` for anything but a regular file.
pub fn regular_at(_: Allowed, path: &CStr) -> Option<Regular> {
    let path = path.as_ptr() as usize;
    stat(|at| [libc::SYS_newfstatat as usize, HERE, path, at, 0])
}

/// Makes the call that `call_of` returns, as its number and arguments, for the address of the result.
fn stat(call_of: impl FnOnce(usize) -> [usize; 5]) -> Option<Regular> {
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    let [number, a, b, c, d] = call_of(stat.as_mut_ptr() as usize);
    // SAFETY: `stat` is writable for its size; a path is terminated and outlives the call.
    let result = unsafe { call(number as libc::c_long, [a, b, c, d, 0, 0]) };
    // SAFETY: all-zero bytes are a valid `stat`, whether the kernel has filled it or not.
    let stat = unsafe { stat.assume_init() };
    if result != 0 || stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return None;
    }
    Some(Regular {
        size: u64::try_from(stat.st_size).ok()?,
        owner: stat.st_uid,
    })
}

/// Copies the parts of a vectored read from their place in this process. True if all could be read.
pub fn copy_parts(allowed: Allowed, from: usize, into: &mut [libc::iovec]) -> bool {
    peek(allowed, from, into) == size_of_val(into)
}

/// Copies memory of the program from any address, less than a page. Returns the number of bytes that could be read.
pub fn peek<T: Copy>(allowed: Allowed, from: usize, into: &mut [T]) -> usize {
    let (here, len) = (into.as_mut_ptr() as usize, size_of_val(into));
    // SAFETY: `into` is writable for its length, and any bytes are a valid `T`, which is a number or consists of numbers.
    unsafe { between(allowed, libc::SYS_process_vm_readv, here, from, len) }
}

/// Copies to memory of the program, as far as it can be written.
pub fn poke(allowed: Allowed, to: usize, from: &[u8]) {
    let here = from.as_ptr() as usize;
    // SAFETY: `from` is readable for its length; the caller knows the place's content.
    unsafe { between(allowed, libc::SYS_process_vm_writev, here, to, from.len()) };
}

/// Makes the kernel copy between two places of this process's memory. Returns the number of copied bytes.
///
/// # Safety
/// `here` must have the given length, and be writable if it is written.
unsafe fn between(
    allowed: Allowed,
    number: libc::c_long,
    here: usize,
    there: usize,
    len: usize,
) -> usize {
    let part = |at: usize, len: usize| libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: len,
    };
    // The kernel copies a part completely or not at all, and the next page may not be mapped.
    let first = len.min(4096 - there % 4096);
    let here = part(here, len);
    let there = [
        part(there, first),
        part(there.wrapping_add(first), len - first),
    ];
    let args = [
        getpid(allowed) as usize,
        &raw const here as usize,
        1,
        there.as_ptr() as usize,
        there.len(),
        0,
    ];
    // SAFETY: the caller vouches for `here`. If nothing is mapped at `there`, the call fails.
    usize::try_from(unsafe { call(number, args) }).unwrap_or(0)
}

pub fn fadvise(_: Allowed, fd: c_int, advice: c_int) {
    // SAFETY: no memory is involved; a failure costs the advice and nothing else.
    unsafe {
        call(
            libc::SYS_fadvise64,
            [fd as usize, 0, 0, advice as usize, 0, 0],
        )
    };
}

/// The target of a symbolic link, in `buffer`.
pub fn readlink<'a>(_: Allowed, path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let args = [
        HERE,
        path.as_ptr() as usize,
        buffer.as_mut_ptr() as usize,
        buffer.len(),
        0,
        0,
    ];
    // SAFETY: the path is terminated, the buffer writable for its length.
    let len = unsafe { call(libc::SYS_readlinkat, args) };
    // A full buffer may hold a truncated path.
    let len = usize::try_from(len)
        .ok()
        .filter(|&len| len < buffer.len())?;
    buffer.get(..len)
}

/// Reads the working directory into `buffer`. Returns its length.
pub fn getcwd(_: Allowed, buffer: &mut [u8]) -> Option<usize> {
    let (at, len) = (buffer.as_mut_ptr() as usize, buffer.len());
    // SAFETY: the buffer is writable for its length.
    let len = unsafe { call(libc::SYS_getcwd, [at, len, 0, 0, 0, 0]) };
    // The length includes the final zero byte. A path outside the root does not begin with a slash.
    let len = usize::try_from(len).ok()?.checked_sub(1)?;
    (buffer.first() == Some(&b'/')).then_some(len)
}

/// The address that a call to map memory has returned.
fn mapped(at: isize) -> Option<*mut c_void> {
    // Values in the last page of the address space are errors.
    (!(-4095..=0).contains(&at)).then_some(at as *mut c_void)
}

/// Maps the first `len` bytes of a file, shared and writable.
pub fn map_shared(_: Allowed, fd: c_int, len: usize) -> Option<*mut c_void> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let args = [0, len, prot, libc::MAP_SHARED as usize, fd as usize, 0];
    // SAFETY: a new mapping at an address of the kernel's choice.
    mapped(unsafe { call(libc::SYS_mmap, args) })
}

/// Maps new memory for the library, all zeros.
pub fn map_private(_: Allowed, len: usize) -> Option<*mut c_void> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    let args = [0, len, prot, flags, usize::MAX, 0];
    // SAFETY: as above.
    mapped(unsafe { call(libc::SYS_mmap, args) })
}

/// Maps the shared mapping at `of` once more: its bytes `from` to `from + len`. It needs no descriptor: the kernel duplicates a shared
/// mapping whose old length is given as 0, with any length.
///
/// # Safety
/// `of` must be the address of such a mapping, and the file be that long.
pub unsafe fn map_again(
    allowed: Allowed,
    of: *const c_void,
    from: usize,
    len: usize,
) -> Option<*mut c_void> {
    let flags = libc::MREMAP_MAYMOVE as usize;
    // SAFETY: the old mapping stays as it is; the new one is at an address of the kernel's choice.
    let at = unsafe { call(libc::SYS_mremap, [of as usize, 0, from + len, flags, 0, 0]) };
    let at = mapped(at)?;
    unmap(allowed, at, from);
    Some(at.wrapping_byte_add(from))
}

/// Removes a mapping of the library.
pub fn unmap(_: Allowed, at: *const c_void, len: usize) {
    // SAFETY: the caller's own mapping, which is not used any more.
    unsafe { call(libc::SYS_munmap, [at as usize, len, 0, 0, 0, 0]) };
}

/// Sets the protection of the pages from `at`, page-aligned.
///
/// # Safety
/// No code may rely on the protection that they had.
pub unsafe fn protect(_: Allowed, at: usize, len: usize, prot: c_int) -> bool {
    // SAFETY: the caller vouches for the pages.
    unsafe { call(libc::SYS_mprotect, [at, len, prot as usize, 0, 0, 0]) == 0 }
}

fn madvise<T>(_: Allowed, pages: &T, advice: c_int) -> bool {
    let args = [
        pages as *const T as usize,
        size_of::<T>(),
        advice as usize,
        0,
        0,
        0,
    ];
    // SAFETY: whole pages. No advice that is given here changes their content in this process.
    unsafe { call(libc::SYS_madvise, args) == 0 }
}

/// Makes the kernel zero these pages in a forked child: zeros must be valid for the type.
pub fn wipe_on_fork<T>(allowed: Allowed, pages: &T) -> bool {
    madvise(allowed, pages, libc::MADV_WIPEONFORK)
}

/// Excludes these pages, and later mappings of them, from core files.
pub fn leave_out_of_cores<T>(allowed: Allowed, pages: &T) {
    madvise(allowed, pages, libc::MADV_DONTDUMP);
}
