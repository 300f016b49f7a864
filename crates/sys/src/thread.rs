//! foreread's threads inside a program.
//!
//! Purpose: a library's threads must not take the program's signals, and must not open or close files in its table of descriptors: closing
//! *any* descriptor of a file drops the process's POSIX locks on it (`fcntl(2)`), and a thread that shares the table would do that with
//! each request for a file.
//!
//! Invariant: a thread of [`spawn_apart`], and those it starts, block all signals and have a table
//! of their own, empty at first. `/proc/self/fd` is the main thread's table; theirs is `/proc/thread-self/fd`.
//!
//! Data flow: [`spawn_apart`] starts them; [`Birth`] shows whether they can still exist.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{Builder, JoinHandle};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::{checked, page_size};

/// Descriptors for which a table is made large enough: those that all threads of a session keep open, and as many as most systems permit by
/// default.
const ROOM: i32 = 1024;

/// `CLOSE_RANGE_UNSHARE`: into a table of one's own, created without the descriptors to be closed.
const UNSHARE: libc::c_uint = 2;

/// Stack size of foreread's threads in bytes: the standard library's default.
const STACK: usize = 2 << 20;

/// Number of this thread's waits so far, for a device, a lock or a timer, as counted by the kernel. Being preempted does not count.
pub fn waits() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the buffer is a rusage, for which all-zero is valid.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nvcsw).unwrap_or(0)
}

/// A thread with this name. Its stack size does not depend on the environment (`RUST_MIN_STACK`).
pub fn builder(name: &str) -> Builder {
    Builder::new().name(name.to_owned()).stack_size(STACK)
}

/// Starts a thread with all signals blocked and a table of descriptors of its own; threads it starts
/// share that table. `body` must bring no descriptors along: their numbers mean nothing there.
///
/// The thread ends with an error, `body` not run, where it may not have a table of its own.
///
/// # Errors
/// When the thread cannot be started.
pub fn spawn_apart<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    let builder = builder(name);
    // The mask is inherited, so there is no moment at which a signal could reach the thread.
    with_signals_blocked(|| builder.spawn(move || leave_descriptors().map(|()| body())))
}

/// [`spawn_apart`] for a thread that shares the program's descriptors.
///
/// # Errors
/// When the thread cannot be started.
pub fn spawn_beside<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let builder = builder(name);
    with_signals_blocked(|| builder.spawn(body))
}

fn with_signals_blocked<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set before it is read, and pthread_sigmask fills `before`
    // when it succeeds.
    let before = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        match libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) {
            0 => before.assume_init(),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    };
    let started = start();
    // SAFETY: sets the mask this thread had a moment ago.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    started
}

/// Enlarges the table of descriptors, within the limit, while no other thread uses it: later the kernel needs 8 to 30 ms each time the
/// table grows. Accepts any descriptor.
pub fn make_room(any: impl AsFd) {
    // The limit may be lower. The table stays enlarged.
    let _ = rustix::io::fcntl_dupfd_cloexec(any, ROOM - 1);
}

/// Gives the calling thread an empty table of descriptors, with room.
fn leave_descriptors() -> io::Result<()> {
    empty_descriptors()?;
    if let Ok(any) = std::fs::File::open("/dev/null") {
        make_room(any);
    }
    Ok(())
}

fn empty_descriptors() -> io::Result<()> {
    // SAFETY: only numbers are passed. The descriptors stay open in the table that is left; the
    // thread is a new one that owns none.
    let left = checked(unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, UNSHARE) });
    if left.is_ok() {
        return Ok(());
    }
    // Before Linux 5.9: a table with everything in it, then emptied.
    // SAFETY: changes which table this thread uses, and nothing else.
    checked(unsafe { libc::unshare(libc::CLONE_FILES) })?;
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .maximum
        .unwrap_or(1 << 20)
        .min(1 << 20);
    for fd in 0..most as i32 {
        // SAFETY: in this thread's own table, where nobody owns a descriptor.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
    Ok(())
}

/// Remembers the process that created it: a child of `fork` has none of its parent's threads, and may find their locks held for ever.
///
/// A page that the kernel wipes in the child (`MADV_WIPEONFORK`): looking costs one load.
#[derive(Debug)]
pub struct Birth(NonNull<AtomicU8>);

// SAFETY: the page lives as long as the value, and only an atomic on it is used.
unsafe impl Send for Birth {}
// SAFETY: as above.
unsafe impl Sync for Birth {}

impl Birth {
    /// Remembers this process.
    ///
    /// # Errors
    /// Without memory, and before Linux 4.14.
    pub fn new() -> io::Result<Self> {
        let size = page_size() as usize;
        // SAFETY: a fresh page at an address of the kernel's choosing, zeroed, known to nobody
        // else; what is advised about is that page.
        let birth = unsafe {
            let page = rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?;
            let birth = Self(NonNull::new(page.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
            rustix::mm::madvise(page, size, Advice::LinuxWipeOnFork)?;
            birth
        };
        birth.here().store(1, Ordering::Relaxed);
        Ok(birth)
    }

    /// True in the process that created it.
    pub fn is_here(&self) -> bool {
        self.here().load(Ordering::Relaxed) == 1
    }

    fn here(&self) -> &AtomicU8 {
        // SAFETY: the page is mapped, aligned and initialised as long as `self` lives.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        let page: *mut c_void = self.0.as_ptr().cast();
        // SAFETY: the page is ours, and nothing borrows from it any more.
        let _ = unsafe { rustix::mm::munmap(page, page_size() as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_thread_apart_has_no_descriptors_and_closes_none_of_the_programs() {
        let file = tempfile::tempfile().unwrap();
        let number = file.as_raw_fd();
        let seen = spawn_apart("apart", move || {
            let before = fs::metadata(format!("/proc/thread-self/fd/{number}")).is_ok();
            let own = File::open("/proc/self/status").unwrap();
            (before, own.as_raw_fd())
        });
        let (before, own) = seen.unwrap().join().unwrap().unwrap();
        assert!(!before);
        assert_eq!(own, 0, "its table was empty");
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn a_thread_apart_has_room_for_descriptors_before_it_starts_others() {
        let status = || fs::read_to_string("/proc/thread-self/status").unwrap();
        let status = spawn_apart("apart", status).unwrap().join().unwrap();
        let status = status.unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        let size: i32 = size.unwrap().trim().parse().unwrap();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if limit.is_some_and(|limit| limit < ROOM as u64) {
            println!("skipped: no more than {limit:?} descriptors here");
            return;
        }
        assert!(size >= ROOM, "{size}");
    }

    #[test]
    fn a_lock_survives_what_a_thread_apart_closes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        // SAFETY: all-zero is a valid flock; the descriptor is open.
        let lock = |kind: i16| unsafe {
            let mut lock: libc::flock = std::mem::zeroed();
            lock.l_type = kind;
            libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock)
        };
        assert_eq!(lock(libc::F_WRLCK as i16), 0);
        let held = || fs::read_to_string("/proc/locks").unwrap();
        let pid = format!(" {} ", std::process::id());
        assert!(held().contains(&pid));
        let apart = path.clone();
        spawn_apart("apart", move || drop(File::open(apart).unwrap()))
            .unwrap()
            .join()
            .unwrap()
            .unwrap();
        assert!(held().contains(&pid), "still locked");
        drop(File::open(path).unwrap());
        assert!(!held().contains(&pid), "what the thread avoids");
    }

    #[test]
    fn a_thread_apart_blocks_every_signal_and_its_starter_none() {
        let blocked = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("SigBlk:"));
            u64::from_str_radix(line.unwrap()[7..].trim(), 16).unwrap()
        };
        let before = blocked();
        let apart = spawn_apart("apart", blocked)
            .unwrap()
            .join()
            .unwrap()
            .unwrap();
        let beside = spawn_beside("beside", blocked).unwrap().join().unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGCHLD] {
            assert_eq!(apart >> (signal - 1) & 1, 1, "signal {signal}");
            assert_eq!(beside >> (signal - 1) & 1, 1, "signal {signal}");
        }
        assert_eq!(blocked(), before);
    }

    #[test]
    fn a_child_knows_that_it_is_not_the_parent() {
        let birth = Birth::new().unwrap();
        assert!(birth.is_here());
        // SAFETY: the child only loads a byte and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(birth.is_here())) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status has a place.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child was not born here");
        assert!(birth.is_here());
    }
}
