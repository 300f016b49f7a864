//! The page cache: requests for pages, and their effect.
//!
//! Invariant: a request never waits for the device beyond queueing, and its failure means only that nothing was fetched. One [`will_need`]
//! or [`readahead`] is silently cut to [`crate::device::Device::max_hint`] bytes: request smaller chunks, and check their arrival.
//!
//! Data flow: byte ranges in, page counts out.

use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::Advice;
use rustix::io::ReadWriteFlags;

use crate::residency::Residency;
use crate::{checked, page_size};

/// The number of `cachestat(2)`: one for every architecture with the common table.
const SYS_CACHESTAT: libc::c_long = 451;

/// Counts of a range in the page cache, in pages, from `cachestat(2)` (Linux 6.5).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// Pages in the cache, including those being read.
    pub cached: u64,
    /// Pages of these not yet written back.
    pub dirty: u64,
    /// Pages of these being written back.
    pub writeback: u64,
    /// Pages that were in the cache and were evicted.
    pub evicted: u64,
    /// Pages of these evicted so recently that they should have been kept.
    pub recently_evicted: u64,
}

#[repr(C)]
struct CacheStatRange {
    off: u64,
    len: u64,
}

/// Counts the pages of `range` in the page cache; about 0.5 µs for a short range.
///
/// # Errors
///
/// `ENOSYS` before Linux 6.5; `EPERM` where the caller neither owns the file nor may write it.
pub fn stat<Fd: AsFd>(fd: Fd, range: Range<u64>) -> io::Result<CacheStat> {
    let mut stat = CacheStat::default();
    if range.is_empty() {
        // The kernel takes a length of 0 as "to the end of the file".
        return Ok(stat);
    }
    let bounds = CacheStatRange {
        off: range.start,
        len: range.end - range.start,
    };
    // SAFETY: the descriptor is open for the length of the call, and both pointers name
    // live structures of the layout the call documents.
    checked(unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd.as_fd().as_raw_fd(),
            &raw const bounds,
            &raw mut stat,
            0u32,
        )
    })?;
    Ok(stat)
}

/// The type of an overlay in `fstatfs`.
const OVERLAY: i64 = 0x794c_7630;

/// True if [`stat`] always returns 0 for a file on device `dev`: the pages of a file on an overlay belong to the file in the layer below.
/// `mincore` of a mapping sees them.
// Another type on other processors.
#[allow(clippy::unnecessary_cast)]
pub fn is_hidden<Fd: AsFd>(fd: Fd, dev: u64) -> bool {
    // A file system with a block device is no overlay.
    rustix::fs::major(dev) == 0
        && rustix::fs::fstatfs(fd).is_ok_and(|about| about.f_type as i64 == OVERLAY)
}

/// Asks for `range` to be read into the page cache (`POSIX_FADV_WILLNEED`).
pub fn will_need<Fd: AsFd>(fd: Fd, range: Range<u64>) -> io::Result<()> {
    advise(fd, range, Advice::WillNeed)
}

/// Drops the clean, unmapped whole pages of `range` (`POSIX_FADV_DONTNEED`); large folios
/// that lie only partly in it stay.
pub fn dont_need<Fd: AsFd>(fd: Fd, range: Range<u64>) -> io::Result<()> {
    advise(fd, range, Advice::DontNeed)
}

/// Turns the kernel's own read-ahead off for this open file description.
///
/// Descriptors shared with the program share the setting; ones opened separately do not.
pub fn advise_random<Fd: AsFd>(fd: Fd) -> io::Result<()> {
    Ok(rustix::fs::fadvise(fd, 0, None, Advice::Random)?)
}

/// Gives this open file description the kernel's usual read-ahead back.
pub fn advise_normal<Fd: AsFd>(fd: Fd) -> io::Result<()> {
    Ok(rustix::fs::fadvise(fd, 0, None, Advice::Normal)?)
}

fn advise<Fd: AsFd>(fd: Fd, range: Range<u64>, advice: Advice) -> io::Result<()> {
    // A length of 0 means "to the end of the file" to the kernel, so an empty range asks nothing.
    match NonZeroU64::new(range.end.saturating_sub(range.start)) {
        Some(len) => Ok(rustix::fs::fadvise(fd, range.start, Some(len), advice)?),
        None => Ok(()),
    }
}

/// Asks for `range` to be read into the page cache by `readahead(2)`.
pub fn readahead<Fd: AsFd>(fd: Fd, range: Range<u64>) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let offset = libc::off64_t::try_from(range.start).map_err(|_| past_the_end(&range))?;
    let len = usize::try_from(range.end - range.start).map_err(|_| past_the_end(&range))?;
    // SAFETY: the descriptor is open for the length of the call; no memory is passed.
    checked(unsafe { libc::readahead(fd.as_fd().as_raw_fd(), offset, len) })?;
    Ok(())
}

fn past_the_end(range: &Range<u64>) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "no file has bytes {}..{}: offsets end at 2^63",
            range.start, range.end
        ),
    )
}

/// Writes a file's dirty pages back and drops all it has in the page cache.
///
/// Returns the pages that stayed: mapped by some process, locked, or dirtied again.
pub fn evict<Fd: AsFd>(fd: Fd) -> io::Result<u64> {
    let fd = fd.as_fd();
    // Dirty pages cannot be dropped. Read-only media cannot be synced and have none.
    match rustix::fs::fdatasync(fd) {
        Ok(()) | Err(rustix::io::Errno::ROFS | rustix::io::Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    rustix::fs::fadvise(fd, 0, None, Advice::DontNeed)?;
    resident_pages(fd)
}

/// The pages a whole file has in the page cache: by [`stat`], or [`Residency`] without it.
fn resident_pages<Fd: AsFd>(fd: Fd) -> io::Result<u64> {
    let size = rustix::fs::fstat(fd.as_fd())?.st_size as u64;
    let whole = size.next_multiple_of(page_size());
    match stat(fd.as_fd(), 0..whole) {
        Ok(stat) => Ok(stat.cached),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let mut pages = Vec::new();
            Residency::new(fd, size)?.uptodate(0..size, &mut pages)?;
            Ok(pages.iter().filter(|&&page| page).count() as u64)
        }
        Err(error) => Err(error),
    }
}

/// [`evict`] for the regular file at `path`.
pub fn evict_path(path: &std::path::Path) -> io::Result<u64> {
    let (fd, _) = crate::file::open_regular(path)?;
    evict(fd)
}

/// True if a read at `offset` would return at once, because its page's read is complete.
///
/// Offsets at or past the end count as ready: no read there waits.
///
/// This is a real one-byte read that declines to wait (`RWF_NOWAIT`). Since Linux 5.10 it
/// nevertheless *starts* reading a page that is absent, and it marks a page as used; [`Residency`] looks without touching.
///
/// # Errors
///
/// `EOPNOTSUPP` if the file system does not support it.
pub fn is_uptodate<Fd: AsFd>(fd: Fd, offset: u64) -> io::Result<bool> {
    let mut byte = [0u8; 1];
    match rustix::io::preadv2(
        fd,
        &mut [IoSliceMut::new(&mut byte)],
        offset,
        ReadWriteFlags::NOWAIT,
    ) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// True if the page at `offset` was in memory before this call.
///
/// The same as [`is_uptodate`], except for a page whose read this call starts and a fast device completes before the check, perhaps while
/// the call queues for it: then this thread has read from a device.
///
/// # Errors
///
/// As [`is_uptodate`].
pub fn was_uptodate<Fd: AsFd>(fd: Fd, offset: u64) -> io::Result<bool> {
    let before = blocks_read();
    Ok(is_uptodate(fd, offset)? && blocks_read() == before)
}

/// Blocks this thread has had read from devices so far; 0 on kernels that do not count them.
fn blocks_read() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the buffer is a rusage, for which all-zero is valid.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_inblock
    }
}
