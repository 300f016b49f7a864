//! System calls that a program makes by `syscall`, observed like the functions that make the same calls.

use core::ffi::{c_int, c_long, c_uint, c_ulong};

use foreread_ring::kind;
use libc::{AT_FDCWD, off_t};

use super::{
    CREAT, Path, advising, closing_range, controlling, duplicating, given, moving, moving_to,
    reading_with, seeking,
};
use crate::names::{Answer, Look};
use crate::real::real;
use crate::{confined, exec, files, names, open, root, watch};

/// True if a raw system call reads files, gives advice on them, or changes the meaning of descriptors.
pub(super) fn is_watched(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(
        number,
        libc::SYS_open
            | libc::SYS_creat
            | libc::SYS_dup2
            | libc::SYS_stat
            | libc::SYS_lstat
            | libc::SYS_access
            | libc::SYS_readlink
            | libc::SYS_getdents
    ) {
        return true;
    }
    matches!(
        number,
        libc::SYS_openat
            | libc::SYS_openat2
            | libc::SYS_read
            | libc::SYS_pread64
            | libc::SYS_readv
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_fadvise64
            | libc::SYS_lseek
            | libc::SYS_sendfile
            | libc::SYS_copy_file_range
            | libc::SYS_splice
            | libc::SYS_close
            | libc::SYS_close_range
            | libc::SYS_dup
            | libc::SYS_dup3
            | libc::SYS_fcntl
            | libc::SYS_chdir
            | libc::SYS_fchdir
            | libc::SYS_execve
            | libc::SYS_execveat
            | libc::SYS_exit_group
            | libc::SYS_prctl
            | libc::SYS_seccomp
            | libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_readlinkat
            | libc::SYS_getdents64
            | libc::SYS_landlock_restrict_self
            | libc::SYS_setrlimit
            | libc::SYS_prlimit64
    ) || changes_root(number)
}

/// True if a raw system call may change where the library can be read, or by whom.
fn changes_root(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_chroot
            | libc::SYS_pivot_root
            | libc::SYS_setns
            | libc::SYS_unshare
            | libc::SYS_mount
            | libc::SYS_umount2
            | libc::SYS_move_mount
            | libc::SYS_mount_setattr
            | libc::SYS_setuid
            | libc::SYS_setreuid
            | libc::SYS_setresuid
            | libc::SYS_setgid
            | libc::SYS_setregid
            | libc::SYS_setresgid
            | libc::SYS_setgroups
            | libc::SYS_capset
    )
}

/// Makes one of the raw system calls above, observed like the function that makes the same call.
pub(super) unsafe extern "C" fn watched(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    type Syscall = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;
    let real = real!(syscall as Syscall);
    // SAFETY: the program's own call.
    let call = || unsafe { real(number, a, b, c, d, e, f) };
    let descriptor = || call() as c_int;
    let bytes = || call() as isize;
    let fd = a as c_int;
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_open => return open::opening(AT_FDCWD, a as Path, b as c_int, descriptor).into(),
        libc::SYS_creat => return open::opening(AT_FDCWD, a as Path, CREAT, descriptor).into(),
        libc::SYS_dup2 => return duplicating(fd, descriptor).into(),
        libc::SYS_stat => {
            let answer = Answer::of(b as *const libc::stat);
            return names::answering(AT_FDCWD, a as Path, Look::Through, answer, call);
        }
        libc::SYS_access => return names::looking(AT_FDCWD, a as Path, Look::Through, call),
        libc::SYS_lstat => {
            return names::stating(AT_FDCWD, a as Path, Look::At, b as *const libc::stat, call);
        }
        libc::SYS_readlink => {
            let answer = Answer::up_to(b as Path, c);
            return names::answering(AT_FDCWD, a as Path, Look::At, answer, call);
        }
        libc::SYS_getdents => return names::listing_open(fd, call),
        _ => {}
    }
    match number {
        libc::SYS_openat => open::opening(fd, b as Path, c as c_int, descriptor).into(),
        libc::SYS_openat2 => open::opening_how(fd, b as Path, c as *const u64, descriptor).into(),
        libc::SYS_read => watch::at_cursor(kind::READ, fd, bytes) as c_long,
        libc::SYS_pread64 => watch::at(kind::PREAD, fd, bytes, given(d as off_t)) as c_long,
        libc::SYS_readv => watch::at_cursor(kind::READV, fd, bytes) as c_long,
        libc::SYS_preadv => watch::at(kind::PREADV, fd, bytes, given(d as off_t)) as c_long,
        libc::SYS_preadv2 => {
            let read = || watch::at(kind::PREADV, fd, bytes, given(d as off_t));
            reading_with(fd, f as c_int, read) as c_long
        }
        libc::SYS_fadvise64 => advising(fd, d as c_int, descriptor).into(),
        libc::SYS_lseek => seeking(fd, call),
        libc::SYS_sendfile => {
            watch::at_pointer(kind::SENDFILE, b as c_int, c as *const i64, bytes) as c_long
        }
        libc::SYS_copy_file_range => {
            watch::at_pointer(kind::COPY_FILE_RANGE, fd, b as *const i64, bytes) as c_long
        }
        libc::SYS_splice => watch::at_pointer(kind::SPLICE, fd, b as *const i64, bytes) as c_long,
        libc::SYS_close => {
            files::closing(fd, fd);
            call()
        }
        libc::SYS_close_range => {
            closing_range(a as c_uint, b as c_uint, c as c_int, descriptor).into()
        }
        libc::SYS_dup | libc::SYS_dup3 => duplicating(fd, descriptor).into(),
        libc::SYS_fcntl => controlling(fd, b as c_int, c, descriptor).into(),
        libc::SYS_chdir => moving(a as Path, descriptor).into(),
        libc::SYS_fchdir => moving_to(fd, descriptor).into(),
        libc::SYS_execve => exec::exec_with(c as root::Strings, call),
        libc::SYS_execveat => exec::exec_with(d as root::Strings, call),
        libc::SYS_newfstatat => {
            let look = Look::by(d as c_int);
            names::stating(fd, b as Path, look, c as *const libc::stat, call)
        }
        libc::SYS_faccessat2 => names::looking(fd, b as Path, Look::by(d as c_int), call),
        libc::SYS_statx => {
            let look = Look::by(c as c_int);
            names::stating_more(fd, b as Path, look, e as *const libc::statx, call)
        }
        libc::SYS_faccessat => names::looking(fd, b as Path, Look::Through, call),
        libc::SYS_readlinkat => {
            let answer = Answer::up_to(c as Path, d);
            names::answering(fd, b as Path, Look::At, answer, call)
        }
        libc::SYS_getdents64 => names::listing_open(fd, call),
        libc::SYS_prctl => confined::controlling(a as c_int, b as c_ulong, descriptor).into(),
        libc::SYS_seccomp => confined::secluding(a as u32, call),
        libc::SYS_landlock_restrict_self => root::restricting(call),
        libc::SYS_setrlimit => root::limiting(0, fd, b as *const u64, call),
        libc::SYS_prlimit64 => root::limiting(fd, b as c_int, c as *const u64, call),
        _ if changes_root(number) => root::changing(call),
        libc::SYS_exit_group => {
            exec::ending();
            call()
        }
        _ => call(),
    }
}
