//! How long a device takes for one small read far from the last: whether distance costs time.
//!
//! Many virtual disks call themselves rotational and are not, so the flag alone is no
//! ground for reordering. The reads go around the page cache: they change nothing in it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Reads timed; the median of them counts.
const READS: u64 = 3;
/// Bytes a read.
const BLOCK: usize = 4096;

/// A buffer aligned as direct reads need it.
#[repr(align(4096))]
struct Aligned([u8; BLOCK]);

/// The median time of a few scattered 4 KiB reads of the file behind `fd`, `size` bytes long;
/// `None` for an empty file. A small file gets fewer reads, one a block. A disk with a moving head needs milliseconds, any other well under one.
///
/// # Errors
/// `EINVAL` where the file system has no direct reads, and what reading reports.
pub fn scattered<Fd: AsFd>(fd: Fd, size: u64) -> io::Result<Option<Duration>> {
    let path = format!("/proc/thread-self/fd/{}", fd.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let direct = openat(CWD, path, flags, Mode::empty())?;
    let mut buffer = Aligned([0; BLOCK]);
    let blocks = size.div_ceil(BLOCK as u64);
    let mut times = Vec::new();
    for n in 0..READS.min(blocks) {
        // Far apart, and at no constant distance that read-ahead in the device could guess.
        let block = blocks * [3, 6, 1][n as usize] / 7;
        let begun = Instant::now();
        rustix::io::pread(&direct, &mut buffer.0, block * BLOCK as u64)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn an_empty_file_tells_nothing() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        match scattered(&file, 0) {
            Ok(time) => assert_eq!(time, None),
            Err(why) => assert_eq!(why.kind(), io::ErrorKind::InvalidInput, "{why}"),
        }
    }

    #[test]
    fn reads_of_a_real_file_are_timed_or_refused_as_unsupported() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let size = file.metadata().unwrap().len();
        match scattered(&file, size) {
            Ok(time) => assert!(time.unwrap() > Duration::ZERO),
            Err(why) => assert_eq!(why.kind(), io::ErrorKind::InvalidInput, "{why}"),
        }
    }
}
