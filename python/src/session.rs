//! The common part of a guard and a reader: the session, its list, and the program's position.
//!
//! Data flow: [`Session::top_up`] moves entries from the [`Feed`] to the client's list. [`Session::at`] and
//! [`Session::reading`] pass the program's position to the client, and top the list up every so
//! many calls.
//!
//! Invariants: no lock is held while Python code runs: a thread that takes entries first removes the feed from its slot.
//! In a child that inherited the session, the client is not touched.

use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use foreread_client::{Advice, Client, Entry, Extent, FileId, Flags, Match, Missed, Options};
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error;
use crate::feed::{Feed, Next};
use crate::files::Files;
use crate::fork::Home;
use crate::miss::{self, Miss};
use crate::stats::Stats;

/// Entries passed on at a time: some 300 µs of Python.
const BATCH: usize = 1024;
/// The list is topped up after at most this many calls.
const EVERY: u64 = 256;
/// Time for which the first entries are taken before the program continues. Their pages are fetched meanwhile. The more
/// entries are known, the shorter the way of a disk's head.
const FIRST: Duration = Duration::from_millis(20);
/// A read that took longer waited for a device. As much time may be spent on taking entries.
const WAITED: Duration = Duration::from_millis(1);

/// The program's options.
pub struct Choices {
    /// Memory for pages that are fetched and not yet read, in bytes.
    pub budget: Option<u64>,
    /// Entries the list holds ahead of the program.
    pub window: usize,
    /// File for a report of the differences between list and reads.
    pub check: Option<PathBuf>,
    /// Called for reads that are not on the list, and when it runs out.
    pub on_miss: Option<Py<PyAny>>,
    /// True to keep the accepted entries for a reader.
    pub keep: bool,
}

/// The place of the feed.
enum Slot {
    Here(Feed),
    /// A thread has removed it, and is taking entries from it.
    Taken,
    /// It is at its end.
    Drained,
}

struct Source {
    slot: Slot,
    /// Incremented when `on_miss` supplies another list: entries of the old feed are ignored then.
    generation: u64,
    /// Flags for the next entries.
    flags: Flags,
}

/// One list, one engine session.
pub struct Session {
    home: Home,
    /// `None` once closed.
    client: Mutex<Option<Arc<Client>>>,
    pub files: Files,
    source: Mutex<Source>,
    on_miss: Mutex<Option<Py<PyAny>>>,
    /// Accepted entries that the reader has not read yet.
    kept: Option<Mutex<VecDeque<Entry>>>,
    /// The exception that ended the iterable early; the reader raises it at its place.
    failed: Mutex<Option<PyErr>>,
    /// One past the last number the list has accepted.
    end: AtomicU64,
    calls: AtomicU64,
    every: u64,
    last: Mutex<(Stats, Vec<String>)>,
}

impl Session {
    /// Starts a session with the first entries of `accesses`.
    pub fn start(accesses: &Bound<'_, PyAny>, choices: Choices) -> PyResult<Arc<Self>> {
        let py = accesses.py();
        let feed = Feed::new(accesses)?;
        let mut options = Options::default();
        options.budget = choices.budget;
        options.capacity = choices.window;
        options.check = choices.check;
        let client = Client::new(options).map_err(|failure| error::client(py, None, failure))?;
        let asks = choices.on_miss.is_some();
        let session = Arc::new(Self {
            home: Home::here(),
            client: Mutex::new(Some(Arc::new(client))),
            files: Files::default(),
            source: Mutex::new(Source {
                slot: Slot::Here(feed),
                generation: 0,
                flags: Flags::APPEND,
            }),
            on_miss: Mutex::new(choices.on_miss),
            kept: choices.keep.then(Mutex::default),
            failed: Mutex::new(None),
            end: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            every: EVERY.min(choices.window as u64 / 2).max(1),
            last: Mutex::default(),
        });
        if asks && let Some(client) = session.client()? {
            let weak = Arc::downgrade(&session);
            client.on_miss(move |_, missed| called(&weak, missed));
        }
        session.top_up(py, FIRST)?;
        Ok(session)
    }

    /// The client; `None` in a child that inherited it.
    ///
    /// # Errors
    /// `ValueError` once closed.
    pub fn client(&self) -> PyResult<Option<Arc<Client>>> {
        if !self.home.is_here() {
            return Ok(None);
        }
        lock(&self.client)
            .clone()
            .map(Some)
            .ok_or_else(error::closed)
    }

    /// The program is at entry `n`.
    pub fn at(&self, py: Python<'_>, n: u64) -> PyResult<()> {
        let Some(client) = self.client()? else {
            return Ok(());
        };
        // Near the end of the known entries. It is a loop because the program may jump further than the list has room.
        while n.saturating_add(1) >= self.end.load(Ordering::Relaxed) {
            let end = self.end.load(Ordering::Relaxed);
            if client.room() == 0 {
                self.tell(py, &client, n.min(end.saturating_sub(1)))?;
            }
            self.top_up(py, Duration::ZERO)?;
            if self.end.load(Ordering::Relaxed) == end {
                break;
            }
        }
        self.tell(py, &client, n)?;
        self.count(py)
    }

    fn tell(&self, py: Python<'_>, client: &Client, n: u64) -> PyResult<()> {
        client
            .at(n)
            .map_err(|failure| error::client(py, None, failure))?;
        miss::raised()
    }

    /// The program is about to read these bytes of a file by [`Session::read`].
    pub fn reading(&self, py: Python<'_>, file: FileId, extent: Extent) -> PyResult<()> {
        self.is_about_to(py, |client| client.reading(file, extent))
    }

    /// The program is about to read these bytes of a file by other means.
    pub fn announce(&self, py: Python<'_>, file: FileId, extent: Extent) -> PyResult<()> {
        self.is_about_to(py, |client| client.announce(file, extent))
    }

    fn is_about_to(
        &self,
        py: Python<'_>,
        told: impl FnOnce(&Client) -> Result<Match, foreread_client::Error>,
    ) -> PyResult<()> {
        let Some(client) = self.client()? else {
            return Ok(());
        };
        told(&client).map_err(|failure| error::client(py, None, failure))?;
        miss::raised()?;
        self.count(py)
    }

    /// Makes an announced read of a file, by `name` if it is given.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        name: Option<&Bound<'py, PyAny>>,
        file: FileId,
        extent: Extent,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let client = self.client()?;
        let advice = || {
            let client = client.as_ref();
            client.map_or(Advice::Normal, |client| client.advice(file))
        };
        let start = Instant::now();
        let bytes = match name {
            Some(name) => self.files.read_named(name, file, advice, extent)?,
            None => self.files.read(py, file, advice, extent)?,
        };
        let took = start.elapsed();
        if let Some(client) = client {
            // The bytes that were read: a greater requested length may stand for the rest of the file.
            let read = Extent::new(extent.offset, bytes.as_bytes().len() as u64);
            client.read_done(file, read, start, took);
            if took >= WAITED {
                self.top_up(py, took)?;
            }
        }
        Ok(bytes)
    }

    fn count(&self, py: Python<'_>) -> PyResult<()> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if calls.is_multiple_of(self.every) {
            py.check_signals()?;
            self.top_up(py, Duration::ZERO)
        } else {
            Ok(())
        }
    }

    /// Moves a batch of entries from the feed to the list, and more until `time` has passed, as far as there is room. Does
    /// nothing while another thread does so.
    ///
    /// # Errors
    /// The exception of the iterable; for a reader, only if it must be raised at once.
    fn top_up(&self, py: Python<'_>, time: Duration) -> PyResult<()> {
        let Some(client) = self.client()? else {
            return Ok(());
        };
        let mut source = lock(&self.source);
        let generation = source.generation;
        match mem::replace(&mut source.slot, Slot::Taken) {
            Slot::Here(mut feed) => {
                drop(source);
                let drawn = self.fill(py, &client, &mut feed, generation, time);
                let failed = feed.failed.take();
                self.put_back(feed, generation);
                drawn.and(failed.map_or(Ok(()), |exception| self.fail(py, exception)))
            }
            other => {
                source.slot = other;
                Ok(())
            }
        }
    }

    fn fill(
        &self,
        py: Python<'_>,
        client: &Client,
        feed: &mut Feed,
        generation: u64,
        time: Duration,
    ) -> PyResult<()> {
        let start = Instant::now();
        loop {
            let room = client.room().min(BATCH);
            if room == 0 && !feed.pending.is_empty() {
                return Ok(());
            }
            feed.draw(py, room, &self.files, client);
            if !self.hand_over(py, client, feed, generation)? || feed.is_drained() {
                return Ok(());
            }
            if room < BATCH || start.elapsed() >= time {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    /// Passes the pending entries to the list. False if another feed has replaced this one.
    fn hand_over(
        &self,
        py: Python<'_>,
        client: &Client,
        feed: &mut Feed,
        generation: u64,
    ) -> PyResult<bool> {
        let mut source = lock(&self.source);
        if source.generation != generation {
            return Ok(false);
        }
        let complete = feed.is_exhausted() && feed.pending.len() <= client.room();
        let flags = if complete {
            source.flags | Flags::DONE
        } else {
            source.flags
        };
        let accepted = match client.request(&feed.pending, flags) {
            Ok(accepted) => accepted,
            Err(failure) => {
                drop(source);
                return Err(error::client(py, None, failure));
            }
        };
        let before = if source.flags == Flags::SET {
            0
        } else {
            self.end.load(Ordering::Relaxed)
        };
        source.flags = Flags::APPEND;
        self.end.store(before + accepted as u64, Ordering::Relaxed);
        let entries = feed.pending.drain(..accepted);
        if let Some(kept) = &self.kept {
            lock(kept).extend(entries);
        }
        Ok(true)
    }

    fn put_back(&self, feed: Feed, generation: u64) {
        let mut source = lock(&self.source);
        let left = if source.generation != generation {
            // `on_miss` has supplied another list in the meantime.
            Some(feed)
        } else if feed.is_drained() {
            source.slot = Slot::Drained;
            Some(feed)
        } else {
            source.slot = Slot::Here(feed);
            None
        };
        drop(source);
        // Dropping may run Python code: not under the lock.
        drop(left);
    }

    /// Handles the exception of an iterable: returned at once, or stored for the reader to raise at its place. Exceptions such
    /// as `KeyboardInterrupt` are returned at once in both cases.
    fn fail(&self, py: Python<'_>, exception: PyErr) -> PyResult<()> {
        if self.kept.is_none() {
            return Err(exception);
        }
        let at_once = !exception.is_instance_of::<PyException>(py);
        let again = exception.clone_ref(py);
        *lock(&self.failed) = Some(exception);
        if at_once { Err(again) } else { Ok(()) }
    }

    /// The next entry for a reader. Announces its read to the client.
    pub fn next(&self, py: Python<'_>) -> PyResult<Next> {
        let Some(kept) = &self.kept else {
            return Ok(Next::End);
        };
        // First, because it may raise an exception, which must not lose an entry.
        self.count(py)?;
        loop {
            let Some(client) = self.client()? else {
                return self.next_in_child(py, kept);
            };
            let entry = lock(kept).pop_front();
            if let Some(entry) = entry {
                client
                    .reading(entry.file, entry.extent)
                    .map_err(|failure| error::client(py, None, failure))?;
                return Ok(Next::Read(entry));
            }
            if matches!(lock(&self.source).slot, Slot::Drained) {
                let failed = lock(&self.failed)
                    .as_ref()
                    .map(|failed| failed.clone_ref(py));
                return failed.map_or(Ok(Next::End), Err);
            }
            self.top_up(py, Duration::ZERO)?;
            if matches!(lock(&self.source).slot, Slot::Taken) {
                // Another thread is taking entries.
                py.check_signals()?;
                py.detach(|| std::thread::sleep(Duration::from_micros(100)));
            }
        }
    }

    /// The next entry for an inherited reader, which continues the iterable without a client.
    fn next_in_child(&self, py: Python<'_>, kept: &Mutex<VecDeque<Entry>>) -> PyResult<Next> {
        if let Some(entry) = lock(kept).pop_front() {
            return Ok(Next::Read(entry));
        }
        let mut source = lock(&self.source);
        match mem::replace(&mut source.slot, Slot::Taken) {
            Slot::Here(mut feed) => {
                drop(source);
                let next = feed.next_plainly(py);
                lock(&self.source).slot = Slot::Here(feed);
                next
            }
            Slot::Drained => {
                source.slot = Slot::Drained;
                Ok(Next::End)
            }
            Slot::Taken => Err(PyRuntimeError::new_err(
                "the process was forked while another thread drew from the list",
            )),
        }
    }

    /// Calls `on_miss`, on the reading thread. An iterable that it returns becomes the list, or its continuation.
    fn missed(&self, py: Python<'_>, missed: &Missed) -> PyResult<()> {
        let asked = lock(&self.on_miss)
            .as_ref()
            .map(|asked| asked.clone_ref(py));
        let Some(asked) = asked else { return Ok(()) };
        let told = Miss::new(py, missed, |file| self.files.name(py, file));
        let supplied = asked.bind(py).call1((told,))?;
        if supplied.is_none() {
            return Ok(());
        }
        let feed = Feed::new(&supplied)?;
        let mut source = lock(&self.source);
        source.generation += 1;
        source.flags = if missed.ran_out {
            Flags::APPEND
        } else {
            Flags::SET
        };
        let old = mem::replace(&mut source.slot, Slot::Here(feed));
        drop(source);
        drop(old);
        self.top_up(py, FIRST)
    }

    /// The present statistics; after the end, the final ones. Zeros in a child that inherited the session.
    pub fn stats(&self) -> Stats {
        if !self.home.is_here() {
            return Stats::default();
        }
        match &*lock(&self.client) {
            Some(client) => client.stats().into(),
            None => lock(&self.last).0,
        }
    }

    /// Files that could not be fetched, and why; empty before the end.
    pub fn problems(&self) -> Vec<String> {
        lock(&self.last).1.clone()
    }

    /// Ends the session. Does nothing the second time.
    pub fn close(&self, py: Python<'_>) {
        let client = lock(&self.client).take();
        let mut source = lock(&self.source);
        source.generation += 1;
        let slot = mem::replace(&mut source.slot, Slot::Drained);
        drop(source);
        let asked = lock(&self.on_miss).take();
        if let Some(client) = client {
            self.end_client(py, &client);
        }
        // Dropping may run Python code: not under a lock.
        drop((slot, asked));
    }

    /// Shows the objects that the session keeps alive to Python's garbage collector. Locked ones are in use, so they are no
    /// garbage.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(asked) = self.on_miss.try_lock() {
            visit.call(&*asked)?;
        }
        if let Ok(source) = self.source.try_lock()
            && let Slot::Here(feed) = &source.slot
        {
            feed.traverse(visit)?;
        }
        self.files.traverse(visit)
    }

    /// Drops the objects that may keep the session alive in a cycle. Called when the session is garbage.
    pub fn clear(&self) {
        let asked = lock(&self.on_miss).take();
        let slot = mem::replace(&mut lock(&self.source).slot, Slot::Drained);
        // Dropping may run Python code: not under a lock.
        drop((slot, asked));
        self.files.clear();
    }

    fn end_client(&self, py: Python<'_>, client: &Client) {
        // `None` in a child.
        if let Some(report) = py.detach(|| client.close()) {
            *lock(&self.last) = (report.stats.into(), report.gone);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.home.is_here() {
            mem::forget(lock(&self.client).take());
        }
    }
}

fn called(session: &Weak<Session>, missed: Missed) {
    let Some(session) = session.upgrade() else {
        return;
    };
    Python::attach(|py| {
        if let Err(exception) = session.missed(py, &missed) {
            miss::raise(exception);
        }
    });
}

/// Locks a mutex. Its data are valid even if a holder has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
