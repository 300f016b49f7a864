//! This program's own file, fetched as a whole where it is not in memory.
//!
//! A program that is started cold is read page by page as it runs into them, each time with a few around it, and waits for each:
//! `foreread run -- true` met 60 such waits of 0.2 ms in its own file. Asked for at once, what it runs into is on its way.
//!
//! Data flow: the file that this process runs → hints, in the order of the file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::{cache, page_size};

/// The file that this process runs, whatever its name is by now.
const FILE: &str = "/proc/self/exe";
/// A hint that no kernel cuts, in bytes.
const HINT: u64 = 128 << 10;
/// One part in so many of the file may be missing: what a program does not use leaves memory first.
const FEW: u64 = 8;

/// Asks for the file that this process runs, if more than a few of its pages are not in memory. To look takes 15 µs. A failure
/// costs nothing but the speed-up.
pub fn fetch() {
    let _ = fetch_file(Path::new(FILE));
}

/// The same of any file; the bytes that were asked for.
fn fetch_file(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let pages = size.div_ceil(page_size());
    // Where the kernel does not tell, the hints themselves find what is in memory.
    let cached = cache::stat(&file, 0..size).map_or(0, |stat| stat.cached);
    if pages.saturating_sub(cached) * FEW <= pages {
        return Ok(0);
    }
    for hint in hints(size) {
        cache::will_need(&file, hint)?;
    }
    Ok(size)
}

fn hints(size: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = (0..size).step_by(HINT as usize);
    starts.map(move |start| start..size.min(start + HINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_asked_for_whole_where_it_is_not_in_memory_and_not_at_all_where_it_is() {
        // Of a disk's: what lies in memory alone cannot leave it.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("program");
        let size = 3 * HINT + 5000;
        std::fs::write(&path, vec![7; size as usize]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        assert_eq!(fetch_file(&path).unwrap(), 0, "it is in memory");
        cache::dont_need(&file, 0..size).unwrap();
        if cache::stat(&file, 0..size).map_or(u64::MAX, |stat| stat.cached) > 0 {
            eprintln!(
                "skipped: the file cannot be dropped from memory, or the kernel does not tell"
            );
            return;
        }
        assert_eq!(fetch_file(&path).unwrap(), size);
        let cached = cache::stat(&file, 0..size).unwrap().cached;
        assert_eq!(
            cached,
            size.div_ceil(page_size()),
            "all of it is on its way"
        );
    }
}
