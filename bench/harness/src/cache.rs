//! Residency: evicting a case's files from the page cache, and proving it.
//!
//! A run counts as cold only if the kernel itself reports, file by file, that next to nothing is in memory. A request to drop
//! pages is no proof.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};

use crate::deep::FileExtents;

const PAGE: u64 = 4096;
/// Pages that may stay in memory on a cold start: one per this many pages, and a few more for small cases.
const TOLERATED_SHARE: u64 = 1000;
const TOLERATED_PAGES: u64 = 2;

/// Drops every page of `files` from memory, written back first. All files at once: with one write-back per file, some disks empty
/// their own caches each time.
pub fn evict(files: &[PathBuf]) -> Result<()> {
    rustix::fs::sync();
    for path in files {
        let file = open(path)?;
        // None: up to the end of the file.
        fadvise(&file, 0, None, Advice::DontNeed)
            .with_context(|| format!("evicting {}", path.display()))?;
    }
    Ok(())
}

/// Drops everything from memory that is cached and not in use: pages, directories and inodes of every disk, programs and
/// libraries. Pages mapped by running processes stay.
pub fn drop_everything() -> Result<()> {
    drop_caches("3")
}

/// Drops only the pages.
pub fn drop_pages() -> Result<()> {
    drop_caches("1")
}

fn drop_caches(what: &str) -> Result<()> {
    rustix::fs::sync();
    let path = "/proc/sys/vm/drop_caches";
    std::fs::write(path, what).with_context(|| format!("writing {path}"))
}

/// True if next to nothing of `files` is in memory.
pub fn is_cold(files: &[PathBuf]) -> Result<bool> {
    let (mut resident, mut pages) = (0, 0);
    for path in files {
        let file = open(path)?;
        let bytes = length(&file, path)?;
        pages += bytes.div_ceil(PAGE);
        resident += cached_pages(&file, path, 0, bytes)?;
    }
    Ok(resident <= TOLERATED_PAGES.max(pages / TOLERATED_SHARE))
}

/// Brings every byte of `files` into memory.
pub fn warm(files: &[PathBuf]) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for path in files {
        let mut file = open(path)?;
        while file
            .read(&mut buffer)
            .with_context(|| format!("reading {}", path.display()))?
            > 0
        {}
    }
    Ok(())
}

/// The pages of `files` that are in memory; files with none are left out.
pub fn resident_extents(files: &[PathBuf]) -> Result<Vec<FileExtents>> {
    let mut found = Vec::new();
    for path in files {
        let file = open(path)?;
        let pages = length(&file, path)?.div_ceil(PAGE);
        let mut resident = Vec::new();
        collect_resident(&file, path, 0..pages, &mut resident)?;
        if !resident.is_empty() {
            found.push(FileExtents::of_pages(path.clone(), resident));
        }
    }
    Ok(found)
}

/// Halves `pages` until each part is wholly in memory or wholly out of it.
fn collect_resident(
    file: &File,
    path: &Path,
    pages: std::ops::Range<u64>,
    found: &mut Vec<u64>,
) -> Result<()> {
    let count = pages.end - pages.start;
    if count == 0 {
        return Ok(());
    }
    let cached = cached_pages(file, path, pages.start * PAGE, count * PAGE)?;
    if cached == count {
        found.extend(pages);
    } else if cached > 0 {
        let middle = pages.start + count / 2;
        collect_resident(file, path, pages.start..middle, found)?;
        collect_resident(file, path, middle..pages.end, found)?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("opening {}", path.display()))
}

fn length(file: &File, path: &Path) -> Result<u64> {
    let metadata = file
        .metadata()
        .with_context(|| format!("looking at {}", path.display()))?;
    Ok(metadata.len())
}

/// Pages of a range of a file that are in memory, as counted by cachestat.
fn cached_pages(file: &File, path: &Path, offset: u64, len: u64) -> Result<u64> {
    let stat = foreread_sys::cache::stat(file, offset..offset + len)
        .with_context(|| format!("asking what is cached of {}", path.display()))?;
    Ok(stat.cached)
}

/// The folder of tests on a disk. /tmp can be a tmpfs, whose pages cannot be dropped.
#[cfg(test)]
pub fn build_dir() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its own path");
    program.parent().expect("and its folder").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_steady::{check, rounds};

    /// A file of `pages` pages on a real disk.
    fn file_of(pages: usize) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new_in(build_dir()).unwrap();
        std::fs::write(file.path(), vec![1; pages * 4096]).unwrap();
        file
    }

    #[test]
    fn a_file_is_cold_after_eviction_and_not_after_reading_it() {
        let file = file_of(64);
        let files = [file.path().to_owned()];
        rounds(|| {
            warm(&files).unwrap();
            check!(!is_cold(&files).unwrap());
            evict(&files).unwrap();
            assert!(is_cold(&files).unwrap());
        });
    }

    #[test]
    fn the_pages_in_memory_are_found_one_by_one() {
        let file = file_of(64);
        let files = [file.path().to_owned()];
        // Without read-ahead, a read brings in only the pages that it reads.
        let reader = File::open(file.path()).unwrap();
        fadvise(&reader, 0, None, Advice::Random).unwrap();
        rounds(|| {
            evict(&files).unwrap();
            let mut page = [0; 4096];
            for index in [3u64, 4, 40] {
                let at = index * 4096;
                std::os::unix::fs::FileExt::read_exact_at(&reader, &mut page, at).unwrap();
            }
            let found = resident_extents(&files).unwrap();
            let found = found.first().map(|file| &file.extents[..]);
            let read = [(3 * 4096, 2 * 4096), (40 * 4096, 4096)];
            check!(found == Some(&read), "{found:?}");
        });
    }

    #[test]
    fn after_everything_is_dropped_names_come_from_the_device_again() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: not root");
            return;
        }
        let dir = tempfile::tempdir_in(build_dir()).unwrap();
        let paths: Vec<PathBuf> = (0..200)
            .map(|number| dir.path().join(format!("name-{number}")))
            .collect();
        for path in &paths {
            std::fs::write(path, "").unwrap();
        }
        let read = || -> u64 {
            let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
            let bytes = text
                .lines()
                .find_map(|line| line.strip_prefix("read_bytes: "));
            bytes.unwrap().parse().unwrap()
        };
        let look = || {
            let before = read();
            for path in &paths {
                path.symlink_metadata().unwrap();
            }
            read() - before
        };
        rounds(|| names_come_from_the_device_again(dir.path(), look));
    }

    fn names_come_from_the_device_again(dir: &Path, look: impl Fn() -> u64) {
        drop_everything().unwrap();
        if look() == 0 && crate::device::Device::holding(dir).unwrap().is_none() {
            println!("skipped: no block device below {}", dir.display());
            return;
        }
        check!(look() == 0, "in memory the second time");
        drop_everything().unwrap();
        assert!(look() > 0, "read from the device");
    }

    #[test]
    fn an_empty_file_is_cold() {
        let file = file_of(0);
        assert!(is_cold(&[file.path().to_owned()]).unwrap());
        assert_eq!(resident_extents(&[file.path().to_owned()]).unwrap(), []);
    }
}
