//! One client for C: numbers for files and regions, a function pointer for the callback.
//!
//! Invariant: for each number of a file or region that the client gives, the descriptor that the program used is
//! stored here, and the callback is given this descriptor. The names are not locked while the client is called.
//!
//! Data flow: [`crate::calls`] → [`Handle`] → [`Client`]; callbacks go the other way.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foreread_client::{Client, Entry, Error, Extent, FileId, Flags, Match, Options, RegionId};

use crate::abi::{FOREREAD_FIRST_FILE, FOREREAD_MARKED, foreread_callback, foreread_entry};
use crate::errors::code;
use crate::inside;
use crate::real;

/// Entries passed to the client at a time, so that a long list is not in memory twice.
const AT_ONCE: usize = 1 << 16;
/// For a list of at least this many entries, the free memory is checked first.
const LONG: usize = 4096;
/// Bytes that must stay free beside a long list, for the session.
const SPARE: usize = 16 << 20;

thread_local! {
    /// The descriptor that this thread is reading; -1 if it has reported its position by `foreread_at`.
    static READING: Cell<c_int> = const { Cell::new(-1) };
}

/// The program's argument for its callback, passed on unchanged.
struct Argument(*mut c_void);

// SAFETY: only handed back to the program, whose callback is documented to be called from any
// thread that reads.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

/// The program's names for its files and regions.
#[derive(Default)]
pub struct Names {
    /// Descriptors with regions: the file, and the number of regions.
    open: HashMap<c_int, (FileId, u32)>,
    /// Files registered by path.
    by_path: HashMap<FileId, PathBuf>,
    /// The descriptor that the callback is given for a file.
    told: HashMap<FileId, c_int>,
    regions: HashMap<RegionId, (c_int, FileId)>,
}

impl Names {
    /// The path of a file that was registered by its path.
    pub fn path(&self, file: FileId) -> Option<PathBuf> {
        self.by_path.get(&file).cloned()
    }

    /// A region has been registered under this descriptor or pseudo-descriptor.
    pub fn enter(&mut self, region: RegionId, fd: c_int, file: FileId) {
        self.regions.insert(region, (fd, file));
    }

    /// A region has been registered on a descriptor.
    pub fn join(&mut self, region: RegionId, fd: c_int, file: FileId) {
        let open = self.open.entry(fd).or_insert((file, 0));
        if open.0 == file {
            open.1 += 1;
        } else {
            // The descriptor's number belonged to another file. That file's regions stay, without a descriptor.
            *open = (file, 1);
        }
        self.told.insert(file, fd);
        self.enter(region, fd, file);
    }

    /// Removes a region. Returns the descriptor and the file it was registered with.
    pub fn leave(&mut self, region: RegionId) -> Option<(c_int, FileId)> {
        self.regions.remove(&region)
    }

    /// Removes one region of a file from a descriptor. False if the number refers to another file by now.
    pub fn part(&mut self, fd: c_int, file: FileId) -> bool {
        let Some((of, regions)) = self.open.get_mut(&fd) else {
            return false;
        };
        if *of != file {
            return false;
        }
        *regions -= 1;
        if *regions == 0 {
            self.open.remove(&fd);
        }
        true
    }

    /// The client has no such file any more.
    pub fn forget(&mut self, file: FileId) {
        self.told.remove(&file);
    }
}

/// A client, its names and its callback.
pub struct Handle {
    /// The client itself.
    pub client: Client,
    names: Arc<Mutex<Names>>,
    /// True if the program reports the ends of the reads that it announces.
    timed: bool,
    /// Entries that the list may hold ahead of the program.
    capacity: usize,
    /// Locked while a list is passed on in parts, so that two lists never mix.
    handing_over: Mutex<()>,
}

impl Handle {
    /// Starts a client.
    ///
    /// # Errors
    /// `-EAGAIN` if its threads cannot be started.
    pub fn new(
        options: Options,
        timed: bool,
        callback: foreread_callback,
        argument: *mut c_void,
    ) -> Result<Self, c_int> {
        let capacity = options.capacity;
        let client = Client::new(options).map_err(|error| code(&error))?;
        let names = Arc::new(Mutex::new(Names::default()));
        if let Some(callback) = callback {
            let (names, argument) = (Arc::clone(&names), Argument(argument));
            client.on_miss(move |client, missed| {
                let argument = &argument;
                let fd = READING.get();
                let file = missed.requested.0;
                // The number may refer to another file since the last comparison.
                if fd_is_real(fd) && still(fd, file, client).is_err() {
                    return;
                }
                // The program's callback need not be safe in a signal handler.
                if inside::in_signal_handler() {
                    return;
                }
                let (marked_fd, marked_offset) = match missed.marked {
                    Some((file, offset)) => (told(&names, file), signed(offset)),
                    None => (-1, -1),
                };
                let requested_fd = if fd == -1 { told(&names, file) } else { fd };
                let requested_offset = signed(missed.requested.1);
                inside::call_back(|| {
                    // SAFETY: the program's function, of the type it was registered with.
                    unsafe {
                        callback(
                            argument.0,
                            marked_fd,
                            marked_offset,
                            requested_fd,
                            requested_offset,
                        );
                    }
                });
            });
        }
        Ok(Self {
            client,
            names,
            timed,
            capacity,
            handing_over: Mutex::default(),
        })
    }

    /// The names, locked: not to be held while the client is called.
    pub fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.names)
    }

    /// Registers a file by its path. Returns its pseudo-descriptor.
    ///
    /// # Errors
    /// The negative errno of finding or opening it; `-ENODEV` if it is not a regular file.
    pub fn add_path(&self, path: &Path) -> Result<c_int, c_int> {
        // The working directory may change.
        let path = path.canonicalize().map_err(|error| system(&error))?;
        let regular = std::fs::metadata(&path)
            .map_err(|error| system(&error))?
            .is_file();
        if !regular {
            return Err(-libc::ENODEV);
        }
        let file = self.client.add_path(&path).map_err(|error| code(&error))?;
        let fd = pseudo(file).ok_or(-libc::EMFILE)?;
        let mut names = self.names();
        if names.by_path.insert(file, path).is_none() {
            names.told.entry(file).or_insert(fd);
            return Ok(fd);
        }
        drop(names);
        // It was registered by path before, and one registration is enough.
        self.client
            .remove_file(file)
            .map_err(|error| code(&error))?;
        Ok(fd)
    }

    /// Passes on a list. Returns the number of accepted entries, the first ones.
    ///
    /// # Errors
    /// As documented for `foreread_request_prefetching`.
    pub fn request(&self, entries: &[foreread_entry], flags: Flags) -> Result<usize, c_int> {
        let files = self.resolve(entries)?;
        if entries.len() >= LONG && !self.has_memory(entries.len()) {
            return Err(-libc::ENOMEM);
        }
        let first = flags.bits() & !Flags::DONE.bits();
        let _in_one = lock(&self.handing_over);
        let mut how = Flags::from_bits(first).ok_or(-libc::EINVAL)?;
        let mut accepted = 0;
        let mut batch = Vec::with_capacity(entries.len().min(AT_ONCE));
        for part in entries.chunks(AT_ONCE) {
            batch.clear();
            batch.extend(part.iter().map(|entry| Entry {
                file: files[&entry.fd],
                extent: Extent::new(entry.offset, entry.length),
                marked: entry.flags & FOREREAD_MARKED != 0,
            }));
            let last = accepted + part.len() == entries.len() && flags.contains(Flags::DONE);
            let done = if last { Flags::DONE } else { Flags::default() };
            let taken = self.client.request(&batch, how | done);
            let taken = taken.map_err(|error| code(&error))?;
            accepted += taken;
            how = Flags::APPEND;
            if taken < part.len() {
                break;
            }
        }
        if accepted < entries.len() || entries.is_empty() {
            let done = Flags::from_bits(flags.bits() & Flags::DONE.bits()).unwrap_or_default();
            self.client
                .request(&[], how | done)
                .map_err(|error| code(&error))?;
        }
        Ok(accepted)
    }

    /// True if there is memory for this many more entries, as memory may be limited (`RLIMIT_AS`). An allocation that
    /// fails later would end the process.
    fn has_memory(&self, entries: usize) -> bool {
        // An entry takes less memory in the list than in C; the index, which grows in steps, takes up to 32 bytes more.
        let index = entries.min(self.capacity) * 32;
        let bytes = entries * size_of::<foreread_entry>() + index + SPARE;
        Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
    }

    /// Checks all entries of a list. Returns the files that they name.
    ///
    /// # Errors
    /// `-EINVAL` for flags or bytes without meaning; those of [`Self::file`].
    fn resolve(&self, entries: &[foreread_entry]) -> Result<HashMap<c_int, FileId>, c_int> {
        let mut files = HashMap::new();
        let mut last = None;
        for entry in entries {
            let end = entry.offset.checked_add(entry.length);
            if entry.flags & !FOREREAD_MARKED != 0 || end.is_none_or(|end| end > i64::MAX as u64) {
                return Err(-libc::EINVAL);
            }
            if last != Some(entry.fd) && !files.contains_key(&entry.fd) {
                files.insert(entry.fd, self.file(entry.fd)?);
            }
            last = Some(entry.fd);
        }
        Ok(files)
    }

    /// The program is about to make a read that is not intercepted.
    ///
    /// # Errors
    /// `-EBADF` if the client does not know the descriptor.
    pub fn announce(&self, fd: c_int, extent: Extent) -> Result<(), c_int> {
        let file = self.file(fd)?;
        let told = if self.timed {
            self.reading(fd, file, extent)
        } else {
            on(fd, || self.client.announce(file, extent))
        };
        told.map(drop).map_err(|error| code(&error))
    }

    /// A read that the program announced is over, and `took` this long.
    ///
    /// # Errors
    /// `-EBADF` if the client does not know the descriptor.
    pub fn done(&self, fd: c_int, extent: Extent, took: Duration) -> Result<(), c_int> {
        let file = self.file(fd)?;
        if self.timed {
            let now = Instant::now();
            let start = now.checked_sub(took).unwrap_or(now);
            self.client.read_done(file, extent, start, took);
        }
        Ok(())
    }

    /// This thread is about to read a file of the client; the callback is called if it is due.
    ///
    /// # Errors
    /// Those of the client.
    pub fn reading(&self, fd: c_int, file: FileId, extent: Extent) -> Result<Match, Error> {
        on(fd, || self.client.reading(file, extent))
    }

    /// The client's file behind a descriptor or pseudo-descriptor.
    ///
    /// # Errors
    /// `-EBADF` if the client does not know the descriptor, or it is closed or refers to another file by now.
    pub fn file(&self, fd: c_int) -> Result<FileId, c_int> {
        if let Some(file) = fd.checked_sub(FOREREAD_FIRST_FILE).filter(|&n| n >= 0) {
            let file = FileId(file as u32);
            let known = self.names().by_path.contains_key(&file);
            return if known { Ok(file) } else { Err(-libc::EBADF) };
        }
        let known = self.names().open.get(&fd).map(|&(file, _)| file);
        still(fd, known.ok_or(-libc::EBADF)?, &self.client)
    }
}

/// Runs `act`, which may call the callback, while this thread counts as reading the descriptor.
fn on<T>(fd: c_int, act: impl FnOnce() -> T) -> T {
    let before = READING.replace(fd);
    let done = act();
    READING.set(before);
    done
}

/// `file`, if the descriptor still refers to it.
///
/// # Errors
/// `-EBADF` if the descriptor is closed or refers to another file.
fn still(fd: c_int, file: FileId, client: &Client) -> Result<FileId, c_int> {
    let facts = real::facts(fd)?;
    if client.identity(file) == Some(facts.file) {
        Ok(file)
    } else {
        Err(-libc::EBADF)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(names: &Mutex<Names>, file: FileId) -> c_int {
    lock(names).told.get(&file).copied().unwrap_or(-1)
}

fn pseudo(file: FileId) -> Option<c_int> {
    c_int::try_from(file.0)
        .ok()?
        .checked_add(FOREREAD_FIRST_FILE)
}

/// True for a descriptor of the process; false for a pseudo-descriptor or a negative number.
pub fn fd_is_real(fd: c_int) -> bool {
    (0..FOREREAD_FIRST_FILE).contains(&fd)
}

fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

fn system(error: &std::io::Error) -> c_int {
    -error.raw_os_error().unwrap_or(libc::EIO)
}
