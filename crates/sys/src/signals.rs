//! Signals of a supervisor: received as data, and unchanged for the program.
//!
//! Invariant: the mask there was before is kept, to be handed to the program.
//!
//! Data flow: [`Signals::block`] before threads and children exist; [`Signals::next`] when
//! its descriptor is readable; [`die_by`] when the child was killed.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{checked, refused};

/// Signals by which a process is notified, stopped or ended. Excluded are signals of its own faults, signals that cannot be blocked,
/// `SIGCONT`, which acts whether blocked or not, and `SIGPIPE`, which a failed write of the receiver also causes.
pub fn messages() -> impl Iterator<Item = i32> {
    const NAMED: [i32; 19] = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGWINCH,
        libc::SIGURG,
        libc::SIGIO,
        libc::SIGPWR,
        libc::SIGSTKFLT,
        libc::SIGXCPU,
        libc::SIGXFSZ,
    ];
    NAMED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// True if the kernel sends this signal when the receiver has reached a limit of resources: a supervisor's own use concerns no other
/// process.
pub fn is_limit(signal: i32) -> bool {
    matches!(signal, libc::SIGXCPU | libc::SIGXFSZ)
}

/// True if this one of the [`messages`] ends a process without a handler.
pub fn ends(signal: i32) -> bool {
    let others = [
        libc::SIGCHLD,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGWINCH,
        libc::SIGURG,
    ];
    !others.contains(&signal)
}

/// Blocked signals, received from a descriptor.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// True if the kernel sent it, for example for a key of the terminal.
    pub from_kernel: bool,
    /// True if this process sent it, or caused it, for example by a write beyond the limit of a file's size.
    pub from_self: bool,
}

/// From now on these signals do nothing to this process, and none waits: one that is blocked would.
pub fn ignore(signals: &[i32]) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it; to ignore a signal runs no code of ours. What
    // cannot be ignored stays as it is.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::signal(signal, libc::SIG_IGN);
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

impl Signals {
    /// Blocks `signals` in the calling thread and those it starts from now on; none where that fails.
    ///
    /// # Errors
    ///
    /// The system's error, after the name of the refused object: the mask or the descriptor.
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set before anything reads it, pthread_sigmask fills
        // `before` when it succeeds, and the descriptor returned is new and owned by nobody else.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in signals {
                checked(libc::sigaddset(set.as_mut_ptr(), signal))?;
            }
            match libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) {
                0 => {}
                error => {
                    let why = io::Error::from_raw_os_error(error);
                    return Err(refused("signals cannot be blocked", &why));
                }
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let fd = checked(libc::signalfd(-1, set.as_ptr(), flags)).map_err(|why| {
                libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
                refused("no signalfd can be made", &why)
            })?;
            Ok(Self {
                fd: OwnedFd::from_raw_fd(fd as i32),
                before: before.assume_init(),
            })
        }
    }

    /// The mask there was before.
    pub(crate) fn before(&self) -> &libc::sigset_t {
        &self.before
    }

    /// The next signal waiting, if any.
    pub fn next(&self) -> io::Result<Option<Received>> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is `size` bytes long; all-zero is a valid signalfd_siginfo.
        let (result, info) = unsafe {
            let result = libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size);
            (result, info.assume_init())
        };
        match checked(result) {
            Ok(got) if got as usize == size => Ok(Some(Received {
                signal: info.ssi_signo as i32,
                from_kernel: info.ssi_code == libc::SI_KERNEL,
                from_self: info.ssi_pid == std::process::id(),
            })),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Stops this process as its child was stopped, so that the shell sees it; returns when continued.
pub fn stop_self() -> io::Result<()> {
    Ok(rustix::process::kill_process(
        rustix::process::getpid(),
        rustix::process::Signal::STOP,
    )?)
}

/// Ends this process by `signal`, without a second core file, so that its parent sees how the program ended. If that fails, exits with 128
/// + `signal`.
pub fn die_by(signal: i32) -> ! {
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    // SAFETY: restores a default disposition and unblocks one signal in this thread; the set is
    // initialised by sigemptyset before use.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}
