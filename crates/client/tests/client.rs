//! The client on real files: what is fetched is looked up in the page cache.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foreread_client::{
    Client, Entry, Error, Extent, FileId, Flags, Match, Missed, Options, prefetch,
};
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

fn cached(file: &File) -> u64 {
    cache::stat(file, 0..u64::MAX >> 1).unwrap().cached
}

/// Wait until so many pages of a file are in memory.
fn wait_for(file: &File, pages: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while cached(file) < pages {
        assert!(Instant::now() < until, "{} of {pages} pages", cached(file));
        std::thread::sleep(Duration::from_millis(1));
    }
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

#[test]
fn a_list_is_fetched_and_every_byte_accounted_for() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let list = scattered(id);
    assert_eq!(client.request(&list, Flags::SET).unwrap(), list.len());
    wait_for(&file, list.len() as u64);
    for entry in &list {
        assert_eq!(read(&client, id, &file, entry.extent), Match::Listed);
    }
    let report = client.finish();
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    assert_eq!(report.ledger.issued, list.len() as u64 * PAGE);
    assert_eq!(report.ledger.wasted, 0, "{:?}", report.ledger);
    assert_eq!(report.stats.list.listed, list.len() as u64);
    assert_eq!(cached(&file), list.len() as u64, "and nothing else");
}

#[test]
fn reads_that_are_only_announced_make_room_for_what_the_budget_does_not_hold_at_once() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let mut options = Options::default();
    options.budget = Some(1 << 20);
    let client = Client::new(options).unwrap();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    // Every page, in no order: eight times the budget.
    let pages = (0..PAGES).map(|n| n * 1021 % PAGES);
    let list: Vec<Entry> = pages.map(|page| entry(id, page)).collect();
    assert_eq!(client.request(&list, Flags::SET).unwrap(), list.len());
    for (n, entry) in list.iter().enumerate() {
        let until = Instant::now() + Duration::from_secs(20);
        let bytes = entry.extent.offset..entry.extent.end();
        while cache::stat(&file, bytes.clone()).unwrap().cached == 0 {
            assert!(Instant::now() < until, "entry {n}: {:?}", client.stats());
            std::thread::sleep(Duration::from_micros(100));
        }
        assert_eq!(client.announce(id, entry.extent).unwrap(), Match::Listed);
    }
    let report = client.finish();
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    assert!(report.ledger.useful + report.ledger.late >= PAGES * PAGE * 99 / 100);
}

#[test]
fn the_talks_worked_example_goes_step_by_step() {
    let dir = dir();
    let (Some((a_path, a_file)), Some((b_path, b_file))) =
        (cold(dir.path(), "A"), cold(dir.path(), "B"))
    else {
        return;
    };
    let calls = Arc::new(Mutex::new(Vec::new()));
    let client = client();
    let (a, b) = (
        client.add_path(&a_path).unwrap(),
        client.add_path(&b_path).unwrap(),
    );
    // The slides count in bytes; pages make visible what was fetched.
    let at = |n: u64| n * PAGE;
    let one = move |file, n, marked| Entry {
        file,
        extent: Extent::new(at(n), 0),
        marked,
    };
    // c = register_client(callback, NULL);
    let seen = Arc::clone(&calls);
    client.on_miss(move |client, missed| {
        let mut calls = seen.lock().unwrap();
        calls.push(missed);
        if calls.len() == 1 {
            // n = request_prefetching(c, compute_new_alist(B, 350), 2, PF_SET | PF_DONE);
            let list = [one(b, 150, false), one(a, 200, true)];
            let accepted = client.request(&list, Flags::SET | Flags::DONE);
            assert_eq!(accepted.unwrap(), 2);
        }
    });
    // r1, r2, r3 = register_region(…);
    client.region(a, at(75)..at(350)).unwrap();
    client.region(b, at(100)..at(200)).unwrap();
    client.region(b, at(300)..at(400)).unwrap();
    // n = request_prefetching(c, a_list, 3, PF_SET | PF_DONE);
    let list = [one(a, 100, true), one(b, 150, false), one(a, 200, true)];
    assert_eq!(client.request(&list, Flags::SET | Flags::DONE).unwrap(), 3);
    wait_for(&a_file, 2);
    wait_for(&b_file, 1);
    let there = |file: &File, n: u64| cache::stat(file, at(n)..at(n + 1)).unwrap().cached == 1;
    assert!(there(&a_file, 100) && there(&b_file, 150) && there(&a_file, 200));
    // pread(A, ..., 100): on the list, and in memory.
    let page = |n| Extent::new(at(n), PAGE);
    assert_eq!(read(&client, a, &a_file, page(100)), Match::Listed);
    assert!(calls.lock().unwrap().is_empty());
    // pread(B, ..., 350): not on the list: callback(NULL, A, 100, B, 350).
    assert_eq!(read(&client, b, &b_file, page(350)), Match::Unlisted);
    let call = Missed {
        marked: Some((a, at(100))),
        requested: (b, at(350)),
        ran_out: false,
    };
    assert_eq!(*calls.lock().unwrap(), [call]);
    // pread(A, ..., 400): in no region.
    assert_eq!(read(&client, a, &a_file, page(400)), Match::Outside);
    assert_eq!(calls.lock().unwrap().len(), 1);
    // pread(A, ..., 200): the end of the list, so the callback is asked for more.
    assert_eq!(read(&client, a, &a_file, page(200)), Match::RanOut);
    let call = Missed {
        marked: Some((a, at(200))),
        requested: (a, at(200)),
        ran_out: true,
    };
    assert_eq!(calls.lock().unwrap()[1], call);
    let stats = client.stats();
    assert_eq!((stats.list.listed, stats.list.unlisted), (2, 1));
    assert_eq!(
        (stats.list.outside, stats.list.skipped, stats.asked),
        (1, 1, 2)
    );
}

#[test]
fn a_lock_of_the_program_survives_everything_the_client_does_with_the_file() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let writable = File::options().write(true).open(&path).unwrap();
    rustix::fs::fcntl_lock(
        &writable,
        rustix::fs::FlockOperation::NonBlockingLockExclusive,
    )
    .unwrap();
    let held = || {
        let own = format!(" {} ", std::process::id());
        let inode = format!(":{} ", rustix::fs::fstat(&writable).unwrap().st_ino);
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks
            .lines()
            .any(|line| line.contains(&own) && line.contains(&inode))
    };
    assert!(held());
    let client = client();
    let id = client.add_path(&path).unwrap();
    assert_eq!(client.add_fd(file.as_fd()).unwrap(), id, "the same file");
    client.region(id, 0..u64::MAX).unwrap();
    let list = scattered(id);
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, list.len() as u64);
    assert!(held());
    client.remove_file(id).unwrap();
    client.remove_file(id).unwrap();
    drop(client);
    settle();
    assert!(held(), "closed in the client's own table");
    drop(File::open(&path).unwrap());
    assert!(!held(), "what closing it in the program's table does");
}

#[test]
fn a_file_whose_descriptor_is_closed_and_whose_name_is_gone_is_still_fetched() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let other = File::open(&path).unwrap();
    let id = client.add_fd(other.as_fd()).unwrap();
    std::fs::remove_file(&path).unwrap();
    drop(other);
    client.region(id, 0..u64::MAX).unwrap();
    let list = scattered(id);
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, list.len() as u64);
}

#[test]
fn a_descriptor_number_used_again_is_another_file() {
    let dir = dir();
    let (Some((a, _)), Some((b, _))) = (cold(dir.path(), "A"), cold(dir.path(), "B")) else {
        return;
    };
    let client = client();
    let first = File::open(&a).unwrap();
    let id = client.add_fd(first.as_fd()).unwrap();
    let identity = client.identity(id).unwrap();
    // In the very place of the first, as close() and open() would have it.
    let second = File::open(&b).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&first);
    let mut place: std::os::fd::OwnedFd = first.into();
    rustix::io::dup3(&second, &mut place, rustix::io::DupFlags::empty()).unwrap();
    assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&place), number);
    let again = client.add_fd(place.as_fd()).unwrap();
    assert_ne!(again, id);
    assert_ne!(client.identity(again).unwrap(), identity);
}

#[test]
fn a_file_may_grow_shrink_and_have_holes_under_its_list() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let writable = File::options().write(true).open(&path).unwrap();
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    // Far past the end, and then one that is there.
    let list = [entry(id, PAGES + 1000), entry(id, 1 << 40), entry(id, 3)];
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, 1);
    // Longer, first of all by a hole.
    writable.set_len((PAGES + 2000) * PAGE).unwrap();
    writable
        .write_all_at(&[1; PAGE as usize], (PAGES + 1999) * PAGE)
        .unwrap();
    cache::evict(&writable).unwrap();
    client
        .request(&[entry(id, PAGES + 1999), entry(id, PAGES + 5)], Flags::SET)
        .unwrap();
    wait_for(&file, 2);
    // Shorter: what is past the end is left out, the rest goes on.
    writable.set_len(100 * PAGE).unwrap();
    cache::evict(&writable).unwrap();
    let list: Vec<_> = [1500, 20, 99, 100, 60].map(|page| entry(id, page)).into();
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, 3);
    for one in &list {
        assert_eq!(read(&client, id, &file, one.extent), Match::Listed);
    }
    let report = client.finish();
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
}

#[test]
fn a_sequential_list_is_left_to_the_kernel_after_its_beginning() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let list: Vec<_> = (0..PAGES).map(|page| entry(id, page)).collect();
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, 64);
    settle();
    assert_eq!(cached(&file), 64, "256 KiB");
    assert!(!client.is_random(id));
    client.request(&scattered(id), Flags::SET).unwrap();
    client.request(&scattered(id), Flags::APPEND).unwrap();
    assert!(
        !client.is_random(id),
        "most of what was listed is still in sequence"
    );
}

#[test]
fn duplicate_and_overlapping_entries_are_fetched_once() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let wide = |page, pages| Entry {
        extent: Extent::new(page * PAGE + 100, pages * PAGE - 200),
        ..entry(id, 0)
    };
    let list = [
        entry(id, 900),
        wide(900, 4),
        entry(id, 902),
        entry(id, 900),
        wide(898, 4),
    ];
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, 6);
    settle();
    assert_eq!(cached(&file), 6, "pages 898 to 903");
    assert_eq!(client.stats().ledger.issued, 6 * PAGE);
}

#[test]
fn appending_goes_on_and_setting_starts_over_while_requests_are_pending() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    for round in 0..40u64 {
        let list: Vec<_> = (0..50)
            .map(|n| entry(id, (round * 50 + n * 7) % PAGES))
            .collect();
        let flags = if round % 2 == 0 {
            Flags::SET
        } else {
            Flags::APPEND
        };
        assert_eq!(client.request(&list, flags).unwrap(), 50);
        assert_eq!(read(&client, id, &file, list[49].extent), Match::Listed);
    }
    client
        .request(&[entry(id, 2047), entry(id, 2045)], Flags::SET)
        .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while cache::stat(&file, 2045 * PAGE..2048 * PAGE).unwrap().cached < 2 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(client.request(&[], Flags::CLEAR).unwrap(), 0);
    assert_eq!(client.stats().ahead, 0);
    let report = client.finish();
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
}

#[test]
fn a_full_list_says_so_and_the_callback_hands_over_the_rest() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let mut options = Options::default();
    options.capacity = 100;
    let client = Client::new(options).unwrap();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let list = scattered(id);
    let rest = Mutex::new(list.clone());
    let hand_over = move |client: &Client| {
        let mut rest = rest.lock().unwrap();
        let accepted = client.request(&rest, Flags::APPEND | Flags::DONE).unwrap();
        rest.drain(..accepted);
    };
    client.on_miss(move |client, _| hand_over(client));
    let mut matches = Vec::new();
    for one in &list {
        matches.push(read(&client, id, &file, one.extent));
    }
    // The first read is what first asks, and is then found in what was handed over; after that
    // every hundredth matches the last entry.
    assert_eq!(matches.iter().filter(|&&m| m == Match::Unlisted).count(), 1);
    assert_eq!(client.stats().list.accepted, list.len() as u64);
    assert_eq!(client.stats().list.skipped, 0);
}

#[test]
fn a_callback_that_never_returns_holds_up_only_its_own_thread() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = Arc::new(client());
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    let (entered, is_in) = std::sync::mpsc::channel();
    client.on_miss(move |_, _| {
        entered.send(()).unwrap();
        let _ = held.lock().unwrap().recv();
    });
    let stuck = {
        let client = Arc::clone(&client);
        std::thread::spawn(move || client.reading(id, Extent::new(0, 1)).unwrap())
    };
    is_in.recv().unwrap();
    for page in 0..1000 {
        let extent = Extent::new(page * PAGE, PAGE);
        assert_eq!(client.reading(id, extent).unwrap(), Match::Unlisted);
    }
    assert_eq!(client.stats().asked, 1);
    let list = scattered(id);
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, list.len() as u64);
    drop(hold);
    assert_eq!(stuck.join().unwrap(), Match::Unlisted);
}

#[test]
fn several_threads_read_while_another_changes_the_list() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..PAGES * PAGE).unwrap();
    let calls = AtomicU64::new(0);
    client.on_miss(move |client, missed| {
        // Whatever is missed comes next.
        let (file, offset) = missed.requested;
        let list = [
            entry(file, offset / PAGE),
            entry(file, calls.fetch_add(1, Ordering::Relaxed)),
        ];
        client.request(&list, Flags::APPEND | Flags::DONE).unwrap();
    });
    let list = scattered(id);
    std::thread::scope(|scope| {
        for n in 0..3usize {
            let (client, list, file) = (&client, &list, &file);
            scope.spawn(move || {
                for one in list.iter().skip(n).step_by(3).cycle().take(2000) {
                    read(client, id, file, one.extent);
                    read(client, id, file, Extent::new(one.extent.offset / 2, 100));
                }
            });
        }
        scope.spawn(|| {
            for round in 0..50 {
                let flags = [Flags::SET, Flags::APPEND, Flags::CLEAR | Flags::APPEND][round % 3];
                client.request(&list, flags | Flags::DONE).unwrap();
                let _ = client.at(round as u64 * 3);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    let stats = client.stats();
    assert_eq!(
        stats.list.listed + stats.list.unlisted,
        12_000 + 50,
        "{stats:?}"
    );
    let report = client.finish();
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
}

#[test]
fn the_check_report_names_the_first_differences() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let mut options = Options::default();
    options.check = Some(dir.path().join("check"));
    let client = Client::new(options).unwrap();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..1000 * PAGE).unwrap();
    let list: Vec<_> = (0..100).map(|n| entry(id, n * 3)).collect();
    client.request(&list, Flags::SET).unwrap();
    read(&client, id, &file, list[0].extent);
    read(&client, id, &file, Extent::new(999 * PAGE, 50));
    read(&client, id, &file, list[4].extent);
    read(&client, id, &file, Extent::new(1500 * PAGE, 50));
    drop(client);
    let report = std::fs::read_to_string(dir.path().join("check")).unwrap();
    for part in [
        "accepted 100, skipped 3, still ahead 95",
        "listed 2, not listed 1, outside all regions 1",
        "differences 2, the first 2:",
        "entry 1: expected 4096 bytes at 12288",
        "got 50 bytes at 4091904",
        "which is not on the list",
        "got 4096 bytes at 49152",
        "which skips 3 entries",
    ] {
        assert!(report.contains(part), "{part:?} in {report}");
    }
}

#[test]
fn an_iterator_is_drawn_from_as_the_list_is_used_up() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let mut options = Options::default();
    options.capacity = 4096;
    let client = Client::new(options).unwrap();
    let id = client.add_path(&path).unwrap();
    let drawn = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&drawn);
    let page = |n: u64| n * 7919 % PAGES;
    client
        .stream((0..100_000u64).map(move |n| {
            counter.fetch_add(1, Ordering::Relaxed);
            entry(id, page(n))
        }))
        .unwrap();
    for n in 0..100_000u64 {
        client.at(n).unwrap();
        let ahead = drawn.load(Ordering::Relaxed).saturating_sub(n);
        assert!(ahead <= 4096 + 1024 + 1, "{ahead} drawn ahead");
        if n % 1000 == 0 {
            let mut byte = [0];
            file.read_exact_at(&mut byte, page(n) * PAGE).unwrap();
        }
    }
    let until = Instant::now() + Duration::from_secs(20);
    let refused = loop {
        match client.at(100_000) {
            // The end of the list is not known yet.
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            Err(refused) => break refused,
        }
        assert!(Instant::now() < until);
    };
    let Error::NoEntry { number, end } = refused else {
        panic!("{refused}");
    };
    assert_eq!((number, end), (100_000, 100_000));
    assert_eq!(client.stats().list.accepted, 100_000);
}

#[test]
fn the_guard_ends_the_session_however_much_is_left() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let endless = (0u64..).map(|n| (0, (n % PAGES) * PAGE..(n % PAGES) * PAGE + 1));
    let guard = prefetch([&path], endless).unwrap();
    wait_for(&file, 10);
    guard.at(5).unwrap();
    let report = guard.finish();
    assert!(report.ledger.is_closed());
    let until = Instant::now() + Duration::from_secs(10);
    let ours = || {
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .any(|name| name.starts_with("foreread-list"))
    };
    while ours() {
        assert!(Instant::now() < until, "the iterator's thread goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_cannot_be_fetched_is_refused_by_name() {
    let dir = dir();
    let client = client();
    let missing = client.add_path(&dir.path().join("missing")).unwrap_err();
    assert!(missing.to_string().contains("missing"), "{missing}");
    assert!(client.add_path(dir.path()).is_err(), "a directory");
    let null = File::open("/dev/null").unwrap();
    assert!(client.add_fd(null.as_fd()).is_err(), "a device");
    let stranger = FileId(7);
    assert!(matches!(
        client.region(stranger, 0..1),
        Err(Error::UnknownFile(FileId(7)))
    ));
    let list = [entry(stranger, 0)];
    assert!(matches!(
        client.request(&list, Flags::SET),
        Err(Error::UnknownFile(_))
    ));
    let both = Flags::SET | Flags::APPEND;
    assert!(matches!(client.request(&[], both), Err(Error::Flags(_))));
    let path = dir.path().join("empty");
    std::fs::write(&path, "").unwrap();
    let empty = client.add_path(&path).unwrap();
    assert!(matches!(
        client.region(empty, 5..5),
        Err(Error::EmptyRegion { start: 5, end: 5 })
    ));
    client.region(empty, 0..u64::MAX).unwrap();
    client.request(&[entry(empty, 0)], Flags::SET).unwrap();
}

#[test]
fn a_client_takes_no_descriptor_from_the_program() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let list = scattered(id);
    client.request(&list, Flags::SET).unwrap();
    wait_for(&file, list.len() as u64);
    let (dev, ino) = client.identity(id).unwrap();
    // Only the two this test opened itself can be there.
    let own = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| {
            use std::os::unix::fs::MetadataExt;
            let facts = std::fs::metadata(fd.ok()?.path()).ok()?;
            ((facts.dev(), facts.ino()) == (dev, ino)).then_some(())
        })
        .count();
    assert_eq!(own, 1);
}

/// What a read that is in memory costs more, printed; how fast is the benches' affair.
#[test]
fn a_listed_hot_read_costs_next_to_nothing() {
    let dir = dir();
    let Some((path, file)) = cold(dir.path(), "data") else {
        return;
    };
    std::io::copy(&mut &file, &mut std::io::sink()).unwrap();
    let client = client();
    let id = client.add_path(&path).unwrap();
    client.region(id, 0..u64::MAX).unwrap();
    let list: Vec<_> = (0..200_000).map(|n| entry(id, n * 7919 % PAGES)).collect();
    client.request(&list, Flags::SET).unwrap();
    let took = Duration::from_nanos(700);
    let start = Instant::now();
    for one in &list {
        assert_eq!(client.reading(id, one.extent).unwrap(), Match::Listed);
    }
    let reading = start.elapsed();
    client.request(&list, Flags::SET).unwrap();
    let start = Instant::now();
    let mut now = start;
    for one in &list {
        client.reading(id, one.extent).unwrap();
        client.read_done(id, one.extent, now, took);
        now += Duration::from_micros(2);
    }
    let both = start.elapsed();
    let per = |time: Duration| time.as_nanos() as usize / list.len();
    eprintln!(
        "reading: {} ns; with read_done: {} ns",
        per(reading),
        per(both)
    );
    let report = client.finish();
    // Some may have had to make room for others meanwhile.
    assert!(
        report.ledger.issued < PAGES * PAGE / 10,
        "it was in memory already"
    );
}
