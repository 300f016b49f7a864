//! The client on real files: what is fetched is looked up in the page cache.
//!
//! Here is what the tests share: cold files, and reads as a program makes them.

mod callback;
mod fetching;
mod files;
mod list;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_client::{Client, Entry, Extent, FileId, Match, Options};
use foreread_steady::check;
use foreread_sys::cache;

const PAGE: u64 = 4096;
const PAGES: u64 = 2048;

/// A directory on the file system the build tree is on: /tmp may be in memory.
fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A file of `PAGES` pages, none of them in memory; `None`, said aloud, if its file system keeps them there.
fn cold(dir: &Path, name: &str) -> Option<(PathBuf, File)> {
    let path = dir.join(name);
    std::fs::write(&path, vec![7u8; (PAGES * PAGE) as usize]).unwrap();
    let file = File::open(&path).unwrap();
    cache::advise_random(&file).unwrap();
    let left = cache::evict(&file).unwrap();
    if left > 0 {
        eprintln!("skipped: {} keeps {left} pages in memory", dir.display());
        return None;
    }
    Some((path, file))
}

/// A client that a whole cold file of `PAGES` pages is registered with.
fn cold_region(options: Options) -> Option<(tempfile::TempDir, File, Client, FileId)> {
    let dir = dir();
    let (path, file) = cold(dir.path(), "data")?;
    let client = Client::new(options).unwrap();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    Some((dir, file, client, id))
}

fn cached(file: &File) -> u64 {
    cache::stat(file, 0..u64::MAX >> 1).unwrap().cached
}

/// Wait until so many pages of a file are in memory.
fn wait_for(file: &File, pages: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while cached(file) < pages {
        check!(Instant::now() < until, "{} of {pages} pages", cached(file));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Wait until these entries of a file were all seen in memory. Systems that take pages back from time to time,
/// and not only when memory is short, may do so to one in a hundred before it is seen.
fn wait_for_all(file: &File, list: &[Entry]) {
    let mut unseen = 0;
    for entry in list {
        unseen += usize::from(!is_fetched(file, entry));
        check!(unseen <= list.len() / 100, "{unseen} of {}", list.len());
    }
}

/// Whether an entry is in memory within two seconds.
fn is_fetched(file: &File, entry: &Entry) -> bool {
    let bytes = entry.extent.offset..entry.extent.end();
    let until = Instant::now() + Duration::from_secs(2);
    while cache::stat(file, bytes.clone()).unwrap().cached == 0 {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

/// Long enough for anything asked for to have come.
fn settle() {
    std::thread::sleep(Duration::from_millis(150));
}

fn entry(file: FileId, page: u64) -> Entry {
    Entry {
        file,
        extent: Extent::new(page * PAGE, PAGE),
        marked: false,
    }
}

/// Every fifth page, backwards: nothing the kernel would guess.
fn scattered(file: FileId) -> Vec<Entry> {
    (0..PAGES)
        .rev()
        .step_by(5)
        .map(|page| entry(file, page))
        .collect()
}

fn read(client: &Client, id: FileId, file: &File, extent: Extent) -> Match {
    let matched = client.reading(id, extent).unwrap();
    let start = Instant::now();
    let mut buffer = vec![0; extent.len as usize];
    let _ = file.read_at(&mut buffer, extent.offset).unwrap();
    client.read_done(id, extent, start, start.elapsed());
    matched
}

fn client() -> Client {
    Client::new(Options::default()).unwrap()
}
