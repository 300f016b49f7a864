//! Finds pages of a file that are in memory and complete, without touching them.
//!
//! Invariant: the mapping is never read, so it can neither fault pages in nor cause a `SIGBUS` when the file shrinks. A page counts only
//! when its read is complete, which `cachestat` does not show.
//!
//! Data flow: a descriptor is mapped once; each question is one `mincore(2)` over a window.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::{checked, page_size};

/// Pages asked about in one call, so that the answer needs no allocation that grows with the file.
pub(crate) const WINDOW: u64 = 16 * 1024;

/// A file mapped only to be asked about.
#[derive(Debug)]
pub struct Residency {
    address: *mut libc::c_void,
    /// Bytes mapped; 0 for an empty file, which has no mapping.
    len: usize,
}

// SAFETY: the mapping is never dereferenced, and the address is only handed to mincore and munmap.
unsafe impl Send for Residency {}
// SAFETY: as above; concurrent mincore calls over one mapping are independent.
unsafe impl Sync for Residency {}

impl Residency {
    /// Maps the first `len` bytes of a file, reading none of them.
    pub fn new<Fd: AsFd>(fd: Fd, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{len} bytes do not fit the address space"),
            )
        })?;
        if len == 0 {
            return Ok(Self {
                address: std::ptr::null_mut(),
                len,
            });
        }
        // SAFETY: a fresh mapping at an address of the kernel's choosing; nothing else knows of it.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::NORESERVE,
                fd,
                0,
            )
        }?;
        Ok(Self { address, len })
    }

    /// True if `mincore` is truthful for this caller and file.
    ///
    /// It answers "all resident" unless the caller is the file's `owner`, has `CAP_FOWNER`, or may write to the file.
    pub fn permitted<Fd: AsFd>(fd: Fd, owner: u32) -> io::Result<bool> {
        use std::os::fd::AsRawFd;

        let fd = fd.as_fd();
        if owner == rustix::process::geteuid().as_raw() {
            return Ok(true);
        }
        let fowner = rustix::thread::capabilities(None).is_ok_and(|set| {
            set.effective
                .contains(rustix::thread::CapabilitySet::FOWNER)
        });
        if fowner {
            return Ok(true);
        }
        let path = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
        Ok(rustix::fs::accessat(rustix::fs::CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok())
    }

    /// Bytes mapped.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// True if the file was empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts into `pages` one entry for each page `range` touches: in memory and ready, or not.
    ///
    /// The range is cut to the bytes mapped.
    pub fn uptodate(&self, range: Range<u64>, pages: &mut Vec<bool>) -> io::Result<()> {
        pages.clear();
        let page = page_size();
        let end = range.end.min(self.len());
        if range.start >= end {
            return Ok(());
        }
        let mut first = range.start / page;
        let last = end.div_ceil(page);
        let mut answer = vec![0u8; (last - first).min(WINDOW) as usize];
        while first < last {
            let count = (last - first).min(WINDOW);
            // SAFETY: the window lies within the mapping, whose last page may be partial (mincore
            // rounds its length up), and the answer has a byte for each page asked about.
            checked(unsafe {
                libc::mincore(
                    self.address.byte_add((first * page) as usize),
                    (count * page) as usize,
                    answer.as_mut_ptr(),
                )
            })?;
            // The other bits of each byte are reserved.
            pages.extend(answer[..count as usize].iter().map(|bits| bits & 1 == 1));
            first += count;
        }
        Ok(())
    }
}

impl Drop for Residency {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping is ours, whole, and nothing borrows from it. A failure would
            // leave address space in use, which no caller could do anything about.
            let _ = unsafe { rustix::mm::munmap(self.address, self.len) };
        }
    }
}
