//! AIMD from an initial target unrelated to the available memory.

use std::sync::{Arc, Mutex};

use foreread_backend::{Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine};
use foreread_plan::{Access, Extent, PAGE};
use foreread_sources::Replay;

use super::{FILE, GIB, apart, engine, machine, page_read, run, scattered};

/// Memory, in pages.
const MEMORY: usize = 2800;
/// Pages of a read.
const BLOCK: u64 = 8;

/// The time, in ns, of 1,500 reads in random order on a disk with a moving head, with this target at first, in pages.
fn time(budget_pages: u64, adapt: bool) -> u64 {
    let block = |block: u64| Access {
        extent: Extent::new(block * BLOCK * PAGE, BLOCK * PAGE),
        ..page_read(0)
    };
    let plan: Vec<Access> = scattered(1500, 16_384).into_iter().map(block).collect();
    let machine = machine(Model::Hdd7200, MEMORY);
    let config = Config {
        budget_pages,
        evict_behind: true,
        adapt,
        ..Config::default()
    };
    let source = Box::new(Replay::new(plan.clone()));
    let mut engine =
        Engine::new(Sim::new(Arc::clone(&machine)), config).with_strand("replay", source);
    run(&machine, Some(&mut engine), &plan, 20_000)
}

#[test]
fn a_target_far_too_large_costs_little_more_than_the_right_one() {
    let right = time(2048, true);
    for budget in [4096, 8192, 16_384, 65_536] {
        let (adapted, fixed) = (time(budget, true), time(budget, false));
        assert!(adapted * 2 < fixed, "{budget}: {adapted}, fixed {fixed}");
        assert!(adapted * 6 < right * 7, "{budget}: {adapted} for {right}");
    }
}

#[test]
fn where_nothing_is_lost_adapting_changes_nothing() {
    for budget in [256, 1024, 2048] {
        assert_eq!(time(budget, true), time(budget, false), "{budget}");
    }
}

#[test]
fn room_is_told_though_not_all_that_waits_is_looked_for() {
    // So far apart that gaps are not read. A check covers 16,384 such pages.
    let plan = apart(scattered(60_000, 14 << 20));
    let mut machine = SimMachine::new(Model::Hdd7200, 64 * GIB, 24_000);
    machine.place(FILE, GIB);
    let machine = Arc::new(Mutex::new(machine));
    let mut engine = engine(&machine, plan.clone(), 60_000);
    run(&machine, Some(&mut engine), &plan[..2000], 200_000_000);
    let target = engine.target();
    assert!((16_000..24_000).contains(&target), "{target}");
}
