//! Other processes: their processor time, and a child's end and reads.
//!
//! Invariant: a child is identified by its process id only until it is reaped: until then the kernel gives the id to no other process, so
//! no call can hit a stranger. No descriptor is needed, of which there may be none left.
//!
//! Data flow: [`Child::new`] for a process just started; on `SIGCHLD`, [`has_ended`](Child::has_ended); then facts of a process not yet
//! reaped ([`IoCounts::read`]); then [`Child::end`] reaps it.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::time::{ClockId, clock_gettime};

use crate::checked;
use crate::procfs::{self, Status};

/// Processor time of all threads of a process so far, in ns; `None` if there is no such process.
pub fn computed(pid: u32) -> Option<u64> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both only write where they are told to.
    let told = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let time = told.then_some(time)?;
    Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

/// Number of a process's system-call filters; `None` if there is no such process. A kernel before Linux 5.9 reports one for any number.
pub fn filters_of(pid: u32) -> Option<u32> {
    filters_in(Status(&procfs::status(pid).ok()?))
}

/// The same of this process.
pub fn filters() -> u32 {
    let status = procfs::own_status().unwrap_or_default();
    filters_in(Status(&status)).unwrap_or(0)
}

fn filters_in(status: Status<'_>) -> Option<u32> {
    let mode = || status.number("Seccomp").map(|mode: u32| mode.min(1));
    status.number("Seccomp_filters").or_else(mode)
}

/// The processor time that all threads of this process have used so far, in ns.
pub fn used() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).map_or(0, |time| time.as_nanos() as u64)
}

/// A child of this process that is not yet reaped.
#[derive(Debug)]
pub struct Child(Pid);

impl Child {
    /// The child just started under this number.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a number that no process has.
    pub fn new(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        number.map(Self).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("no process is {pid}"))
        })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// True if it has ended; it is not reaped.
    ///
    /// # Errors
    /// `ECHILD` if it was reaped.
    pub fn has_ended(&self) -> io::Result<bool> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.0), look)?.is_some())
    }

    /// True if it has been stopped since the last call, and has not ended.
    ///
    /// # Errors
    /// None that are known.
    pub fn was_stopped(&self) -> io::Result<bool> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.0), options) {
            // It has ended, and cannot be stopped any more.
            Err(Errno::CHILD) => Ok(false),
            status => Ok(status?.is_some()),
        }
    }

    /// The way it ended, if it has: reaps it, so it must not be used afterwards.
    ///
    /// # Errors
    /// `ECHILD` if it was reaped.
    pub fn end(&self) -> io::Result<Option<End>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.0), options)?;
        Ok(status.and_then(|status| {
            let exited = status.exit_status().map(End::Exited);
            exited.or_else(|| status.terminating_signal().map(End::Killed))
        }))
    }

    /// Sends it a signal by its number. If it has ended already that is no error.
    ///
    /// # Errors
    /// `EPERM` if it has other privileges.
    pub fn send(&self, signal: i32) -> io::Result<()> {
        // SAFETY: two numbers and no memory; the first is our child's.
        match checked(unsafe { libc::kill(self.0.as_raw_nonzero().get(), signal) }) {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The way in which a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl End {
    /// As a shell would show it: the code, or 128 + the signal.
    pub fn status(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128 + signal,
        }
    }
}

/// The kernel's counts of a process's input, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounters {
    /// Returned by read calls, hot or cold.
    pub rchar: u64,
    /// Fetched from storage on its behalf, prefetches it asked for included.
    pub read_bytes: u64,
}

/// The open file with a process's [`IoCounters`].
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
    /// `ENOENT` once it is reaped, `EACCES` if it may not be examined.
    pub fn open(pid: u32) -> io::Result<Self> {
        fs::File::open(format!("/proc/{pid}/io")).map(Self)
    }

    /// The present counts.
    ///
    /// # Errors
    ///
    /// `ESRCH` once the process is reaped, `EACCES` if it may no longer be examined.
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
    /// `ENOENT` once it is reaped, `EACCES` if it may not be examined.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_computes_is_told_as_long_as_it_is_there() {
        let own = std::process::id();
        let before = computed(own).expect("this process");
        let mut sum = 0_u64;
        while computed(own).expect("this process") < before + 5_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let mut idle = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep");
        assert!(computed(idle.id()).is_some_and(|ns| ns < 1_000_000_000));
        idle.kill().expect("a child");
        idle.wait().expect("a child");
        assert_eq!(computed(idle.id()), None);
    }
}
