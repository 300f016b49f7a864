//! The threads that read files into the segment, and that test whether a file system has a page cache.
//!
//! Invariants:
//! - every request is answered by exactly one `Event::Done`, except requests that wait when the fillers are cleared or dropped;
//! - tasks are begun in the order of their arrival: if all pages in the segment are foretold and unread, the first task waits until one is
//!   read, and the others wait behind it;
//! - a page is filled only from a file whose state ([`Met`](super::filled::Met)) the next write changes, and which is in the state in which
//!   the rank opened it: so a page with the file's present state has the file's content (observers/pmpi/src/cache.h);
//! - a file is open only while it is read, and for [`STAY`] after that.
//!
//! Data flow: [`Fillers::fill`] → the queue → a thread: claim, read, commit → events.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_plan::{FileId, PAGE, Request, RequestId};
use foreread_segment::{Claim, Fill, Key, PARTS, Segment, runs};
use foreread_sys::file::FileFacts;
use foreread_sys::processor::Aside;

use super::collective::{Collective, lock};
use super::filled::{Filled, Met};
use super::peers::{Peers, leave, settle};
use super::sharing::Sharing;
use crate::Event;
use crate::page_cache::file::Opened;
use crate::page_cache::files::Files;
use crate::page_cache::held::STAY;

/// Number of simultaneous reads: two for each of the eight servers over which the paper's file systems stripe a file by default (64 KiB
/// stripes, PVFS2). On a slower file system they wait there; a faster one did not need more.
const DEPTH: usize = 16;
/// Limit of adjacent pages of a request that are read by one call: 1 MiB, the longest request to a file system in user space.
const RUN: usize = 16;
/// Interval of checks for room in a full segment: the rank makes room by reading.
const ROOM: Duration = Duration::from_millis(1);
/// Number of the rank's reads without a hit, with no hit between them, after which foretold, unread pages must make room: the rank reads
/// other pages than predicted.
const ASTRAY: u64 = 8;
/// Time for which the end of a backend waits for its threads, at most: the same as for the page cache.
const PARTING: Duration = Duration::from_millis(20);

/// A request that is being filled.
struct Job {
    id: RequestId,
    file: FileId,
    /// Number of its pages that are not done yet.
    left: AtomicUsize,
    fetched: AtomicBool,
    incomplete: AtomicBool,
}

/// A task for a thread.
enum Task {
    /// Test whether this page of a file, on this device, stays in the page cache after a read.
    Try(u64, FileId, u64),
    /// Fill these 4 KiB pages, which lie in one page of the segment.
    Fill(Arc<Job>, Range<u64>),
}

/// The result of testing a device.
pub(super) struct CacheTrial {
    /// The device.
    pub(super) dev: u64,
    /// The file that was tried.
    pub(super) file: FileId,
    /// Whether a page stays in the page cache after a read; `None` if this file gave no result.
    pub(super) keeps: Option<bool>,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    idle: usize,
    closed: bool,
    /// The rank's hits and misses when there was no room for the first task.
    blocked: Option<(u64, u64)>,
    /// True if the rank reads other pages than predicted.
    astray: bool,
}

/// The state shared by the threads.
struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    collective: Collective,
    filled: Arc<Mutex<Filled>>,
    files: Files,
    /// Files that a thread has open.
    open: Mutex<HashMap<FileId, Weak<OwnedFd>>>,
    peers: Peers,
    sharing: Mutex<Sharing>,
    events: Sender<Event>,
    found: Sender<CacheTrial>,
    aside: Aside,
}

/// The threads, started as needed.
pub(super) struct Fillers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Fillers {
    pub(super) fn new(
        collective: &Collective,
        filled: &Arc<Mutex<Filled>>,
        (files, aside): (Files, Aside),
        (events, found): (Sender<Event>, Sender<CacheTrial>),
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                ready: Condvar::new(),
                collective: collective.clone(),
                filled: Arc::clone(filled),
                files,
                open: Mutex::default(),
                peers: Peers::default(),
                sharing: Mutex::default(),
                events,
                found,
                aside,
            }),
            threads: Vec::new(),
        }
    }

    /// Tests a device with this page of a file.
    pub(super) fn try_out(&mut self, dev: u64, file: FileId, page: u64) {
        // Other requests wait for the result.
        lock(&self.shared.queue)
            .tasks
            .push_front(Task::Try(dev, file, page));
        self.called(1);
    }

    /// Fills the pages of a request.
    pub(super) fn fill(&mut self, request: &Request) {
        let Range { start, end } = request.pages;
        let cuts = start / PARTS..end.max(start).div_ceil(PARTS);
        let pieces = cuts.map(|page| start.max(page * PARTS)..end.min((page + 1) * PARTS));
        let pieces: Vec<_> = pieces.filter(|piece| !piece.is_empty()).collect();
        let job = Arc::new(Job {
            id: request.id,
            file: request.file,
            left: AtomicUsize::new(pieces.len().max(1)),
            fetched: AtomicBool::new(false),
            incomplete: AtomicBool::new(false),
        });
        if pieces.is_empty() {
            return self.shared.done(&job, true);
        }
        let count = pieces.len();
        let tasks = pieces
            .into_iter()
            .map(|piece| Task::Fill(Arc::clone(&job), piece));
        lock(&self.shared.queue).tasks.extend(tasks);
        self.called(count);
    }

    /// Number of tasks that no thread has begun.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.shared.queue).tasks.len()
    }

    /// Drops the tasks that no thread has begun; their requests are not answered.
    pub(super) fn clear(&self) {
        lock(&self.shared.queue).tasks.clear();
    }

    /// Reports an event that needed no thread.
    pub(super) fn answer(&self, event: Event) {
        self.shared.report(event);
    }

    /// Wakes or starts threads for this many new tasks.
    fn called(&mut self, tasks: usize) {
        let idle = lock(&self.shared.queue).idle;
        let more = tasks.saturating_sub(idle);
        let more = more.min(DEPTH - self.threads.len().min(DEPTH));
        for _ in 0..more {
            let name = format!("foreread-fill-{}", self.threads.len());
            let shared = Arc::clone(&self.shared);
            // Without a thread the tasks stay in the queue, and nothing else is lost.
            match foreread_sys::thread::builder(&name).spawn(move || shared.work()) {
                Ok(thread) => self.threads.push(thread),
                Err(_) => break,
            }
        }
        for _ in 0..tasks.min(idle) {
            self.shared.ready.notify_one();
        }
    }
}

impl Drop for Fillers {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.ready.notify_all();
        // A thread may be in a call that does not return; the process need not wait for it.
        let until = Instant::now() + PARTING;
        while self.threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// The next action of a thread.
enum Next<'a> {
    Try(u64, FileId, u64),
    /// Examine a file that is not known yet, and then ask again.
    Meet(FileId),
    /// Adjacent pages of a request.
    Fill(Arc<Job>, Vec<Fill<'a>>),
    /// Nothing has to be filled for this part of a request. `Idle`: the thread has been idle for [`STAY`].
    Done(Arc<Job>),
    Idle,
    End,
}

impl Shared {
    /// Works until the backend is dropped.
    fn work(&self) {
        // The file that this thread has read last.
        let mut open: Option<(FileId, Arc<OwnedFd>)> = None;
        let mut aside = self.aside.clone();
        loop {
            aside.keep();
            match self.next(open.is_some()) {
                Next::End => return,
                Next::Idle => open = None,
                Next::Try(dev, file, page) => self.try_out(dev, file, page),
                Next::Meet(file) => match self.open(file) {
                    Some(fd) => open = Some((file, fd)),
                    None => self.drop_tasks_of(file),
                },
                Next::Done(job) => self.done(&job, true),
                Next::Fill(job, fills) => {
                    if open.as_ref().is_none_or(|(file, _)| *file != job.file) {
                        open = self.open(job.file).map(|fd| (job.file, fd));
                    }
                    match &open {
                        Some((_, fd)) => self.read(&job, fills, fd),
                        None => fills.iter().for_each(|_| self.done(&job, false)),
                    }
                }
            }
        }
    }

    /// The next action, with the pages of a task claimed.
    fn next(&self, holds: bool) -> Next<'_> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return Next::End;
            }
            let Some(task) = queue.tasks.pop_front() else {
                queue.idle += 1;
                let over;
                (queue, over) = if holds {
                    self.wait(queue, STAY)
                } else {
                    let waited = self.ready.wait(queue);
                    (waited.unwrap_or_else(PoisonError::into_inner), false)
                };
                queue.idle -= 1;
                if over {
                    return Next::Idle;
                }
                continue;
            };
            let (job, pages) = match task {
                Task::Try(dev, file, page) => return Next::Try(dev, file, page),
                Task::Fill(job, pages) => (job, pages),
            };
            let key = lock(&self.filled).keys(job.file, &pages);
            let Some(key) = key else {
                let file = job.file;
                queue.tasks.push_front(Task::Fill(job, pages));
                return Next::Meet(file);
            };
            let Some((key, parts)) = key.first().copied() else {
                return Next::Done(job);
            };
            match self.claim(job.file, (key, parts), false) {
                Some(Claim::Fill(fill)) => {
                    queue.blocked = None;
                    queue.astray = false;
                    let mut fills = vec![fill];
                    self.follow(&mut queue, &job, pages.end, &mut fills);
                    return Next::Fill(job, fills);
                }
                Some(Claim::Full) => {}
                Some(Claim::There) | None => {
                    self.found(&job, &key, parts);
                    return Next::Done(job);
                }
            }
            queue.note_blocked(self.collective.segment());
            if queue.astray
                && let Some(Claim::Fill(fill)) = self.claim(job.file, (key, parts), true)
            {
                return Next::Fill(job, vec![fill]);
            }
            queue.tasks.push_front(Task::Fill(job, pages));
            (queue, _) = self.wait(queue, ROOM);
        }
    }

    /// Claims the request's next tasks in the queue, while they continue the claimed pages, which end at 4 KiB page `end`, and while there
    /// is room for them and they are missing.
    fn follow<'a>(
        &'a self,
        queue: &mut Queue,
        job: &Arc<Job>,
        mut end: u64,
        fills: &mut Vec<Fill<'a>>,
    ) {
        while fills.len() < RUN {
            let pages = match queue.tasks.front() {
                Some(Task::Fill(next, pages)) if Arc::ptr_eq(next, job) && pages.start == end => {
                    pages.clone()
                }
                _ => return,
            };
            let keys = lock(&self.filled).keys(job.file, &pages);
            let Some(&(key, parts)) = keys.as_ref().and_then(|keys| keys.first()) else {
                return;
            };
            let Some(Claim::Fill(fill)) = self.claim(job.file, (key, parts), false) else {
                return;
            };
            fills.push(fill);
            queue.tasks.pop_front();
            end = pages.end;
        }
    }

    /// Claims these parts of a page, and those to be read with them for other ranks; `None` if the rank or others have or read all missing
    /// parts, or if no library takes pages from the segment.
    fn claim(&self, file: FileId, (key, wanted): (Key, u16), insist: bool) -> Option<Claim<'_>> {
        if self.collective.is_useless() {
            return None;
        }
        let segment = self.collective.segment();
        if segment.is_being_read(&key) {
            return None;
        }
        let peers = self.peers.of(segment);
        let (remaining, missing) = leave(segment, &peers, (&key, wanted));
        if remaining == 0 {
            return None;
        }
        let all = std::iter::once(segment).chain(peers.iter().map(|peer| &**peer));
        let beside = lock(&self.sharing).beside(file, (key, wanted), all);
        match segment.claim(&key, remaining, beside & missing, insist) {
            Claim::Fill(mut fill) => settle(&mut fill, &peers).then_some(Claim::Fill(fill)),
            other => Some(other),
        }
    }

    /// Waits for a call, at most for this time. True if there was none.
    fn wait<'a>(
        &self,
        queue: MutexGuard<'a, Queue>,
        most: Duration,
    ) -> (MutexGuard<'a, Queue>, bool) {
        let waited = self.ready.wait_timeout(queue, most);
        let (queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (queue, waited.timed_out())
    }

    /// Opens a file, or returns its open descriptor. Its name may lead to another file by now.
    fn open(&self, file: FileId) -> Option<Arc<OwnedFd>> {
        let mut open = lock(&self.open);
        if let Some(fd) = open.get(&file).and_then(Weak::upgrade) {
            return Some(fd);
        }
        drop(open);
        let opened = Opened::open(self.files.get(file)?).ok()?;
        let fd = Arc::clone(opened.fd());
        let facts = FileFacts::of(&fd).ok()?;
        let met = lock(&self.filled).met(file, &facts);
        if met.settles_soon() {
            std::thread::sleep(met.unsettled);
        }
        open = lock(&self.open);
        open.retain(|_, fd| fd.strong_count() > 0);
        open.insert(file, Arc::downgrade(&fd));
        Some(fd)
    }

    /// Drops the tasks of a file that cannot be opened.
    fn drop_tasks_of(&self, file: FileId) {
        let is_of = |task: &Task| matches!(task, Task::Fill(job, _) if job.file == file);
        let mut queue = lock(&self.queue);
        let (dropped, kept) = std::mem::take(&mut queue.tasks)
            .into_iter()
            .partition(is_of);
        queue.tasks = kept;
        drop(queue);
        let dropped: VecDeque<Task> = dropped;
        for task in dropped {
            if let Task::Fill(job, _) = task {
                self.done(&job, false);
            }
        }
    }

    /// Reads claimed pages, and answers for each.
    fn read(&self, job: &Job, fills: Vec<Fill<'_>>, fd: &OwnedFd) {
        // After the claims, and before the read: so the data are at least as new as this state.
        let facts = FileFacts::of(fd).ok();
        let met = facts
            .as_ref()
            .map(|facts| lock(&self.filled).met(job.file, facts));
        let facts = facts.filter(|facts| {
            let opened = self.collective.segment().opened(facts.dev, facts.ino);
            met.is_some_and(|met| {
                met.unsettled.is_zero() && opened.is_none_or(|file| file.version == met.version)
            })
        });
        let mut begun = Vec::with_capacity(fills.len());
        for fill in fills {
            match facts
                .as_ref()
                .and_then(|facts| self.begin(job, &fill, facts))
            {
                Some(parts) => begun.push((fill, parts)),
                None => self.done(job, false),
            }
        }
        let Some(Met { version: state, .. }) = met.filter(|_| !begun.is_empty()) else {
            return;
        };
        self.read_run(job, begun, fd, state);
    }

    /// Announces the read of a claimed page. Returns its parts that the file has in full; `None` if none of them is wanted.
    fn begin(&self, job: &Job, fill: &Fill<'_>, facts: &FileFacts) -> Option<u16> {
        let key = fill.key();
        if (facts.dev, facts.ino) != (key.dev, key.ino) {
            return None;
        }
        // Parts that the file does not have in full are not for the cache.
        let first = key.page * PARTS;
        let whole = (facts.size / PAGE).saturating_sub(first).min(PARTS);
        let has = ((1_u32 << whole) - 1) as u16;
        let wanted = fill.wanted();
        let beyond = facts.size.div_ceil(PAGE).saturating_sub(first).min(PARTS);
        for run in pages_of(first, wanted & !((1_u32 << beyond) - 1) as u16) {
            self.report(Event::Short {
                id: job.id,
                file: job.file,
                pages: run,
            });
        }
        let (parts, wanted) = (fill.parts() & has, wanted & has);
        if wanted == 0 {
            return None;
        }
        // Announced first: the program may read the page before the read has returned.
        lock(&self.filled).begun(job.file, key.page, (parts, wanted));
        self.issued(job, first, wanted);
        Some(parts)
    }

    /// Reads these parts of pages from their file.
    fn read_run(&self, job: &Job, mut run: Vec<(Fill<'_>, u16)>, fd: &OwnedFd, state: u64) {
        let mut fills: Vec<_> = run.iter_mut().map(|(fill, parts)| (fill, *parts)).collect();
        // Parts that could not be read are not filled.
        let _ = Fill::all_from_file(&mut fills, fd.as_fd(), state);
        for (fill, _) in run {
            self.fill(job, fill);
        }
    }

    /// Makes the read parts of a page valid, and answers for it.
    fn fill(&self, job: &Job, fill: Fill<'_>) {
        let (wanted, page) = (fill.wanted(), fill.key().page);
        let filled = fill.commit();
        lock(&self.filled).filled(job.file, page, filled);
        self.done(job, filled & wanted == wanted);
    }

    /// These parts are wanted, and are in memory or on their way: those that were read beside others are reported as this request's.
    fn found(&self, job: &Job, key: &Key, wanted: u16) {
        let new = lock(&self.filled).found(job.file, key.page, wanted);
        self.issued(job, key.page * PARTS, new);
    }

    fn issued(&self, job: &Job, first: u64, parts: u16) {
        for pages in pages_of(first, parts) {
            job.fetched.store(true, Ordering::Relaxed);
            self.report(Event::Issued {
                id: job.id,
                file: job.file,
                pages,
            });
        }
    }

    /// Reads a page of a file, unless it is in the page cache, and checks whether it is there afterwards.
    fn try_out(&self, dev: u64, file: FileId, page: u64) {
        let opened = self.files.get(file).map(Opened::open);
        let keeps = opened.and_then(|opened| opened.ok()?.keeps(page));
        // The session may be over.
        let _ = self.found.send(CacheTrial { dev, file, keeps });
    }

    /// Counts a page of a request as done, and reports the request after the last one.
    fn done(&self, job: &Job, complete: bool) {
        job.incomplete.fetch_or(!complete, Ordering::Relaxed);
        if job.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.report(Event::Done {
                id: job.id,
                fetched: job.fetched.load(Ordering::Relaxed),
                complete: !job.incomplete.load(Ordering::Relaxed),
            });
        }
    }

    fn report(&self, event: Event) {
        // The session may be over.
        let _ = self.events.send(event);
    }
}

impl Queue {
    /// Notes that there is no room for the first task, and compares the rank's hits and misses with those before.
    fn note_blocked(&mut self, segment: &Segment) {
        let counts = segment.counts();
        let hits = counts.hits + counts.host_hits + counts.remote_hits;
        match self.blocked {
            Some((then, missed)) if then == hits => {
                self.astray |= counts.missed >= missed + ASTRAY;
            }
            _ => self.blocked = Some((hits, counts.missed)),
        }
    }
}

/// Runs of a page's parts, as 4 KiB pages of the file.
fn pages_of(first: u64, parts: u16) -> impl Iterator<Item = Range<u64>> {
    runs(parts).map(move |run| first + u64::from(run.start)..first + u64::from(run.end))
}
