//! The device's share of the limit: the time to bring the program's names and bytes into memory, once each, in the best order at
//! full depth.
//!
//! Names come first ([`Names::bring`]). The bytes are read in three ways, each with several infill gaps, and the fastest counts:
//! direct reads by many threads in order of position, the same by a few threads, and kernel hints for all bytes followed by a
//! wait until they are in memory. Reading through a gap is faster than seeking over it on a rotating disk, and only wastes time
//! on a disk where positions cost nothing.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use crate::names::Names;
use crate::parallel::spread;
use crate::signals;

/// Requests outstanding at once; also the threads of the direct reader.
const DEPTH: usize = 64;
/// Requests outstanding at once in a stream: enough that the device is never idle, too few for the device to reorder them.
const STREAM_DEPTH: usize = 4;
/// The largest single request, in bytes: the usual largest transfer of a block device.
const LARGEST: u64 = 1 << 20;
/// The largest hint, in bytes: the kernel silently cuts a longer one to its read-ahead.
const LARGEST_HINT: u64 = 128 << 10;
const PAGE: u64 = 4096;

/// The pages of one file to be read: page-aligned `(offset, length)` in bytes, sorted, disjoint.
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

    /// The ranges of a set of page numbers; sorts and removes duplicates.
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
    /// Direct reads by many threads; gaps up to `gap` are read through.
    Direct {
        /// Largest gap read through, in bytes.
        gap: u64,
    },
    /// As `Direct`, by so few threads that a moving head sweeps in one direction.
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
    /// The ways worth trying on a disk. A wide gap is worth trying only where a head moves.
    pub fn worth_trying(rotational: bool) -> &'static [Way] {
        const TURNING: &[Way] = &[
            Way::Stream { gap: 0 },
            Way::Stream { gap: 64 << 10 },
            Way::Direct { gap: 0 },
            Way::Direct { gap: 64 << 10 },
            Way::Direct { gap: 512 << 10 },
            Way::Hints { gap: 0 },
            Way::Hints { gap: 64 << 10 },
        ];
        const OTHER: &[Way] = &[
            Way::Direct { gap: 0 },
            Way::Direct { gap: 64 << 10 },
            Way::Stream { gap: 0 },
            Way::Hints { gap: 0 },
            Way::Hints { gap: 64 << 10 },
        ];
        if rotational { TURNING } else { OTHER }
    }

    /// Requests outstanding at once.
    fn depth(self) -> usize {
        match self {
            Way::Direct { .. } => DEPTH,
            Way::Stream { .. } | Way::Hints { .. } => STREAM_DEPTH,
        }
    }
}

/// Removes the pages of `others` from `files`.
pub fn take_away(files: &mut Vec<FileExtents>, others: &[FileExtents]) {
    let pages = |list: &FileExtents| -> Vec<u64> {
        let ranges = list.extents.iter();
        ranges
            .flat_map(|(offset, len)| offset / PAGE..(offset + len) / PAGE)
            .collect()
    };
    for list in &mut *files {
        if let Some(other) = others.iter().find(|other| other.path == list.path) {
            let gone: HashSet<u64> = pages(other).into_iter().collect();
            let left = pages(list).into_iter().filter(|page| !gone.contains(page));
            *list = FileExtents::of_pages(list.path.clone(), left.collect());
        }
    }
    files.retain(|list| !list.extents.is_empty());
}

/// Orders files by the place of their first ranges on their disks; files whose place is unknown come first.
pub fn order_by_place(files: &mut [FileExtents]) {
    files.sort_by_cached_key(|list| {
        let file = File::open(&list.path).ok()?;
        let first = list.extents.first()?.0;
        let extents = foreread_sys::file::fiemap(&file, first..first + 1).ok()?;
        let dev = file.metadata().ok()?.dev();
        Some((dev, extents.first()?.physical))
    });
}

/// The names and bytes that a program needs from the disk.
#[derive(Clone, Debug, Default)]
pub struct Needed {
    /// The names that it asks about; empty where only bytes are out of memory.
    pub names: Names,
    /// The bytes it reads.
    pub files: Vec<FileExtents>,
}

/// Reads all of `needed`, which must be out of memory, in this `way`; returns the seconds.
pub fn read(needed: &Needed, way: Way) -> Result<f64> {
    Ok(read_within(needed, way, f64::INFINITY)?.unwrap_or(f64::INFINITY))
}

/// As [`read`]; gives up after `longest` seconds and returns `None`.
pub fn read_within(needed: &Needed, way: Way, longest: f64) -> Result<Option<f64>> {
    signals::check()?;
    let files = &needed.files;
    let began = Instant::now();
    let expired = || began.elapsed().as_secs_f64() > longest;
    let names_depth = match way {
        Way::Hints { .. } => DEPTH,
        way => way.depth(),
    };
    needed.names.bring(names_depth)?;
    match way {
        Way::Direct { gap } | Way::Stream { gap } => {
            let requests = requests(files, gap, LARGEST);
            let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
            let opened = Opened::new(files, &requests, direct);
            spread(
                way.depth(),
                &requests,
                || buffer(&requests),
                |request, buffer| {
                    if expired() {
                        return Ok(());
                    }
                    let start = buffer.as_ptr().align_offset(PAGE as usize);
                    let len = usize::try_from(request.len)?;
                    opened.with(request, |file| {
                        file.read_at(&mut buffer[start..start + len], request.offset)
                            .map(drop)
                    })
                },
            )?;
        }
        Way::Hints { gap } => {
            let hints = requests(files, gap, LARGEST_HINT);
            let opened = Opened::new(files, &hints, 0);
            spread(
                way.depth(),
                &hints,
                || (),
                |hint, ()| {
                    if expired() {
                        return Ok(());
                    }
                    opened.with(hint, |file| {
                        let len = NonZeroU64::new(hint.len);
                        Ok(fadvise(file, hint.offset, len, Advice::WillNeed)?)
                    })
                },
            )?;
            // Reading one byte of a hint's last page waits for the whole hint, because its pages were requested together.
            let hints = requests(files, 0, LARGEST_HINT);
            let opened = Opened::new(files, &hints, 0);
            for hint in &hints {
                if expired() {
                    return Ok(None);
                }
                opened.with(hint, |file| {
                    file.read_at(&mut [0], hint.offset + hint.len - 1).map(drop)
                })?;
            }
        }
    }
    Ok((!expired()).then(|| began.elapsed().as_secs_f64()))
}

/// Room for the largest of `requests`, in whole pages, with slack for alignment.
fn buffer(requests: &[Request]) -> Vec<u8> {
    let largest = requests.iter().map(|request| request.len).max();
    vec![0; (largest.unwrap_or(0) + PAGE) as usize]
}

/// Files are opened at the first of their requests and closed after the last, because there may be more of them than a process
/// may have open at once.
struct Opened<'a> {
    files: &'a [FileExtents],
    flags: i32,
    /// Each file while it is open, and the number of its unfinished requests.
    slots: Vec<(Mutex<Option<Arc<File>>>, AtomicUsize)>,
}

impl<'a> Opened<'a> {
    fn new(files: &'a [FileExtents], requests: &[Request], flags: i32) -> Self {
        let mut left = vec![0; files.len()];
        for request in requests {
            left[request.file] += 1;
        }
        let slot = |count| (Mutex::new(None), AtomicUsize::new(count));
        Self {
            files,
            flags,
            slots: left.into_iter().map(slot).collect(),
        }
    }

    /// Runs `work` on the file of one request.
    fn with(
        &self,
        request: &Request,
        work: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = &self.files[request.file].path;
        let (slot, left) = &self.slots[request.file];
        let file = {
            let mut open = slot.lock().unwrap_or_else(PoisonError::into_inner);
            match &*open {
                Some(file) => file.clone(),
                None => {
                    let file = OpenOptions::new()
                        .read(true)
                        .custom_flags(self.flags)
                        .open(path)
                        .with_context(|| format!("opening {}", path.display()))?;
                    open.insert(Arc::new(file)).clone()
                }
            }
        };
        work(&file).with_context(|| format!("reading {}", path.display()))?;
        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(())
    }
}

/// One range of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    file: usize,
    offset: u64,
    len: u64,
}

/// All ranges in order of file and position, gaps up to `gap` filled, cut into pieces of at most `largest` bytes.
fn requests(files: &[FileExtents], gap: u64, largest: u64) -> Vec<Request> {
    let of_file = |(file, list): (usize, &FileExtents)| {
        merged(list.extents.iter().copied(), gap, largest)
            .into_iter()
            .map(move |(offset, len)| Request { file, offset, len })
            .collect::<Vec<_>>()
    };
    files.iter().enumerate().flat_map(of_file).collect()
}

/// Sorted ranges, joined over gaps of up to `gap` bytes, then cut into pieces of at most `largest`.
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
    fn pages_are_taken_away_and_files_without_any_left_go() {
        let of = |path: &str, pages: &[u64]| FileExtents::of_pages(path.into(), pages.to_vec());
        let mut files = vec![of("a", &[1, 2, 3, 9]), of("b", &[5]), of("c", &[7])];
        take_away(&mut files, &[of("a", &[2, 4]), of("b", &[5, 6])]);
        assert_eq!(files, [of("a", &[1, 3, 9]), of("c", &[7])]);
    }

    #[test]
    fn every_way_reads_a_file_that_ends_inside_a_page() {
        let file = tempfile::NamedTempFile::new_in(build_dir()).unwrap();
        std::fs::write(file.path(), vec![7; 3 * 4096 + 100]).unwrap();
        File::open(file.path()).unwrap().sync_all().unwrap();
        let needed = Needed {
            names: Names::default(),
            files: vec![FileExtents::of_pages(file.path().to_owned(), vec![0, 1, 3])],
        };
        for rotational in [false, true] {
            for &way in Way::worth_trying(rotational) {
                let seconds = read(&needed, way).unwrap();
                assert!(seconds > 0.0, "{way:?}");
            }
        }
    }
}
