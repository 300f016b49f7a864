//! Files: opening them safely, where their bytes lie on the device, and which of them lie there at all.
//!
//! Invariant: nothing but a regular file is ever opened. The path is resolved once, without
//! opening (`O_PATH`), examined, and that same object is opened, so nothing can be put in
//! its place between, no FIFO can block and no device can react; nothing is mounted for it ([`way`]).
//!
//! Data flow: a path in, a descriptor and the file's facts out. All are read-only but one: [`append_own`].

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};

use crate::checked;
use crate::lease;
use crate::mounts::Mount;
use crate::way::{self, Links};

/// The identity of a file, and its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Device number (`st_dev`).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes that are set aside for it on its device: fewer than its size where it has holes, or is compressed.
    pub allocated: u64,
    /// Modification time, in ns since the epoch.
    pub mtime_ns: i64,
    /// Time of the last change of contents or inode, in ns since the epoch.
    pub ctime_ns: i64,
    /// Owner.
    pub uid: u32,
}

impl FileFacts {
    /// The facts of an open file.
    pub fn of<Fd: AsFd>(fd: Fd) -> io::Result<Self> {
        Ok(Self::from_stat(&rustix::fs::fstat(fd)?))
    }

    /// The facts of a path's target, which is not opened.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::from_stat(&rustix::fs::stat(path)?))
    }

    fn from_stat(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            size: stat.st_size.max(0) as u64,
            // The unit is 512 bytes on every file system.
            allocated: (stat.st_blocks.max(0) as u64).saturating_mul(512),
            mtime_ns: ns(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime_ns: ns(stat.st_ctime, stat.st_ctime_nsec as i64),
            uid: stat.st_uid,
        }
    }
}

fn ns(seconds: i64, more: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(more)
}

/// The same as [`open_regular`], only for the file with this device and inode, under a path without symbolic links: a process that opens
/// files for others must not be misled. The device is the file's own (`st_dev`) or its file system's, because files of btrfs, and of
/// overlays with layers on several file systems, have numbers of their own.
///
/// # Errors
///
/// As there; `ELOOP` where the path leads through a symbolic link, [`io::ErrorKind::InvalidInput`] for another file.
pub fn open_exactly(path: &Path, dev: u64, ino: u64) -> io::Result<(OwnedFd, FileFacts)> {
    let place = way::find(path, Links::Refused)?;
    let stat = rustix::fs::fstat(&place)?;
    let is_it = stat.st_ino == ino && (stat.st_dev == dev || lies_on(&place, dev)?);
    if !is_it || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "another file has its name",
        ));
    }
    open_found(&place, &stat)
}

/// True if the file's mount is of the file system with this number.
fn lies_on(file: &OwnedFd, dev: u64) -> io::Result<bool> {
    let asked = StatxFlags::MNT_ID;
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, asked)?;
    if found.stx_mask & asked.bits() == 0 {
        // Linux before 5.8 does not report it.
        return Ok(false);
    }
    let table = Mount::table()?;
    let mut mounts = Mount::all_in(&table);
    Ok(mounts.any(|mount| mount.id == found.stx_mnt_id && mount.dev == dev))
}

/// Opens a regular file for reading, without marking it as accessed where that is allowed.
///
/// # Errors
///
/// The errors of resolving and opening; [`io::ErrorKind::InvalidInput`] for anything but a regular file, which is left unopened.
pub fn open_regular(path: &Path) -> io::Result<(OwnedFd, FileFacts)> {
    let (place, stat) = regular(way::find(path, Links::Followed)?)?;
    open_found(&place, &stat)
}

/// Opens regular files one after the other, for the threads of a process that share its open files. A folder is found once for all
/// files in it.
#[derive(Debug, Default)]
pub struct Opener {
    open: Mutex<Folders>,
}

#[derive(Debug, Default)]
struct Folders {
    /// The folders that files were found in.
    folders: HashMap<PathBuf, Arc<OwnedFd>>,
    /// The folder of this process's open files.
    own: Option<Arc<OwnedFd>>,
}

/// Folders that are open at a time, at most: a bound on descriptors.
const FOLDERS: usize = 128;

impl Opener {
    /// As [`open_regular`], but for paths that lead through no symbolic link.
    ///
    /// # Errors
    ///
    /// As there; `ELOOP` for a path that leads through a symbolic link.
    pub fn open(&self, path: &Path) -> io::Result<(OwnedFd, FileFacts)> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return open_regular(path);
        };
        let known = {
            let open = self.lock();
            open.folders.get(folder).cloned().zip(open.own.clone())
        };
        let (folder, own) = match known {
            Some(known) => known,
            None => {
                let found = way::find(folder, Links::Refused)?;
                if way::mounts(&found)? {
                    return open_regular(path);
                }
                self.keep(folder, found)?
            }
        };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (place, stat) = regular(rustix::fs::openat(folder, name, flags, Mode::empty())?)?;
        open_by(&*own, &place.as_raw_fd().to_string(), &place, &stat)
    }

    /// Keeps a folder open, and the folder of this process's open files.
    fn keep(&self, path: &Path, found: OwnedFd) -> io::Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let mut open = self.lock();
        let own = match &open.own {
            Some(own) => Arc::clone(own),
            None => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let own = rustix::fs::open("/proc/self/fd", flags, Mode::empty())?;
                Arc::clone(open.own.insert(Arc::new(own)))
            }
        };
        if open.folders.len() == FOLDERS {
            open.folders.clear();
        }
        let found = Arc::new(found);
        open.folders.insert(path.to_owned(), Arc::clone(&found));
        Ok((found, own))
    }

    /// Closes the folders, because an open one keeps its file system mounted.
    pub fn close(&self) {
        self.lock().folders.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Folders> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same as [`open_regular`], if everything needed to find the file is in memory; `None` if it is not, or if a server would have to be
/// asked.
pub fn open_in_memory(path: &Path) -> Option<io::Result<(OwnedFd, FileFacts)>> {
    let place = match way::in_memory(path, Links::Refused)? {
        Ok(place) => place,
        Err(why) => return Some(Err(why)),
    };
    match regular(place) {
        Ok((place, stat)) => is_local(&place, stat.st_dev).then(|| open_found(&place, &stat)),
        Err(why) => Some(Err(why)),
    }
}

/// File systems without a device number of their own that ask no server: overlayfs, btrfs, bcachefs, tmpfs (statfs(2)).
const LOCAL: [i64; 4] = [0x794c_7630, 0x9123_683e, 0xca45_1a4e, 0x0102_1994];

/// True if the file's file system is local, as far as its type shows.
// The type of a file system's number differs between processors.
#[allow(clippy::unnecessary_cast)]
fn is_local(place: &OwnedFd, dev: u64) -> bool {
    let among = |kind: i64| LOCAL.contains(&kind);
    rustix::fs::major(dev) != 0
        || rustix::fs::fstatfs(place).is_ok_and(|about| among(about.f_type as i64))
}

/// Opens a found file for reading, unless it is under a write lease ([`lease`]): `EWOULDBLOCK`, the kernel's own error for a lease.
fn open_found(place: &OwnedFd, stat: &Stat) -> io::Result<(OwnedFd, FileFacts)> {
    open_by(rustix::fs::CWD, &way::name_of(place), place, stat)
}

/// The same by its name in a folder.
fn open_by(
    folder: impl AsFd,
    name: &str,
    place: &OwnedFd,
    stat: &Stat,
) -> io::Result<(OwnedFd, FileFacts)> {
    if lease::is_held(place) {
        return Err(rustix::io::Errno::WOULDBLOCK.into());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = match rustix::fs::openat(&folder, name, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may leave the access time alone.
        Err(rustix::io::Errno::PERM) => rustix::fs::openat(&folder, name, flags, Mode::empty())?,
        opened => opened?,
    };
    Ok((fd, FileFacts::from_stat(stat)))
}

/// Opens a file for appending, created if absent (readable by its owner only). Files and links planted by others are refused: it is a
/// regular file of this user with one name.
///
/// # Errors
///
/// The errors of resolving and opening, `ELOOP` for a symbolic link; [`io::ErrorKind::InvalidInput`] for anything but a regular file of
/// this user's own.
pub fn append_own(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOCTTY;
    let make = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    match rustix::fs::open(path, make, Mode::RUSR | Mode::WUSR) {
        Err(rustix::io::Errno::EXIST) => {}
        made => return Ok(File::from(made?)),
    }
    let flags_of_place = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (place, stat) = regular(rustix::fs::open(path, flags_of_place, Mode::empty())?)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_nlink != 1 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a file of this user's own, under one name",
        ));
    }
    let link = way::name_of(&place);
    let file = rustix::fs::open(&link, flags | OFlags::NONBLOCK, Mode::empty())?;
    Ok(File::from(file))
}

/// A found, unopened file, if it is a regular one.
fn regular(place: OwnedFd) -> io::Result<(OwnedFd, Stat)> {
    let stat = rustix::fs::fstat(&place)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((place, stat)),
        // The error of open(2) with O_NOFOLLOW.
        FileType::Symlink => Err(rustix::io::Errno::LOOP.into()),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("not a regular file ({other:?})"),
        )),
    }
}

/// A run of a file's bytes that lie together on the device. All in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalExtent {
    /// Start of the range in the file.
    pub logical: u64,
    /// Start on the device.
    pub physical: u64,
    /// Its length.
    pub len: u64,
}

const FIEMAP_EXTENT_LAST: u32 = 0x1;
const FIEMAP_EXTENT_UNKNOWN: u32 = 0x2;
const FIEMAP_EXTENT_DELALLOC: u32 = 0x4;
const FIEMAP_EXTENT_DATA_INLINE: u32 = 0x200;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents without data of their own at a place on the device.
const PLACELESS: u32 = FIEMAP_EXTENT_UNKNOWN
    | FIEMAP_EXTENT_DELALLOC
    | FIEMAP_EXTENT_DATA_INLINE
    | FIEMAP_EXTENT_UNWRITTEN;

/// Extents asked for in one call.
const BATCH: usize = 128;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_after: [u32; 3],
}

/// `struct fiemap` with room for its flexible array.
#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// `_IOWR('f', 11, struct fiemap)`, whose size excludes the array.
const FS_IOC_FIEMAP: libc::Ioctl =
    rustix::ioctl::opcode::from_components(rustix::ioctl::Direction::ReadWrite, b'f', 11, 32)
        as libc::Ioctl;

/// The places of `range` of a file on its device, in file order; holes are left out.
///
/// # Errors
///
/// `EOPNOTSUPP` on file systems without FIEMAP.
pub fn fiemap<Fd: AsFd>(fd: Fd, range: Range<u64>) -> io::Result<Vec<PhysicalExtent>> {
    extents(fd, range, PLACELESS)
}

/// The bytes of `range` that are read from somewhere, in file order, neighbours not joined: not those in holes, nor in room
/// that was set aside and never written to, which are zero without any device.
///
/// # Errors
///
/// As [`fiemap`].
pub fn written<Fd: AsFd>(fd: Fd, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let extents = extents(fd, range, FIEMAP_EXTENT_UNWRITTEN)?;
    let bytes = |extent: PhysicalExtent| extent.logical..extent.logical + extent.len;
    Ok(extents.into_iter().map(bytes).collect())
}

/// The extents of `range` that have none of the flags `without`.
fn extents<Fd: AsFd>(fd: Fd, range: Range<u64>, without: u32) -> io::Result<Vec<PhysicalExtent>> {
    let fd = fd.as_fd();
    let mut extents = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let mut map = RawMap {
            start,
            length: range.end - start,
            flags: 0,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [RawExtent::default(); BATCH],
        };
        // SAFETY: the descriptor is open, and the structure has room for the extents it announces.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        checked(result)?;
        let found = &map.extents[..(map.mapped_extents as usize).min(BATCH)];
        extents.extend(
            found
                .iter()
                .filter(|raw| raw.flags & without == 0)
                .filter_map(|raw| within(raw, &range)),
        );
        match found.last() {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 => {
                let next = last.logical.saturating_add(last.length);
                if next <= start {
                    break;
                }
                start = next;
            }
            _ => break,
        }
    }
    Ok(extents)
}

/// The part of an extent inside `range`.
fn within(raw: &RawExtent, range: &Range<u64>) -> Option<PhysicalExtent> {
    let logical = raw.logical.max(range.start);
    let end = raw.logical.saturating_add(raw.length).min(range.end);
    (logical < end).then(|| PhysicalExtent {
        logical,
        physical: raw.physical + (logical - raw.logical),
        len: end - logical,
    })
}
