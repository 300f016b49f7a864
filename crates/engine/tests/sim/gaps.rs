//! Gaps are read if that takes less time than another request, at every density of wanted pages, and never to the program's loss.

use std::sync::Arc;

use foreread_backend::{Backend, Event, Sim};
use foreread_disk::Model;
use foreread_engine::{Config, Engine};
use foreread_plan::{Request, RequestId};
use foreread_sources::Replay;

use super::{FILE, HIT_NS, machine, reads, run, scattered};

/// Pages of the file: 32 MiB.
const PAGES: u64 = 8192;
/// Wanted parts of these, in percent.
const DENSITIES: [u64; 4] = [2, 10, 35, 90];

/// Time to read these pages in turn with the engine ahead by the rule, minus the processor time of the reads.
fn by_rule(model: Model, wanted: &[u64], passes: bool) -> u64 {
    let plan = reads(wanted.iter().copied());
    let machine = machine(model, 1 << 20);
    let config = Config {
        budget_pages: 1 << 20,
        passes,
        ..Config::default()
    };
    let source = Replay::new(plan.clone());
    let engine =
        Engine::new(Sim::new(Arc::clone(&machine)), config).with_strand("replay", Box::new(source));
    let mut engine = engine.with_computed(|| Some(0));
    run(&machine, Some(&mut engine), &plan, 0) - plan.len() as u64 * HIT_NS
}

/// Time to fetch these ranges, all requested at once.
fn at_once(model: Model, runs: impl Iterator<Item = std::ops::Range<u64>>) -> u64 {
    let machine = machine(model, 1 << 20);
    let mut backend = Sim::new(Arc::clone(&machine));
    let mut under_way = 0;
    for (id, pages) in (0..).zip(runs) {
        let (id, file) = (RequestId(id), FILE);
        backend.submit(Request { id, file, pages });
        under_way += 1;
    }
    let (mut now, mut events) = (0, Vec::new());
    loop {
        backend.poll(&mut events);
        let done = |event: &Event| matches!(event, Event::Done { .. });
        under_way -= events.drain(..).filter(done).count();
        if under_way == 0 {
            return now;
        }
        let mut machine = machine.lock().unwrap();
        now = machine.next_event().expect("a request under way");
        machine.advance(now);
    }
}

/// Time by the rule, divided by the better of two times: fetching only wanted pages, and fetching everything from the first wanted page to
/// the last.
fn worst(model: Model, passes: bool) -> f64 {
    let mut worst = 0.0_f64;
    for density in DENSITIES {
        let wanted = scattered(PAGES * density / 100, PAGES);
        let mut sorted = wanted.clone();
        sorted.sort_unstable();
        let only = at_once(model, sorted.iter().map(|&page| page..page + 1));
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let bridged = (first..=last).step_by(256);
        let bridged = at_once(model, bridged.map(|page| page..(page + 256).min(last + 1)));
        let rule = by_rule(model, &wanted, passes);
        let ratio = rule as f64 / only.min(bridged) as f64;
        eprintln!("{model:?} {density} %: {rule} ns, only {only}, bridged {bridged}: {ratio:.2}");
        worst = worst.max(ratio);
    }
    worst
}

#[test]
fn the_rule_takes_hardly_longer_than_the_better_of_all_gaps_and_none() {
    for model in [Model::Hdd7200, Model::NetworkSsd, Model::Nfs] {
        let worst = worst(model, false);
        assert!(worst <= 1.1, "{model:?}: {worst:.2}");
    }
}

#[test]
fn in_passes_most_of_a_file_takes_hardly_longer_than_all_of_it() {
    let worst = worst(Model::Hdd7200, true);
    // If a pass leaves out pages wanted later, the limit is 1.4.
    assert!(worst <= 1.25, "{worst:.2}");
}

/// Ranges of `wanted` pages with gaps of `left_out` pages, up to the end of the file.
fn runs(wanted: u64, left_out: u64) -> Vec<u64> {
    let starts = (0..PAGES).step_by((wanted + left_out) as usize);
    starts.flat_map(|start| start..start + wanted).collect()
}

#[test]
fn what_leaves_pages_out_takes_no_longer_than_alone_and_less_where_that_can_be() {
    for model in [Model::Hdd7200, Model::NetworkSsd, Model::Nfs] {
        for wanted in [1, 2, 8, 64] {
            for left_out in [1, 2, 4, 8, 16, 64] {
                let pages = runs(wanted, left_out);
                let program = reads(pages.iter().copied());
                let alone = run(&machine(model, 1 << 20), None, &program, 0);
                let alone = alone - program.len() as u64 * HIT_NS;
                let each = pages.chunk_by(|one, next| one + 1 == *next);
                let only = at_once(model, each.map(|run| run[0]..run[0] + run.len() as u64));
                let bridged = (0..PAGES).step_by(256).map(|page| page..page + 256);
                let limit = only.min(at_once(model, bridged));
                for passes in [false, true] {
                    let rule = by_rule(model, &pages, passes);
                    let case = format!(
                        "{model:?}, {wanted} wanted, {left_out} left out, passes {passes}: {rule} ns, alone {alone}, limit {limit}"
                    );
                    eprintln!("{case}");
                    assert!(rule <= alone + alone / 500, "{case}");
                    // On a disk that streams past the gaps there is nothing to gain.
                    let more = if passes { limit / 4 } else { limit / 8 };
                    assert!(rule <= (alone / 2).max(limit + more), "{case}");
                }
            }
        }
    }
}
