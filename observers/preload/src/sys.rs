//! The library's own system calls, made directly.
//!
//! Going through the C library would come back into the hooks, touch the program's errno
//! and be a cancellation point. Errors come back as negative errno values.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;

/// One system call.
///
/// # Safety
/// The arguments must be what the call expects; pointers must be valid for what it does
/// with them.
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

pub fn getpid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

pub fn getppid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_getppid, [0; 6]) as u32 }
}

pub fn gettid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

/// This thread's name, with zeros after it.
pub fn thread_name() -> [u8; 16] {
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

pub fn exit_group(status: c_int) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Sleeps one millisecond, or until a signal.
pub fn nap() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    // SAFETY: `time` outlives the call; no remainder is asked for.
    unsafe {
        call(
            libc::SYS_nanosleep,
            [&raw const time as usize, 0, 0, 0, 0, 0],
        )
    };
}

/// A clock, in ns. Through the C library, whose version makes no system call.
pub fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is writable; the clocks asked for exist, so errno is not touched.
    unsafe { libc::clock_gettime(id, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Opens an existing file, given by a path that ends in a zero byte.
pub fn open(path: &core::ffi::CStr, flags: c_int) -> isize {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    let at = libc::AT_FDCWD as usize;
    // SAFETY: the path is terminated and outlives the call.
    unsafe {
        call(
            libc::SYS_openat,
            [at, path.as_ptr() as usize, flags, 0, 0, 0],
        )
    }
}

/// Closes one of the library's own descriptors.
pub fn close(fd: c_int) {
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

pub fn pread(fd: c_int, buffer: &mut [u64], offset: u64) -> isize {
    let (at, len) = (buffer.as_mut_ptr() as usize, size_of_val(buffer));
    // SAFETY: the buffer is writable for that many bytes.
    unsafe {
        call(
            libc::SYS_pread64,
            [fd as usize, at, len, offset as usize, 0, 0],
        )
    }
}

/// The description's offset, in bytes.
pub fn tell(fd: c_int) -> Option<u64> {
    // SAFETY: no memory is involved.
    let at = unsafe {
        call(
            libc::SYS_lseek,
            [fd as usize, 0, libc::SEEK_CUR as usize, 0, 0, 0],
        )
    };
    u64::try_from(at).ok()
}

/// `F_GETFL`.
pub fn status_flags(fd: c_int) -> c_int {
    // SAFETY: no memory is involved.
    unsafe {
        call(
            libc::SYS_fcntl,
            [fd as usize, libc::F_GETFL as usize, 0, 0, 0, 0],
        ) as c_int
    }
}

/// The size of a regular file, in bytes; `None` for anything else.
pub fn regular_size(fd: c_int) -> Option<u64> {
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    let args = [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: `stat` is writable for its size.
    let result = unsafe { call(libc::SYS_fstat, args) };
    // SAFETY: all-zero bytes are a valid `stat`, whether the kernel has filled it or not.
    let stat = unsafe { stat.assume_init() };
    if result != 0 || stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return None;
    }
    u64::try_from(stat.st_size).ok()
}

pub fn fadvise(fd: c_int, advice: c_int) {
    // SAFETY: no memory is involved; a failure costs the advice and nothing else.
    unsafe {
        call(
            libc::SYS_fadvise64,
            [fd as usize, 0, 0, advice as usize, 0, 0],
        )
    };
}

/// The target of a symbolic link, in `buffer`.
pub fn readlink<'a>(path: &core::ffi::CStr, buffer: &'a mut [MaybeUninit<u8>]) -> Option<&'a [u8]> {
    let args = [
        libc::AT_FDCWD as usize,
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
    // SAFETY: the kernel has filled that many bytes.
    Some(unsafe { written(buffer.get(..len)?) })
}

/// Bytes that have been written.
///
/// # Safety
/// They have.
pub unsafe fn written(bytes: &[MaybeUninit<u8>]) -> &[u8] {
    // SAFETY: same layout; the caller vouches for the bytes.
    unsafe { &*(bytes as *const [MaybeUninit<u8>] as *const [u8]) }
}

/// The working directory, in `buffer`.
pub fn getcwd(buffer: &mut [MaybeUninit<u8>]) -> Option<&[u8]> {
    let (at, len) = (buffer.as_mut_ptr() as usize, buffer.len());
    // SAFETY: the buffer is writable for its length.
    let len = unsafe { call(libc::SYS_getcwd, [at, len, 0, 0, 0, 0]) };
    // The length includes the final zero byte.
    let path = buffer.get(..usize::try_from(len).ok()?.checked_sub(1)?)?;
    // SAFETY: the kernel has filled that many bytes.
    Some(unsafe { written(path) })
}

/// Maps `len` bytes of a file, shared and writable.
pub fn map_shared(fd: c_int, len: usize) -> Option<*mut c_void> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let at = unsafe {
        call(
            libc::SYS_mmap,
            [0, len, prot, libc::MAP_SHARED as usize, fd as usize, 0],
        )
    };
    // The last page of addresses stands for errors.
    (!(-4095..=0).contains(&at)).then_some(at as *mut c_void)
}

/// Sets the protection of the pages from `at`, page-aligned.
///
/// # Safety
/// Nobody may rely on the protection they had.
pub unsafe fn protect(at: usize, len: usize, prot: c_int) -> bool {
    // SAFETY: the caller vouches for the pages.
    unsafe { call(libc::SYS_mprotect, [at, len, prot as usize, 0, 0, 0]) == 0 }
}

/// Has the kernel hand a forked child zeros in place of these pages.
pub fn wipe_on_fork<T>(pages: &T) -> bool {
    const MADV_WIPEONFORK: usize = 18;
    let args = [
        pages as *const T as usize,
        size_of::<T>(),
        MADV_WIPEONFORK,
        0,
        0,
        0,
    ];
    // SAFETY: whole pages of a static; a child sees zeros, which its type allows for.
    unsafe { call(libc::SYS_madvise, args) == 0 }
}

/// An ioctl with one argument.
///
/// # Safety
/// `argument` must be what the request expects.
pub unsafe fn ioctl<T>(fd: c_int, request: usize, argument: &mut T) -> isize {
    let args = [fd as usize, request, argument as *mut T as usize, 0, 0, 0];
    // SAFETY: the caller vouches for the argument.
    unsafe { call(libc::SYS_ioctl, args) }
}
