//! Absolute paths, without a system call where one was made before.
//!
//! The working directory and the directories that serve as bases of relative opens are
//! kept in a small cache. Its lock is only ever tried: who does not get it asks the
//! kernel. An entry lives until its descriptor is closed or the directory changed.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use foreread_ring::PATH_MAX;

use crate::{report, sys};

/// How many directories are kept, the working directory among them.
const DIRECTORIES: usize = 17;

/// The key of a free place.
const NONE: c_int = -1;

/// Room for a path, not written to before it is needed.
pub struct Buffer(pub [MaybeUninit<u8>; PATH_MAX]);

impl Buffer {
    pub const fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; PATH_MAX])
    }

    /// Writes at a place; `None` if there is no room.
    fn put(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        let room = self.0.get_mut(at..at.checked_add(bytes.len())?)?;
        let room = room.as_mut_ptr().cast::<u8>();
        // SAFETY: room for as many bytes as there are; borrowed mutably, so apart from them.
        unsafe { room.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Some(())
    }
}

struct Cache {
    locked: AtomicBool,
    /// Descriptors, `AT_FDCWD` for the working directory, or `NONE`.
    keys: [AtomicI32; DIRECTORIES],
    lengths: [AtomicUsize; DIRECTORIES],
    turn: AtomicUsize,
}

/// The cached paths. Apart from the rest, so that they are all zeros and take no room in
/// the library's file.
struct Paths(UnsafeCell<[[u8; PATH_MAX]; DIRECTORIES]>);

// SAFETY: only touched by the holder of the cache's lock.
unsafe impl Sync for Paths {}

static PATHS: Paths = Paths(UnsafeCell::new([[0; PATH_MAX]; DIRECTORIES]));

static CACHE: Cache = Cache {
    locked: AtomicBool::new(false),
    keys: [const { AtomicI32::new(NONE) }; DIRECTORIES],
    lengths: [const { AtomicUsize::new(0) }; DIRECTORIES],
    turn: AtomicUsize::new(0),
};

/// Whether a path may name something to prefetch: the kernel's own file systems do not.
pub fn is_watched(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
        && ![&b"/proc/"[..], b"/sys/", b"/dev/"]
            .iter()
            .any(|system| path.starts_with(system))
}

/// Whether a path names what some descriptor has open, whatever that is.
pub fn is_of_descriptor(path: &[u8]) -> bool {
    path == b"/dev/stdin"
        || path.starts_with(b"/dev/fd/")
        || path.starts_with(b"/proc/") && path.windows(4).any(|part| part == b"/fd/")
}

/// The path the kernel knows a descriptor by; `None` when it has none any more.
pub fn of_descriptor(fd: c_int, buffer: &mut Buffer) -> Option<&[u8]> {
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
    sys::readlink(link, &mut buffer.0)
        .filter(|path| path.first() == Some(&b'/') && !path.ends_with(b" (deleted)"))
}

/// The absolute form of a path given to a call that takes a directory descriptor.
///
/// # Safety
/// `path` must be a terminated string: the kernel has just accepted it.
pub unsafe fn absolute<'a>(
    base: c_int,
    path: *const c_char,
    buffer: &'a mut Buffer,
) -> Option<&'a [u8]> {
    // SAFETY: the caller vouches for the string; it is used before it can go away.
    let path: &'a [u8] = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.first() == Some(&b'/') {
        return (path.len() <= PATH_MAX).then_some(path);
    }
    let mut tail = path;
    while let Some(rest) = tail.strip_prefix(b"./") {
        tail = rest;
    }
    let mut len = directory(base, buffer)?;
    // SAFETY: `directory` has written that many bytes.
    if unsafe { sys::written(&buffer.0[..len]) }.last() != Some(&b'/') {
        buffer.put(len, b"/")?;
        len += 1;
    }
    buffer.put(len, tail)?;
    // SAFETY: written just now.
    Some(unsafe { sys::written(&buffer.0[..len + tail.len()]) })
}

/// The path of a directory, in `buffer`; returns its length.
fn directory(key: c_int, buffer: &mut Buffer) -> Option<usize> {
    let cached = with_lock(|paths| {
        let place = CACHE
            .keys
            .iter()
            .position(|k| k.load(Ordering::Relaxed) == key)?;
        let len = CACHE.lengths[place].load(Ordering::Relaxed);
        buffer.put(0, paths[place].get(..len)?)?;
        Some(len)
    });
    if let Some(Some(len)) = cached {
        return Some(len);
    }
    let found = if key == libc::AT_FDCWD {
        sys::getcwd(&mut buffer.0).filter(|path| path.first() == Some(&b'/'))
    } else {
        of_descriptor(key, buffer)
    };
    let path = found?;
    if report::at_home() {
        remember(key, path);
    }
    Some(path.len())
}

/// Keeps the path of a directory.
pub fn remember(key: c_int, path: &[u8]) {
    with_lock(|paths| {
        let place = CACHE
            .keys
            .iter()
            .position(|k| k.load(Ordering::Relaxed) == key)
            .unwrap_or_else(|| CACHE.turn.fetch_add(1, Ordering::Relaxed) % DIRECTORIES);
        CACHE.keys[place].store(NONE, Ordering::Relaxed);
        if let Some(room) = paths[place].get_mut(..path.len()) {
            room.copy_from_slice(path);
            CACHE.lengths[place].store(path.len(), Ordering::Relaxed);
            CACHE.keys[place].store(key, Ordering::Relaxed);
        }
    });
}

/// Whether no directory was ever kept.
pub fn is_empty() -> bool {
    CACHE.turn.load(Ordering::Relaxed) == 0
}

/// Forgets descriptors that now are, or are about to be, something else.
pub fn forget(first: c_int, last: c_int) {
    for key in &CACHE.keys {
        let found = key.load(Ordering::Relaxed);
        if found >= 0 && (first..=last).contains(&found) {
            key.store(NONE, Ordering::Relaxed);
        }
    }
}

/// The working directory has changed.
pub fn working_directory_changed() {
    for key in &CACHE.keys {
        if key.load(Ordering::Relaxed) == libc::AT_FDCWD {
            key.store(NONE, Ordering::Relaxed);
        }
    }
}

/// In a forked child: whoever held the lock is not here.
pub fn unlock() {
    CACHE.locked.store(false, Ordering::Relaxed);
}

fn with_lock<T>(work: impl FnOnce(&mut [[u8; PATH_MAX]; DIRECTORIES]) -> T) -> Option<T> {
    if CACHE.locked.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: this thread holds the lock.
    let result = work(unsafe { &mut *PATHS.0.get() });
    CACHE.locked.store(false, Ordering::Release);
    Some(result)
}
