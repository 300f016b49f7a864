//! A client: its files, regions, list and callback.
//!
//! Every call first checks that the process is still the one that created the client: a forked child's copy may be locked for ever, so it
//! is neither used nor dropped.

use std::fmt;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use foreread_plan::{Advice, Extent, FileId};
use foreread_sources::{Draft, Entry, Match, RegionId};
use foreread_sys::thread::{self, Birth};

use crate::check::Difference;
use crate::files::Candidate;
use crate::inner::Inner;
use crate::lock::lock;
use crate::{Error, Flags, Options, Report, Stats};

/// Entries added while the list is locked: a reading thread may wait for it.
const AT_ONCE: usize = 1024;
/// Entries up to the program's announced position count as used, too. This many suffice to move the position, however rarely the program
/// announces it.
const USED: u64 = 64;

/// Why and where the callback is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// File and offset of the most recent marked access, if there was one.
    pub marked: Option<(FileId, u64)>,
    /// File and offset, in bytes, of the read about to be made.
    pub requested: (FileId, u64),
    /// True if the list has run out; if false, the read is not on it.
    pub ran_out: bool,
}

type Callback = Arc<dyn Fn(&Client, Missed) + Send + Sync>;

/// A program's side of a session: all calls from any thread.
pub struct Client {
    birth: Birth,
    callback: RwLock<Option<Callback>>,
    /// `None` only while the client is dropped.
    inner: Option<Arc<Inner>>,
}

impl Client {
    /// Start a session that knows nothing yet.
    ///
    /// # Errors
    /// [`Error::Threads`] when its threads cannot be started.
    pub fn new(options: Options) -> Result<Self, Error> {
        Ok(Self {
            birth: Birth::new().map_err(Error::Threads)?,
            callback: RwLock::default(),
            inner: Some(Arc::new(Inner::new(options)?)),
        })
    }

    fn inner(&self) -> Result<&Arc<Inner>, Error> {
        let here = self.inner.as_ref().filter(|_| self.birth.is_here());
        here.ok_or(Error::Forked)
    }

    /// Registers the file at `path`. A file that was registered before, by any name or descriptor, keeps its number.
    ///
    /// # Errors
    /// [`Error::File`] unless it is a regular file that this user may read.
    pub fn add_path(&self, path: &Path) -> Result<FileId, Error> {
        self.inner()?.register(Candidate::at(path)?)
    }

    /// Registers an open file. It stays registered when the descriptor is closed, because the session opens it itself. For a descriptor
    /// with `O_DIRECT` nothing is fetched.
    ///
    /// # Errors
    /// [`Error::File`] unless it is a regular file that this user may read.
    pub fn add_fd(&self, fd: BorrowedFd<'_>) -> Result<FileId, Error> {
        self.inner()?.register(Candidate::open(fd)?)
    }

    /// Device and inode of a registered file, by which a descriptor is recognised as that file.
    pub fn identity(&self, file: FileId) -> Option<(u64, u64)> {
        lock(&self.inner().ok()?.files).identity(file)
    }

    /// Removes a file and its regions when it has been removed as often as it was added. List entries that name it are no longer fetched.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::Forked`].
    pub fn remove_file(&self, file: FileId) -> Result<(), Error> {
        let inner = self.inner()?;
        if inner.remove(file)? {
            lock(&inner.list).remove_file(file);
        }
        Ok(())
    }

    /// Reads of these bytes of a file concern the list; `u64::MAX` as the end stands for the whole
    /// rest. Regions may overlap.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::EmptyRegion`], [`Error::Forked`].
    pub fn region(&self, file: FileId, bytes: Range<u64>) -> Result<RegionId, Error> {
        let inner = self.inner()?;
        if !lock(&inner.files).has(file) {
            return Err(Error::UnknownFile(file));
        }
        if bytes.is_empty() {
            return Err(Error::EmptyRegion {
                start: bytes.start,
                end: bytes.end,
            });
        }
        Ok(lock(&inner.list).region(file, bytes))
    }

    /// Reads of that region concern the list no more.
    ///
    /// # Errors
    /// [`Error::UnknownRegion`], [`Error::Forked`].
    pub fn remove_region(&self, region: RegionId) -> Result<(), Error> {
        if lock(&self.inner()?.list).remove_region(region) {
            Ok(())
        } else {
            Err(Error::UnknownRegion(region))
        }
    }

    /// Sets `callback`, which is called on the reading thread and before its read when a read in a region is not on the list, and when a
    /// list that is [`Flags::DONE`] runs out. No lock is held: it may call anything, especially [`Client::request`]. It runs once at a
    /// time: reads on other threads continue meanwhile. A callback that supplies nothing is called again only after 1, 2, 4 … 1024 unlisted
    /// reads.
    pub fn on_miss(&self, callback: impl Fn(&Client, Missed) + Send + Sync + 'static) {
        if self.inner().is_ok() {
            let mut place = self
                .callback
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            *place = Some(Arc::new(callback));
        }
    }

    /// Change the list. Returns how many entries were accepted, the first ones; fewer than given
    /// means that the list is full, and the rest is to be handed over later.
    ///
    /// Entries may repeat, overlap, or be in holes or beyond the end of their file: no page is fetched twice, and nothing is fetched for
    /// holes or beyond the end. An entry beyond the end is fetched when the file has grown that far, unless the program has passed it.
    ///
    /// # Errors
    /// [`Error::Flags`], [`Error::UnknownFile`] (and then nothing has changed), [`Error::Forked`].
    pub fn request(&self, entries: &[Entry], flags: Flags) -> Result<usize, Error> {
        let inner = self.inner()?;
        if flags.contains(Flags::SET) && flags.contains(Flags::APPEND) {
            return Err(Error::Flags(flags));
        }
        {
            let files = lock(&inner.files);
            let mut last = None;
            for entry in entries {
                if last != Some(entry.file) && !files.has(entry.file) {
                    return Err(Error::UnknownFile(entry.file));
                }
                last = Some(entry.file);
            }
        }
        let accepted = if flags.contains(Flags::APPEND) {
            self.append(inner, entries, flags.contains(Flags::CLEAR))
        } else {
            let mut draft = Draft::new(entries, inner.capacity);
            let mut list = lock(&inner.list);
            inner.streaming.end(&list);
            list.replace(&mut draft)
        };
        if flags.contains(Flags::DONE) {
            lock(&inner.list).done();
        }
        if accepted > 0 {
            inner.ask.supplied();
        }
        inner.wake();
        Ok(accepted)
    }

    fn append(&self, inner: &Inner, entries: &[Entry], clear: bool) -> usize {
        if clear {
            let mut list = lock(&inner.list);
            inner.streaming.end(&list);
            list.clear();
        }
        let mut accepted = 0;
        for part in entries.chunks(AT_ONCE) {
            let taken = lock(&inner.list).append(part);
            accepted += taken;
            if taken < part.len() {
                break;
            }
        }
        accepted
    }

    /// Replaces the list by the items of an iterator, taken as the list is used up, on a thread of its own: any number of entries in
    /// bounded memory.
    ///
    /// # Errors
    /// [`Error::Threads`], [`Error::Forked`].
    ///
    /// Entries that name a file the client does not know are not fetched.
    pub fn stream<I>(&self, entries: I) -> Result<(), Error>
    where
        I: Iterator<Item = Entry> + Send + 'static,
    {
        let inner = self.inner()?;
        let stream = {
            let mut list = lock(&inner.list);
            list.set(&[]);
            inner.streaming.end(&list)
        };
        let shared = Arc::clone(inner);
        // It ends with the client and need not be waited for: the iterator may wait for ever.
        thread::spawn_beside("foreread-list", move || {
            shared
                .streaming
                .run(stream, &shared.list, entries, || shared.wake());
        })
        .map_err(Error::Threads)?;
        Ok(())
    }

    /// Entries the list has room for.
    pub fn room(&self) -> usize {
        self.inner().map_or(0, |inner| lock(&inner.list).room())
    }

    /// This thread is about to read these bytes. Returns the result of matching; the callback was called if it was due.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn reading(&self, file: FileId, extent: Extent) -> Result<Match, Error> {
        let inner = self.inner()?;
        let mut list = lock(&inner.list);
        let expected = inner.check.as_ref().and_then(|_| list.next());
        let before = list.counts().skipped;
        let matched = list.read(file, extent);
        let skipped = list.counts().skipped.saturating_sub(before);
        inner.streaming.used(&list);
        drop(list);
        if let Some(check) = &inner.check
            && (matched == Match::Unlisted || skipped > 0)
        {
            lock(check).add(Difference {
                expected,
                got: (file, extent),
                skipped,
            });
        }
        if matches!(matched, Match::RanOut | Match::Unlisted) {
            self.ask(inner, (file, extent.offset), matched);
        }
        if matched == Match::Unlisted {
            // The callback may just have named it.
            lock(&inner.list).settle(file, extent);
        }
        Ok(matched)
    }

    /// This thread is about to read these bytes, and the end of the read will not be announced: [`Client::reading`], with as much of
    /// [`Client::read_done`] as possible. The read's waiting stays unknown; the session checks from time to time whether its fetched pages
    /// are still in memory.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn announce(&self, file: FileId, extent: Extent) -> Result<Match, Error> {
        let matched = self.reading(file, extent)?;
        if matched != Match::Outside {
            self.inner()?.tell_place(&[(file, extent)]);
        }
        Ok(matched)
    }

    /// A read announced by [`Client::reading`] is over. From its start and duration the session learns the program's pace, and whether the
    /// read waited. Reads outside all regions are ignored.
    pub fn read_done(&self, file: FileId, extent: Extent, start: Instant, took: Duration) {
        if let Ok(inner) = self.inner()
            && lock(&inner.list).concerns(file, extent)
        {
            inner.tell_read(file, extent, start, took);
        }
    }

    /// The program is at entry `n` of the list: the same as reading it, for programs that read by
    /// means of their own. An entry that is not there yet will be passed when it comes.
    ///
    /// # Errors
    /// [`Error::NoEntry`] past the end of a list that is complete, [`Error::Forked`].
    pub fn at(&self, n: u64) -> Result<Match, Error> {
        let inner = self.inner()?;
        let mut list = lock(&inner.list);
        let next = list.next().map_or(n, |(next, _)| next.min(n));
        let Some(matched) = list.at(n) else {
            return Err(Error::NoEntry {
                number: n,
                end: list.end(),
            });
        };
        let from = next.max(n.saturating_sub(USED - 1));
        let used = (from..=n).filter_map(|n| list.get(n));
        let used: Vec<_> = used.map(|entry| (entry.file, entry.extent)).collect();
        inner.streaming.used(&list);
        drop(list);
        inner.tell_place(&used);
        if let (Match::RanOut, Some((file, extent))) = (matched, used.last()) {
            self.ask(inner, (*file, extent.offset), matched);
        }
        Ok(matched)
    }

    /// Asks the program for more entries, if there is a callback and it is its turn.
    fn ask(&self, inner: &Inner, requested: (FileId, u64), matched: Match) {
        let callback = self
            .callback
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(callback) = callback else { return };
        let Some(turn) = inner.ask.turn() else { return };
        inner.asked.fetch_add(1, Ordering::Relaxed);
        let (marked, before) = {
            let list = lock(&inner.list);
            (list.marked(), list.counts().accepted)
        };
        callback(
            self,
            Missed {
                marked,
                requested,
                ran_out: matched == Match::RanOut,
            },
        );
        if lock(&inner.list).counts().accepted == before {
            turn.in_vain();
        }
    }

    /// Advice for the program's own descriptor of this file, in the terms of posix_fadvise(2). `Random`: the file's entries are mostly not
    /// sequential, so the kernel's read-ahead only fetches too much. `Sequential`: they read it from front to back, and the session's
    /// memory has room for twice the read-ahead.
    pub fn advice(&self, file: FileId) -> Advice {
        let Ok(inner) = self.inner() else {
            return Advice::Normal;
        };
        let advice = lock(&inner.list).advice(file);
        if advice == Advice::Sequential && !inner.has_room_for_streams(file) {
            return Advice::Normal;
        }
        advice
    }

    /// The client's present counts; all zero in a child of its process.
    pub fn stats(&self) -> Stats {
        self.inner()
            .map_or_else(|_| Stats::default(), |inner| inner.stats())
    }

    /// The differences between list and reads so far, as text; `None` unless [`Options::check`] is set.
    pub fn check_report(&self) -> Option<String> {
        self.inner().ok()?.check_report()
    }

    /// Write the check report to its file now, as the end of the client does; for programs that
    /// end without ending their clients. Written once.
    pub fn write_check(&self) {
        if let Ok(inner) = self.inner() {
            inner.write_check();
        }
    }

    /// End the session and close its account. Dropping the client does the same.
    pub fn finish(self) -> Report {
        self.close().unwrap_or_default()
    }

    /// [`Client::finish`] for a client with other owners, whose later requests fetch nothing. `None` in a child of the client's process,
    /// and on a second call.
    pub fn close(&self) -> Option<Report> {
        let inner = self.inner().ok()?;
        inner.write_check();
        let check = inner.check_report();
        let mut stats = inner.stats();
        let report = inner.end()?.finish();
        if let Some(report) = &report {
            stats.ledger = report.ledger;
        }
        let files = lock(&inner.files);
        Some(Report {
            stats,
            gone: report
                .map(|report| report.gone)
                .unwrap_or_default()
                .into_iter()
                .map(|(file, why)| format!("{}: {why}", files.name(file)))
                .collect(),
            check,
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
        if !self.birth.is_here() {
            // Its threads do not exist here, and their locks stay locked.
            std::mem::forget(self.inner.take());
            std::mem::forget(std::mem::take(&mut self.callback));
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
