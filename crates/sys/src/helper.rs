//! A second process, which makes this one's calls that a file system may block.
//!
//! Purpose: a call to a file system that does not answer can neither be interrupted nor left behind: a process ends when the
//! last of its threads has ended, and a thread that waits for such a file system ends when that answers (a FUSE server
//! that took the request and sleeps holds it up even against `SIGKILL`). So the process that others wait for makes no
//! such call, and leaves them to a process of its own that it need not wait for.
//!
//! Invariant: the helper has none of this process's inherited descriptors, so that no reader waits for the end of one because of the
//! helper. It has this process's signal mask, and ends with this process, unless [`outlive`] is called.
//!
//! Data flow: [`fork`] or [`fork_apart`], before there are threads → both sides talk through the socket that each is handed.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::{checked, refused, signals};

/// The helper's process name: a search for "foreread" finds the process to which the program belongs.
const NAME: &std::ffi::CStr = c"foreread-helper";

/// One of the two processes, with its connection to the other.
#[derive(Debug)]
pub enum Side {
    /// The one that was there before.
    Front(Helper),
    /// The helper.
    Helper(UnixStream),
}

/// The helper, as the other process sees it.
#[derive(Debug)]
pub struct Helper {
    /// The way to it.
    pub link: UnixStream,
    pid: Pid,
    /// Readable once it has ended, where a descriptor of that is to be had.
    end: Option<OwnedFd>,
}

/// Starts the helper, which continues from here with a copy of this process. Only while this process has one thread.
///
/// # Errors
///
/// If no more processes or descriptors are available, or a system-call filter refuses them; the error names which.
pub fn fork() -> io::Result<Side> {
    let (here, there) =
        UnixStream::pair().map_err(|why| refused("no socket pair can be made", &why))?;
    let parent = rustix::process::getpid();
    // SAFETY: the caller has one thread, so no lock is held in the copy by a thread that is not there.
    let pid = checked(unsafe { libc::fork() })
        .map_err(|why| refused("no helper process can be made", &why))?;
    match Pid::from_raw(pid) {
        Some(pid) => Ok(Side::Front(Helper {
            link: here,
            pid,
            end: pidfd_open(pid, PidfdFlags::empty()).ok(),
        })),
        None => {
            drop(here);
            settle_in(Some(parent));
            Ok(Side::Helper(there))
        }
    }
}

/// Starts the helper as nobody's child, for a process that is about to become another program, which would otherwise find a child that it
/// did not start. Such a helper does not end with the other process. Only while this process has one thread.
///
/// # Errors
///
/// As [`fork`]'s.
pub fn fork_apart() -> io::Result<Side> {
    let made = |why| refused("no helper process can be made", &why);
    let (here, there) =
        UnixStream::pair().map_err(|why| refused("no socket pair can be made", &why))?;
    // SAFETY: the caller has one thread, so no lock is held in the copy by a thread that is not there.
    let between = checked(unsafe { libc::fork() }).map_err(made)?;
    if between > 0 {
        drop(there);
        // SAFETY: a child of our own, which ends at once; no memory is involved.
        unsafe { libc::waitpid(between, std::ptr::null_mut(), 0) };
        let mut number = [0; 4];
        (&here).read_exact(&mut number).map_err(made)?;
        let pid = Pid::from_raw(i32::from_ne_bytes(number));
        let pid = pid.ok_or_else(|| made(io::ErrorKind::NotFound.into()))?;
        return Ok(Side::Front(Helper {
            link: here,
            pid,
            end: pidfd_open(pid, PidfdFlags::empty()).ok(),
        }));
    }
    drop(here);
    // SAFETY: this process has one thread, as the one that it is a copy of; what is not the helper ends without running anything.
    unsafe {
        if libc::fork() != 0 {
            libc::_exit(0);
        }
    }
    settle_in(None);
    // If no one receives it, the front is gone, which the first use of the link shows.
    let _ = (&there).write_all(&std::process::id().to_ne_bytes());
    Ok(Side::Helper(there))
}

/// Makes the new process the helper, which ends with `parent`.
fn settle_in(parent: Option<Pid>) {
    // SAFETY: a terminated string is passed.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    if parent.is_some() {
        // SAFETY: numbers alone are passed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        if rustix::process::getppid() != parent {
            std::process::exit(0);
        }
    }
    // Signals to the whole group concern the front and the program.
    signals::ignore(&signals::messages().collect::<Vec<_>>());
    leave_given();
    // No one can read a panic's message, because standard error leads nowhere. Its backtrace takes memory, and without memory the report
    // waits for ever for the lock that the backtrace holds.
    std::panic::set_hook(Box::new(|_| {}));
}

/// Drops inherited descriptors: the standard ones lead nowhere, and all others that a program started from here would inherit are closed.
/// This process's own descriptors are all close-on-exec, and stay.
fn leave_given() {
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        for fd in 0..3 {
            // SAFETY: no memory is involved; the standard descriptors belong to nobody.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
    let Ok(listed) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // SAFETY: no memory is involved. What is closed was inherited from whoever started this process, so that no
        // value here owns it.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
                libc::close(fd);
            }
        }
    }
}

/// In the helper: it ends no longer with the process that started it.
pub fn outlive() {
    // SAFETY: numbers alone are passed.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
}

impl Helper {
    /// The helper's process number.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// True if any of its threads runs, or waits for a processor: then it is not blocked.
    pub fn is_running(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid())) else {
            return false;
        };
        threads.flatten().any(|thread| {
            let stat = fs::read(thread.path().join("stat")).unwrap_or_default();
            // The name before it may hold anything.
            let named = stat.iter().rposition(|&byte| byte == b')');
            named.is_some_and(|at| stat.get(at + 2) == Some(&b'R'))
        })
    }

    /// Readable once it has ended; `None` where the kernel has no such descriptor, or none is left.
    pub fn end_fd(&self) -> Option<BorrowedFd<'_>> {
        self.end.as_ref().map(AsFd::as_fd)
    }

    /// True if it has ended; it is reaped then.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        // Reaped already.
        waitid(WaitId::Pid(self.pid), options).map_or(true, |status| status.is_some())
    }

    /// Kills it, if possible.
    pub fn kill(&self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs in a process of its own, which has only one thread.
    #[test]
    fn a_helper_holds_nothing_that_was_given_and_ends_with_its_starter() {
        // SAFETY: the child calls nothing that another thread's lock could hold up but the allocator, which the C library
        // keeps usable over a fork, and never returns.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let passed = std::panic::catch_unwind(starter).is_ok();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!passed)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status has a place.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0);
    }

    #[test]
    fn a_helper_apart_is_nobody_s_child_and_hears_that_its_starter_is_another_program() {
        // SAFETY: as above.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let passed = std::panic::catch_unwind(starter_of_one_apart).is_ok();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!passed)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status has a place.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0);
    }

    fn starter_of_one_apart() {
        match fork_apart().unwrap() {
            Side::Helper(mut link) => {
                let mut rest = Vec::new();
                let _ = link.read_to_end(&mut rest);
                // SAFETY: ends the helper without running anything of the test's.
                unsafe { libc::_exit(0) };
            }
            Side::Front(helper) => {
                // SAFETY: no status is asked for.
                let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
                let why = io::Error::last_os_error();
                assert_eq!((child, why.raw_os_error()), (-1, Some(libc::ECHILD)));
                let comm = fs::read_to_string(format!("/proc/{}/comm", helper.pid())).unwrap();
                assert_eq!(comm, "foreread-helper\n");
                // As the start of another program closes it.
                helper.link.shutdown(std::net::Shutdown::Both).unwrap();
                let end = helper.end_fd().unwrap();
                eventually("it ends", || {
                    let mut fds = [rustix::event::PollFd::new(
                        &end,
                        rustix::event::PollFlags::IN,
                    )];
                    rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default()))
                        == Ok(1)
                });
            }
        }
    }

    #[test]
    fn a_helper_that_panics_where_no_memory_is_left_ends() {
        // SAFETY: as above.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let passed = std::panic::catch_unwind(starter_of_a_helper_without_memory).is_ok();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!passed)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status has a place.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0);
    }

    fn starter_of_a_helper_without_memory() {
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var("RUST_BACKTRACE", "1") };
        match fork().unwrap() {
            Side::Helper(_link) => {
                let none = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                // SAFETY: the limit is read, and nothing else is passed.
                unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const none) };
                let _ = std::panic::catch_unwind(|| panic!("out of memory"));
                // SAFETY: ends the helper without running anything of the test's.
                unsafe { libc::_exit(0) };
            }
            Side::Front(helper) => {
                let ended = std::panic::catch_unwind(|| {
                    eventually("it ends", || helper.has_ended());
                });
                helper.kill();
                assert!(ended.is_ok());
            }
        }
    }

    fn starter() {
        let (mut read, write) = std::io::pipe().unwrap();
        // As a shell would hand it on.
        // SAFETY: no memory is involved.
        unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETFD, 0) };
        match fork().unwrap() {
            Side::Helper(mut link) => {
                // It runs from the other side's first byte to its second.
                let mut byte = [0];
                let _ = link.read(&mut byte);
                link.set_nonblocking(true).unwrap();
                while link.read(&mut byte).is_err() {}
                let _ = link.write_all(&byte);
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
            Side::Front(mut helper) => {
                drop(write);
                let mut rest = Vec::new();
                assert_eq!(
                    read.read_to_end(&mut rest).unwrap(),
                    0,
                    "nobody holds the pipe"
                );
                eventually("it waits", || !helper.is_running());
                helper.link.write_all(b"x").unwrap();
                eventually("it runs", || helper.is_running());
                helper.link.write_all(b"x").unwrap();
                helper.link.read_exact(&mut [0]).unwrap();
                let comm = fs::read_to_string(format!("/proc/{}/comm", helper.pid())).unwrap();
                assert_eq!(comm, "foreread-helper\n");
                assert!(!helper.has_ended());
                helper.kill();
                eventually("it is gone", || helper.has_ended());
            }
        }
    }
}
