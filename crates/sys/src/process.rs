//! Another process: watching it, hearing of its end, counting its reads.
//!
//! Invariant: a process is named by its pidfd, so no call can hit a stranger that was given
//! the same number.
//!
//! Data flow: [`open`] a child just started, [`ended`] it while it runs, read what only a
//! not yet reaped process tells ([`IoCounters::of`]), then [`change`] takes its status.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};

use crate::checked;

/// A descriptor for process `pid`.
pub fn open(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("no process is {pid}"))
        })?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Whether the process has ended, waiting at most `timeout` for it; `None` waits for good.
pub fn ended<Fd: AsFd>(pidfd: Fd, timeout: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match rustix::event::poll(&mut fds, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended by itself, with this code.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// A signal stopped it.
    Stopped(i32),
    /// It goes on after a stop.
    Continued,
}

impl Change {
    /// The status a shell would show: the code, or 128 + the signal; `None` while it lives.
    pub fn exit_status(self) -> Option<i32> {
        match self {
            Change::Exited(code) => Some(code),
            Change::Killed(signal) => Some(128 + signal),
            Change::Stopped(_) | Change::Continued => None,
        }
    }
}

/// The next change of a child's state, if there has been one; takes an end's status, reaping the child.
pub fn change<Fd: AsFd>(pidfd: Fd) -> io::Result<Option<Change>> {
    let options = WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::CONTINUED
        | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::PidFd(pidfd.as_fd()), options)?;
    Ok(status.and_then(|status| {
        status
            .exit_status()
            .map(Change::Exited)
            .or_else(|| status.terminating_signal().map(Change::Killed))
            .or_else(|| status.stopping_signal().map(Change::Stopped))
            .or_else(|| status.continued().then_some(Change::Continued))
    }))
}

/// Sends a signal by its number. A process that has ended already is no error.
pub fn send<Fd: AsFd>(pidfd: Fd, signal: i32) -> io::Result<()> {
    let pidfd = pidfd.as_fd().as_raw_fd();
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a descriptor, two numbers and no memory: without information the kernel fills in who sends.
    match checked(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, info, 0) }) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// What the kernel counts of a process's input, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Returned by read calls, hot or cold.
    pub rchar: u64,
    /// Fetched from storage on its behalf, prefetches it asked for included.
    pub read_bytes: u64,
}

/// The place where the kernel tells a process's [`IoCounters`].
///
/// Opened while the process runs: once it has ended, an ordinary user may still read the place but
/// no longer open it.
#[derive(Debug)]
pub struct IoCounts(fs::File);

impl IoCounts {
    /// The place for process `pid`.
    ///
    /// # Errors
    ///
    /// `ENOENT` once it is reaped, `EACCES` where it may not be looked at.
    pub fn open(pid: u32) -> io::Result<Self> {
        fs::File::open(format!("/proc/{pid}/io")).map(Self)
    }

    /// What is counted by now.
    ///
    /// # Errors
    ///
    /// `ESRCH` once the process is reaped, `EACCES` where it may not be looked at any more.
    pub fn read(&self) -> io::Result<IoCounters> {
        let mut bytes = [0; 1024];
        let count = self.0.read_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes[..count]);
        IoCounters::parse(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("/proc/…/io: {text:?}"))
        })
    }
}

impl IoCounters {
    /// The counters of a process and of those of its children it has waited for.
    ///
    /// # Errors
    ///
    /// `ENOENT` once it is reaped, `EACCES` where it may not be looked at.
    pub fn of(pid: u32) -> io::Result<Self> {
        IoCounts::open(pid)?.read()
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            text.lines().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                (key == name).then(|| value.parse().ok()).flatten()
            })
        };
        Some(Self {
            rchar: field("rchar")?,
            read_bytes: field("read_bytes")?,
        })
    }
}
