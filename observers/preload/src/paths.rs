//! Absolute paths, with few system calls.
//!
//! A small cache has the working directory, and directories that are bases of relative opens. Any number of threads may read it at the same
//! time; a change excludes all others. No thread waits for the lock: it tries a number of times, and then does without the path. An entry
//! is removed when its descriptor is closed, or when the working directory changes.
//!
//! A path is passed on in parts, and the kernel's answers are written to their final place, because a signal handler's stack may have no
//! room for a path.

use core::ffi::{CStr, c_int, c_void};
use core::hint;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use foreread_ring::PATH_MAX;

use crate::memory::{DIRECTORIES, Kept, MEMORY};
use crate::sys::{self, Allowed};
use crate::{home, table};

/// The place for the last answer of the kernel.
const ASKED: usize = DIRECTORIES;

/// The key of a free place.
const NONE: c_int = -1;

/// Number of attempts to take the lock: its holder may be the code that a signal handler has interrupted.
const TRIES: u32 = 1000;

/// The lock's value while a thread changes the paths; any other value is the number of reading threads.
const CHANGING: u32 = u32::MAX;

struct Cache {
    lock: AtomicU32,
    /// Descriptors, `AT_FDCWD` for the working directory, or `NONE`.
    keys: [AtomicI32; DIRECTORIES],
    lengths: [AtomicUsize; DIRECTORIES],
    /// The directory streams that descriptors were handed to, which close them.
    streams: [AtomicPtr<c_void>; DIRECTORIES],
    turn: AtomicUsize,
    program: AtomicUsize,
}

static CACHE: Cache = Cache {
    lock: AtomicU32::new(0),
    keys: [const { AtomicI32::new(NONE) }; DIRECTORIES],
    lengths: [const { AtomicUsize::new(0) }; DIRECTORIES],
    streams: [const { AtomicPtr::new(ptr::null_mut()) }; DIRECTORIES],
    turn: AtomicUsize::new(0),
    program: AtomicUsize::new(0),
};

/// A path in parts, to be read one after the other.
pub type Parts<'a> = &'a [&'a [u8]];

fn bytes(path: Parts<'_>) -> impl Iterator<Item = &u8> {
    path.iter().copied().flatten()
}

fn starts_with(path: Parts<'_>, with: &[u8]) -> bool {
    bytes(path).take(with.len()).eq(with)
}

/// True if a path may name a file to prefetch: the kernel's own file systems have none.
pub fn is_watched(path: Parts<'_>) -> bool {
    starts_with(path, b"/")
        && ![&b"/proc/"[..], b"/sys/", b"/dev/"]
            .iter()
            .any(|system| starts_with(path, system))
}

/// True if a path names the open file of a descriptor.
pub fn is_of_descriptor(path: Parts<'_>) -> bool {
    let [path] = path else { return false };
    *path == b"/dev/stdin"
        || path.starts_with(b"/dev/fd/")
        || path.starts_with(b"/proc/") && path.windows(4).any(|part| part == b"/fd/")
}

/// Passes the kernel's path of a descriptor to `work`; `None` if it has none any more.
pub fn of_descriptor<T>(
    allowed: Allowed,
    fd: c_int,
    work: impl FnOnce(&[u8]) -> Option<T>,
) -> Option<T> {
    with_lock(|paths| work(ask_descriptor(allowed, fd, &mut paths[ASKED])?))?
}

fn ask_descriptor(allowed: Allowed, fd: c_int, buffer: &mut [u8; PATH_MAX]) -> Option<&[u8]> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0; 11];
    let mut at = digits.len();
    let mut rest = u32::try_from(fd).ok()?;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    link[14..14 + digits.len() - at].copy_from_slice(&digits[at..]);
    let link = CStr::from_bytes_until_nul(&link).ok()?;
    sys::readlink(allowed, link, buffer)
        .filter(|path| path.first() == Some(&b'/') && !path.ends_with(b" (deleted)"))
}

/// Passes this program's own path to `work`, if it is known.
pub fn of_program<T>(work: impl FnOnce(&[u8]) -> T) -> T {
    let Some(mut held) = Held::take() else {
        return work(b"");
    };
    const EXE: &CStr = c"/proc/self/exe";
    // SAFETY: this thread holds the lock, and no other does.
    let program = unsafe { &mut *MEMORY.program.0.get() };
    let known = CACHE.program.load(Ordering::Relaxed);
    if known != 0 {
        return work(program.get(..known).unwrap_or(b""));
    }
    let Some(allowed) = Allowed::now() else {
        return work(b"");
    };
    if let Some(exe) = sys::readlink(allowed, EXE, program) {
        CACHE.program.store(exe.len(), Ordering::Relaxed);
        return work(exe);
    }
    work(sys::readlink(allowed, EXE, &mut held.paths()[ASKED]).unwrap_or(b""))
}

/// Passes the absolute form of a path, given to a call with a directory's descriptor, to `work`; `None` if it is unknown.
pub fn absolute<T>(base: c_int, path: &[u8], work: impl FnOnce(Parts<'_>) -> T) -> Option<T> {
    if path.first() == Some(&b'/') {
        return (path.len() <= PATH_MAX).then(|| work(&[path]));
    }
    let mut tail = path;
    while let Some(rest) = tail.strip_prefix(b"./") {
        tail = rest;
    }
    in_directory(base, |directory| {
        let slash: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
        let len = directory.len() + slash.len() + tail.len();
        (len <= PATH_MAX).then(|| work(&[directory, slash, tail]))
    })?
}

/// Passes the path of the directory that is open as `fd` to `work`; `None` if it is unknown.
pub fn of_directory<T>(fd: c_int, work: impl FnOnce(&[u8]) -> T) -> Option<T> {
    in_directory(fd, work)
}

/// Passes the path of a directory to `work`. A kept path is read with a shared lock, because `work` may take long, for example if a ring is
/// full.
fn in_directory<T>(key: c_int, work: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let reading = Reading::take()?;
    if let Some(place) = place_of(key) {
        return Some(work(kept(place, reading.paths())?));
    }
    drop(reading);
    with_lock(|paths| Some(work(asked(key, paths)?)))?
}

/// The path that is stored in a place.
fn kept(place: usize, paths: &Kept) -> Option<&[u8]> {
    paths[place].get(..CACHE.lengths[place].load(Ordering::Relaxed))
}

/// Asks the kernel for the path of a directory that was not stored, unless another thread has stored it meanwhile.
fn asked(key: c_int, paths: &mut Kept) -> Option<&[u8]> {
    if let Some(place) = place_of(key) {
        return kept(place, paths);
    }
    let allowed = Allowed::now()?;
    if key == libc::AT_FDCWD {
        // The cache belongs to the process that owns this memory.
        if home::at_home() {
            let place = ask_cwd(allowed, paths)?;
            return kept(place, paths);
        }
        let len = sys::getcwd(allowed, &mut paths[ASKED])?;
        return paths[ASKED].get(..len);
    }
    let len = ask_descriptor(allowed, key, &mut paths[ASKED])?.len();
    // If a directory's opening was not seen, its closing may not be seen either.
    if table::is_tracked(key) {
        keep(key, b"", len, paths);
    }
    paths[ASKED].get(..len)
}

fn place_of(key: c_int) -> Option<usize> {
    CACHE
        .keys
        .iter()
        .position(|k| k.load(Ordering::Relaxed) == key)
}

/// A place for a new key: a free one, if there is one.
fn place_for(key: c_int) -> usize {
    let turn = CACHE.turn.fetch_add(1, Ordering::Relaxed) % DIRECTORIES;
    let place = place_of(key).or_else(|| place_of(NONE)).unwrap_or(turn);
    CACHE.keys[place].store(NONE, Ordering::Relaxed);
    CACHE.streams[place].store(ptr::null_mut(), Ordering::Relaxed);
    place
}

/// Asks the kernel for the working directory. Returns the place where it is stored.
fn ask_cwd(allowed: Allowed, paths: &mut Kept) -> Option<usize> {
    let place = place_for(libc::AT_FDCWD);
    let len = sys::getcwd(allowed, &mut paths[place])?;
    CACHE.lengths[place].store(len, Ordering::Relaxed);
    CACHE.keys[place].store(libc::AT_FDCWD, Ordering::Relaxed);
    Some(place)
}

/// Asks for the working directory before it is needed.
pub fn ask_working_directory(allowed: Allowed) {
    let _ = with_lock(|paths| ask_cwd(allowed, paths));
}

/// Keeps, for `key`, the path of a directory that was opened, or changed to, by a path in another directory.
pub fn remember(key: c_int, base: c_int, path: &[u8]) {
    forget(key, key);
    // Only the kernel knows the target of dots: it is asked when the path is needed.
    if path.split(|&byte| byte == b'/').any(|part| part == b"..") {
        return;
    }
    with_lock(|paths| {
        let kept = if path.first() == Some(&b'/') {
            Some(0)
        } else {
            copy(place_of(base)?, paths)
        };
        keep(key, path, kept?, paths)
    });
}

/// Keeps the path of a directory that was changed to by its descriptor.
pub fn remember_working_directory(fd: c_int) {
    forget(libc::AT_FDCWD, libc::AT_FDCWD);
    with_lock(|paths| {
        let len = copy(place_of(fd)?, paths)?;
        keep(libc::AT_FDCWD, b"", len, paths)
    });
}

/// Copies the path of a directory whose descriptor `old` was duplicated as `new`.
pub fn duplicated(old: c_int, new: c_int) {
    forget(new, new);
    if place_of(old).is_some() {
        with_lock(|paths| {
            let len = copy(place_of(old)?, paths)?;
            keep(new, b"", len, paths)
        });
    }
}

/// Copies a kept path to the place for answers. Returns its length.
fn copy(from: usize, paths: &mut Kept) -> Option<usize> {
    let len = CACHE.lengths[from].load(Ordering::Relaxed);
    let (kept, rest) = paths.split_at_mut(DIRECTORIES);
    let asked = &mut rest[ASKED - DIRECTORIES];
    asked
        .get_mut(..len)?
        .copy_from_slice(kept[from].get(..len)?);
    Some(len)
}

/// Stores, for `key`, the first `len` bytes at the place for answers, followed by a slash and `tail`.
fn keep(key: c_int, tail: &[u8], mut len: usize, paths: &mut Kept) -> Option<()> {
    let (kept, rest) = paths.split_at_mut(DIRECTORIES);
    let asked = &mut rest[ASKED - DIRECTORIES];
    for part in [&b"/"[..], tail] {
        let is_needed = !tail.is_empty() && len > 0 && (part != b"/" || asked[len - 1] != b'/');
        if is_needed || len == 0 && part != b"/" {
            asked
                .get_mut(len..len.checked_add(part.len())?)?
                .copy_from_slice(part);
            len += part.len();
        }
    }
    let place = place_for(key);
    kept[place][..len].copy_from_slice(&asked[..len]);
    CACHE.lengths[place].store(len, Ordering::Relaxed);
    CACHE.keys[place].store(key, Ordering::Relaxed);
    Some(())
}

/// A directory's descriptor now belongs to a stream, which will close it.
pub fn handed_to(fd: c_int, stream: *mut c_void) {
    if let Some(place) = place_of(fd) {
        CACHE.streams[place].store(stream, Ordering::Relaxed);
    }
}

/// Forgets the directory whose stream is about to be closed.
pub fn closing_stream(stream: *mut c_void) {
    if is_empty() || stream.is_null() {
        return;
    }
    for (key, kept) in CACHE.keys.iter().zip(&CACHE.streams) {
        if kept.load(Ordering::Relaxed) == stream {
            key.store(NONE, Ordering::Relaxed);
            kept.store(ptr::null_mut(), Ordering::Relaxed);
        }
    }
}

/// True if no directory was ever stored.
pub fn is_empty() -> bool {
    CACHE.turn.load(Ordering::Relaxed) == 0
}

/// Forgets descriptors that are closed or replaced, or about to be.
pub fn forget(first: c_int, last: c_int) {
    for key in &CACHE.keys {
        let found = key.load(Ordering::Relaxed);
        if found != NONE && (first..=last).contains(&found) {
            key.store(NONE, Ordering::Relaxed);
        }
    }
}

/// Called in a forked child, where the holder of the lock does not exist.
pub fn unlock() {
    CACHE.lock.store(0, Ordering::Relaxed);
}

fn with_lock<T>(work: impl FnOnce(&mut Kept) -> T) -> Option<T> {
    Held::take().map(|mut held| work(held.paths()))
}

/// The cache's lock, held alone.
struct Held(());

impl Held {
    fn take() -> Option<Self> {
        for _ in 0..TRIES {
            if take(0, CHANGING) {
                return Some(Self(()));
            }
            hint::spin_loop();
        }
        None
    }

    fn paths(&mut self) -> &mut Kept {
        // SAFETY: this thread holds the lock, and no other does.
        unsafe { &mut *MEMORY.paths.0.get() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        CACHE.lock.store(0, Ordering::Release);
    }
}

/// The cache's lock, held with others that read.
struct Reading(());

impl Reading {
    fn take() -> Option<Self> {
        for _ in 0..TRIES {
            let readers = CACHE.lock.load(Ordering::Relaxed);
            if readers < CHANGING - 1 && take(readers, readers + 1) {
                return Some(Self(()));
            }
            hint::spin_loop();
        }
        None
    }

    fn paths(&self) -> &Kept {
        // SAFETY: this thread shares the lock, so all its holders only read.
        unsafe { &*MEMORY.paths.0.get() }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // In a child that a signal handler has forked in the meantime, the lock is free.
        let is_held = |readers: u32| (1..CHANGING).contains(&readers).then(|| readers - 1);
        let _ = (CACHE.lock).fetch_update(Ordering::Release, Ordering::Relaxed, is_held);
    }
}

/// Changes the lock from `from` to `to`. False if it has another value; it may also fail without a reason.
fn take(from: u32, to: u32) -> bool {
    let lock = &CACHE.lock;
    lock.compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}
