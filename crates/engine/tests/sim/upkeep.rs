//! What following costs is bounded by what it gains.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foreread_backend::{Backend, DeviceFacts, Event, Question, Sim};
use foreread_engine::Phase;
use foreread_plan::Request;

use super::*;

/// To look at a page's place, and to fetch it, takes so long of the processor, in ns.
const LOOK_NS: u64 = 12_000;
const FETCH_NS: u64 = 20_000;

/// The sim backend, each of whose calls takes time of the processor.
struct Priced {
    sim: Sim,
    used: Arc<AtomicU64>,
}

impl Priced {
    fn pay(&self, ns: u64) {
        self.used.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Backend for Priced {
    fn device(&mut self, file: FileId) -> Option<u64> {
        self.sim.device(file)
    }
    fn facts(&mut self, device: u64) -> DeviceFacts {
        self.sim.facts(device)
    }
    fn prepare(&mut self, file: FileId) {
        self.pay(LOOK_NS);
        self.sim.prepare(file);
    }
    fn submit(&mut self, request: Request) {
        self.pay(FETCH_NS);
        self.sim.submit(request);
    }
    fn poll(&mut self, events: &mut Vec<Event>) {
        self.sim.poll(events);
    }
    fn look(&mut self, names: &[(FileId, Kind)]) {
        self.sim.look(names);
    }
    fn ask(&mut self, question: Question) {
        // The file is open for the parts after the first.
        self.pay(LOOK_NS + question.parts.len() as u64 * LOOK_NS / 10);
        self.sim.ask(question);
    }
    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        self.sim.discard(file, pages);
    }
}

/// An engine that pays for what it does, and what it has paid.
fn priced(machine: &Arc<Mutex<SimMachine>>, plan: Vec<Access>) -> (Engine<Priced>, Arc<AtomicU64>) {
    let used = Arc::new(AtomicU64::new(0));
    let backend = Priced {
        sim: Sim::new(Arc::clone(machine)),
        used: Arc::clone(&used),
    };
    let source = Box::new(Replay::new(List(plan, 0), HashSet::new()));
    let told = Arc::clone(&used);
    let engine = Engine::new(backend, Config::default())
        .with_strand("replay", source)
        .with_used(move || told.load(Ordering::Relaxed));
    (engine, used)
}

/// Follow a program that reads an entry of `plan` every `pace` ns from `now` on; until when it was followed.
fn follow(
    machine: &Arc<Mutex<SimMachine>>,
    engine: &mut Engine<Priced>,
    plan: &[Access],
    pace: u64,
    mut now: u64,
) -> u64 {
    for (n, &read) in plan.iter().enumerate() {
        machine.lock().unwrap().advance(now);
        if n % 8 == 0 {
            engine.step(now);
        }
        if engine.phase() == Phase::Hot {
            break;
        }
        let took = HIT_NS;
        engine.see(&Seen::Read(
            Access {
                start: now,
                took,
                ..read
            }
            .into(),
        ));
        now += pace;
    }
    now
}

#[test]
fn a_long_plan_is_known_to_be_in_memory_by_a_sample() {
    let plan = apart(scattered(26_000, 26_000));
    let shared = machine(Model::NetworkSsd, 1 << 20);
    run(&shared, None, &plan, 0);
    let (mut engine, used) = priced(&shared, plan);
    engine.survey(0);
    assert_eq!(engine.phase(), Phase::Hot);
    let looks = used.load(Ordering::Relaxed) / LOOK_NS;
    assert!((1..=64).contains(&looks), "{looks} looks");
    assert!(!engine.step(0) && engine.is_quiet());
    assert_eq!(used.load(Ordering::Relaxed) / LOOK_NS, looks);
}

#[test]
fn where_nothing_turns_out_to_be_missing_little_is_spent() {
    // Far from each other, so that each is asked for by itself.
    let plan = apart(scattered(26_000, 26_000));
    let shared = machine(Model::NetworkSsd, 1 << 20);
    run(&shared, None, &plan, 0);
    // No survey: it would tell.
    for pace in [2_000, 20_000, 2_000_000] {
        let (mut engine, used) = priced(&shared, plan.clone());
        let elapsed = follow(&shared, &mut engine, &plan, pace, 0);
        let used = used.load(Ordering::Relaxed);
        // The overdraft, the share, and two steps of some 64 requests: the first, which comes before the first read and is not
        // charged, and the last.
        let most = 2_000_000 + elapsed / 100 + 2 * 64 * FETCH_NS;
        assert!(used <= most, "{used} ns of {elapsed} at a pace of {pace}");
        assert_eq!(engine.ledger().issued, 0);
        if engine.phase() == Phase::Hot {
            // And it is paid back before the program is worth another look.
            assert!(engine.paid_back_in() >= 200_000_000);
        }
    }
}

#[test]
fn what_is_missing_pays_for_what_is_done_for_it() {
    let plan = apart(scattered(4_000, 26_000));
    let shared = machine(Model::NetworkSsd, 1 << 20);
    let (mut cold, used) = priced(&shared, plan.clone());
    cold.survey(0);
    follow(&shared, &mut cold, &plan, 200_000, 0);
    assert_ne!(cold.phase(), Phase::Hot);
    assert!(used.load(Ordering::Relaxed) >= plan.len() as u64 / 2 * FETCH_NS);
    // A mixed plan, of which one page in four is missing, is followed as well.
    let (present, _): (Vec<_>, Vec<_>) = plan.iter().enumerate().partition(|(n, _)| n % 4 != 0);
    let present: Vec<Access> = present.into_iter().map(|(_, &read)| read).collect();
    let shared = machine(Model::NetworkSsd, 1 << 20);
    let loaded = run(&shared, None, &present, 0);
    let (mut mixed, _) = priced(&shared, plan.clone());
    mixed.survey(0);
    follow(&shared, &mut mixed, &plan, 200_000, loaded);
    assert_ne!(mixed.phase(), Phase::Hot);
    assert!(mixed.ledger().issued >= 900 * PAGE, "{:?}", mixed.ledger());
}
