//! Requests for several files at once, which the kernel passes to the device together.
//!
//! Until a system call ends, the kernel keeps its requests to the device back and merges adjacent ones. A call of `posix_fadvise` is for
//! one file; a call of io_uring contains reads of many files. A read with RWF_NOWAIT starts the read-ahead of all its bytes and fails at
//! once: nobody waits for the device, and no file stays open.
//!
//! 25,000 small files in the order of grep, from a volume of 3,000 operations a second, took 25,000 operations with one request per file,
//! and 4,800 with 32 requests at a time of 256 that follow each other.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, squeue, types};

use crate::cache;

/// Hints of one call: as many requests as the kernel keeps back (its BLK_MAX_REQUEST_COUNT).
const MOST: u32 = 32;

/// Gives hints, many to a call. After an error of the kernel's it must be dropped: reads of files that are closed by now may still be in its
/// queue.
pub struct Together {
    ring: IoUring,
    /// Buffer for bytes that are in memory already.
    scratch: Vec<u8>,
}

impl Together {
    /// For requests of at most `largest` bytes.
    ///
    /// # Errors
    /// The kernel's error: io_uring may be missing, switched off, or forbidden by a sandbox.
    pub fn new(largest: u32) -> io::Result<Self> {
        Ok(Self {
            ring: IoUring::new(2 * MOST)?,
            scratch: vec![0; largest as usize],
        })
    }

    /// Requests these byte ranges of these files into the page cache. From then on the kernel's own read-ahead of these open file
    /// descriptions is off. True if the kernel has accepted the requests: a file system may ignore them without an error, and on a disk
    /// whose read-ahead is set to 0 the kernel reads only the first page of each range. Then each range needs a request of its own.
    ///
    /// # Errors
    /// The kernel's error, and `InvalidInput` for a range longer than the largest. Some ranges may have been requested then.
    pub fn will_need(&mut self, parts: &[(BorrowedFd<'_>, Range<u64>)]) -> io::Result<bool> {
        for parts in parts.chunks(MOST as usize) {
            self.submit(parts)?;
        }
        Ok(are_accepted(parts))
    }

    fn submit(&mut self, parts: &[(BorrowedFd<'_>, Range<u64>)]) -> io::Result<()> {
        let mut entries = Vec::with_capacity(2 * parts.len());
        for (fd, range) in parts {
            let len = range.end.saturating_sub(range.start);
            if len > self.scratch.len() as u64 {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let fd = types::Fd(fd.as_fd().as_raw_fd());
            // Otherwise more than the range is read. The kernel processes such entries in their order.
            let advise = opcode::Fadvise::new(fd, 0, libc::POSIX_FADV_RANDOM);
            entries.push(advise.build());
            let read = opcode::Read::new(fd, self.scratch.as_mut_ptr(), len as u32)
                .offset(range.start)
                .rw_flags(libc::RWF_NOWAIT);
            entries.push(read.build());
        }
        self.run(&entries)
    }

    /// Submit these reads into `scratch`, and wait until each is over.
    fn run(&mut self, entries: &[squeue::Entry]) -> io::Result<()> {
        // SAFETY: the entries read into `scratch`, at most as much as it holds, and all are over before this returns: it is borrowed
        // for that long, and never moved. Nobody looks at its bytes, which several reads may write at a time.
        unsafe { self.ring.submission().push_multiple(entries) }
            .map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        let mut left = entries.len();
        while left > 0 {
            match self.ring.submit_and_wait(left) {
                Err(why) if why.kind() != io::ErrorKind::Interrupted => return Err(why),
                _ => left = left.saturating_sub(self.ring.completion().count()),
            }
        }
        Ok(())
    }
}

/// True if the last page of the longest range is in memory or on its way.
fn are_accepted(parts: &[(BorrowedFd<'_>, Range<u64>)]) -> bool {
    let longest = parts
        .iter()
        .max_by_key(|(_, range)| range.end.saturating_sub(range.start));
    longest.is_some_and(|(fd, range)| {
        let last = range.end.saturating_sub(1)..range.end;
        cache::stat(fd, last).is_ok_and(|now| now.cached > 0)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use foreread_steady::{check, rounds};

    use super::*;
    use crate::device::Device;

    const LARGEST: u32 = 64 << 10;

    /// An instance, and files of 16 KiB on a device with none of their pages in memory; `None` without io_uring.
    fn cold(files: usize) -> Option<(Together, Vec<File>)> {
        let together = match Together::new(LARGEST) {
            Ok(together) => together,
            Err(why) => {
                eprintln!("skipped: io_uring: {why}");
                return None;
            }
        };
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let files = (0..files).map(|n| {
            let path = folder.path().join(n.to_string());
            let mut file = File::create(&path).unwrap();
            file.write_all(&[7; 16 << 10]).unwrap();
            file.sync_all().unwrap();
            cache::dont_need(&file, 0..16 << 10).unwrap();
            File::open(path).unwrap()
        });
        Some((together, files.collect()))
    }

    fn cached(file: &File) -> u64 {
        cache::stat(file, 0..16 << 10).unwrap().cached
    }

    #[test]
    fn what_is_asked_for_is_on_its_way_and_no_more() {
        if cache::stat(File::open("/proc/self/exe").unwrap(), 0..4096).is_err() {
            eprintln!("skipped: no cachestat");
            return;
        }
        let dev = std::fs::metadata(env!("CARGO_MANIFEST_DIR")).unwrap().dev();
        if Device::of(dev).read_ahead == 0 {
            eprintln!("skipped: the kernel does not read ahead on this disk");
            return;
        }
        rounds(|| {
            let Some((mut together, files)) = cold(40) else {
                return;
            };
            let parts = files.iter().map(|file| (file.as_fd(), 0..8 << 10));
            let accepted = together.will_need(&parts.collect::<Vec<_>>()).unwrap();
            check!(accepted && files.iter().all(|file| cached(file) == 2));
        });
    }

    #[test]
    fn the_first_pages_alone_are_not_what_was_asked_for() {
        if cache::stat(File::open("/proc/self/exe").unwrap(), 0..4096).is_err() {
            eprintln!("skipped: no cachestat");
            return;
        }
        rounds(|| {
            let Some((_, files)) = cold(2) else {
                return;
            };
            let short = (files[0].as_fd(), 0..4096);
            let parts = [(files[1].as_fd(), 0..12 << 10), short];
            for file in &files {
                cache::advise_random(file).unwrap();
                file.read_at(&mut [0], 0).unwrap();
            }
            check!(cached(&files[1]) == 1 && !are_accepted(&parts));
            files[1].read_at(&mut [0], 8 << 10).unwrap();
            check!(are_accepted(&parts));
        });
    }

    #[test]
    fn what_is_in_memory_is_no_trouble_and_what_is_too_long_is_refused() {
        let Some((mut together, files)) = cold(2) else {
            return;
        };
        let all = |to: u64| -> Vec<_> { files.iter().map(|file| (file.as_fd(), 0..to)).collect() };
        together.will_need(&all(16 << 10)).unwrap();
        together.will_need(&all(16 << 10)).unwrap();
        let why = together.will_need(&all(u64::from(LARGEST) + 1));
        assert_eq!(why.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        together.will_need(&all(4096)).unwrap();
        together.will_need(&[]).unwrap();
    }
}
