//! The figures that constants are chosen by (docs/constants.md): times of a fixed set of cases, in virtual time. `#[ignore]`d,
//! because they are for reading: nothing is asserted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use foreread_backend::{Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Report};
use foreread_plan::{Access, Extent, FileId, Kind, PAGE, ThreadId};
use foreread_sources::Replay;

use super::first_runs::cases;
use super::names;
use super::signatures::{ROOMY, first_run};
use super::{Player, apart, machine, page_read, play, reads, run, scattered};

/// Prints a case's name, the time in ns, and the pages fetched ahead.
fn print(name: &str, time: u64, report: &Report) {
    let read_along = report.ledger.infill + report.ledger.wasted + report.ledger.evicted;
    println!(
        "figure\t{name}\t{time}\t{}\t{}",
        report.ledger.issued / PAGE,
        read_along / PAGE
    );
}

/// The way in which a plan is followed.
#[derive(Clone, Copy)]
struct Terms {
    compute: u64,
    budget: u64,
    memory: usize,
    evict_behind: bool,
    passes: bool,
}

const ROOM: Terms = Terms {
    compute: 0,
    budget: 1 << 16,
    memory: ROOMY,
    evict_behind: false,
    passes: false,
};

/// Follow a program by a plan.
fn replay(name: &str, model: Model, plan: &[Access], program: &[Access], terms: Terms) {
    let shared = machine(model, terms.memory);
    follow(name, model, &shared, plan, program, terms);
}

fn follow(
    name: &str,
    model: Model,
    shared: &Arc<Mutex<SimMachine>>,
    plan: &[Access],
    program: &[Access],
    terms: Terms,
) {
    let config = Config {
        budget_pages: terms.budget,
        evict_behind: terms.evict_behind,
        passes: terms.passes,
        ..Config::default()
    };
    let source = Replay::new(plan.to_vec());
    let mut engine =
        Engine::new(Sim::new(Arc::clone(shared)), config).with_strand("replay", Box::new(source));
    let computed = Arc::new(AtomicU64::new(0));
    if terms.passes {
        let computed = Arc::clone(&computed);
        engine = engine.with_computed(move || Some(computed.load(Ordering::Relaxed)));
    }
    let mut players = [Player::new(Some(&mut engine), program, terms.compute)];
    play(shared, &mut players, false, |players| {
        let read = program.len() - players[0].program.len();
        computed.store(read as u64 * terms.compute, Ordering::Relaxed);
    });
    let time = players[0].ready;
    let name = format!("{} {name}, {} ns", model.name(), terms.compute);
    print(&name, time, &engine.finish(time));
}

/// Every read by one of two threads that take turns.
fn threads(pages: &[u64], chunk: usize) -> Vec<Access> {
    let (one, two) = pages.split_at(pages.len() / 2);
    let of = |id: u32, pages: &[u64]| -> Vec<Access> {
        let thread = ThreadId(id);
        let read = |&page: &u64| Access {
            thread,
            ..page_read(page)
        };
        pages.iter().map(read).collect()
    };
    let (one, two) = (of(1, one), of(2, two));
    let turns = one.chunks(chunk).zip(two.chunks(chunk));
    turns
        .flat_map(|(a, b)| a.iter().chain(b).copied())
        .collect()
}

fn blocks(count: u64, over: u64, pages: u64) -> Vec<Access> {
    let block = |block: u64| Access {
        extent: Extent::new(block * pages * PAGE, pages * PAGE),
        ..page_read(0)
    };
    scattered(count, over).into_iter().map(block).collect()
}

/// A b-tree's upper pages between leaves that are read once.
fn tree(leaves: u64) -> Vec<Access> {
    let leaves = scattered(leaves, 100_000).into_iter().enumerate();
    apart(leaves.flat_map(|(n, leaf)| [200_000, 200_001 + n as u64 % 50, leaf]))
}

/// Some streams of 200 pages with scattered reads between them.
fn streams() -> Vec<Access> {
    let between = scattered(2000, 50_000);
    let part = |(n, pages): (u64, &[u64])| {
        let stream = (0..200).map(move |page| 60_000 + n * 1000 + page);
        stream.chain(pages.iter().copied()).collect::<Vec<_>>()
    };
    reads((0..).zip(between.chunks(100)).flat_map(part))
}

/// Small files, each read whole.
fn files(shared: &Mutex<SimMachine>, count: u64, pages: u64) -> Vec<Access> {
    let mut shared = shared.lock().unwrap();
    for file in 0..count {
        let place = (file * 7919 % 10_007) * 64 * PAGE;
        shared.place(FileId(10 + file as u32), (1 << 30) + place);
    }
    let read = |file: u64| Access {
        file: FileId(10 + file as u32),
        extent: Extent::new(0, pages * PAGE),
        kind: Kind::Read,
        ..page_read(0)
    };
    (0..count).map(read).collect()
}

/// A program that reads by its plan, or not, on one device.
fn replays(model: Model, terms: Terms) {
    let whole = |name: &str, plan: &[Access], terms| replay(name, model, plan, plan, terms);
    let wide = scattered(2000, 100_000);
    let plan = reads(wide.iter().copied());
    whole("scattered", &plan, terms);
    whole("tree", &tree(1000), terms);
    let other = reads(wide.iter().map(|page| page + 400_000));
    let long = reads(scattered(6000, 100_000));
    replay("other", model, &long, &other, terms);
    let jump: Vec<Access> = long[..200].iter().chain(&long[4500..]).copied().collect();
    replay("jump", model, &long, &jump, terms);
    let passes = Terms {
        passes: true,
        ..terms
    };
    whole("in passes", &plan, passes);
    let bricks = (0..256).flat_map(|row| (0..16).map(move |z| z * 256 + row));
    whole("rays in passes", &reads(bricks), passes);
    let little = Terms {
        budget: 4096,
        memory: 2048,
        ..terms
    };
    whole("little memory", &apart(scattered(4000, 200_000)), little);
}

/// More of them, that do nothing but read.
fn more_replays(model: Model) {
    let whole = |name: &str, plan: &[Access], terms| replay(name, model, plan, plan, terms);
    let wide = scattered(2000, 100_000);
    let plan = reads(wide.iter().copied());
    whole("backward", &reads((0..4096).rev()), ROOM);
    whole("apart", &apart(wide.iter().copied()), ROOM);
    whole("dense", &reads(scattered(2000, 8192)), ROOM);
    whole("every twelfth", &reads((0..2000).map(|n| n * 12)), ROOM);
    whole("blocks", &blocks(600, 16_384, 16), ROOM);
    whole("streams", &streams(), ROOM);
    whole("sequential", &reads(0..8192), ROOM);
    let merged = (threads(&wide, 1), threads(&wide, 100));
    replay("threads", model, &merged.0, &merged.1, ROOM);
    let left_out = wide.iter().enumerate().filter(|(n, _)| n % 10 != 3);
    let left_out = reads(left_out.map(|(_, &page)| page));
    replay("left out", model, &plan, &left_out, ROOM);
    let little = Terms {
        budget: 4096,
        memory: 2048,
        ..ROOM
    };
    whole("little memory, blocks", &blocks(1000, 16_384, 8), little);
    let behind = Terms {
        budget: 1024,
        evict_behind: true,
        ..ROOM
    };
    whole("given back", &apart(scattered(3000, 100_000)), behind);
    whole("given back, tree", &tree(1000), behind);
    let shared = machine(model, ROOMY);
    let small = files(&shared, 1500, 4);
    follow("files", model, &shared, &small, &small, ROOM);
    let partly = machine(model, ROOMY);
    run(&partly, None, &plan[..1200], 0);
    follow("warm at first", model, &partly, &plan, &plan, ROOM);
}

/// Programs that go through many names.
fn walks(model: Model) {
    let plan = names::plan(0, 2000, true);
    let most = plan.chunks(100).flat_map(|part| part.iter().take(90));
    let most: Vec<Access> = most.copied().collect();
    for (name, program) in [("all", &plan[..]), ("half", &plan[2000..]), ("most", &most)] {
        let (_, time, report) = names::follow(model, &plan, program, 5_000);
        let name = format!("{} names, {name}", model.name());
        print(&name, time, &report);
    }
}

#[test]
#[ignore = "prints figures, for docs/constants.md"]
fn figures() {
    for model in [Model::Hdd7200, Model::NetworkSsd, Model::Nfs] {
        more_replays(model);
        for compute in [0, 200_000] {
            replays(model, Terms { compute, ..ROOM });
        }
        walks(model);
        // The largest differences, one per kind.
        for (name, program) in cases() {
            if !name.starts_with("3-D") {
                let (time, report) = first_run(model, &program, 20_000);
                print(
                    &format!("{} first run, {name}", model.name()),
                    time,
                    &report,
                );
            }
        }
    }
}
