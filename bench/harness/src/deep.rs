//! The device's share of the limit: the program's bytes, once each, in the best
//! order at full depth.
//!
//! Three ways are tried with several infill gaps and the fastest counts: direct reads
//! by many threads in order of position, the same by a few, and kernel hints for everything followed by
//! a wait until it is in memory. Reading through a gap beats seeking over it on a
//! rotating disk, and only wastes time where positions cost nothing.

use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use crate::signals;

/// Requests outstanding at once; also the threads of the direct reader.
const DEPTH: usize = 64;
/// Requests outstanding of a stream: enough that the device is never idle, too few for it to leave
/// the order it is asked in.
const STREAM_DEPTH: usize = 4;
/// The largest single request, in bytes: the usual largest transfer of a block device.
const LARGEST: u64 = 1 << 20;
/// The largest hint, in bytes: the kernel silently cuts longer ones to its read-ahead.
const LARGEST_HINT: u64 = 128 << 10;
const PAGE: u64 = 4096;

/// What is read of one file: page-aligned `(offset, length)` in bytes, sorted, disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExtents {
    /// The file.
    pub path: PathBuf,
    /// Its ranges.
    pub extents: Vec<(u64, u64)>,
}

impl FileExtents {
    /// Bytes in all ranges.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|(_, len)| len).sum()
    }

    /// The ranges that a set of page numbers makes; sorts and removes doubles.
    pub fn of_pages(path: PathBuf, mut pages: Vec<u64>) -> Self {
        pages.sort_unstable();
        pages.dedup();
        let single = pages.into_iter().map(|page| (page * PAGE, PAGE));
        let extents = merged(single, 0, u64::MAX);
        Self { path, extents }
    }
}

/// A way to read everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Direct reads by many threads, gaps up to so many bytes read through.
    Direct {
        /// Largest gap read through, in bytes.
        gap: u64,
    },
    /// As `Direct`, by so few threads that a moving head goes one way.
    Stream {
        /// Largest gap read through, in bytes.
        gap: u64,
    },
    /// Hints by a few threads, then a wait until everything is in memory.
    Hints {
        /// Largest gap read through, in bytes.
        gap: u64,
    },
}

impl Way {
    /// The ways worth trying.
    pub const ALL: [Way; 7] = [
        Way::Stream { gap: 0 },
        Way::Stream { gap: 64 << 10 },
        Way::Direct { gap: 0 },
        Way::Direct { gap: 64 << 10 },
        Way::Direct { gap: 512 << 10 },
        Way::Hints { gap: 0 },
        Way::Hints { gap: 64 << 10 },
    ];
}

/// Reads everything in `files` in one `way`, which must be out of memory: seconds taken.
pub fn read(files: &[FileExtents], way: Way) -> Result<f64> {
    Ok(read_within(files, way, f64::INFINITY)?.unwrap_or(f64::INFINITY))
}

/// As [`read`]; none when it would take longer than `longest` seconds, and is given up then.
pub fn read_within(files: &[FileExtents], way: Way, longest: f64) -> Result<Option<f64>> {
    signals::check()?;
    match way {
        Way::Direct { gap } | Way::Stream { gap } => {
            let depth = if matches!(way, Way::Direct { .. }) {
                DEPTH
            } else {
                STREAM_DEPTH
            };
            let opened = open_all(files, rustix::fs::OFlags::DIRECT.bits().cast_signed())?;
            let requests = requests(files, gap, LARGEST);
            let began = Instant::now();
            let expired = || began.elapsed().as_secs_f64() > longest;
            in_parallel(depth, &requests, |request, buffer| {
                if expired() {
                    return Ok(());
                }
                let start = buffer.as_ptr().align_offset(PAGE as usize);
                let len = usize::try_from(request.len)?;
                opened[request.file]
                    .read_at(&mut buffer[start..start + len], request.offset)
                    .with_context(|| format!("reading {}", files[request.file].path.display()))?;
                Ok(())
            })?;
            Ok((!expired()).then(|| began.elapsed().as_secs_f64()))
        }
        Way::Hints { gap } => {
            let opened = open_all(files, 0)?;
            let hints = requests(files, gap, LARGEST_HINT);
            let began = Instant::now();
            let expired = || began.elapsed().as_secs_f64() > longest;
            in_parallel(4, &hints, |hint, _| {
                if expired() {
                    return Ok(());
                }
                fadvise(
                    &opened[hint.file],
                    hint.offset,
                    NonZeroU64::new(hint.len),
                    Advice::WillNeed,
                )
                .with_context(|| format!("advising {}", files[hint.file].path.display()))
            })?;
            // One byte of the last page waits for the whole hint: its pages were asked for together.
            for hint in requests(files, 0, LARGEST_HINT) {
                if expired() {
                    return Ok(None);
                }
                let mut byte = [0];
                opened[hint.file]
                    .read_at(&mut byte, hint.offset + hint.len - 1)
                    .with_context(|| format!("reading {}", files[hint.file].path.display()))?;
            }
            Ok((!expired()).then(|| began.elapsed().as_secs_f64()))
        }
    }
}

/// One range of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    file: usize,
    offset: u64,
    len: u64,
}

/// All ranges in order of file and position, gaps filled, cut to `largest`.
fn requests(files: &[FileExtents], gap: u64, largest: u64) -> Vec<Request> {
    let of_file = |(file, list): (usize, &FileExtents)| {
        merged(list.extents.iter().copied(), gap, largest)
            .into_iter()
            .map(move |(offset, len)| Request { file, offset, len })
            .collect::<Vec<_>>()
    };
    files.iter().enumerate().flat_map(of_file).collect()
}

/// Sorted ranges, joined over gaps of up to `gap` bytes, then cut to `largest`.
fn merged(sorted: impl IntoIterator<Item = (u64, u64)>, gap: u64, largest: u64) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (offset, len) in sorted {
        match joined.last_mut() {
            Some((start, length)) if offset <= *start + *length + gap => {
                *length = offset + len - *start
            }
            _ => joined.push((offset, len)),
        }
    }
    let cut = |(offset, len): (u64, u64)| {
        (0..len.div_ceil(largest))
            .map(move |i| (offset + i * largest, largest.min(len - i * largest)))
    };
    joined.into_iter().flat_map(cut).collect()
}

/// Opens every file with extra open flags.
fn open_all(files: &[FileExtents], flags: i32) -> Result<Vec<File>> {
    let open = |list: &FileExtents| {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&list.path);
        file.with_context(|| format!("opening {}", list.path.display()))
    };
    files.iter().map(open).collect()
}

/// Runs `work` on every request, in order of start, by `threads` threads.
fn in_parallel(
    threads: usize,
    requests: &[Request],
    work: impl Fn(&Request, &mut [u8]) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let largest = requests
        .iter()
        .map(|request| request.len)
        .max()
        .unwrap_or(0);
    let buffer_len = usize::try_from(largest + PAGE)?;
    let one = || -> Result<()> {
        let mut buffer = vec![0; buffer_len];
        while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(request, &mut buffer)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(requests.len()))
            .map(|_| scope.spawn(one))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => bail!("a reading thread ended early"),
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::build_dir;

    #[test]
    fn gaps_up_to_the_limit_are_read_through_and_long_ranges_cut() {
        let ranges = [(0, 4096), (4096, 4096), (16384, 4096)];
        assert_eq!(merged(ranges, 0, u64::MAX), [(0, 8192), (16384, 4096)]);
        assert_eq!(merged(ranges, 8192, u64::MAX), [(0, 20480)]);
        assert_eq!(merged(ranges, 4096, u64::MAX), [(0, 8192), (16384, 4096)]);
        assert_eq!(
            merged([(0, 10000)], 0, 4096),
            [(0, 4096), (4096, 4096), (8192, 1808)]
        );
    }

    #[test]
    fn pages_in_any_order_become_sorted_ranges_once_each() {
        let list = FileExtents::of_pages("f".into(), vec![7, 2, 3, 7, 1]);
        assert_eq!(list.extents, [(4096, 3 * 4096), (7 * 4096, 4096)]);
        assert_eq!(list.bytes(), 4 * 4096);
    }

    #[test]
    fn every_way_reads_a_file_that_ends_inside_a_page() {
        let file = tempfile::NamedTempFile::new_in(build_dir()).unwrap();
        std::fs::write(file.path(), vec![7; 3 * 4096 + 100]).unwrap();
        File::open(file.path()).unwrap().sync_all().unwrap();
        let list = [FileExtents::of_pages(file.path().to_owned(), vec![0, 1, 3])];
        for way in Way::ALL {
            let seconds = read(&list, way).unwrap();
            assert!(seconds > 0.0, "{way:?}");
        }
    }
}
