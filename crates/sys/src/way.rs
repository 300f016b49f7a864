//! Ways: paths resolved so that nothing is mounted for it.
//!
//! A process that goes through an automount point, or looks a name up in a directory of autofs, makes a file system be mounted, and waits
//! for its server. The kernel's flags spare only the point at the end of a path (`O_PATH`, `AT_NO_AUTOMOUNT`), and `RESOLVE_NO_XDEV` none
//! before Linux 6.18.
//!
//! Invariant: a lookup beyond the kernel's cache of names is for one name in one directory, and never in a directory of autofs. Names in
//! the cache may be behind an automount point: then it is mounted.
//!
//! Data flow: path → its target, unopened.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, readlinkat,
    statx,
};
use rustix::io::Errno;

/// The type of autofs in `fstatfs`.
const AUTOFS: i64 = 0x0187;
/// And proc.
const PROC: i64 = 0x9fa0;
/// A mount's number, which no later mount gets (Linux 6.8).
const MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);
/// As many links as the kernel follows.
const LINKS: u32 = 40;

/// Treatment of symbolic links anywhere in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// A path that leads through one is refused; one at the end is found itself.
    Refused,
    /// They are followed.
    Followed,
}

/// The target of a path, unopened.
///
/// # Errors
/// The errors of resolving; `ELOOP` if links are refused; `EREMOTE` if a file system would have to be mounted.
pub fn find(path: &Path, links: Links) -> io::Result<OwnedFd> {
    in_memory(path, links).unwrap_or_else(|| by_names(path, links))
}

/// The path without links that a path leads to.
///
/// # Errors
/// As [`find`].
pub fn real(path: &Path) -> io::Result<PathBuf> {
    std::fs::read_link(name_of(&find(path, Links::Followed)?))
}

/// The same as [`real`], by the kernel's cache of names only; `None` if that has no answer. The target itself is not examined.
pub fn real_in_memory(path: &Path) -> Option<io::Result<PathBuf>> {
    let found = in_memory(path, Links::Followed)?;
    Some(found.and_then(|place| std::fs::read_link(name_of(&place))))
}

/// The name under which the calling thread opens the found file.
pub(crate) fn name_of(place: &OwnedFd) -> String {
    format!("/proc/thread-self/fd/{}", place.as_raw_fd())
}

/// The target of a path by the kernel's cache of names only; `None` if that has no answer.
pub fn in_memory(path: &Path, links: Links) -> Option<io::Result<OwnedFd>> {
    cached(CWD, path, links).map(|found| Ok(found?))
}

/// The target of a path, looked up name by name where the kernel's cache has no answer.
pub fn by_names(path: &Path, links: Links) -> io::Result<OwnedFd> {
    let mut left = LINKS;
    Ok(resolve(CWD, path, links, &mut left)?)
}

fn cached(from: BorrowedFd<'_>, path: &Path, links: Links) -> Option<Result<OwnedFd, Errno>> {
    let (flags, resolve) = match links {
        Links::Refused => (OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS),
        Links::Followed => (OFlags::empty(), ResolveFlags::empty()),
    };
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    let resolve = resolve | ResolveFlags::CACHED;
    match openat2(from, path, flags, Mode::empty(), resolve) {
        // The latter before Linux 5.12, before 5.6, and in containers.
        Err(Errno::AGAIN | Errno::INVAL | Errno::NOSYS | Errno::PERM) => None,
        found => Some(found),
    }
}

/// `left` links may be followed.
fn resolve(
    from: BorrowedFd<'_>,
    path: &Path,
    links: Links,
    left: &mut u32,
) -> Result<OwnedFd, Errno> {
    let mut names = path.components();
    let last = names.next_back().ok_or(Errno::NOENT)?;
    if last == Component::RootDir {
        // It is never mounted, and this process's working directory does not matter.
        return openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    }
    let before = names.as_path();
    let found;
    let folder = if before.as_os_str().is_empty() {
        from
    } else {
        found = match cached(from, before, links) {
            Some(found) => found?,
            None => resolve(from, before, links, left)?,
        };
        found.as_fd()
    };
    let name = Path::new(last.as_os_str());
    if is_autofs(folder)? {
        return cached(folder, name, links).unwrap_or(Err(Errno::REMOTE));
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOTDIR) if kind(folder)? == FileType::Symlink => return Err(Errno::LOOP),
        there => there?,
    };
    if links == Links::Refused || kind(there.as_fd())? != FileType::Symlink {
        return Ok(there);
    }
    if file_system(folder)? == PROC {
        // A link of proc leads to the file itself, which may have no name, or stays in proc.
        return openat(folder, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    }
    *left = left.checked_sub(1).ok_or(Errno::LOOP)?;
    let target = readlinkat(&there, c"", Vec::new())?;
    let target = Path::new(std::ffi::OsStr::from_bytes(target.to_bytes()));
    resolve(folder, target, links, left)
}

fn kind(place: BorrowedFd<'_>) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode))
}

/// The type of a directory's file system. The working directory is no descriptor for `fstatfs`.
fn file_system(folder: BorrowedFd<'_>) -> Result<i64, Errno> {
    let about = match folder.as_raw_fd() == CWD.as_raw_fd() {
        true => rustix::fs::statfs(c"."),
        false => rustix::fs::fstatfs(folder),
    };
    Ok(about?.f_type as i64)
}

/// True if looking a name up in this directory may mount a file system.
pub(crate) fn mounts(folder: &OwnedFd) -> io::Result<bool> {
    Ok(is_autofs(folder.as_fd())?)
}

/// True for a directory of autofs, which mounts the names that are looked up in it.
fn is_autofs(folder: BorrowedFd<'_>) -> Result<bool, Errno> {
    thread_local! {
        /// The last mount found not to be autofs. Asking a server for its type takes as long as asking it for a name.
        static OTHER: Cell<Option<u64>> = const { Cell::new(None) };
    }
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let mut mount = None;
    if let Ok(about) = statx(folder, c"", flags, MOUNT) {
        // A file system on a device is not autofs.
        if about.stx_dev_major != 0 {
            return Ok(false);
        }
        let is_told = StatxFlags::from_bits_retain(about.stx_mask).contains(MOUNT);
        mount = is_told.then_some(about.stx_mnt_id);
        if mount.is_some() && mount == OTHER.get() {
            return Ok(false);
        }
    }
    let is_it = file_system(folder)? == AUTOFS;
    if !is_it {
        OTHER.set(mount);
    }
    Ok(is_it)
}
