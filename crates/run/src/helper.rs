//! The two processes of a run, and their messages.
//!
//! The caller of foreread waits for the *front*, which starts the program, passes signals on, waits for the program's end, and prints. The
//! front makes no call that a file system could delay. The *helper* does everything else: the store, the record, the session, the account.
//! The front waits for the helper twice. It waits as long as the helper works, but no longer than [`PATIENCE`] in all while the helper is
//! blocked; then it goes on without the helper and reports which step blocked.
//!
//! Data flow: helper → front: the libraries, its present action, "ready", the account. Front → helper: the program's start and
//! end.
//!
//! A service that reports to its manager must be the process that the manager started, so it replaces the front. The helper becomes an
//! orphan and notices the service's end by itself. It leaves when the service has started ([`start_up`](crate::start_up)).

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_sys::helper::{self, Helper};
use foreread_sys::process::End;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use serde::{Deserialize, Serialize};

use super::child::{Ended, Incoming};

/// Total time for which the front waits for a blocked helper, at the start and at the end: a delay that is just noticeable, and five turns
/// of a disk's platter.
const PATIENCE: Duration = Duration::from_millis(50);
/// Interval at which the front checks whether the helper is blocked. A check takes 20 to 80 µs.
const TICK: Duration = Duration::from_millis(2);

const LIBRARY: u8 = b'L';
const DOING: u8 = b'D';
const READY: u8 = b'R';
const ACCOUNT: u8 = b'A';
const STARTED: u8 = b'S';
const ENDED: u8 = b'E';

/// Tag and length.
const HEAD: usize = 5;

/// Message: the program was started.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Started {
    /// Its number.
    pub(super) pid: u32,
    /// True if the preload library is in the program.
    pub(super) has_library: bool,
    /// The step that the front did not wait for.
    pub(super) late: Option<String>,
    /// True if the program replaces the front, which sends no more messages then.
    pub(super) in_place: bool,
}

/// How and when the program ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    code: Option<i32>,
    signal: Option<i32>,
    /// Bytes that the kernel fetched for the program and for the children it waited for.
    pub(super) device_bytes: Option<u64>,
    /// Processor time of the program and of the children that it waited for.
    pub(super) cpu_ns: Option<u64>,
    /// Since the run began.
    pub(super) wall_ns: u64,
}

impl Finished {
    pub(super) fn new(ended: &Ended, wall: Duration) -> Self {
        let (code, signal) = match ended.ending {
            End::Exited(code) => (Some(code), None),
            End::Killed(signal) => (None, Some(signal)),
        };
        Self {
            code,
            signal,
            device_bytes: ended.io.map(|io| io.read_bytes),
            cpu_ns: Some(ended.cpu.as_nanos() as u64),
            wall_ns: wall.as_nanos() as u64,
        }
    }

    /// Facts about a program that is still running.
    pub(super) fn not_yet(wall: Duration, device_bytes: Option<u64>, cpu_ns: Option<u64>) -> Self {
        Self {
            code: None,
            signal: None,
            device_bytes,
            cpu_ns,
            wall_ns: wall.as_nanos() as u64,
        }
    }

    pub(super) fn ending(&self) -> End {
        match self.signal {
            Some(signal) => End::Killed(signal),
            None => End::Exited(self.code.unwrap_or(0)),
        }
    }
}

/// A message: its tag and its data.
type Message = (u8, Vec<u8>);

fn send(mut link: &UnixStream, tag: u8, payload: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(HEAD + payload.len());
    message.push(tag);
    message.extend((payload.len() as u32).to_ne_bytes());
    message.extend(payload);
    link.write_all(&message)
}

/// The first complete message among the received bytes.
fn next(arrived: &mut Vec<u8>) -> Option<Message> {
    let (&tag, rest) = arrived.split_first()?;
    let (len, rest) = rest.split_first_chunk()?;
    let len = u32::from_ne_bytes(*len) as usize;
    let payload = rest.get(..len)?.to_vec();
    arrived.drain(..HEAD + len);
    Some((tag, payload))
}

/// Waits until one of these can be read, at most for `timeout`.
fn await_any(fds: &mut [PollFd<'_>], timeout: Option<Duration>) {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    // Descriptors that cannot be polled are checked directly.
    let _ = poll(fds, timeout.as_ref());
}

/// The helper's way to the front.
pub(super) struct Link {
    front: UnixStream,
    arrived: Vec<u8>,
    /// The front's process number.
    pub(super) pid: u32,
    /// The program that has replaced the front.
    beside: Option<Beside>,
}

/// A program that nobody waits for on foreread's side.
struct Beside {
    since: Instant,
    /// Readable once it has ended.
    end: OwnedFd,
}

impl Beside {
    fn new(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Self {
            since: Instant::now(),
            end: pidfd_open(pid, PidfdFlags::empty()).ok()?,
        })
    }

    /// Waits for its end. Only its parent learns how it ended.
    fn wait(&self, timeout: Option<Duration>) -> Option<Finished> {
        let mut fds = [PollFd::new(&self.end, PollFlags::IN)];
        await_any(&mut fds, timeout);
        (!fds[0].revents().is_empty()).then(|| Finished::not_yet(self.since.elapsed(), None, None))
    }
}

impl Link {
    pub(super) fn new(front: UnixStream, pid: u32) -> Self {
        Self {
            front,
            arrived: Vec::new(),
            pid,
            beside: None,
        }
    }

    /// A library that is to be put into the program.
    pub(super) fn library(&self, path: &Path) {
        let _ = send(&self.front, LIBRARY, path.as_os_str().as_bytes());
    }

    /// The next action, in words that "took longer" follows.
    pub(super) fn doing(&self, what: &str) {
        let _ = send(&self.front, DOING, what.as_bytes());
    }

    /// Message: the program may be started, with or without the preload library.
    pub(super) fn ready(&self, by_library: bool) {
        let _ = send(&self.front, READY, &[u8::from(by_library)]);
    }

    /// The text to print; no message follows.
    pub(super) fn account(&self, text: &str) {
        let _ = send(&self.front, ACCOUNT, text.as_bytes());
    }

    /// Waits for the program's start; `None` if it is not started.
    pub(super) fn started(&mut self) -> Option<Started> {
        loop {
            match self.take() {
                Some((STARTED, payload)) => {
                    let started: Started = serde_json::from_slice(&payload).ok()?;
                    if started.in_place {
                        self.beside = Some(Beside::new(started.pid)?);
                    }
                    return Some(started);
                }
                Some(_) => {}
                None => self.receive(None)?,
            }
        }
    }

    /// True if this process may end before the program: it is no child of the program, which would notice its end.
    pub(super) fn is_apart(&self) -> bool {
        let parent = getppid().map(|parent| parent.as_raw_nonzero().get().unsigned_abs());
        self.beside.is_some() && parent != Some(self.pid)
    }

    /// Waits for the program's end, at most for `timeout`. This process ends if the front is gone.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Option<Finished> {
        if let Some(beside) = &self.beside {
            return beside.wait(timeout);
        }
        // The end of a short program may have arrived together with its start.
        let arrived = self.take();
        if arrived.is_none() && self.receive(timeout).is_none() {
            std::process::exit(0);
        }
        let (tag, payload) = arrived.or_else(|| self.take())?;
        if tag != ENDED {
            return None;
        }
        // The rest is done whether or not the front waits for it.
        helper::outlive();
        serde_json::from_slice(&payload).ok()
    }

    fn take(&mut self) -> Option<Message> {
        next(&mut self.arrived)
    }

    /// Waits for bytes of the front, for `timeout` at most, and receives them; `None` if the front is gone.
    fn receive(&mut self, timeout: Option<Duration>) -> Option<()> {
        let mut fds = [PollFd::new(&self.front, PollFlags::IN)];
        await_any(&mut fds, timeout);
        if fds[0].revents().is_empty() {
            return Some(());
        }
        take_in(&self.front, &mut self.arrived)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.front.as_fd()
    }
}

/// Receives available bytes; `None` at the end of the stream.
fn take_in(mut link: &UnixStream, arrived: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 4096];
    match link.read(&mut buffer) {
        Ok(0) => None,
        Ok(count) => {
            arrived.extend_from_slice(&buffer[..count]);
            Some(())
        }
        Err(why)
            if matches!(
                why.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
            ) =>
        {
            Some(())
        }
        Err(_) => None,
    }
}

/// The reason why the front goes on without the helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// This step blocked the helper.
    HeldUp(String),
    /// The helper has ended.
    Ended,
    /// A signal came that ends the front.
    Signalled,
}

impl Without {
    pub(super) fn told(&self) -> String {
        match self {
            Self::HeldUp(doing) => format!(
                "{doing} took longer than {} ms and was not waited for",
                PATIENCE.as_millis()
            ),
            Self::Ended => "foreread's helper process ended before the program".to_owned(),
            Self::Signalled => "a signal came before it was closed".to_owned(),
        }
    }
}

/// The front's way to the helper.
pub(super) struct Front {
    helper: Helper,
    arrived: Vec<u8>,
    doing: String,
    /// The libraries to be put into the program, once they are known.
    pub(super) libraries: Vec<PathBuf>,
}

impl Front {
    pub(super) fn new(helper: Helper) -> Self {
        Self {
            helper,
            arrived: Vec::new(),
            doing: "starting foreread's helper process".to_owned(),
            libraries: Vec::new(),
        }
    }

    /// Waits until the program may be started. True if the preload library is to be loaded into it.
    pub(super) fn wait_ready(&mut self) -> Result<bool, Without> {
        let payload = self.wait_for(READY, None)?;
        Ok(payload == [1])
    }

    /// The helper's process number.
    pub(super) fn helper(&self) -> u32 {
        self.helper.pid()
    }

    /// Tells the helper that the program was started.
    pub(super) fn started(&self, started: &Started) {
        let message = serde_json::to_vec(started).unwrap_or_default();
        let _ = send(&self.helper.link, STARTED, &message);
    }

    /// Tells the helper that the program has ended; returns the text to print. The helper has ended by then, unless it is blocked.
    pub(super) fn ended(
        &mut self,
        finished: &Finished,
        incoming: &Incoming,
    ) -> Result<String, Without> {
        let message = serde_json::to_vec(finished).unwrap_or_default();
        let _ = send(&self.helper.link, ENDED, &message);
        let account = self.wait_for(ACCOUNT, Some(incoming))?;
        // With all its open files: the caller may want to unmount their file systems next.
        let mut patience = Patience::default();
        while !self.helper.has_ended() && patience.holds(&self.helper) {
            let mut fds = vec![PollFd::new(incoming, PollFlags::IN)];
            let end = self.helper.end_fd();
            fds.extend(end.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
            await_any(&mut fds, Some(TICK));
            incoming.drain();
        }
        Ok(String::from_utf8_lossy(&account).into_owned())
    }

    /// Ends the helper, because no program was started. True if it has ended and was reaped. A helper blocked by a file system is not
    /// waited for.
    pub(super) fn dismiss(&self) -> bool {
        self.helper.kill();
        let mut patience = Patience::default();
        while !self.helper.has_ended() {
            if !patience.holds(&self.helper) {
                return false;
            }
            std::thread::sleep(TICK);
        }
        true
    }

    /// Waits for a message of this kind, and handles those before it.
    fn wait_for(&mut self, wanted: u8, incoming: Option<&Incoming>) -> Result<Vec<u8>, Without> {
        let mut patience = Patience::default();
        loop {
            while let Some((tag, payload)) = next(&mut self.arrived) {
                match tag {
                    LIBRARY => self.libraries.push(OsStr::from_bytes(&payload).into()),
                    DOING => self.doing = String::from_utf8_lossy(&payload).into_owned(),
                    _ if tag == wanted => return Ok(payload),
                    // The helper is ready; the front did not wait for this message.
                    _ => {}
                }
            }
            let mut fds = vec![PollFd::new(&self.helper.link, PollFlags::IN)];
            fds.extend(incoming.map(|incoming| PollFd::new(incoming, PollFlags::IN)));
            await_any(&mut fds, Some(TICK));
            let arrived = !fds[0].revents().is_empty();
            if incoming.is_some_and(Incoming::drain) {
                return Err(Without::Signalled);
            }
            if arrived {
                if take_in(&self.helper.link, &mut self.arrived).is_none() {
                    return Err(Without::Ended);
                }
            } else if !patience.holds(&self.helper) {
                return Err(Without::HeldUp(self.doing.clone()));
            }
        }
    }
}

/// Time for which the helper may still be blocked.
struct Patience {
    since: Instant,
    held_up: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            held_up: Duration::ZERO,
        }
    }
}

impl Patience {
    /// Counts the time since the last check if the helper was blocked. True if any time is left.
    fn holds(&mut self, helper: &Helper) -> bool {
        let elapsed = self.since.elapsed();
        self.since += elapsed;
        if elapsed > TICK / 2 && !helper.is_running() {
            // Time in which this process itself waited for a processor does not count.
            self.held_up += elapsed.min(TICK * 2);
        }
        self.held_up < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_arrives_with_the_start_is_not_waited_for() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut link = Link::new(there, 1);
        let started = Started {
            pid: 1,
            has_library: false,
            late: None,
            in_place: false,
        };
        let ended = Finished {
            code: Some(3),
            signal: None,
            device_bytes: None,
            cpu_ns: None,
            wall_ns: 1,
        };
        send(&here, STARTED, &serde_json::to_vec(&started).unwrap()).unwrap();
        send(&here, ENDED, &serde_json::to_vec(&ended).unwrap()).unwrap();
        assert_eq!(link.started().map(|started| started.pid), Some(1));
        // No more than that ever arrives.
        let begun = Instant::now();
        let finished = link.wait(Some(Duration::from_secs(60)));
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(finished.is_some_and(|finished| finished.ending() == End::Exited(3)));
    }

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (here, there) = UnixStream::pair().unwrap();
        let link = Link::new(there, 1);
        link.doing("one");
        link.ready(true);
        link.account(&"long ".repeat(5000));
        let mut arrived = Vec::new();
        let mut messages = Vec::new();
        while messages.len() < 3 {
            take_in(&here, &mut arrived).unwrap();
            while let Some(message) = next(&mut arrived) {
                messages.push(message);
            }
        }
        assert_eq!(messages[0], (DOING, b"one".to_vec()));
        assert_eq!(messages[1], (READY, vec![1]));
        assert_eq!(messages[2].1.len(), 25_000);
        assert!(arrived.is_empty());
        drop(link);
        assert!(take_in(&here, &mut arrived).is_none());
    }
}
