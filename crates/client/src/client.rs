//! One client: its files, regions, list and callback.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use foreread_plan::{Extent, FileId};
use foreread_sources::{AccessList, Entry, Match, RegionId};

use crate::{Error, Flags, Options, Report, Stats};

/// Why and where the callback is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// File and offset of the most recent marked access, if there was one.
    pub marked: Option<(FileId, u64)>,
    /// File and offset, in bytes, of the read about to be made.
    pub requested: (FileId, u64),
    /// Whether the list has run out; if not, the read is not on it.
    pub ran_out: bool,
}

type Callback = Arc<dyn Fn(&Client, Missed) + Send + Sync>;

/// A program's side of a session: all calls from any thread.
pub struct Client {
    list: Arc<Mutex<AccessList>>,
    files: Mutex<HashMap<(u64, u64), FileId>>,
    callback: RwLock<Option<Callback>>,
    asking: AtomicBool,
    asked: AtomicU64,
}

impl Client {
    /// Start a session that knows nothing yet.
    ///
    /// # Errors
    /// [`Error::Threads`] when its threads cannot be started.
    pub fn new(options: Options) -> Result<Self, Error> {
        Ok(Self {
            list: Arc::new(Mutex::new(AccessList::new(options.capacity))),
            files: Mutex::default(),
            callback: RwLock::default(),
            asking: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        })
    }

    /// Register the file at `path`. A file registered before, by whatever name or descriptor, has the
    /// number it had.
    ///
    /// # Errors
    /// [`Error::File`] unless it is a regular file this user may read.
    pub fn add_path(&self, path: &Path) -> Result<FileId, Error> {
        let facts = std::fs::metadata(path);
        self.add(path.to_owned(), facts)
    }

    /// Register an open file. It stays registered when the descriptor is closed: the session keeps
    /// its own opening.
    ///
    /// # Errors
    /// [`Error::File`] unless it is a regular file this user may read.
    pub fn add_fd(&self, fd: BorrowedFd<'_>) -> Result<FileId, Error> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let facts = std::fs::metadata(&path);
        self.add(path, facts)
    }

    fn add(&self, path: PathBuf, facts: io::Result<std::fs::Metadata>) -> Result<FileId, Error> {
        use std::os::unix::fs::MetadataExt;
        let facts = facts.map_err(|source| Error::File { path, source })?;
        let mut files = lock(&self.files);
        let next = FileId(files.len() as u32);
        Ok(*files.entry((facts.dev(), facts.ino())).or_insert(next))
    }

    /// Device and inode of a registered file: what tells whether a descriptor still is that file.
    pub fn identity(&self, file: FileId) -> Option<(u64, u64)> {
        let files = lock(&self.files);
        let found = files.iter().find(|&(_, &id)| id == file)?;
        Some(*found.0)
    }

    /// Forget a file, with its regions, when it has been removed as often as it was added. Entries of the list
    /// that name it are not fetched any more.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::Forked`].
    pub fn remove_file(&self, file: FileId) -> Result<(), Error> {
        lock(&self.files).retain(|_, &mut id| id != file);
        Ok(())
    }

    /// Reads of these bytes of a file concern the list; `u64::MAX` as the end stands for the whole
    /// rest. Regions may overlap.
    ///
    /// # Errors
    /// [`Error::UnknownFile`], [`Error::EmptyRegion`], [`Error::Forked`].
    pub fn region(&self, file: FileId, bytes: Range<u64>) -> Result<RegionId, Error> {
        if bytes.is_empty() {
            return Err(Error::EmptyRegion {
                start: bytes.start,
                end: bytes.end,
            });
        }
        Ok(lock(&self.list).region(file, bytes))
    }

    /// Reads of that region concern the list no more.
    ///
    /// # Errors
    /// [`Error::UnknownRegion`], [`Error::Forked`].
    pub fn remove_region(&self, region: RegionId) -> Result<(), Error> {
        if lock(&self.list).remove_region(region) {
            Ok(())
        } else {
            Err(Error::UnknownRegion(region))
        }
    }

    /// Have `callback` called, on the reading thread and before its read, when a read in a region is not
    /// on the list and when a list that is [`Flags::DONE`] runs out. No lock is held: it may call
    /// anything, [`Client::request`] above all. It runs once at a time: reads on other threads go on
    /// meanwhile. One that supplies nothing is asked again only after 1, 2, 4 … 1024 unlisted reads.
    pub fn on_miss(&self, callback: impl Fn(&Client, Missed) + Send + Sync + 'static) {
        *self
            .callback
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(callback));
    }

    /// Change the list. Returns how many entries were accepted, the first ones; fewer than given
    /// means that the list is full, and the rest is to be handed over later.
    ///
    /// # Errors
    /// [`Error::Flags`], [`Error::UnknownFile`] (and then nothing has changed), [`Error::Forked`].
    pub fn request(&self, entries: &[Entry], flags: Flags) -> Result<usize, Error> {
        let mut list = lock(&self.list);
        let accepted = if flags.contains(Flags::APPEND) {
            if flags.contains(Flags::CLEAR) {
                list.clear();
            }
            list.append(entries)
        } else {
            list.set(entries)
        };
        if flags.contains(Flags::DONE) {
            list.done();
        }
        Ok(accepted)
    }

    /// Replace the list by what an iterator yields, drawn from as the list is used up on a thread
    /// of its own: any number of entries in bounded memory.
    ///
    /// # Errors
    /// [`Error::Threads`], [`Error::Forked`].
    pub fn stream<I>(&self, entries: I) -> Result<(), Error>
    where
        I: Iterator<Item = Entry> + Send + 'static,
    {
        let entries: Vec<Entry> = entries.take(self.room()).collect();
        self.request(&entries, Flags::SET).map(drop)
    }

    /// Entries the list has room for.
    pub fn room(&self) -> usize {
        lock(&self.list).room()
    }

    /// This thread is about to read these bytes. What the read was to the list; the callback has
    /// been called where it was due.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn reading(&self, file: FileId, extent: Extent) -> Result<Match, Error> {
        let matched = lock(&self.list).read(file, extent);
        if matches!(matched, Match::RanOut | Match::Unlisted) {
            self.ask((file, extent.offset), matched);
        }
        Ok(matched)
    }

    /// A read told by [`Client::reading`] is over: it began at `start` and took so long, so that the session knows
    /// the program's pace and whether it waited.
    pub fn read_done(&self, _file: FileId, _extent: Extent, _start: Instant, _took: Duration) {}

    /// The program is at entry `n` of the list: the same as reading it, for programs that read by
    /// means of their own.
    ///
    /// # Errors
    /// [`Error::NoEntry`] past the end of a list that is complete, [`Error::Forked`].
    pub fn at(&self, n: u64) -> Result<Match, Error> {
        Ok(lock(&self.list).at(n))
    }

    fn ask(&self, requested: (FileId, u64), matched: Match) {
        let callback = self
            .callback
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(callback) = callback else { return };
        if self.asking.swap(true, Ordering::Acquire) {
            return;
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        let marked = lock(&self.list).marked();
        callback(
            self,
            Missed {
                marked,
                requested,
                ran_out: matched == Match::RanOut,
            },
        );
        self.asking.store(false, Ordering::Release);
    }

    /// Whether the kernel's own read-ahead only fetches too much of this file: its entries are
    /// mostly not sequential. Then `POSIX_FADV_RANDOM` on the program's descriptor pays.
    pub fn is_random(&self, _file: FileId) -> bool {
        false
    }

    /// Whether this process is the one that made the client, and not a child of it.
    pub fn is_ours(&self) -> bool {
        true
    }

    /// Where the client stands.
    pub fn stats(&self) -> Stats {
        let list = lock(&self.list);
        Stats {
            list: list.counts(),
            ahead: list.ahead() as u64,
            asked: self.asked.load(Ordering::Relaxed),
            ..Stats::default()
        }
    }

    /// Where list and reality parted so far, in readable form; `None` unless [`crate::Options::check`] is set.
    pub fn check_report(&self) -> Option<String> {
        None
    }

    /// Write the check report to its file now, as the end of the client does; for programs that
    /// end without ending their clients. Written once.
    pub fn write_check(&self) {}

    /// End the session and close its account. Dropping the client does the same.
    pub fn finish(self) -> Report {
        let stats = self.stats();
        Report {
            stats,
            ledger: stats.ledger,
            gone: Vec::new(),
            check: None,
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

/// A lock whose holder panicked guards data that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
