//! A backend that fetches for other users opens only the very files that were registered.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::{Backend, Event, PageCache};
use foreread_plan::{FileId, FileMeta, Request, RequestId};

fn meta(path: &Path, like: &Path) -> FileMeta {
    let facts = fs::metadata(like).unwrap();
    FileMeta::regular(path.to_owned(), (facts.dev(), facts.ino()), facts.size(), 0)
}

/// True if a requested file is opened.
fn is_opened(mut backend: PageCache, meta: FileMeta) -> bool {
    let file = FileId(1);
    backend.add(file, meta);
    backend.submit(Request {
        id: RequestId(1),
        file,
        pages: 0..1,
    });
    let until = Instant::now() + Duration::from_secs(60);
    let mut gone = false;
    loop {
        assert!(Instant::now() < until, "no answer");
        let mut events = Vec::new();
        backend.poll(&mut events);
        for event in events {
            gone |= matches!(event, Event::Gone { .. });
            if matches!(event, Event::Done { .. }) {
                return !gone;
            }
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn neither_links_nor_other_files_are_opened() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (real, other) = (root.join("real"), root.join("other"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), b"x").unwrap();
    fs::write(&other, b"y").unwrap();
    symlink(real.join("file"), root.join("link")).unwrap();
    symlink(&real, root.join("folder")).unwrap();
    let file = real.join("file");
    let exact = || PageCache::new(&Arc::default()).exactly();
    if !is_opened(exact(), meta(&file, &file)) {
        let found = foreread_sys::name::NameLookup::find(&file);
        let why = found.expect_err("a file that is there is opened");
        eprintln!("skipped: no openat2: {why}");
        return;
    }
    for path in [root.join("link"), root.join("folder/file")] {
        assert!(!is_opened(exact(), meta(&path, &file)), "{path:?}");
        let usual = PageCache::new(&Arc::default());
        assert!(is_opened(usual, meta(&path, &file)), "{path:?}");
    }
    // Somebody has put another file under its name.
    assert!(!is_opened(exact(), meta(&other, &file)));
    assert!(is_opened(
        PageCache::new(&Arc::default()),
        meta(&other, &file)
    ));
}
