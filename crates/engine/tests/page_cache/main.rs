//! The engine and its backend on the real page cache: temporary files, cold.

mod backend;
mod session;
mod together;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use foreread_plan::{Access, Extent, FileId, FileMeta, Kind, PAGE, ThreadId};
use foreread_sys::cache;

const FILE: FileId = FileId(0);
const PAGES: u64 = 4096;

fn read(page: u64, start: u64, took: u64) -> Access {
    Access {
        file: FILE,
        extent: Extent::new(page * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start,
        took,
    }
}

fn meta(path: &Path) -> FileMeta {
    let facts = path.metadata().unwrap();
    FileMeta::regular(
        path.to_owned(),
        (facts.dev(), facts.ino()),
        facts.size(),
        facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
    )
}

/// A file of `PAGES` pages on a real file system, none of them in memory; `None`, said aloud, if this
/// file system keeps them there.
fn cold_file(dir: &Path) -> Option<(File, FileMeta)> {
    let path = dir.join("data");
    std::fs::write(&path, vec![7u8; (PAGES * PAGE) as usize]).unwrap();
    let file = File::open(&path).unwrap();
    let left = cache::evict(&file).unwrap();
    if left > 0 {
        eprintln!("skipped: {} keeps {left} pages in memory", dir.display());
        return None;
    }
    Some((file, meta(&path)))
}

/// A directory on the file system the build tree is on: /tmp may be in memory.
fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn files(meta: FileMeta) -> Arc<BTreeMap<FileId, FileMeta>> {
    Arc::new(BTreeMap::from([(FILE, meta)]))
}
