//! The backend alone: which pages it fetches, which it leaves out, and its answers about files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::{Backend, Change, Event, PageCache};
use foreread_plan::{FileId, FileMeta, PAGE, Request, RequestId};
use foreread_steady::{check, rounds};
use foreread_sys::{cache, file as sys_file};

use super::{FILE, PAGES, cold_file, dir, files, meta};

pub(super) fn wait_for(backend: &mut PageCache, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    while !events.iter().any(&wanted) {
        check!(Instant::now() < until, "only {events:?}");
        std::thread::sleep(Duration::from_millis(1));
        backend.poll(&mut events);
    }
    events
}

#[test]
fn a_request_larger_than_one_hint_arrives_whole() {
    rounds(|| {
        let dir = dir();
        let Some((file, meta)) = cold_file(dir.path()) else {
            return;
        };
        let mut backend = PageCache::new(&files(meta));
        backend.submit(Request {
            id: RequestId(1),
            file: FILE,
            pages: 0..PAGES,
        });
        let events = wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
        assert!(events.contains(&Event::Done {
            id: RequestId(1),
            fetched: true,
            complete: true
        }));
        let cached = cache::stat(&file, 0..PAGES * PAGE).unwrap().cached;
        check!(cached == PAGES, "{cached}");
    });
}

#[test]
fn a_changed_file_is_said_to_be_so_and_a_shrunk_one_is_fetched_as_far_as_it_goes() {
    rounds(|| {
        let dir = dir();
        let Some((file, mut meta)) = cold_file(dir.path()) else {
            return;
        };
        meta.size *= 2;
        let mut backend = PageCache::new(&files(meta));
        backend.submit(Request {
            id: RequestId(1),
            file: FILE,
            pages: PAGES - 1..PAGES + 50,
        });
        let events = wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
        let said = |event: &Event| {
            matches!(
                event,
                Event::Opened { change: Some(Change::Resized(size)), .. } if *size == PAGES * PAGE
            )
        };
        if !events.iter().any(said) {
            // If the kernel reports a rotating disk, the backend is asked meanwhile to verify that.
            wait_for(&mut backend, said);
        }
        let cached = cache::stat(&file, 0..PAGES * PAGE).unwrap().cached;
        check!(cached == 1, "{cached}");
    });
}

#[test]
fn where_a_file_lies_is_told_again_when_the_file_is_added_anew_or_comes_to_be_there() {
    let dir = dir();
    let path = dir.path().join("data");
    std::fs::write(&path, [7; 8 * PAGE as usize]).unwrap();
    let meta = meta(&path);
    let mut backend = PageCache::new(&Arc::default());
    backend.assume(meta.dev, true);
    let is_opened = |event: &Event| matches!(event, Event::Opened { .. });
    for _ in 0..2 {
        backend.add(FILE, meta.clone());
        backend.prepare(FILE);
        wait_for(&mut backend, is_opened);
    }
    std::fs::remove_file(&path).unwrap();
    backend.add(FILE, meta.clone());
    backend.prepare(FILE);
    wait_for(&mut backend, |event| matches!(event, Event::Gone { .. }));
    std::fs::write(&path, [7; 8 * PAGE as usize]).unwrap();
    backend.prepare(FILE);
    wait_for(&mut backend, is_opened);
}

#[test]
fn the_pages_of_holes_are_neither_fetched_nor_counted() {
    rounds(|| {
        let dir = dir();
        let path = dir.path().join("data");
        let file = File::create_new(&path).unwrap();
        file.set_len(64 * PAGE).unwrap();
        // A page, and one byte, whose block may be smaller than a page.
        file.write_all_at(&[7; PAGE as usize], 10 * PAGE).unwrap();
        file.write_all_at(&[7; 1], 40 * PAGE).unwrap();
        file.sync_all().unwrap();
        if sys_file::written(&file, 0..64 * PAGE).is_err() || cache::evict(&file).unwrap() > 0 {
            eprintln!("skipped: {} does not tell holes", dir.path().display());
            return;
        }
        let mut backend = PageCache::new(&files(meta(&path)));
        backend.submit(Request {
            id: RequestId(1),
            file: FILE,
            pages: 0..64,
        });
        let events = wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
        let issued = events.iter().filter_map(|event| match event {
            Event::Issued { pages, .. } => Some(pages.clone()),
            _ => None,
        });
        assert_eq!(issued.collect::<Vec<_>>(), [10..11, 40..41]);
        // A file of holes needs no device.
        backend.submit(Request {
            id: RequestId(2),
            file: FILE,
            pages: 50..60,
        });
        let events = wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
        assert!(events.contains(&Event::Done {
            id: RequestId(2),
            fetched: false,
            complete: true
        }));
        // Its place may be told after the first request is done.
        let is_issued = |event: &Event| matches!(event, Event::Issued { .. });
        assert!(!events.iter().any(is_issued), "{events:?}");
        let cached = |pages: std::ops::Range<u64>| {
            let bytes = pages.start * PAGE..pages.end * PAGE;
            cache::stat(&file, bytes).unwrap().cached
        };
        assert_eq!(cached(50..60), 0);
        check!(cached(40..41) == 1);
    });
}

#[test]
fn what_is_not_a_regular_file_is_never_opened() {
    let dir = dir();
    let path = dir.path().join("pipe");
    std::fs::write(&path, "").unwrap();
    let meta = meta(&path);
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let mut backend = PageCache::new(&files(meta));
    backend.prepare(FILE);
    let events = wait_for(&mut backend, |event| matches!(event, Event::Gone { .. }));
    assert_eq!(events.len(), 1);
}

#[test]
fn a_file_looked_up_ahead_is_opened_when_something_is_fetched_from_it() {
    let dir = dir();
    let Some((_, meta)) = cold_file(dir.path()) else {
        return;
    };
    // Told by the same worker, after it.
    let removed = FileId(FILE.0 + 4);
    let mut files = files(meta.clone());
    let path = dir.path().join("removed");
    let other = FileMeta {
        path,
        ..meta.clone()
    };
    Arc::make_mut(&mut files).insert(removed, other);
    let mut backend = PageCache::new(&files);
    let is_opened = |event: &Event| matches!(event, Event::Opened { .. });
    backend.assume(meta.dev, false);
    backend.prepare(FILE);
    backend.prepare(removed);
    let events = wait_for(&mut backend, |event| matches!(event, Event::Gone { .. }));
    assert!(!events.iter().any(is_opened), "{events:?}");
    backend.submit(Request {
        id: RequestId(9),
        file: FILE,
        pages: 0..4,
    });
    let events = wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
    assert!(events.iter().any(is_opened), "{events:?}");
    // Its place is asked for in advance, in case it matters.
    let mut backend = PageCache::new(&files);
    backend.assume(meta.dev, true);
    backend.prepare(FILE);
    wait_for(&mut backend, is_opened);
}

#[test]
fn a_file_that_was_removed_is_gone_and_its_requests_are_answered() {
    let dir = dir();
    let Some((_, meta)) = cold_file(dir.path()) else {
        return;
    };
    std::fs::remove_file(&meta.path).unwrap();
    let mut backend = PageCache::new(&files(meta));
    backend.submit(Request {
        id: RequestId(9),
        file: FILE,
        pages: 0..4,
    });
    let events = wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Gone { .. }))
    );
}

/// Requests every page by one thread, which checks nothing until it has requested all; `read` is called when the first page is there.
/// Returns the time until all requests are answered, and whether that page is in memory then; `None` if pages cannot be evicted.
fn ask_for_all(read: impl FnOnce(&File, &mut PageCache)) -> Option<(Duration, bool)> {
    let dir = dir();
    let (file, meta) = cold_file(dir.path())?;
    let mut backend = PageCache::new(&files(meta));
    let pages: Vec<u64> = (0..PAGES).filter(|page| page / 256 % 4 == 0).collect();
    let first = || cache::stat(&file, 0..PAGE).unwrap().cached == 1;
    let mut read = Some(read);
    for (n, &page) in (0..).zip(&pages) {
        backend.submit(Request {
            id: RequestId(n),
            file: FILE,
            pages: page..page + 1,
        });
        if n == 8 {
            let until = Instant::now() + Duration::from_secs(10);
            while !first() {
                check!(Instant::now() < until, "what was asked for does not come");
                std::thread::yield_now();
            }
            file.read_exact_at(&mut [0], 0).unwrap();
            if let Some(read) = read.take() {
                read(&file, &mut backend);
            }
        }
    }
    let begun = Instant::now();
    let (mut left, mut events) = (pages.len(), Vec::new());
    while left > 0 {
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(30), "{left} are not answered");
        std::thread::sleep(Duration::from_millis(1));
        backend.poll(&mut events);
        let done = |event: &Event| matches!(event, Event::Done { .. });
        left -= events.drain(..).filter(done).count();
    }
    Some((begun.elapsed(), first()))
}

#[test]
fn what_is_discarded_before_anybody_looked_is_not_waited_for_and_not_fetched_again() {
    rounds(|| {
        if let Some((took, is_there)) = ask_for_all(|_, backend| backend.discard(FILE, 0..1)) {
            check!(took < Duration::from_secs(2), "{took:?}");
            assert!(!is_there);
        }
    });
}

#[test]
fn what_the_program_drops_before_anybody_looked_is_not_waited_for_and_not_fetched_again() {
    rounds(|| {
        let drop = |file: &File, _: &mut PageCache| cache::dont_need(file, 0..PAGE).unwrap();
        if let Some((took, is_there)) = ask_for_all(drop) {
            check!(took < Duration::from_secs(2), "{took:?}");
            assert!(!is_there);
        }
    });
}

#[test]
fn discarded_pages_leave_memory_and_their_neighbours_stay() {
    rounds(|| {
        let dir = dir();
        let Some((file, meta)) = cold_file(dir.path()) else {
            return;
        };
        let mut backend = PageCache::new(&files(meta));
        backend.submit(Request {
            id: RequestId(1),
            file: FILE,
            pages: 0..1024,
        });
        wait_for(&mut backend, |event| matches!(event, Event::Done { .. }));
        backend.discard(FILE, 128..640);
        let cached = |pages: std::ops::Range<u64>| {
            let bytes = pages.start * PAGE..pages.end * PAGE;
            cache::stat(&file, bytes).unwrap().cached
        };
        let until = Instant::now() + Duration::from_secs(10);
        // Pages at the edges may share a folio with ones that stay.
        while cached(192..576) > 0 {
            assert!(Instant::now() < until, "{} pages stay", cached(192..576));
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = (cached(0..128), cached(640..1024));
        check!(left == (128, 384), "{left:?}");
    });
}
