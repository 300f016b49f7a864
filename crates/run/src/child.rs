//! The program itself: started as if by the shell, with its signals, stops and end passed through.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use foreread_sys::group::GroupWatch;
use foreread_sys::process::{self, End, IoCounters, IoCounts};
use foreread_sys::signals::{self, Received, Signals};
use foreread_sys::{spawn, thread, usage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;

use super::observer::Seat;

/// The program's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// How the process ended.
    pub(super) ending: End,
    /// The kernel's counters of the process and the children it waited for.
    pub(super) io: Option<IoCounters>,
    /// Its processor time, and that of the children that it waited for.
    pub(super) cpu: Duration,
}

/// Signals on their way to the program.
pub(super) struct Incoming {
    signals: Signals,
    group: Option<GroupWatch>,
}

impl Incoming {
    /// Block the signals to be passed on, and make room for descriptors; before any thread is started.
    pub(super) fn block() -> io::Result<Self> {
        // And the signal of the program's stops.
        let signals: Vec<i32> = signals::messages()
            .chain([Signal::CHILD.as_raw()])
            .collect();
        let signals = Signals::block(&signals)?;
        thread::make_room(&signals);
        Ok(Self {
            signals,
            group: None,
        })
    }

    /// From now on recognises signals that were sent to the whole process group. Before any thread is started, and before the program,
    /// which may signal its group as the first thing it does.
    pub(super) fn watch_group(&mut self) {
        self.group = GroupWatch::start().ok();
    }

    /// Replaces this process by the command, with these variables, and with the signal mask as it was before foreread blocked signals.
    /// Returns only on failure, with the reason.
    pub(super) fn make_way(
        self,
        command: &[OsString],
        variables: &[(&str, OsString)],
    ) -> io::Error {
        // The watcher would be a child that the program knows nothing of.
        drop(self.group);
        let program = Path::new(&command[0]);
        spawn::replace(program, command, variables, Some(&self.signals))
    }

    /// Consumes pending signals while there is no program to pass them on to. True if one of them would end a process without a handler.
    pub(super) fn drain(&self) -> bool {
        let mut ends = false;
        while let Ok(Some(received)) = self.signals.next() {
            ends |= signals::ends(received.signal);
        }
        ends
    }

    /// True if a signal is to be passed on.
    fn is_for_program(&self, received: Received) -> bool {
        // Limits of foreread's own processor time or file size concern foreread only.
        let own_limit = received.from_kernel && signals::is_limit(received.signal);
        !received.from_self && !own_limit && !self.went_to_group(received)
    }

    /// True if a signal was sent to the whole process group. Then the program received it too, unless it has left the group, in which case
    /// it would not have received it without foreread either.
    fn went_to_group(&self, received: Received) -> bool {
        let group = self.group.as_ref();
        group
            .and_then(|group| group.got(received.signal))
            .unwrap_or(received.from_kernel)
    }
}

impl AsFd for Incoming {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

/// The result for a command that cannot be started: a shell's exit status, and the reason.
pub(super) fn failed(why: io::Error) -> (End, io::Error) {
    let code = if why.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    (End::Exited(code), why)
}

/// True if a new process could not be created, because of a limit of processes or a system-call filter. The command may still run in place
/// of this process.
pub(super) fn lacks_process(why: &io::Error) -> bool {
    let errno = Errno::from_io_error(why);
    matches!(errno, Some(Errno::AGAIN | Errno::NOMEM | Errno::PERM))
}

/// The running program. Its end is announced by `SIGCHLD`, which is among the signals.
pub(super) struct Child {
    counts: Option<IoCounts>,
    process: process::Child,
    incoming: Incoming,
}

impl Child {
    /// Start the command, observed if that is possible. Returns its process number.
    pub(super) fn start(
        command: &[OsString],
        observed: Option<&Seat>,
        incoming: &Incoming,
    ) -> io::Result<u32> {
        let own = std::process::id();
        let variables = observed.map(|seat| seat.variables(own));
        let variables = variables.unwrap_or_default();
        let pid = spawn::spawn(command, &variables, &incoming.signals)?;
        if let Some(observed) = observed {
            observed.started(pid);
        }
        Ok(pid)
    }

    /// The program that was started with this number.
    pub(super) fn new(pid: u32, incoming: Incoming) -> io::Result<Self> {
        Ok(Self {
            counts: IoCounts::open(pid).ok(),
            process: process::Child::new(pid)?,
            incoming,
        })
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Wait for the program's end, passing signals on meanwhile.
    pub(super) fn watch(&self) -> Result<Ended> {
        loop {
            match poll(&mut [PollFd::new(&self.incoming, PollFlags::IN)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(why) => return Err(why).context("waiting for the program"),
            }
            if let Some(ended) = self.pass_on()? {
                return Ok(ended);
            }
        }
    }

    /// The channel of signals, which becomes readable when the program has ended.
    pub(super) fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// Passes on pending signals until the program ends.
    fn pass_on(&self) -> Result<Option<Ended>> {
        while let Some(received) = self.incoming.signals.next()? {
            if received.signal == Signal::CHILD.as_raw() {
                if self.process.has_ended().context("asking for its end")? {
                    return self.end();
                }
                self.stop_along()?;
            } else if self.incoming.is_for_program(received) {
                // A program with other privileges cannot be signalled: no more could the sender.
                let _ = self.process.send(received.signal);
            }
        }
        Ok(None)
    }

    /// Take the end of the program.
    fn end(&self) -> Result<Option<Ended>> {
        let io = self.counts.as_ref().and_then(|counts| counts.read().ok());
        let Some(ending) = self.process.end().context("taking the exit status")? else {
            return Ok(None);
        };
        let cpu = usage::of_children();
        // Nobody is left to pass signals on to.
        if let Some(group) = &self.incoming.group {
            group.dismiss();
        }
        Ok(Some(Ended { ending, io, cpu }))
    }

    /// If the program was stopped, stop too, so that the shell sees it; go on together.
    fn stop_along(&self) -> Result<()> {
        if self.process.was_stopped()? {
            signals::stop_self()?;
            self.process.send(Signal::CONT.as_raw())?;
        }
        Ok(())
    }
}
