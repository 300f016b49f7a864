//! Questions that are answered late, or never.

use std::sync::{Arc, Mutex};

use foreread_backend::{Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Ledger};
use foreread_plan::{Access, FileId, Kind, PAGE, Seen};
use foreread_sources::Replay;

use super::{FILE, GIB, Player, apart, machine, play, reads, scattered};

const OTHER: FileId = FileId(1);
/// As long as no device takes, in ns.
const LATE: u64 = 8_000_000;

fn engine(sim: Sim, plan: &[Access]) -> Engine<Sim> {
    let source = Box::new(Replay::new(plan.to_vec()));
    let config = Config {
        budget_pages: 1 << 16,
        ..Config::default()
    };
    Engine::new(sim, config).with_strand("replay", source)
}

/// A plan in which every second read is of the other file.
fn both() -> Vec<Access> {
    let mut plan = apart(scattered(2000, 10_000));
    plan.iter_mut().step_by(2).for_each(|one| one.file = OTHER);
    plan
}

fn machine_of_both(model: Model) -> Arc<Mutex<SimMachine>> {
    let shared = machine(model, 1 << 20);
    shared.lock().unwrap().place(OTHER, 5 * GIB);
    shared
}

#[test]
fn a_file_that_never_answers_holds_nothing_up_and_is_accounted_for() {
    for model in [Model::NetworkSsd, Model::Hdd7200] {
        let plan = both();
        let mut ends = Vec::new();
        for silent in [None, Some(OTHER)] {
            let shared = machine_of_both(model);
            let mut sim = Sim::new(Arc::clone(&shared));
            if let Some(file) = silent {
                sim = sim.with_silent(file);
            }
            let mut engine = engine(sim, &plan);
            // The program announces its positions, so each read may have to be checked.
            let mut players = [Player::new(Some(&mut engine), &plan, 20_000)];
            play(&shared, &mut players, true, |_| ());
            let end = players[0].ready;
            let report = engine.finish(end);
            assert!(report.ledger.is_closed(), "{:?}", report.ledger);
            // A read may be announced just before it is requested.
            let read = report.ledger.useful + report.ledger.late;
            assert!(read >= 1_950 * PAGE, "{:?}", report.ledger);
            assert_eq!(report.foreseen, 2000);
            ends.push(end);
        }
        // In virtual time: this is exact.
        assert!(ends[1] < ends[0] + ends[0] / 20, "{ends:?}");
    }
}

#[test]
fn what_was_gone_is_found_to_be_however_late_that_is_answered_and_entered_once() {
    for kind in [Kind::Touch, Kind::Pread] {
        let mut gone = Vec::new();
        for delay in [0, LATE] {
            let plan = reads(scattered(2000, 100_000));
            let shared = machine(Model::NetworkSsd, 1 << 20);
            let sim = Sim::new(Arc::clone(&shared)).with_delay(delay);
            let mut engine = engine(sim, &plan);
            let mut now = 0;
            let pass = |engine: &mut Engine<Sim>, now: &mut u64| {
                *now += 1_000_000;
                shared.lock().unwrap().advance(*now);
                engine.step(*now);
            };
            while engine.ledger().issued < 1500 * PAGE
                || shared.lock().unwrap().next_event().is_some()
            {
                pass(&mut engine, &mut now);
            }
            for access in &plan[..800] {
                let page = access.extent.pages().start;
                shared.lock().unwrap().evict(FILE, page);
            }
            // All of these had arrived, and waited.
            for access in &plan[..800] {
                now += 100_000;
                shared.lock().unwrap().advance(now);
                engine.collect(now);
                let read = Access {
                    kind,
                    start: now,
                    took: 1_000_000,
                    ..*access
                };
                engine.see(&Seen::Read(read.into()));
            }
            for _ in 0..20 {
                pass(&mut engine, &mut now);
            }
            let report = engine.finish(now);
            assert!(report.ledger.is_closed(), "{:?}", report.ledger);
            gone.push(report.ledger.evicted / PAGE);
        }
        assert!(gone.iter().all(|&gone| gone > 700), "{kind:?}: {gone:?}");
    }
}

#[test]
fn what_waits_for_answers_is_bounded() {
    let plan = reads(scattered(20_000, 100_000));
    let shared = machine(Model::NetworkSsd, 1 << 20);
    let sim = Sim::new(Arc::clone(&shared)).with_silent(FILE);
    let mut engine = engine(sim, &plan);
    let mut now = 0;
    while engine.ledger().issued < 10_000 * PAGE || shared.lock().unwrap().next_event().is_some() {
        now += 1_000_000;
        shared.lock().unwrap().advance(now);
        engine.step(now);
    }
    for access in &plan[..10_000] {
        let read = Access {
            start: now,
            took: 1_000_000,
            ..*access
        };
        engine.see(&Seen::Read(read.into()));
        engine.step(now);
    }
    // Reads that wait for an answer, of one page each, are not entered yet.
    let ledger = engine.ledger();
    let entered = ledger.useful + ledger.late + ledger.evicted;
    assert!(entered + ledger.missed >= 8_900 * PAGE, "{ledger:?}");
    let report = engine.finish(now);
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    let Ledger {
        useful,
        late,
        missed,
        ..
    } = report.ledger;
    assert_eq!(useful + late + missed, 10_000 * PAGE, "{:?}", report.ledger);
}
