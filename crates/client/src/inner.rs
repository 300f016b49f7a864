//! The parts of a client, shared with the thread that runs an iterator.
//!
//! Invariant: locks are taken one at a time, except that `threads` may be taken before any other. None is held while the program's callback
//! or iterator runs. `threads` is held while a file is opened, which may take for ever, so a thread that only reads never takes it. The
//! program's own threads open and close no descriptor: the root thread finds out facts about files and devices.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foreread_engine::{Config, Ledger, Session};
use foreread_plan::{Access, Extent, FileId, Kind, Seen, ThreadId};
use foreread_sources::AccessList;
use foreread_sys::processor::Reader;
use foreread_sys::{environment, memory};

use crate::ask::Ask;
use crate::check::Check;
use crate::files::{self, Candidate, Files};
use crate::lock::lock;
use crate::stream::Streaming;
use crate::threads::{Begun, Threads};
use crate::{Error, Options, Stats};

/// Number of reads after which the engine is woken, unless it has nothing to fetch. While busy it checks every 200 µs by itself, so waking
/// it for each read would only cost the program time.
const TOLD: u32 = 64;
/// A read wakes the engine if the last wake-up was this long ago.
const UNTOLD: Duration = Duration::from_millis(1);
/// Limit of reads that the session has not handled (6 MB). Further ones are not passed on: so fast a program reads from memory, and later
/// reads show the position as well.
const BACKLOG: usize = 1 << 17;
/// Largest extent of an access passed to the session, in bytes: no call reads more (Linux's `MAX_RW_COUNT`), and the session handles them
/// by the page.
const LONGEST: u64 = 0x7fff_f000;
/// The environment variable that asks for a report.
const CHECK: &str = "FOREREAD_CHECK";

/// A client without its guard against forks.
pub(crate) struct Inner {
    pub(crate) list: Arc<Mutex<AccessList>>,
    pub(crate) files: Mutex<Files>,
    pub(crate) ask: Ask,
    pub(crate) asked: AtomicU64,
    pub(crate) streaming: Streaming,
    pub(crate) check: Option<Mutex<Check>>,
    pub(crate) capacity: usize,
    /// The memory the session started with, in bytes.
    budget: u64,
    teller: Mutex<Teller>,
    threads: Mutex<Option<Threads>>,
    start: Instant,
}

/// The way to the session.
struct Teller {
    session: Option<Session>,
    /// Reads since the engine was woken.
    untold: u32,
    told_at: Instant,
    reader: Reader,
}

impl Inner {
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        let list = AccessList::new(options.capacity);
        let capacity = list.capacity();
        let list = Arc::new(Mutex::new(list));
        let start = Instant::now();
        let config = Config {
            evict_behind: options.evict_behind,
            passes: options.passes,
            ..Config::default()
        };
        let process = options.process.unwrap_or_else(std::process::id);
        let shared = Arc::clone(&list);
        let started = Threads::start(shared, config, options.budget, process, start);
        let (threads, Begun { session, budget }) = started.map_err(Error::Threads)?;
        let check = options
            .check
            .or_else(|| environment::var(CHECK).map(PathBuf::from));
        // The working directory may change.
        let check = check.map(|path| std::path::absolute(&path).unwrap_or(path));
        Ok(Self {
            list,
            capacity,
            budget,
            files: Mutex::new(Files::new(options.keep_open)),
            ask: Ask::default(),
            asked: AtomicU64::new(0),
            streaming: Streaming::default(),
            check: check.map(|path| Mutex::new(Check::new(path))),
            teller: Mutex::new(Teller {
                session: Some(session),
                untold: 0,
                told_at: start,
                reader: Reader::new(),
            }),
            threads: Mutex::new(Some(threads)),
            start,
        })
    }

    /// Registers a file; the threads open it.
    pub(crate) fn register(&self, found: Candidate) -> Result<FileId, Error> {
        let threads = lock(&self.threads);
        files::register(&self.files, found, threads.as_ref().ok_or(Error::Ended)?)
    }

    /// Reverses one registration of a file. True if it was the last.
    pub(crate) fn remove(&self, file: FileId) -> Result<bool, Error> {
        let threads = lock(&self.threads);
        let threads = threads.as_ref().ok_or(Error::Ended)?;
        let last = lock(&self.files).remove(file, threads);
        last.ok_or(Error::UnknownFile(file))
    }

    /// True if the kernel's read-ahead may be doubled for a file.
    pub(crate) fn has_room_for_streams(&self, file: FileId) -> bool {
        let read_ahead = lock(&self.files).read_ahead(file);
        read_ahead.is_some_and(|bytes| memory::has_room_for_streams(self.budget, bytes))
    }

    /// Have the session look at the list now.
    pub(crate) fn wake(&self) {
        if let Some(session) = &lock(&self.teller).session {
            session.wake();
        }
    }

    /// Tell the session of a read.
    pub(crate) fn tell_read(&self, file: FileId, extent: Extent, start: Instant, took: Duration) {
        let access = self.access(file, extent, Kind::Pread, start, took);
        self.tell(&[access], start + took, access.waited());
    }

    /// Tell the session that the program reads these bytes, by means unknown.
    pub(crate) fn tell_place(&self, read: &[(FileId, Extent)]) {
        let now = Instant::now();
        let accesses: Vec<Access> = read
            .iter()
            .map(|&(file, Extent { offset, len })| {
                let extent = Extent::new(offset, len.max(1));
                self.access(file, extent, Kind::Touch, now, Duration::ZERO)
            })
            .collect();
        self.tell(&accesses, now, false);
    }

    fn tell(&self, accesses: &[Access], now: Instant, at_once: bool) {
        let mut teller = lock(&self.teller);
        teller.reader.has_read(now);
        let due = teller.untold + accesses.len() as u32 >= TOLD
            || now.saturating_duration_since(teller.told_at) >= UNTOLD;
        let Some(session) = &teller.session else {
            return;
        };
        if session.backlog() > BACKLOG {
            return;
        }
        for &access in accesses {
            session.see(Seen::Read(access.into()));
        }
        if due && !session.rests() || at_once && session.is_busy() {
            session.wake();
            teller.untold = 0;
            teller.told_at = now;
        } else {
            teller.untold += accesses.len() as u32;
        }
    }

    fn access(
        &self,
        file: FileId,
        extent: Extent,
        kind: Kind,
        start: Instant,
        took: Duration,
    ) -> Access {
        let start = start.saturating_duration_since(self.start);
        Access {
            file,
            extent: Extent::new(extent.offset, extent.len.min(LONGEST)),
            // A list has one order for all reading threads.
            thread: ThreadId(0),
            kind,
            start: start.as_nanos() as u64,
            took: took.as_nanos() as u64,
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        let (list, ahead) = {
            let list = lock(&self.list);
            (list.counts(), list.ahead())
        };
        let ledger = match &lock(&self.teller).session {
            Some(session) => session.ledger(),
            None => Ledger::default(),
        };
        Stats {
            list,
            ahead,
            asked: self.asked.load(Ordering::Relaxed),
            ledger,
        }
    }

    /// The point where list and reads differ, if that is to be reported.
    pub(crate) fn check_report(&self) -> Option<String> {
        let check = self.check.as_ref()?;
        let stats = self.stats();
        let files = lock(&self.files);
        Some(lock(check).report(&stats, &files))
    }

    pub(crate) fn write_check(&self) {
        let (Some(check), Some(report)) = (&self.check, self.check_report()) else {
            return;
        };
        let Some(place) = lock(check).place() else {
            return;
        };
        let name = files::escaped(&place);
        let written = match lock(&self.threads).as_ref() {
            Some(threads) => threads.write(place, report),
            None => return,
        };
        if let Err(why) = written {
            // Standard error may be closed, too.
            let _ = writeln!(std::io::stderr(), "foreread: {name}: no report: {why}");
        }
    }

    /// Ends streams and threads. Returns the session to be finished; `None` the second time.
    pub(crate) fn end(&self) -> Option<Session> {
        self.streaming.end(&lock(&self.list));
        if let Some(threads) = lock(&self.threads).take() {
            threads.end();
        }
        lock(&self.teller).session.take()
    }
}
