//! The same engine on the real page cache: a temporary file, cold, and a thread that reads it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::{Backend, Change, Event, PageCache};
use foreread_engine::{Config, Engine, Phase, Report, Session};
use foreread_plan::{Access, Extent, FileId, FileMeta, Kind, PAGE, Request, RequestId, ThreadId};
use foreread_sources::{Replay, Trace};
use foreread_sys::cache;

const FILE: FileId = FileId(0);
const PAGES: u64 = 4096;

struct List(Vec<u64>, usize);

impl Trace for List {
    fn next(&mut self) -> Option<Access> {
        self.1 += 1;
        self.0.get(self.1 - 1).map(|&page| read(page, 0, 0))
    }
    fn rewind(&mut self) {
        self.1 = 0;
    }
}

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
    FileMeta {
        path: path.to_owned(),
        dev: facts.dev(),
        ino: facts.ino(),
        size: facts.size(),
        mtime_ns: facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
        written: false,
        random: false,
    }
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

/// Every 5th page, backwards: nothing the kernel would guess.
fn pages() -> Vec<u64> {
    (0..PAGES).rev().step_by(5).collect()
}

fn follow(meta: FileMeta, plan: Vec<u64>, program: &[u64], file: &File) -> Report {
    let backend = PageCache::new(&files(meta));
    let source = Box::new(Replay::new(List(plan, 0), HashSet::new()));
    let start = Instant::now();
    let engine = Engine::new(source, backend, Config::default());
    let session = Session::start(move || engine, start).unwrap();
    let mut buffer = vec![0; PAGE as usize];
    for &page in program {
        std::thread::sleep(Duration::from_micros(200));
        let begun = start.elapsed();
        file.read_exact_at(&mut buffer, page * PAGE).unwrap();
        let took = start.elapsed() - begun;
        session.observe(read(page, begun.as_nanos() as u64, took.as_nanos() as u64));
        session.wake();
    }
    session.finish().unwrap()
}

#[test]
fn a_cold_plan_is_fetched_and_every_byte_accounted_for() {
    let dir = dir();
    let Some((file, meta)) = cold_file(dir.path()) else {
        return;
    };
    let plan = pages();
    let report = follow(meta, plan.clone(), &plan, &file);
    let ledger = report.ledger;
    assert!(ledger.is_closed(), "{ledger:?}");
    // What the engine has not come to when the program ends is accounted for, and not judged.
    assert_eq!(report.foreseen, report.reads);
    assert!(report.reads > plan.len() as u64 / 2, "{report:?}");
    assert!(
        ledger.issued >= plan.len() as u64 * PAGE * 9 / 10,
        "{ledger:?}"
    );
    // A device that is slow just now may be taken for a rotating one, and its gaps read along.
    let wanted = ledger.issued - ledger.infill;
    assert!(ledger.useful > wanted / 2, "{ledger:?}");
    assert!(report.changed.is_empty() && report.gone.is_empty());
}

#[test]
fn reads_that_nobody_wakes_the_engine_for_are_seen_when_its_timer_ends() {
    let dir = dir();
    let Some((file, meta)) = cold_file(dir.path()) else {
        return;
    };
    let plan = pages();
    let start = Instant::now();
    let engine = Engine::new(
        Box::new(Replay::new(List(plan.clone(), 0), HashSet::new())),
        PageCache::new(&files(meta)),
        Config {
            budget_pages: 256,
            ..Config::default()
        },
    );
    let session = Session::start(move || engine, start).unwrap();
    for &page in &plan {
        let until = Instant::now() + Duration::from_secs(2);
        let bytes = page * PAGE..(page + 1) * PAGE;
        while cache::stat(&file, bytes.clone()).unwrap().cached == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
        session.observe(read(page, start.elapsed().as_nanos() as u64, 1000));
    }
    let ledger = session.finish().unwrap().ledger;
    let wanted = ledger.issued - ledger.infill;
    assert!(wanted >= plan.len() as u64 * PAGE * 9 / 10, "{ledger:?}");
}

#[test]
fn a_plan_that_is_in_memory_is_found_hot_and_nothing_is_issued() {
    let dir = dir();
    let Some((file, meta)) = cold_file(dir.path()) else {
        return;
    };
    std::io::copy(&mut &file, &mut std::io::sink()).unwrap();
    let plan = pages();
    let report = follow(meta, plan.clone(), &plan[..50], &file);
    assert_eq!(report.phase, Phase::Hot);
    assert_eq!(report.ledger.issued, 0);
}

#[test]
fn a_plan_longer_than_the_queue_is_found_hot_too() {
    let dir = dir();
    let Some((file, meta)) = cold_file(dir.path()) else {
        return;
    };
    std::io::copy(&mut &file, &mut std::io::sink()).unwrap();
    let plan: Vec<u64> = (0..400_000).map(|n| n * 7919 % PAGES).collect();
    assert!(plan.len() > Config::default().queue_entries);
    let report = follow(meta, plan.clone(), &plan[..1000], &file);
    assert_eq!(report.phase, Phase::Hot);
}

#[test]
fn pages_fetched_for_nothing_are_accounted_as_wasted() {
    let dir = dir();
    let Some((file, meta)) = cold_file(dir.path()) else {
        return;
    };
    let report = follow(meta, pages(), &[], &file);
    let ledger = report.ledger;
    assert_eq!(ledger.wasted, ledger.issued);
    assert!(ledger.is_closed());
}

fn wait_for(backend: &mut PageCache, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    while !events.iter().any(&wanted) {
        assert!(Instant::now() < until, "only {events:?}");
        std::thread::sleep(Duration::from_millis(1));
        backend.poll(&mut events);
    }
    events
}

#[test]
fn a_request_larger_than_one_hint_arrives_whole() {
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
    assert_eq!(cache::stat(&file, 0..PAGES * PAGE).unwrap().cached, PAGES);
}

#[test]
fn a_changed_file_is_said_to_be_so_and_a_shrunk_one_is_fetched_as_far_as_it_goes() {
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
    assert!(events.iter().any(|event| matches!(
        event,
        Event::Opened { change: Some(Change::Resized(size)), .. } if *size == PAGES * PAGE
    )));
    assert_eq!(cache::stat(&file, 0..PAGES * PAGE).unwrap().cached, 1);
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

#[test]
fn discarded_pages_leave_memory_and_their_neighbours_stay() {
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
    assert_eq!((cached(0..128), cached(640..1024)), (128, 384));
}
