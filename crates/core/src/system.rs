//! The system calls of fetching: files are opened, missing pages found, hints given, names looked up.
//!
//! [`Kernel`] is the real system: a call has ended when it returns, and [`now`] takes its result. The tests use a model of a machine
//! (`on_a_machine`), in which the same calls take virtual time. So the tests run the real policy.
//!
//! Data flow: [`Worker`](crate::worker::Worker) → [`System`] → pages in memory, or on their way.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use foreread_plan::{Kind, PAGE};
use foreread_sys::file::{FileFacts, Opener};
use foreread_sys::name::NameLookup;
use foreread_sys::residency::Residency;
use foreread_sys::together::Together;
use foreread_sys::{cache, device};

use crate::price::Sight;

/// Bytes of one hint among several given together, at most: a small file.
const LARGEST: u32 = 128 << 10;
/// Entries of a directory that are read, at most: a bound on time.
const ENTRIES: usize = 1 << 16;

/// A system, as one thread uses it. Pages are numbered from the beginning of their file.
pub(crate) trait System {
    /// An open file, closed on drop.
    type File;

    /// Opens a regular file.
    async fn open(&mut self, path: &Path) -> io::Result<(Self::File, FileFacts)>;

    /// The parts of these pages that are neither in memory nor on their way.
    async fn missing(
        &mut self,
        file: &Self::File,
        facts: &FileFacts,
        pages: Range<u64>,
    ) -> Vec<Range<u64>>;

    /// Hints that these bytes will be read.
    async fn will_need(&mut self, file: &Self::File, bytes: Range<u64>) -> io::Result<()>;

    /// Waits until a page that was hinted about is in memory.
    async fn arrived(&mut self, file: &Self::File, page: u64);

    /// Requests all these parts with one call. False if that has no effect: then each part needs a hint of its own.
    async fn will_need_together(&mut self, parts: &[(&Self::File, Range<u64>)]) -> bool;

    /// Finds out whether pages of a file stay in memory after a read. It may read this page to find out.
    async fn keeps(&mut self, file: &Self::File, facts: &FileFacts, page: u64) -> Kept;

    /// Looks a name up, and reads the entries of a directory if the plan lists them. True if the lookup waited for a device; `None` if
    /// nothing was found.
    async fn look_up(&mut self, path: &Path, kind: Kind) -> Option<bool>;

    /// The counts of a device so far; `None` if it has none.
    async fn sight(&mut self, dev: u64) -> Option<Sight>;

    /// Closes descriptors kept for later calls.
    fn let_go(&mut self);
}

/// Whether read pages stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// The page that was asked with was read from the device.
    ByReading,
    No,
}

/// The result of calls that are done when they return.
pub(crate) fn now<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("the kernel's calls are done when they return"),
    }
}

/// State shared by the threads of a session.
#[derive(Default)]
pub(crate) struct Common {
    opener: Opener,
    /// Devices whose file systems are known to keep read pages in memory, or not to.
    keeps: Mutex<BTreeMap<u64, bool>>,
}

/// The kernel.
pub(crate) struct Kernel {
    known: Arc<Common>,
    /// The means to request several parts with one call; `None` before the first use, and if the kernel has none.
    together: Option<Together>,
    /// True if such calls have an effect.
    is_heard: bool,
}

impl Kernel {
    pub(crate) fn new(known: Arc<Common>) -> Self {
        Self {
            known,
            together: None,
            is_heard: true,
        }
    }

    fn hint_together(&mut self, each: &[(BorrowedFd<'_>, Range<u64>)]) -> bool {
        if self.together.is_none() {
            self.together = Together::new(LARGEST).ok();
        }
        let Some(together) = &mut self.together else {
            return false;
        };
        together.will_need(each).unwrap_or_else(|_| {
            self.together = None;
            false
        })
    }
}

impl System for Kernel {
    type File = OwnedFd;

    async fn open(&mut self, path: &Path) -> io::Result<(OwnedFd, FileFacts)> {
        self.known.opener.open(path)
    }

    async fn missing(
        &mut self,
        file: &OwnedFd,
        facts: &FileFacts,
        pages: Range<u64>,
    ) -> Vec<Range<u64>> {
        missing(file, facts, &pages)
    }

    async fn will_need(&mut self, file: &OwnedFd, bytes: Range<u64>) -> io::Result<()> {
        cache::will_need(file, bytes)
    }

    async fn arrived(&mut self, file: &OwnedFd, page: u64) {
        let _ = rustix::io::pread(file, &mut [0], page * PAGE);
    }

    async fn will_need_together(&mut self, parts: &[(&OwnedFd, Range<u64>)]) -> bool {
        if self.is_heard {
            let each = parts.iter().map(|(fd, bytes)| (fd.as_fd(), bytes.clone()));
            self.is_heard = self.hint_together(&each.collect::<Vec<_>>());
        }
        self.is_heard
    }

    /// Files on a block device keep their pages. For another device, the first wanted page is read to find out: direct I/O of a client in
    /// user space leaves nothing in memory.
    async fn keeps(&mut self, file: &OwnedFd, facts: &FileFacts, page: u64) -> Kept {
        if rustix::fs::major(facts.dev) != 0 {
            return Kept::Yes;
        }
        let keeps = || {
            let keeps = self.known.keeps.lock();
            keeps.unwrap_or_else(PoisonError::into_inner)
        };
        let known = keeps().get(&facts.dev).copied();
        if let Some(known) = known {
            return if known { Kept::Yes } else { Kept::No };
        }
        let is_missing = || !missing(file, facts, &(page..page + 1)).is_empty();
        let was_missing = is_missing();
        if was_missing && rustix::io::pread(file, &mut [0], page * PAGE).is_err() {
            // Tells nothing of other files.
            return Kept::Yes;
        }
        let is_kept = !was_missing || !is_missing();
        keeps().insert(facts.dev, is_kept);
        match (was_missing, is_kept) {
            (_, false) => Kept::No,
            (true, true) => Kept::ByReading,
            (false, true) => Kept::Yes,
        }
    }

    async fn look_up(&mut self, path: &Path, kind: Kind) -> Option<bool> {
        let place = NameLookup::find(path).ok()?;
        let lists = kind == Kind::List && place.list(ENTRIES).unwrap_or(false);
        Some(place.was_waited_for || lists)
    }

    async fn sight(&mut self, dev: u64) -> Option<Sight> {
        let done = device::done(dev).ok()?;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Some(Sight {
            at: now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64,
            requests: done.reads,
            pages: done.bytes / PAGE,
            waiting: done.waiting,
        })
    }

    fn let_go(&mut self) {
        self.known.opener.close();
    }
}

/// The parts of these pages that are neither in memory nor on their way, as far as the kernel reports to this user. If it reports nothing,
/// the first page is read without waiting and represents the others.
pub(crate) fn missing(fd: &OwnedFd, facts: &FileFacts, pages: &Range<u64>) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let is_told = !cache::is_hidden(fd, facts.dev) && split(fd, pages.clone(), &mut parts).is_ok();
    if is_told {
        return parts;
    }
    parts.clear();
    if by_map(fd, facts, pages, &mut parts).is_ok() {
        return parts;
    }
    let first = pages.start * PAGE;
    let _ = cache::advise_random(fd);
    match cache::was_uptodate(fd, first) {
        Ok(true) => Vec::new(),
        _ => vec![pages.clone()],
    }
}

/// Halves a range until its parts are wholly missing or wholly there.
fn split(fd: &OwnedFd, pages: Range<u64>, parts: &mut Vec<Range<u64>>) -> io::Result<()> {
    let count = pages.end - pages.start;
    let cached = cache::stat(fd, pages.start * PAGE..pages.end * PAGE)?.cached;
    if cached == 0 {
        add(parts, pages);
    } else if cached < count {
        let middle = pages.start + count / 2;
        split(fd, pages.start..middle, parts)?;
        split(fd, middle..pages.end, parts)?;
    }
    Ok(())
}

/// Page by page, by `mincore`, if this user gets true answers.
fn by_map(
    fd: &OwnedFd,
    facts: &FileFacts,
    pages: &Range<u64>,
    parts: &mut Vec<Range<u64>>,
) -> io::Result<()> {
    if !Residency::permitted(fd.as_fd(), facts.uid)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut there = Vec::new();
    Residency::new(fd, facts.size)?.uptodate(pages.start * PAGE..pages.end * PAGE, &mut there)?;
    for (page, _) in pages.clone().zip(there).filter(|(_, there)| !there) {
        add(parts, page..page + 1);
    }
    Ok(())
}

/// Appends a part, joined to the last if it follows it.
fn add(parts: &mut Vec<Range<u64>>, part: Range<u64>) {
    match parts.last_mut() {
        Some(last) if last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}
