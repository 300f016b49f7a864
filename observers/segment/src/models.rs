//! Models of filler, writer and reader in every order that loom distinguishes.
//!
//! `make test-loom` runs these. The code is the real one; the file and the slot's memory are one word each, which the models write and read
//! like the real ones, by a system call and by copying. A model fails if a reader accepts a page whose content differs from the file's
//! since the last write that the reader knew to be complete.

use std::sync::Arc;

use loom::thread;

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::key::Key;
use crate::slot::{ALL, Claimed, Slot};

const PAGE: Key = Key {
    dev: 1,
    ino: 2,
    page: 3,
};
const OTHER: Key = Key { page: 4, ..PAGE };
/// The file's content before and after the write, and the other page's.
const OLD: u64 = 10;
const NEW: u64 = 11;
const OTHERS: u64 = 12;

/// Runs a model in every order in which a thread that could go on is made to wait up to twice.
fn in_every_order(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// A slot, its memory, and the file that its page is of.
struct World {
    slot: Slot,
    memory: AtomicU64,
    file: AtomicU64,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slot: Slot::empty(),
            memory: AtomicU64::new(0),
            file: AtomicU64::new(OLD),
        })
    }

    /// The owner claims a page in a free slot.
    fn take(&self, key: &Key) -> Option<Claimed> {
        self.slot.take(self.slot.word(), key, ALL, || ())
    }

    /// Then the owner fills it.
    fn fill(&self, claimed: Claimed, key: &Key) -> bool {
        let held = match *key {
            PAGE => self.file.load(Ordering::Relaxed),
            _ => OTHERS,
        };
        self.memory.store(held, Ordering::Relaxed);
        self.slot.commit(claimed, claimed.parts)
    }

    /// The same as `segment_void_page` after a write.
    fn write(&self) {
        self.file.store(NEW, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.slot.is_for(&PAGE) {
            self.slot.void();
        }
    }

    /// The same as `segment_find` and `segment_still`.
    fn read(&self, key: &Key) -> Option<u64> {
        let word = self.slot.word();
        if word.valid() != ALL || !self.slot.is_for(key) {
            return None;
        }
        let held = self.memory.load(Ordering::Relaxed);
        self.slot.is_still(word).then_some(held)
    }
}

#[test]
fn a_page_that_was_written_while_it_was_filled_is_never_read_as_it_was() {
    in_every_order(|| {
        let world = World::new();
        let filler = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                if let Some(claimed) = world.take(&PAGE) {
                    world.fill(claimed, &PAGE);
                }
            })
        };
        world.write();
        // From here on the writer knows its write to be over.
        if let Some(held) = world.read(&PAGE) {
            assert_eq!(held, NEW);
        }
        filler.join().unwrap();
        if let Some(held) = world.read(&PAGE) {
            assert_eq!(held, NEW);
        }
    });
}

#[test]
fn a_slot_that_gets_another_page_is_never_read_as_the_one_before() {
    in_every_order(|| {
        let world = World::new();
        let claimed = world.take(&PAGE).unwrap();
        assert!(world.fill(claimed, &PAGE));
        let owner = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let claimed = world.take(&OTHER).unwrap();
                assert!(world.fill(claimed, &OTHER));
            })
        };
        for (key, holds) in [(PAGE, OLD), (OTHER, OTHERS)] {
            if let Some(held) = world.read(&key) {
                assert_eq!(held, holds);
            }
        }
        owner.join().unwrap();
        assert_eq!(world.read(&OTHER), Some(OTHERS));
    });
}

#[test]
fn memory_belongs_to_whoever_fills_it_until_that_is_over_void_or_not() {
    in_every_order(|| {
        let world = World::new();
        let late = world.take(&PAGE).unwrap();
        let filler = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.fill(late, &PAGE))
        };
        world.write();
        // Another would have its page written over.
        if let Some(claimed) = world.take(&OTHER) {
            assert!(world.fill(claimed, &OTHER));
        }
        filler.join().unwrap();
        if let Some(held) = world.read(&OTHER) {
            assert_eq!(held, OTHERS);
        }
    });
}

#[test]
fn of_two_ranks_that_claim_a_page_at_least_one_reads_it() {
    in_every_order(|| {
        let worlds = [World::new(), World::new()];
        let reads = |own: usize| {
            let [own_world, peer] = [own, 1 - own].map(|one| Arc::clone(&worlds[one]));
            thread::spawn(move || {
                let claimed = own_world.take(&PAGE).unwrap();
                // Rank 0 goes first.
                let is_left = peer.slot.reads_before(claimed.parts, own == 1) != 0;
                if !is_left {
                    own_world.slot.set_reading(claimed.parts, true);
                }
                !is_left
            })
        };
        let (one, other) = (reads(0), reads(1));
        assert!(one.join().unwrap() | other.join().unwrap());
    });
}

#[test]
fn parts_are_claimed_once() {
    in_every_order(|| {
        let world = World::new();
        let first = world.take(&PAGE).unwrap();
        world.slot.commit(first, 0);
        let claims = |parts| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let claimed = world.slot.claim(&PAGE, parts, 0).unwrap();
                claimed.map_or(0, |claimed| {
                    assert!(world.slot.commit(claimed, claimed.parts));
                    claimed.parts
                })
            })
        };
        let (one, two) = (claims(0b011), claims(0b110));
        let (one, two) = (one.join().unwrap(), two.join().unwrap());
        assert_eq!((one & two, one | two), (0, 0b111));
        assert_eq!(world.slot.word().valid(), 0b111);
    });
}
