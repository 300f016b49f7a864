//! Memory of long lists, counted by the allocator.

use std::alloc::System;

use foreread_plan::{Expected, FileId, Odds, Pattern, ThreadId};
use foreread_sched::{Beside, Queue, Sweep, SweepPlace};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ENTRIES: u64 = 1 << 18;

/// Bytes an entry that are held since `before`.
fn each(before: &Region<'_, System>) -> f64 {
    let change = before.change();
    (change.bytes_allocated - change.bytes_deallocated) as f64 / ENTRIES as f64
}

fn page(n: u64) -> u64 {
    n * 7919 % (1 << 30)
}

/// One test, because the allocator counts for all threads.
#[test]
fn an_entry_costs_at_most_24_bytes_in_the_queue_and_few_more_while_pending() {
    let before = Region::new(ALLOCATOR);
    let mut queue = Queue::new(ENTRIES as usize);
    let push = |queue: &mut Queue, n: u64| {
        queue.push(&Expected {
            odds: Odds::SURE,
            file: FileId((n % 3) as u32),
            pages: page(n)..page(n) + 1,
            thread: ThreadId(0),
            pattern: Pattern::Scattered,
        });
    };
    for n in 0..ENTRIES {
        push(&mut queue, n);
    }
    let full = each(&before);
    // As many again: reads and expiry make room for each.
    for n in ENTRIES..2 * ENTRIES {
        let read = n - ENTRIES;
        queue.observe(FileId((read % 3) as u32), page(read)..page(read) + 1);
        if queue.expire().is_some() {
            push(&mut queue, n);
        }
    }
    let used = each(&before);
    eprintln!("queue: {full:.2} bytes an entry when full, {used:.2} after use");
    assert!(full <= 24.0 && used <= 24.0, "{full}, {used}");

    let before = Region::new(ALLOCATOR);
    let mut sweep = Sweep::default();
    for n in 0..ENTRIES {
        let beside = Beside {
            kin: None,
            file: FileId((n % 3) as u32),
            page: page(n),
        };
        sweep.push(SweepPlace::InTurn(beside), 1, n);
    }
    let in_turn = each(&before);
    drop(sweep);
    let mut sweep = Sweep::default();
    for n in 0..ENTRIES {
        sweep.push(SweepPlace::At(page(n) * 4096), 1, n);
    }
    let by_position = each(&before);
    // In turn, only as many are pending as the horizon allows: 4096.
    eprintln!("pending: {in_turn:.2} bytes in turn, {by_position:.2} by position");
    assert!(
        in_turn <= 100.0 && by_position <= 40.0,
        "{in_turn}, {by_position}"
    );
}
