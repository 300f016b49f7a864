//! Names, looked up by the page-cache backend on a real file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::{Backend, Event, Outcome, PageCache};
use foreread_plan::{FileId, FileMeta, Kind};
use foreread_steady::{check, rounds};
use rustix::fs::{CWD, FileType, Mode};

/// The recorded state of a path, or of a missing one.
fn meta(path: &Path) -> FileMeta {
    let facts = fs::symlink_metadata(path).ok();
    FileMeta {
        directory: facts.as_ref().is_some_and(fs::Metadata::is_dir),
        ..FileMeta::regular(
            path.to_owned(),
            (
                facts.as_ref().map_or(0, MetadataExt::dev),
                facts.as_ref().map_or(0, MetadataExt::ino),
            ),
            0,
            0,
        )
    }
}

fn backend(paths: &[PathBuf]) -> PageCache {
    let files = paths.iter().map(|path| meta(path));
    PageCache::new(&Arc::new((0..).map(FileId).zip(files).collect()))
}

/// Looks up these names. Returns their results.
fn look(backend: &mut PageCache, names: &[(FileId, Kind)]) -> BTreeMap<u32, Outcome> {
    backend.look(names);
    let mut found = BTreeMap::new();
    let until = Instant::now() + Duration::from_secs(20);
    while found.len() < names.len() {
        assert!(Instant::now() < until, "{} answers", found.len());
        let mut events = Vec::new();
        backend.poll(&mut events);
        for event in events {
            if let Event::Looked { file, outcome, .. } = event {
                assert!(found.insert(file.0, outcome).is_none(), "{file:?} twice");
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    found
}

/// A folder on a real file system.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Drops everything unused from memory, including blocks of directories and inodes; false without the privilege.
fn forget_names() -> bool {
    rustix::fs::sync();
    let may = fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
    if !may {
        eprintln!("skipped: only root can have the kernel forget names");
    }
    may
}

#[test]
fn names_that_are_not_in_memory_are_brought_there() {
    let dir = folder();
    let root = dir.path().canonicalize().unwrap();
    let mut paths = Vec::new();
    for n in 0..400 {
        let folder = root.join(format!("{}", n / 40));
        fs::create_dir_all(&folder).unwrap();
        paths.push(folder.join(format!("file{n}")));
        fs::write(&paths[n], b"x").unwrap();
    }
    rounds(|| {
        let mut backend = backend(&paths);
        let names: Vec<_> = (0..400).map(|n| (FileId(n), Kind::Stat)).collect();
        if !forget_names() {
            return;
        }
        let count = |found: &BTreeMap<u32, Outcome>, wanted| {
            found.values().filter(|&&outcome| outcome == wanted).count()
        };
        let first = look(&mut backend, &names);
        assert_eq!(count(&first, Outcome::Failed), 0);
        // Among the inodes of one block, the first lookup waits.
        check!(
            (1..200).contains(&count(&first, Outcome::Fetched)),
            "{first:?}"
        );
        let again = look(&mut backend, &names);
        check!(count(&again, Outcome::InMemory) > 350, "{again:?}");
    });
}

#[test]
fn what_has_taken_a_names_place_does_no_harm() {
    let dir = folder();
    let root = dir.path().canonicalize().unwrap();
    let outside = folder();
    let path = |name: &str| root.join(name);
    for name in ["file", "fifo", "folder", "planted", "gone"] {
        fs::write(path(name), b"x").unwrap();
    }
    fs::create_dir(path("way")).unwrap();
    fs::write(path("way/file"), b"x").unwrap();
    fs::create_dir(path("listed")).unwrap();
    fs::write(path("listed/file"), b"x").unwrap();
    let names = [
        "file", "fifo", "folder", "planted", "gone", "way/file", "listed",
    ];
    let paths: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
    let mut backend = backend(&paths);
    // The files are replaced by a pipe without a writer, a folder, and links to elsewhere.
    for name in ["fifo", "folder", "planted", "gone"] {
        fs::remove_file(path(name)).unwrap();
    }
    rustix::fs::mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::create_dir(path("folder")).unwrap();
    symlink(outside.path(), path("planted")).unwrap();
    fs::rename(path("way"), path("away")).unwrap();
    symlink(path("away"), path("way")).unwrap();
    let kinds = [Kind::Open; 6].into_iter().chain([Kind::List]);
    let looks: Vec<_> = (0..).map(FileId).zip(kinds).collect();
    let found = look(&mut backend, &looks);
    let failed: Vec<u32> = found
        .iter()
        .filter(|(_, outcome)| **outcome == Outcome::Failed)
        .map(|(&file, _)| file)
        .collect();
    // The pipe, the folder and the link itself are looked up, and nothing behind them.
    assert_eq!(failed, [4, 5], "{found:?}");
    // Anything but a directory has no entries to read.
    let listed = look(
        &mut backend,
        &[(FileId(1), Kind::List), (FileId(3), Kind::List)],
    );
    let all_failed = listed.values().all(|&outcome| outcome == Outcome::Failed);
    assert!(all_failed, "{listed:?}");
}
