//! Names: directories and inodes, looked up ahead of a program that goes through many files.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use foreread_backend::{Backend, DeviceFacts, Event, Question, ReadOutcome, Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Report};
use foreread_plan::{Access, Expected, Extent, FileId, Kind, Name, PAGE, Request, Seen, ThreadId};
use foreread_sources::{Nature, Outlook, Replay, Source};

use super::{GIB, HIT_NS, TICK_NS, machine};

/// Uses of `count` names from `first` on; with `reads` their files are read, too.
pub(super) fn plan(first: u32, count: u32, reads: bool) -> Vec<Access> {
    let names = (first..first + count).map(|file| Access {
        file: FileId(file),
        extent: Extent::new(0, 0),
        thread: ThreadId(0),
        kind: Kind::Open,
        start: 0,
        took: 0,
    });
    names
        .flat_map(|name| {
            let read = Access {
                extent: Extent::new(0, PAGE),
                kind: Kind::Read,
                ..name
            };
            [Some(name), reads.then_some(read)]
        })
        .flatten()
        .collect()
}

/// Accesses and names that are known.
struct Listed {
    accesses: Replay<std::vec::IntoIter<Access>>,
    names: VecDeque<Name>,
}

impl Listed {
    fn new(plan: &[Access]) -> Self {
        let (names, accesses): (Vec<_>, Vec<_>) = plan
            .iter()
            .enumerate()
            .partition(|(_, one)| one.kind.names());
        let names = names
            .into_iter()
            .enumerate()
            .map(|(count, (at, one))| Name {
                file: one.file,
                kind: one.kind,
                before: (at - count) as u64,
            });
        Self {
            names: names.collect(),
            accesses: Replay::new(
                accesses
                    .into_iter()
                    .map(|(_, one)| *one)
                    .collect::<Vec<_>>(),
            ),
        }
    }
}

impl Source for Listed {
    fn nature(&self) -> Nature {
        self.accesses.nature()
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        self.accesses.disclose(room, out)
    }

    fn names(&mut self, room: usize, out: &mut Vec<Name>) -> Outlook {
        let count = room.min(self.names.len());
        out.extend(self.names.drain(..count));
        if self.names.is_empty() {
            Outlook::End
        } else {
            Outlook::More
        }
    }
}

/// Lays the files of a plan out: their inodes and their pages, far from each other.
fn lay_out(shared: &Mutex<SimMachine>, plan: &[Access]) {
    let mut shared = shared.lock().unwrap();
    for access in plan {
        let number = u64::from(access.file.0);
        let place = number * 7919 % 10_007 * 256 * PAGE;
        if access.kind.names() {
            shared.name(access.file, access.kind, GIB + place);
        } else {
            shared.place(access.file, 4 * GIB + place);
        }
    }
}

/// The sim backend that takes 16 files each for neighbours, wherever they lie.
struct Misled(Sim);

impl Backend for Misled {
    fn device(&mut self, file: FileId) -> Option<u64> {
        self.0.device(file)
    }
    fn block(&mut self, file: FileId) -> Option<u64> {
        Some(u64::from(file.0) / 16)
    }
    fn facts(&mut self, device: u64) -> DeviceFacts {
        self.0.facts(device)
    }
    fn prepare(&mut self, file: FileId) {
        self.0.prepare(file);
    }
    fn submit(&mut self, request: Request) {
        self.0.submit(request);
    }
    fn poll(&mut self, events: &mut Vec<Event>) {
        self.0.poll(events);
    }
    fn look(&mut self, names: &[(FileId, Kind)]) {
        self.0.look(names);
    }
    fn ask(&mut self, question: Question) {
        self.0.ask(question);
    }
    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        self.0.discard(file, pages);
    }
}

fn engine(shared: &Arc<Mutex<SimMachine>>, plan: &[Access]) -> Engine<Sim> {
    engine_of(Sim::new(Arc::clone(shared)), plan)
}

fn engine_of<B: Backend>(backend: B, plan: &[Access]) -> Engine<B> {
    let source = Box::new(Listed::new(plan));
    let config = Config {
        budget_pages: 1 << 16,
        ..Config::default()
    };
    Engine::new(backend, config).with_strand("replay", source)
}

/// Have a program go through these with `compute` ns between them; when it ends, from `now` on.
fn go<B: Backend>(
    shared: &Mutex<SimMachine>,
    mut engine: Option<&mut Engine<B>>,
    program: &[Access],
    compute: u64,
    mut now: u64,
) -> u64 {
    let mut tick = now;
    for access in program {
        let ready = now + compute;
        let mut since = None;
        loop {
            let event = shared.lock().unwrap().next_event().unwrap_or(u64::MAX);
            let own = if since.is_none() { ready } else { u64::MAX };
            let own = own.min(if engine.is_some() { tick } else { u64::MAX });
            now = now.max(event.min(own));
            shared.lock().unwrap().advance(now);
            if let Some(engine) = &mut engine
                && now >= tick
            {
                engine.step(now);
                tick = now + TICK_NS;
            }
            if now < ready {
                continue;
            }
            since.get_or_insert(now);
            let mut machine = shared.lock().unwrap();
            let found = if access.kind.names() {
                machine.use_name(access.file, access.kind)
            } else {
                machine.read(access.file, access.extent.pages())
            };
            if found == ReadOutcome::Hit {
                break;
            }
        }
        let start = since.unwrap_or(now);
        now += HIT_NS;
        let Some(engine) = &mut engine else { continue };
        if access.kind.names() {
            engine.see(&Seen::Named {
                file: access.file,
                kind: access.kind,
                thread: access.thread,
            });
        } else {
            let read = Access {
                start,
                took: now - start,
                ..*access
            };
            engine.see(&Seen::Read(read.into()));
        }
    }
    now
}

/// Report of following a cold program that runs `program`, by this plan, and the times plain and followed.
pub(super) fn follow(
    model: Model,
    plan: &[Access],
    program: &[Access],
    compute: u64,
) -> (u64, u64, Report) {
    let cold = || {
        let shared = machine(model, 1 << 20);
        lay_out(&shared, plan);
        lay_out(&shared, program);
        shared
    };
    let plain = go::<Sim>(&cold(), None, program, compute, 0);
    let shared = cold();
    let mut engine = engine(&shared, plan);
    let end = go(&shared, Some(&mut engine), program, compute, 0);
    let report = engine.finish(end);
    assert!(report.names.is_closed(), "{:?}", report.names);
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    (plain, end, report)
}

#[test]
fn names_are_fetched_ahead_many_at_a_time() {
    // The first serves 3,000 requests a second at most, and to the other distance costs more than depth gains.
    for (model, times) in [(Model::NetworkSsd, 2.0), (Model::Hdd7200, 1.0)] {
        for reads in [false, true] {
            let plan = plan(0, 3000, reads);
            let (plain, ahead, report) = follow(model, &plan, &plan, 5_000);
            assert!(
                ahead as f64 * times < plain as f64,
                "{model:?}: {ahead} of {plain} ns"
            );
            let names = report.names;
            assert!(names.asked > 2900 && names.fetched > 2900, "{names:?}");
            assert!(names.used > 2900 && names.unused < 50, "{names:?}");
        }
    }
}

#[test]
fn names_that_are_in_memory_are_hardly_looked_at_and_those_that_are_not_are_found() {
    let known = plan(0, 3000, false);
    let cold = plan(3000, 1000, false);
    let all: Vec<Access> = known.iter().chain(&cold).copied().collect();
    let shared = machine(Model::NetworkSsd, 1 << 20);
    lay_out(&shared, &all);
    let end = go::<Sim>(&shared, None, &known, 0, 0);
    let mut engine = engine(&shared, &all);
    // The engine does not know that the first names are in memory.
    let end = go(&shared, Some(&mut engine), &all, 5_000, end);
    let names = engine.finish(end).names;
    assert!(names.asked < 1000 + 3000 / 8, "{names:?}");
    assert!(names.fetched > 900, "{names:?}");
    assert!(names.is_closed());
}

#[test]
fn names_that_are_not_used_are_told_from_those_that_nobody_saw() {
    let plan = plan(0, 3000, false);
    for watched in [true, false] {
        let shared = machine(Model::NetworkSsd, 1 << 20);
        lay_out(&shared, &plan);
        let mut engine = engine(&shared, &plan);
        let end = go(&shared, Some(&mut engine), &plan[..500], 5_000, 0);
        if !watched {
            engine.look_away();
        }
        let names = engine.finish(end).names;
        assert!(names.is_closed(), "{names:?}");
        let (unseen, other) = if watched {
            (names.unused, names.unknown)
        } else {
            (names.unknown, names.unused)
        };
        assert!(unseen > 100 && other == 0, "{names:?}");
    }
}

#[test]
fn names_of_a_device_that_does_not_answer_keep_no_others_waiting() {
    let plan = plan(0, 4000, false);
    let shared = machine(Model::NetworkSsd, 1 << 20);
    lay_out(&shared, &plan);
    // More than may be unanswered, before all others.
    let silent = (0..1000).map(FileId);
    let sim = silent.fold(Sim::new(Arc::clone(&shared)), Sim::with_silent);
    let source = Box::new(Listed::new(&plan));
    let mut engine = Engine::new(sim, Config::default()).with_strand("replay", source);
    for step in 0..20_000 {
        let now = step * TICK_NS;
        shared.lock().unwrap().advance(now);
        engine.step(now);
    }
    let names = engine.finish(20_000 * TICK_NS).names;
    assert!(names.fetched > 2900, "{names:?}");
    assert!(names.asked <= 3000 + 512, "{names:?}");
    assert!(names.is_closed());
}

#[test]
fn a_program_that_leaves_names_out_is_still_kept_ahead_of() {
    let plan = plan(0, 6000, false);
    // The program skips the first half of the plan.
    let (plain, ahead, report) = follow(Model::NetworkSsd, &plan, &plan[3000..], 5_000);
    assert!(ahead * 3 < plain * 2, "{ahead} of {plain} ns");
    assert!(report.names.used > 2500, "{:?}", report.names);
}

#[test]
fn of_names_that_lie_in_one_block_hardly_more_than_one_is_looked_up() {
    let plan = plan(0, 6400, false);
    let cold = || {
        let shared = machine(Model::NetworkSsd, 1 << 20);
        for access in &plan {
            // 256 bytes each; the blocks far from each other.
            let number = u64::from(access.file.0);
            let place = number / 16 * 7919 % 10_007 * 256 * PAGE + number % 16 * 256;
            shared.lock().unwrap().name(access.file, access.kind, place);
        }
        shared
    };
    let plain = go::<Sim>(&cold(), None, &plan, 5_000, 0);
    let shared = cold();
    let mut engine = engine(&shared, &plan);
    let end = go(&shared, Some(&mut engine), &plan, 5_000, 0);
    let names = engine.finish(end).names;
    // One name per block until the rule is learnt, then one in 16 of the neighbours.
    assert!(names.asked < 400 + 544 + 6400 / 16, "{names:?}");
    assert!((390..=400).contains(&names.fetched), "{names:?}");
    assert!(names.is_closed());
    assert!(end * 3 < plain * 2, "{end} of {plain} ns");
}

#[test]
fn neighbours_that_are_waited_for_are_each_looked_up() {
    let plan = plan(0, 3000, false);
    let shared = machine(Model::NetworkSsd, 1 << 20);
    lay_out(&shared, &plan);
    let mut engine = engine_of(Misled(Sim::new(Arc::clone(&shared))), &plan);
    let end = go(&shared, Some(&mut engine), &plan, 5_000, 0);
    let names = engine.finish(end).names;
    assert!(names.fetched > 2900, "{names:?}");
    assert!(names.is_closed());
}
