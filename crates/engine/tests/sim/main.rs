//! The whole engine on the sim backend: simulated programs, a disk model and a page cache in
//! virtual time. Deterministic: the same inputs give the same times to the nanosecond.

mod accounts;
mod adapt;
mod behind;
mod figures;
mod first_runs;
mod follow;
mod gaps;
mod growing;
mod names;
mod pacing;
mod passes;
mod sharing;
mod signatures;
mod silent;
mod strands;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use foreread_backend::{ReadOutcome, Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Report};
use foreread_plan::{Access, Extent, FileId, Kind, PAGE, Seen, ThreadId};
use foreread_sources::{Replay, Source};

const FILE: FileId = FileId(0);
const HIT_NS: u64 = 1_000;
const TICK_NS: u64 = 200_000;
const GIB: u64 = 1 << 30;

fn page_read(page: u64) -> Access {
    Access {
        file: FILE,
        extent: Extent::new(page * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    }
}

fn reads(pages: impl IntoIterator<Item = u64>) -> Vec<Access> {
    pages.into_iter().map(page_read).collect()
}

/// Pages too far from each other for the gaps to be read along.
fn apart(pages: impl IntoIterator<Item = u64>) -> Vec<Access> {
    reads(pages.into_iter().map(|page| page * 32))
}

/// Pages in an order no read-ahead can guess, without repeats.
fn scattered(count: u64, over: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    let mut random = fastrand::Rng::with_seed(12345);
    let mut pages = Vec::new();
    while (pages.len() as u64) < count {
        let page = random.u64(..over);
        if seen.insert(page) {
            pages.push(page);
        }
    }
    pages
}

fn machine(model: Model, capacity: usize) -> Arc<Mutex<SimMachine>> {
    let mut machine = SimMachine::new(model, 8 * GIB, capacity);
    machine.place(FILE, GIB);
    Arc::new(Mutex::new(machine))
}

fn engine(machine: &Arc<Mutex<SimMachine>>, plan: Vec<Access>, budget_pages: u64) -> Engine<Sim> {
    let source: Box<dyn Source> = Box::new(Replay::new(plan));
    let config = Config {
        budget_pages,
        ..Config::default()
    };
    Engine::new(Sim::new(Arc::clone(machine)), config).with_strand("replay", source)
}

/// A program with the session that follows it.
struct Player<'a> {
    engine: Option<&'a mut Engine<Sim>>,
    program: &'a [Access],
    /// ns between two reads.
    compute: u64,
    /// When it reads next, and since when it waits for that read.
    ready: u64,
    waiting: Option<u64>,
    /// When the engine's timer next ends, and how often it does.
    tick: u64,
    every: u64,
    /// True if no one reports its reads to the engine.
    unobserved: bool,
    /// Pages it has fetched by itself.
    fetched: u64,
}

impl<'a> Player<'a> {
    fn new(engine: Option<&'a mut Engine<Sim>>, program: &'a [Access], compute: u64) -> Self {
        Self {
            engine,
            program,
            compute,
            ready: compute,
            waiting: None,
            tick: 0,
            every: TICK_NS,
            unobserved: false,
            fetched: 0,
        }
    }

    /// When it next does something of its own accord.
    fn next(&self) -> u64 {
        let tick = self.engine.as_ref().map_or(u64::MAX, |_| self.tick);
        match self.waiting {
            None if !self.program.is_empty() => tick.min(self.ready),
            _ => tick,
        }
    }

    /// Reads everything that can be read at `now`. If `explicit`, the read is announced before it is made and without its time, like a
    /// position in an access list.
    fn read(&mut self, machine: &Mutex<SimMachine>, now: u64, explicit: bool) {
        let Some((&access, rest)) = self.program.split_first() else {
            return;
        };
        if self.waiting.is_none() && now < self.ready {
            return;
        }
        if self.waiting.is_none()
            && explicit
            && let Some(engine) = &mut self.engine
        {
            engine.see(&Seen::Read(
                Access {
                    start: now,
                    kind: Kind::Touch,
                    ..access
                }
                .into(),
            ));
        }
        let since = *self.waiting.get_or_insert(now);
        let mut shared = machine.lock().unwrap();
        let before = shared.fetched_pages();
        let found = shared.read(access.file, access.extent.pages());
        self.fetched += shared.fetched_pages() - before;
        drop(shared);
        if found == ReadOutcome::Wait {
            return;
        }
        let end = now + HIT_NS;
        if let Some(engine) = &mut self.engine
            && !explicit
            && !self.unobserved
        {
            engine.see(&Seen::Read(
                Access {
                    start: since,
                    took: end - since,
                    ..access
                }
                .into(),
            ));
        }
        self.waiting = None;
        self.program = rest;
        self.ready = if rest.is_empty() {
            end
        } else {
            end + self.compute
        };
    }
}

/// Let these run side by side on one machine until the last has ended. `watch` is called whenever a
/// program was given its turn.
fn play(
    machine: &Mutex<SimMachine>,
    players: &mut [Player],
    explicit: bool,
    mut watch: impl FnMut(&mut [Player]),
) {
    while players.iter().any(|player| !player.program.is_empty()) {
        let event = machine.lock().unwrap().next_event().unwrap_or(u64::MAX);
        let own = players.iter().map(Player::next).min().unwrap_or(u64::MAX);
        let now = event.min(own);
        machine.lock().unwrap().advance(now);
        for player in &mut *players {
            if let Some(engine) = &mut player.engine
                && player.tick <= now
            {
                engine.step(now);
                player.tick = now + player.every;
            }
            player.read(machine, now, explicit);
        }
        watch(players);
    }
}

/// Run a program that reads `program` with `compute` ns between reads; its end, in ns.
fn run(
    machine: &Arc<Mutex<SimMachine>>,
    engine: Option<&mut Engine<Sim>>,
    program: &[Access],
    compute: u64,
) -> u64 {
    let mut players = [Player::new(engine, program, compute)];
    play(machine, &mut players, false, |_| ());
    players[0].ready
}

struct Outcome {
    plain: u64,
    ahead: u64,
    report: Report,
}

fn compare(
    model: Model,
    plan: Vec<Access>,
    program: &[Access],
    compute: u64,
    budget: u64,
) -> Outcome {
    compare_in(model, plan, program, compute, budget, 1 << 20)
}

fn compare_in(
    model: Model,
    plan: Vec<Access>,
    program: &[Access],
    compute: u64,
    budget: u64,
    capacity: usize,
) -> Outcome {
    let plain = run(&machine(model, capacity), None, program, compute);
    let shared = machine(model, capacity);
    let mut engine = engine(&shared, plan, budget);
    let ahead = run(&shared, Some(&mut engine), program, compute);
    let report = engine.finish(ahead);
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    Outcome {
        plain,
        ahead,
        report,
    }
}
