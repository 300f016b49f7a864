//! Models of producers, consumer and sweep in every order that loom distinguishes.
//!
//! `make test-loom` runs these. Each model runs once for every interleaving of its threads, with a limit of preemptions
//! ([`in_every_order`]), and for every value that the memory model permits a load to see. The code is the real one, except where it reads a
//! clock or calls the kernel: a poll is given its cutoff, and the sweep is told which threads are gone.
//!
//! Loom tries another order where a load could have come before the last store, or a store before the last access. So the
//! producer goes first in each model, or its own load of a word would hide the consumer's from loom.
//!
//! loom cannot show that a load comes before a later store (it runs each thread's steps in their order), so the ordering of the store by
//! which the consumer frees slots is not tested here.

use std::sync::Arc;
use std::sync::atomic::AtomicU32 as Plain;

use loom::sync::atomic::AtomicBool;
use loom::thread;

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::clock::Calibration;
use crate::event::{What, encode, kind};
use crate::lanes::Lanes;
use crate::layout::{
    BoardWords, Clock, Cursors, Header, Line, RINGS, Shared, Slots, Whole, Wishes,
};
use crate::passage::Passage;
use crate::raw_event::RawEvent;
use crate::writer::{Full, Writer, owner};

/// Events begin at 0: all that is published is due.
const CUTOFF: u64 = 1 << 20;

/// Runs a model in every order in which a thread that could go on is made to wait up to `cut_short` times.
fn in_every_order(cut_short: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(cut_short);
    builder.max_branches = 10_000;
    builder.check(model);
}

fn area() -> Arc<Whole> {
    let zero = |_| AtomicU64::new(0);
    let cursor = || Line(AtomicU32::new(0));
    let header = Header {
        magic: AtomicU64::new(0),
        version: AtomicU32::new(0),
        clock: AtomicU32::new(0),
        wanted: Wishes(AtomicU32::new(0)),
        advice_len: AtomicU32::new(0),
        switches: AtomicU32::new(0),
        leases: AtomicU32::new(0),
        token: AtomicU64::new(0),
        heartbeat: Line(AtomicU64::new(0)),
        instances: Line(AtomicU32::new(1)),
        lost: Line(AtomicU64::new(0)),
        evicted: AtomicU32::new(0),
        apart: AtomicU32::new(0),
        filtered: AtomicU32::new(0),
        board: Line(BoardWords {
            asked: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            writes: AtomicU32::new(0),
            words: std::array::from_fn(zero),
        }),
    };
    let cursors = |_| Cursors {
        head: cursor(),
        tail: cursor(),
    };
    Arc::new(Whole {
        shared: Shared {
            header,
            owners: std::array::from_fn(zero),
            cursors: std::array::from_fn(cursors),
            advice: std::array::from_fn(zero),
            passages: std::array::from_fn(zero),
        },
        rings: std::array::from_fn(|_| Slots(std::array::from_fn(|_| std::array::from_fn(zero)))),
    })
}

/// A claim by a thread that has mapped no slots yet.
fn claim(area: &Whole, pid: u32, tid: u32) -> Option<Writer<'_>> {
    Writer::claim(
        &area.shared,
        (pid, tid),
        |_| None,
        |ring| Some(&area.rings[ring]),
    )
}

/// No thread is gone.
fn nobody(_: u32) -> bool {
    false
}

/// The supervisor.
struct Consumer {
    area: Arc<Whole>,
    lanes: Lanes,
    calibration: Calibration,
    seen: Vec<What<std::path::PathBuf>>,
}

impl Consumer {
    fn of(area: &Arc<Whole>) -> Self {
        Self {
            area: Arc::clone(area),
            lanes: Lanes::new(),
            calibration: Calibration::new(Clock::Monotonic),
            seen: Vec::new(),
        }
    }

    fn poll(&mut self) {
        let seen = &mut self.seen;
        let mut each = |event: RawEvent| {
            seen.extend(event.singly().map(|event| event.what));
            true
        };
        self.lanes
            .poll(&self.area, CUTOFF, &self.calibration, &mut each);
    }

    /// Polls so often, and then sweeps, in a thread of its own.
    fn watch(
        mut self,
        polls: usize,
        is_gone: impl Fn(u32) -> bool + 'static,
    ) -> thread::JoinHandle<Self> {
        thread::spawn(move || {
            for _ in 0..polls {
                self.poll();
            }
            self.lanes.sweep(&self.area.shared, |pid, _| is_gone(pid));
            self
        })
    }

    /// Polls for the last time: nothing is left, and nothing was malformed.
    fn end(mut self) -> Vec<What<std::path::PathBuf>> {
        self.poll();
        assert!(self.lanes.are_drained(&self.area.shared));
        assert_eq!(self.area.shared.lost(), 0);
        self.seen
    }

    /// As [`Consumer::end`], the offsets of accesses.
    fn offsets(self) -> Vec<u64> {
        let offset = |what| match what {
            What::Access { offset, .. } => offset,
            other => panic!("{other:?}"),
        };
        self.end().into_iter().map(offset).collect()
    }
}

/// A path that fills a slot and begins another.
fn name(number: u32) -> String {
    format!("/{}", number.to_string().repeat(35))
}

fn push_open(writer: &mut Writer, shared: &Shared, number: u32) -> Result<(), Full> {
    let name = name(number);
    let first = encode::open(number, 0, 0, 0, name.len());
    writer.push_path(shared, &first, &[name.as_bytes()])
}

fn push_access(writer: &mut Writer, shared: &Shared, number: u32) -> Result<(), Full> {
    let slot = encode::access(number, kind::PREAD, 0, 0, u64::from(number) * 100, number);
    writer.push_access(shared, &slot)
}

/// The number of an event made by [`push_open`] or [`push_access`], if it is complete.
fn number(what: What<std::path::PathBuf>) -> u32 {
    match what {
        What::Open { inst, path, .. } if path.as_os_str() == name(inst).as_str() => inst,
        What::Access {
            inst, offset, len, ..
        } if offset == u64::from(inst) * 100 && len == inst => inst,
        torn => panic!("{torn:?}"),
    }
}

#[test]
fn what_is_published_is_read_whole_and_in_order() {
    in_every_order(3, || {
        let area = area();
        let mut writer = claim(&area, 1, 1).expect("a free ring");
        let consumer = Consumer::of(&area).watch(2, nobody);
        // More events than the ring has room for, so some are dropped. A path must not overwrite the slot of the access passed on last,
        // because its bytes would count as accesses added to that.
        let published = (1..=6).filter(|&number| {
            let pushed = if number % 3 == 0 {
                push_open(&mut writer, &area.shared, number)
            } else {
                push_access(&mut writer, &area.shared, number)
            };
            pushed.is_ok()
        });
        let published: Vec<u32> = published.collect();
        let seen = consumer.join().unwrap().end().into_iter().map(number);
        let seen: Vec<u32> = seen.collect();
        assert_eq!(seen, published);
    });
}

/// Adds accesses while the consumer polls: in the last slot, in one more, in that.
fn added(took: u64) {
    const OFFSETS: [u64; 4] = [0, 10, 100, 7];
    in_every_order(2, move || {
        let area = area();
        let mut writer = claim(&area, 1, 1).expect("a free ring");
        let consumer = Consumer::of(&area).watch(2, nobody);
        let first = encode::access(1, kind::READ, 0, took, OFFSETS[0], 10);
        writer.push_access(&area.shared, &first).expect("room");
        for &offset in &OFFSETS[1..] {
            let added = writer.add(&area.shared, (1, kind::READ), offset, 10);
            assert_eq!(added, Some(true));
        }
        assert_eq!(consumer.join().unwrap().offsets(), OFFSETS);
    });
}

#[test]
fn accesses_added_to_the_last_are_neither_lost_nor_doubled() {
    added(0);
}

#[test]
fn nor_are_those_that_are_not_due_together() {
    added(CUTOFF);
}

#[test]
fn accesses_counted_in_the_last_slot_are_neither_lost_nor_doubled() {
    in_every_order(2, || {
        let area = area();
        let mut writer = claim(&area, 1, 1).expect("a free ring");
        let consumer = Consumer::of(&area).watch(2, nobody);
        for start in [0, 1000] {
            let first = encode::access(1, kind::READ, 0, 0, start, 10);
            writer.push_access(&area.shared, &first).expect("room");
            let (counter, left) = writer.counter().expect("room for more");
            // One instruction, and not a locked one: nobody else writes there.
            let count = counter.load(Ordering::Relaxed);
            counter.store(count + Writer::ONE_MORE, Ordering::Relaxed);
            writer.counted(left - 1);
            let added = writer.add(&area.shared, (1, kind::READ), start + 20, 10);
            assert_eq!(added, Some(true));
        }
        let expected = [0, 10, 20, 1000, 1010, 1020];
        assert_eq!(consumer.join().unwrap().offsets(), expected);
    });
}

/// Number of threads that believe to own a ring.
#[derive(Default)]
struct Holders([Plain; RINGS]);

impl Holders {
    fn claimed(&self, writer: &Writer) {
        let others = self.0[writer.ring()].fetch_add(1, Ordering::Relaxed);
        assert_eq!(others, 0, "two producers in ring {}", writer.ring());
    }

    fn left(&self, ring: usize) {
        self.0[ring].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reports one access, if a ring is free, and leaves the ring claimed.
fn report<'a>(area: &'a Whole, holders: &Holders, pid: u32) -> Option<Writer<'a>> {
    let mut writer = claim(area, pid, pid)?;
    holders.claimed(&writer);
    push_access(&mut writer, &area.shared, pid).expect("room");
    let found = area.shared.owners[writer.ring()].load(Ordering::Relaxed);
    assert_eq!(found, owner(pid, pid), "freed in use");
    holders.left(writer.ring());
    Some(writer)
}

/// Reports one access, and releases the ring. True if a ring was free.
fn pass_by(area: &Whole, holders: &Holders, pid: u32) -> bool {
    let writer = report(area, holders, pid);
    writer
        .map(|writer| writer.release(&area.shared, pid, pid))
        .is_some()
}

/// Asserts that one access was seen of each process that reported.
fn assert_seen(consumer: Consumer, reported: [(u32, bool); 2]) {
    let reported = reported.into_iter().filter(|one| one.1);
    let mut seen: Vec<u32> = consumer.end().into_iter().map(number).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(reported.map(|one| one.0)));
}

#[test]
fn a_ring_that_changes_hands_has_one_producer_and_loses_nothing() {
    in_every_order(3, || {
        let area = area();
        let holders = Arc::new(Holders::default());
        // Leaves one ring, which the others hand to each other.
        claim(&area, 9, 9).expect("a free ring");
        let other = {
            let (area, holders) = (Arc::clone(&area), Arc::clone(&holders));
            thread::spawn(move || pass_by(&area, &holders, 2))
        };
        let consumer = Consumer::of(&area).watch(1, nobody);
        let first = pass_by(&area, &holders, 1);
        let second = other.join().unwrap();
        assert!(first || second);
        assert_seen(consumer.join().unwrap(), [(1, first), (2, second)]);
    });
}

/// One process dies without releasing its ring, another needs one. The sweep frees the rings of the dead, and so does the program that the
/// dead thread's process has executed, if it has.
fn freed(becomes_another: bool) {
    in_every_order(3, move || {
        let area = area();
        let holders = Arc::new(Holders::default());
        claim(&area, 9, 9).expect("a free ring");
        // The kernel's statement about a thread comes after all of the thread's actions.
        let gone = Arc::new(AtomicBool::new(false));
        let other = {
            let (area, holders) = (Arc::clone(&area), Arc::clone(&holders));
            thread::spawn(move || pass_by(&area, &holders, 2))
        };
        let consumer = {
            let gone = Arc::clone(&gone);
            Consumer::of(&area).watch(1, move |pid| pid == 1 && gone.load(Ordering::Acquire))
        };
        let first = report(&area, &holders, 1).is_some();
        gone.store(true, Ordering::Release);
        if becomes_another {
            Writer::release_all(&area.shared, 1);
            assert!(!Writer::any_of(&area.shared, 1));
        }
        let second = other.join().unwrap();
        assert!(first || second);
        assert_seen(consumer.join().unwrap(), [(1, first), (2, second)]);
    });
}

#[test]
fn a_dead_threads_ring_is_freed_by_the_sweep_and_loses_nothing() {
    freed(false);
}

#[test]
fn or_by_the_program_that_its_process_has_become() {
    freed(true);
}

/// Processes with these numbers have one place.
const SAME_PLACE: [u32; 3] = [1, 3, 5];

#[test]
fn each_process_that_does_not_come_back_is_counted_once() {
    in_every_order(3, || {
        let area = area();
        let [first, second, third] = SAME_PLACE;
        let gone = |pid: u32| {
            let area = Arc::clone(&area);
            thread::spawn(move || area.shared.pass(pid, Passage::Gone))
        };
        let threads = [gone(first), gone(second)];
        area.shared.pass_child(third, Passage::Gone);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(area.shared.unobserved().gone, 3);
    });
}

#[test]
fn a_child_that_reports_is_not_counted_whatever_its_parent_says_when() {
    in_every_order(3, || {
        let area = area();
        let child = {
            let area = Arc::clone(&area);
            thread::spawn(move || area.shared.pass(1, Passage::Here))
        };
        area.shared.pass_child(1, Passage::Gone);
        child.join().unwrap();
        assert_eq!(area.shared.unobserved().gone, 0);
    });
}

#[test]
fn one_that_stays_leaves_its_place_to_another_that_has_taken_it() {
    in_every_order(3, || {
        let area = area();
        let [stays, goes, _] = SAME_PLACE;
        area.shared.pass(stays, Passage::Gone);
        let other = {
            let area = Arc::clone(&area);
            thread::spawn(move || area.shared.pass(goes, Passage::Gone))
        };
        area.shared.stay(stays);
        other.join().unwrap();
        assert!(area.shared.gone().eq([goes]));
    });
}
