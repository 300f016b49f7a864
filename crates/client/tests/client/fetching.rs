//! What is fetched, and that every byte of it is accounted for.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use foreread_client::{Advice, Entry, Error, Extent, Flags, Ledger, Match, Options};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use crate::{
    PAGE, PAGES, cached, client, cold, cold_region, dir, entry, is_fetched, read, scattered,
    settle, wait_for, wait_for_all,
};

#[test]
fn a_list_is_fetched_and_every_byte_accounted_for() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
        let list = scattered(id);
        assert_eq!(client.request(&list, Flags::SET).unwrap(), list.len());
        wait_for_all(&file, &list);
        for entry in &list {
            assert_eq!(read(&client, id, &file, entry.extent), Match::Listed);
        }
        let report = client.finish();
        assert!(report.stats.ledger.is_closed(), "{:?}", report.stats.ledger);
        // Where the device is slow enough, the gaps are read along.
        let Ledger { issued, infill, .. } = report.stats.ledger;
        check!(
            issued - infill == list.len() as u64 * PAGE,
            "{:?}, {} pages cached",
            report.stats.ledger,
            cached(&file)
        );
        assert_eq!(report.stats.ledger.wasted, 0, "{:?}", report.stats.ledger);
        assert_eq!(report.stats.list.listed, list.len() as u64);
        assert!(cached(&file) <= issued / PAGE, "and nothing else");
    });
}

#[test]
fn reads_that_are_only_announced_make_room_for_what_the_budget_does_not_hold_at_once() {
    rounds(|| {
        let mut options = Options::default();
        options.budget = Some(1 << 20);
        let Some((_dir, file, client, id)) = cold_region(options) else {
            return;
        };
        // Every page, in no order: eight times the budget.
        let pages = (0..PAGES).map(|n| n * 1021 % PAGES);
        let list: Vec<Entry> = pages.map(|page| entry(id, page)).collect();
        assert_eq!(client.request(&list, Flags::SET).unwrap(), list.len());
        let mut unseen = 0;
        for entry in &list {
            unseen += u64::from(!is_fetched(&file, entry));
            assert_eq!(client.announce(id, entry.extent).unwrap(), Match::Listed);
            // A page that the kernel took away again, to be used by someone else, was fetched.
            let stats = client.stats();
            check!(
                unseen * PAGE <= PAGES * PAGE / 100 + stats.ledger.evicted,
                "{stats:?}"
            );
        }
        let report = client.finish();
        let ledger = report.stats.ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        check!(ledger.useful + ledger.late + ledger.evicted >= PAGES * PAGE * 99 / 100);
    });
}

#[test]
fn what_was_in_memory_before_stays_there_and_what_was_fetched_makes_room() {
    rounds(|| {
        let mut options = Options::default();
        options.budget = Some(1 << 20);
        let Some((_dir, file, client, id)) = cold_region(options) else {
            return;
        };
        let before = |page: u64| (page / 64).is_multiple_of(4);
        for page in (0..PAGES).filter(|&page| before(page)) {
            file.read_exact_at(&mut [0], page * PAGE).unwrap();
        }
        // Every page, in no order: eight times the budget, a quarter of it there already.
        let list: Vec<Entry> = (0..PAGES).map(|n| entry(id, n * 1021 % PAGES)).collect();
        assert_eq!(client.request(&list, Flags::SET).unwrap(), list.len());
        let mut unseen = 0;
        for one in &list {
            unseen += u64::from(!is_fetched(&file, one));
            check!(unseen <= PAGES / 100, "{unseen} of {PAGES}");
            assert_eq!(read(&client, id, &file, one.extent), Match::Listed);
        }
        settle();
        let (mut theirs, mut ours) = (0, 0);
        for page in 0..PAGES {
            let there = cache::stat(&file, page * PAGE..(page + 1) * PAGE);
            let there = there.unwrap().cached;
            *(if before(page) { &mut theirs } else { &mut ours }) += there;
        }
        // Such systems as take pages back from time to time may do so to a few.
        check!(theirs >= PAGES / 4 * 98 / 100, "{theirs} of {}", PAGES / 4);
        assert!(ours <= PAGES / 4, "{ours} pages of a budget of 256");
        let ledger = client.finish().stats.ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        // Of what was there nothing was fetched; gaps may be read along more than once.
        let read = ledger.useful + ledger.late;
        check!(read <= PAGES / 4 * 3 * PAGE, "{ledger:?}");
    });
}

/// Runs the example as its first lines say; what it prints but for times.
fn example(data: &std::path::Path, more: &[&str]) -> String {
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = std::process::Command::new(cargo)
        .args([
            "run",
            "-q",
            "-p",
            "foreread-client",
            "--example",
            "random_blocks",
            "--target-dir",
        ])
        .arg(target)
        .arg("--")
        .arg(data)
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let text = String::from_utf8(done.stdout).unwrap();
    text.split_once("sum ")
        .unwrap()
        .1
        .lines()
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn the_example_does_the_same_work_with_foreread_and_without() {
    rounds(|| {
        let dir = dir();
        let Some((path, _)) = cold(dir.path(), "data") else {
            return;
        };
        let plain = example(&path, &["plain"]);
        assert_eq!(plain, (20_000 * 4096 * 7).to_string());
        assert_eq!(example(&path, &[]), plain);
    });
}

#[test]
fn a_sequential_list_is_left_to_the_kernel_after_its_beginning() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
        let list: Vec<_> = (0..PAGES).map(|page| entry(id, page)).collect();
        client.request(&list, Flags::SET).unwrap();
        wait_for(&file, 64);
        settle();
        assert!(cached(&file) <= 64, "256 KiB");
        assert_ne!(client.advice(id), Advice::Random);
        client.request(&scattered(id), Flags::SET).unwrap();
        client.request(&scattered(id), Flags::APPEND).unwrap();
        assert_ne!(
            client.advice(id),
            Advice::Random,
            "most of what was listed is still in sequence"
        );
    });
}

#[test]
fn duplicate_and_overlapping_entries_are_fetched_once() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
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
        assert!(cached(&file) <= 6, "pages 898 to 903");
        let issued = client.stats().ledger.issued;
        check!(issued == 6 * PAGE, "{issued}");
    });
}

/// What a read that is in memory costs more, printed; how fast is the benches' affair.
#[test]
fn a_listed_hot_read_costs_next_to_nothing() {
    rounds(|| {
        let dir = dir();
        let Some((path, file)) = cold(dir.path(), "data") else {
            return;
        };
        std::io::copy(&mut &file, &mut std::io::sink()).unwrap();
        let client = client();
        let id = client.add_path(&path).unwrap();
        client.region(id, 0..u64::MAX).unwrap();
        let list: Vec<_> = (0..20_000).map(|n| entry(id, n * 7919 % PAGES)).collect();
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
        check!(
            report.stats.ledger.issued < PAGES * PAGE / 10,
            "it was in memory already"
        );
    });
}

#[test]
fn a_shared_client_is_closed_once_and_fetches_nothing_afterwards() {
    rounds(|| {
        let Some((_dir, file, client, id)) = cold_region(Options::default()) else {
            return;
        };
        let list = scattered(id);
        let (had, unread) = list.split_at(list.len() / 2);
        client.request(&list, Flags::SET).unwrap();
        wait_for_all(&file, &list);
        for entry in had {
            client.announce(id, entry.extent).unwrap();
        }
        let ledger = client.close().expect("the first time").stats.ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        check!(ledger.wasted == unread.len() as u64 * PAGE, "{ledger:?}");
        assert!(client.close().is_none());
        let again = client.add_fd(file.as_fd());
        assert!(matches!(again, Err(Error::Ended)), "{again:?}");
        // A page that was not on the list. On a busy machine it may have been read along.
        cache::evict(&file).unwrap();
        let other = (PAGES - 2) * PAGE..(PAGES - 1) * PAGE;
        let fetched = || cache::stat(&file, other.clone()).unwrap().cached;
        assert_eq!(fetched(), 0);
        client.request(&[entry(id, PAGES - 2)], Flags::SET).unwrap();
        client.announce(id, had[0].extent).unwrap();
        settle();
        assert_eq!(fetched(), 0);
    });
}
