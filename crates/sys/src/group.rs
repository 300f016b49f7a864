//! Process groups: finds out which signals were sent to the whole group.
//!
//! A signal does not show whether it was sent to one process or to its group. So a second, tiny process is kept in the group with all
//! signals blocked: a signal that it received, too, was sent to the whole group.
//!
//! Invariant: the watcher touches nothing but its own socket, ends with this process however that
//! ends, and goes by another name and without arguments, so that a signal sent by name is not sent
//! to it. The kernel signals the youngest of a group first: the watcher has a signal before us.
//!
//! Data flow: signal number and the question's → socket → the watcher takes the signal, if pending →
//! signal number or 0, and the question's.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::checked;
use crate::procfs::Stat;

/// The watcher's name, which a search for foreread by name does not find.
const NAME: &std::ffi::CStr = c"group-watch";
/// A sender that signals every process by its own number needs some time from the first to the last.
const GRACE: Duration = Duration::from_millis(1);
/// A watcher that does not answer in this time is stopped. On a busy machine, or with little memory, it may need some tenths of a second.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of `/proc/self/stat`, at most.
const STAT: usize = 1024;

/// The second process of the group.
#[derive(Debug)]
pub struct GroupWatch {
    socket: UnixStream,
    pid: libc::pid_t,
    /// The processors on which this process was allowed to run at its start.
    processors: Option<CpuSet>,
    /// Number of the last question: a late answer is not mistaken for the next one.
    asked: Cell<u8>,
}

impl GroupWatch {
    /// Starts the watcher. The signals of interest must be blocked already.
    ///
    /// # Errors
    ///
    /// `EAGAIN` where no more processes, `EMFILE` where no more descriptors may be had.
    pub fn start() -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let parent = std::process::id();
        // SAFETY: the child makes async-signal-safe calls only, and never returns.
        let pid = checked(unsafe { libc::fork() })?;
        if pid == 0 {
            // SAFETY: this is the child.
            unsafe { watch(theirs.as_raw_fd(), parent) }
        }
        Ok(Self {
            socket,
            pid,
            processors: sched_getaffinity(None).ok(),
            asked: Cell::new(0),
        })
    }

    /// Whether `signal`, which this process has just received, was sent to the whole group; `None` if the watcher does not answer.
    pub fn got(&self, signal: i32) -> Option<bool> {
        sleep(GRACE);
        let signal = u8::try_from(signal).ok()?;
        let number = self.asked.get().wrapping_add(1);
        self.asked.set(number);
        (&self.socket).write_all(&[signal, number]).ok()?;
        loop {
            let mut answer = [0; 2];
            (&self.socket).read_exact(&mut answer).ok()?;
            if answer[1] == number {
                return Some(answer[0] == signal);
            }
        }
    }

    /// Lets the watcher end by itself while this process continues; there are no more questions. It is moved to another processor, if there
    /// is one: woken on this one it would run first.
    pub fn dismiss(&self) {
        if let Some(mut others) = self.processors {
            others.unset(sched_getcpu());
            // Refused if there is no other processor.
            let _ = sched_setaffinity(Pid::from_raw(self.pid), &others);
        }
        self.kill();
    }

    fn kill(&self) {
        // SAFETY: our own child, not reaped before; no memory is involved.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }
}

impl Drop for GroupWatch {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: our own child, not reaped before; no memory is involved.
        unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) };
    }
}

/// The watcher: answers questions until its parent is gone.
///
/// # Safety
///
/// To be called in a forked child that never returns.
unsafe fn watch(socket: c_int, parent: u32) -> ! {
    let none = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: async-signal-safe calls on this process's own copies. The arguments are overwritten
    // where the kernel has put them, which nobody reads any more; the sets are initialised by the
    // calls that fill them.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid().unsigned_abs() != parent {
            libc::_exit(0);
        }
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        if let Some(arguments) = arguments() {
            let first = ptr::with_exposed_provenance_mut::<u8>(arguments.start);
            ptr::write_bytes(first, 0, arguments.len());
        }
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &set, ptr::null_mut());
        if socket > 0 {
            close_range(0, socket - 1);
        }
        close_range(socket + 1, c_int::MAX);
        // The file system that the program is on may be unmounted.
        libc::chdir(c"/".as_ptr());
        loop {
            // A question is written, and so read, whole.
            let mut question = [0_u8; 2];
            if libc::read(socket, (&raw mut question).cast(), 2) != 2 {
                libc::_exit(0);
            }
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, c_int::from(question[0]));
            question[0] = libc::sigtimedwait(&set, ptr::null_mut(), &none).max(0) as u8;
            libc::write(socket, (&raw const question).cast(), 2);
        }
    }
}

/// The addresses of this process's arguments, from `/proc`: the C library's are not to be had everywhere.
///
/// # Safety
///
/// None but that of the calls it makes, which are async-signal-safe.
unsafe fn arguments() -> Option<Range<usize>> {
    let mut stat = [0_u8; STAT];
    // SAFETY: the buffer is ours, and as long as is said.
    let len = unsafe {
        let file = libc::open(c"/proc/self/stat".as_ptr(), libc::O_RDONLY);
        libc::read(file, stat.as_mut_ptr().cast(), stat.len())
    };
    arguments_in(stat.get(..usize::try_from(len).ok()?)?)
}

/// The same in such a file's text.
fn arguments_in(stat: &[u8]) -> Option<Range<usize>> {
    let fields = Stat::of(stat)?;
    let [start, end] = Stat::ARGUMENTS.map(|field| fields.number(field));
    let (start, end) = (start?, end?);
    (0 < start && start <= end).then_some(start..end)
}

/// Closes a range of descriptors. On kernels without the call they stay open until the end of this process's parent, which disturbs only a
/// reader that waits for the last writer of a pipe.
fn close_range(first: c_int, last: c_int) {
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::Signals;

    #[test]
    fn only_what_the_group_was_sent_was_sent_to_the_group() {
        // Blocked in this thread, and so in the watcher.
        let _signals = Signals::block(&[libc::SIGUSR1, libc::SIGUSR2]).unwrap();
        let watch = GroupWatch::start().unwrap();
        assert_eq!(watch.got(libc::SIGUSR1), Some(false));
        // SAFETY: the watcher is our own child.
        unsafe { libc::kill(watch.pid, libc::SIGUSR1) };
        assert_eq!(watch.got(libc::SIGUSR2), Some(false));
        assert_eq!(watch.got(libc::SIGUSR1), Some(true));
        assert_eq!(watch.got(libc::SIGUSR1), Some(false));
    }

    #[test]
    fn nobody_finds_the_watcher_by_name() {
        let watch = GroupWatch::start().unwrap();
        watch.got(libc::SIGUSR1);
        let about = |name: &str| std::fs::read(format!("/proc/{}/{name}", watch.pid)).unwrap();
        assert_eq!(about("comm"), b"group-watch\n");
        assert!(about("cmdline").iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_processes_arguments_are_found_whatever_its_name() {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let own = arguments_in(stat.as_bytes()).unwrap();
        let cmdline = std::fs::read("/proc/self/cmdline").unwrap();
        assert_eq!(own.len(), cmdline.len());
        let named = stat.find('(').unwrap()..stat.rfind(')').unwrap();
        let other = [&stat[..named.start], "(a) 1 2 (b", &stat[named.end..]].concat();
        assert_eq!(arguments_in(other.as_bytes()), Some(own));
        assert_eq!(arguments_in(&stat.as_bytes()[..40]), None);
        assert_eq!(arguments_in(b""), None);
    }

    #[test]
    fn a_stopped_watcher_is_not_waited_for_long_and_ends_all_the_same() {
        let watch = GroupWatch::start().unwrap();
        // SAFETY: the watcher is our own child.
        unsafe { libc::kill(watch.pid, libc::SIGSTOP) };
        assert_eq!(watch.got(libc::SIGUSR1), None);
    }

    #[test]
    fn an_answer_that_came_too_late_is_not_the_next_ones() {
        let _signals = Signals::block(&[libc::SIGUSR1, libc::SIGUSR2]).unwrap();
        let watch = GroupWatch::start().unwrap();
        // SAFETY: the watcher is our own child.
        let send = |signal| unsafe { libc::kill(watch.pid, signal) };
        send(libc::SIGSTOP);
        assert_eq!(watch.got(libc::SIGUSR1), None);
        send(libc::SIGCONT);
        send(libc::SIGUSR2);
        assert_eq!(watch.got(libc::SIGUSR2), Some(true));
    }
}
