//! Compares the account with the truth: pages that the machine fetched for the session, and the program's reads of them.
//!
//! Without evictions the machine has everything that was fetched in the end. Fetched pages that the program did not read were wasted, and
//! by the session: a simulated program fetches only its own reads.

use std::collections::HashSet;

use foreread_disk::Model;
use foreread_engine::{Config, Engine, Report};
use foreread_plan::{Access, PAGE, ThreadId};
use foreread_sources::{Replay, Source};
use proptest::prelude::*;

use super::{Player, Sim, engine, machine, page_read, play, reads, scattered};

/// More pages than any of these programs fetch.
const ROOMY: usize = 1 << 20;

/// The true values of an account, in bytes.
struct Truth {
    /// Fetched by the session.
    issued: u64,
    /// Fetched by anybody and never read by the program; to be relied on where nothing was evicted.
    unread: u64,
}

/// Run a program on a machine with this much memory, and have the account closed.
fn follow_in(
    plan: Vec<Access>,
    program: &[Access],
    memory: usize,
    watch: impl FnMut(&mut [Player]),
) -> (Report, Truth) {
    let shared = machine(Model::NetworkSsd, memory);
    let mut engine = engine(&shared, plan, 1 << 16);
    let mut players = [Player::new(Some(&mut engine), program, 50_000)];
    play(&shared, &mut players, false, watch);
    let (end, own) = (players[0].ready, players[0].fetched);
    // Requests in flight arrive.
    let mut machine = shared.lock().unwrap();
    while let Some(next) = machine.next_event() {
        machine.advance(next);
    }
    let read: HashSet<_> = program
        .iter()
        .flat_map(|access| access.extent.pages())
        .collect();
    let truth = Truth {
        issued: (machine.fetched_pages() - own) * PAGE,
        unread: machine.resident_pages().saturating_sub(read.len() as u64) * PAGE,
    };
    drop(machine);
    let report = engine.finish(end);
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    assert_eq!(report.ledger.issued, truth.issued, "{:?}", report.ledger);
    (report, truth)
}

#[track_caller]
fn follow(plan: Vec<Access>, program: &[Access]) -> Report {
    let (report, truth) = follow_in(plan, program, ROOMY, |_| ());
    let ledger = report.ledger;
    assert_eq!(ledger.wasted + ledger.infill, truth.unread, "{ledger:?}");
    report
}

#[test]
fn what_is_read_thousands_of_reads_after_its_turn_is_not_wasted() {
    let plan = scattered(14_000, 2_000_000);
    let program = plan[..100]
        .iter()
        .chain(&plan[200..13_000])
        .chain(&plan[100..200]);
    let report = follow(reads(plan.clone()), &reads(program.copied()));
    let ledger = report.ledger;
    assert!(ledger.wasted < 50 * PAGE + ledger.issued / 10, "{ledger:?}");
}

#[test]
fn what_another_thread_reads_than_was_foreseen_is_read() {
    let plan = scattered(6000, 2_000_000);
    let planned = plan.iter().map(|&page| Access {
        thread: ThreadId(1),
        ..page_read(page)
    });
    let (one, two) = plan.split_at(3000);
    let program = one.iter().zip(two).flat_map(|(&one, &two)| {
        let of = |page, id| Access {
            thread: ThreadId(id),
            ..page_read(page)
        };
        [of(one, 2), of(two, 3)]
    });
    follow(planned.collect(), &program.collect::<Vec<_>>());
}

#[test]
fn of_what_is_read_while_nobody_watches_nothing_is_claimed() {
    let plan = scattered(6000, 2_000_000);
    let mut looked_away = false;
    let (report, truth) = follow_in(reads(plan.clone()), &reads(plan), ROOMY, |players| {
        let player = &mut players[0];
        if player.program.len() < 3000 && !looked_away {
            looked_away = true;
            player.unobserved = true;
            if let Some(engine) = &mut player.engine {
                engine.look_away();
            }
        }
    });
    let ledger = report.ledger;
    assert_eq!(ledger.wasted + ledger.infill, 0, "{ledger:?}");
    assert!(ledger.unknown > truth.unread, "{ledger:?}");
}

#[test]
fn what_was_evicted_and_is_fetched_again_is_issued_twice() {
    let plan = scattered(4000, 2_000_000);
    let shared = machine(Model::NetworkSsd, ROOMY);
    let source: Box<dyn Source> = Box::new(Replay::new(reads(plan.clone())));
    let backend = Sim::new(shared.clone());
    let mut engine = Engine::new(backend, Config::default()).with_strand("replay", source);
    let program = reads(plan.clone());
    let mut players = [Player::new(Some(&mut engine), &program, 50_000)];
    let mut before = plan.len();
    play(&shared, &mut players, false, |players| {
        // Every 100 reads some of the next pages are evicted.
        let left = players[0].program.len();
        if left + 100 < before {
            before = left;
            let next = plan.iter().rev().take(left).rev().skip(20).take(40);
            next.for_each(|&page| shared.lock().unwrap().evict(super::FILE, page));
        }
    });
    let (end, own) = (players[0].ready, players[0].fetched);
    let report = engine.finish(end);
    let ledger = report.ledger;
    let fetched = shared.lock().unwrap().fetched_pages();
    assert!(ledger.is_closed() && ledger.evicted > 0, "{ledger:?}");
    assert_eq!(ledger.issued, (fetched - own) * PAGE, "{ledger:?}");
    assert_eq!(ledger.wasted, 0, "{ledger:?}");
}

#[test]
fn where_all_that_is_listed_is_read_what_is_given_back_unread_is_infill() {
    let plan = reads(scattered(6000, 12_000));
    let shared = machine(Model::NetworkSsd, ROOMY);
    let source: Box<dyn Source> = Box::new(Replay::new(plan.clone()));
    let config = Config {
        budget_pages: 512,
        evict_behind: true,
        ..Config::default()
    };
    let mut engine = Engine::new(Sim::new(shared.clone()), config).with_strand("replay", source);
    let mut players = [Player::new(Some(&mut engine), &plan, 400_000)];
    play(&shared, &mut players, false, |_| ());
    let end = players[0].ready;
    let ledger = engine.finish(end).ledger;
    assert!(ledger.is_closed() && ledger.infill > 0, "{ledger:?}");
    assert_eq!(ledger.wasted, 0, "{ledger:?}");
}

/// A stretch of a program: of the plan from some place on, or of other pages.
#[derive(Clone, Debug)]
enum Stretch {
    Plan {
        from: usize,
        count: usize,
        step: usize,
    },
    Backward {
        from: usize,
        count: usize,
    },
    Others {
        count: usize,
    },
}

fn stretch() -> impl Strategy<Value = Stretch> {
    prop_oneof![
        (0usize..8000, 1usize..3000, 1usize..4).prop_map(|(from, count, step)| Stretch::Plan {
            from,
            count,
            step
        }),
        (0usize..8000, 1usize..500).prop_map(|(from, count)| Stretch::Backward { from, count }),
        (1usize..300).prop_map(|count| Stretch::Others { count }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// However a program leaves its plan and returns to it, bytes booked as read were read, and bytes booked as unread were not.
    #[test]
    fn the_account_is_the_truth_whatever_becomes_of_the_plan(
        stretches in proptest::collection::vec(stretch(), 1..6),
        memory in prop_oneof![Just(ROOMY), 500usize..4000],
    ) {
        let plan = scattered(9000, 60_000);
        let mut other = 100_000;
        let mut program = Vec::new();
        for stretch in stretches {
            match stretch {
                Stretch::Plan { from, count, step } => {
                    program.extend(plan.iter().skip(from).step_by(step).take(count));
                }
                Stretch::Backward { from, count } => {
                    program.extend(plan.iter().skip(from).take(count).rev());
                }
                Stretch::Others { count } => program.extend((0..count).map(|_| {
                    other += 9;
                    other
                })),
            }
        }
        let program = reads(program);
        let (report, truth) = follow_in(reads(plan), &program, memory, |_| ());
        let ledger = report.ledger;
        if memory == ROOMY {
            prop_assert_eq!(ledger.wasted + ledger.infill, truth.unread, "{:?}", ledger);
        }
        prop_assert_eq!(ledger.unknown, 0);
    }
}
