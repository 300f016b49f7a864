//! The list: set, added to, drawn from an iterator, changed by several threads, and held against the reads.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use foreread_client::{Client, Error, Extent, Flags, Match, Options, prefetch};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use crate::{PAGE, PAGES, cold, cold_region, dir, entry, read, scattered, wait_for};

#[test]
fn appending_goes_on_and_setting_starts_over_while_requests_are_pending() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
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
            check!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(client.request(&[], Flags::CLEAR).unwrap(), 0);
        assert_eq!(client.stats().ahead, 0);
        let report = client.finish();
        assert!(report.stats.ledger.is_closed(), "{:?}", report.stats.ledger);
    });
}

#[test]
fn several_threads_read_while_another_changes_the_list() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
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
                    let flags =
                        [Flags::SET, Flags::APPEND, Flags::CLEAR | Flags::APPEND][round % 3];
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
        assert!(report.stats.ledger.is_closed(), "{:?}", report.stats.ledger);
    });
}

#[test]
fn an_iterator_is_drawn_from_as_the_list_is_used_up() {
    rounds(|| {
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
            check!(Instant::now() < until);
        };
        let Error::NoEntry { number, end } = refused else {
            panic!("{refused}");
        };
        assert_eq!((number, end), (100_000, 100_000));
        assert_eq!(client.stats().list.accepted, 100_000);
    });
}

#[test]
fn the_guard_ends_the_session_however_much_is_left() {
    rounds(|| {
        let dir = dir();
        let Some((path, file)) = cold(dir.path(), "data") else {
            return;
        };
        let endless = (0u64..).map(|n| (0, (n % PAGES) * PAGE..(n % PAGES) * PAGE + 1));
        let guard = prefetch([&path], endless).unwrap();
        wait_for(&file, 10);
        guard.at(5).unwrap();
        let report = guard.finish();
        assert!(report.stats.ledger.is_closed());
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
    });
}

#[test]
fn the_check_report_names_the_first_differences() {
    rounds(|| {
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
    });
}
