//! The callback: when it is called, with what, and what it may do.

use std::fs::File;
use std::sync::{Arc, Mutex};

use foreread_client::{Client, Entry, Extent, Flags, Match, Missed, Options};
use foreread_steady::{check, rounds};
use foreread_sys::cache;

use crate::{PAGE, client, cold, cold_region, dir, read, scattered, wait_for, wait_for_all};

#[test]
fn the_talks_worked_example_goes_step_by_step() {
    rounds(|| {
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
        check!(there(&a_file, 100) && there(&b_file, 150) && there(&a_file, 200));
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
    });
}

#[test]
fn a_full_list_says_so_and_the_callback_hands_over_the_rest() {
    rounds(|| {
        let mut options = Options::default();
        options.capacity = 100;
        let Some((_dir, file, client, id)) = cold_region(options) else {
            return;
        };
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
    });
}

#[test]
fn a_callback_that_never_returns_holds_up_only_its_own_thread() {
    rounds(|| {
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
        wait_for_all(&file, &list);
        drop(hold);
        assert_eq!(stuck.join().unwrap(), Match::Unlisted);
    });
}
