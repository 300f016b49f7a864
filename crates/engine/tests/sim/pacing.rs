//! The pacing rule, with measured values of program and device: C, T and K.

use std::sync::Arc;

use foreread_backend::Sim;
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Horizon, Ledger, Profile};
use foreread_plan::PAGE;
use foreread_sources::Replay;

use super::{Player, apart, machine, play, scattered};

/// Reads of the program.
const READS: u64 = 2000;

/// The account, and the most pages by which the session was ahead, of a program that computes for `compute` ns before each read of a plan
/// on a network volume, under these thresholds.
fn account(compute: u64, time_threshold: i64, queue_threshold: u64) -> (Ledger, u64) {
    let plan = apart(scattered(READS, 200_000));
    let machine = machine(Model::NetworkSsd, 1 << 20);
    let source = Replay::new(plan.clone());
    let backend = Sim::new(Arc::clone(&machine));
    let engine = Engine::new(backend, Config::default()).with_strand("replay", Box::new(source));
    let mut engine = engine.with_profiles(move |_, _| {
        Some(Profile {
            horizon: Horizon {
                time_threshold,
                queue_threshold,
            },
            ..Profile::solid_state()
        })
    });
    let mut players = [Player::new(Some(&mut engine), &plan, compute)];
    let mut lead = 0;
    play(&machine, &mut players, false, |players| {
        let read = READS - players[0].program.len() as u64;
        lead = lead.max(machine.lock().unwrap().fetched_pages() - read);
    });
    let end = players[0].ready;
    (engine.finish(end).ledger, lead)
}

#[test]
fn entries_that_would_arrive_too_late_are_dropped_and_no_others() {
    // The volume takes 333 µs per request if there are many. A program that computes for longer is kept ahead of. A program that does not
    // compute reads most pages itself: by the time that a request is served, the program has arrived there.
    let slow = account(1_000_000, 0, 4096);
    let fast = account(0, 0, 4096);
    let issued = |account: &(Ledger, u64)| account.0.issued / PAGE;
    assert!(issued(&slow) > READS * 9 / 10, "{slow:?}");
    assert!(issued(&fast) < READS / 2, "{fast:?}");
    // The same program, allowed any lateness.
    let late = account(0, i64::MIN, 4096);
    assert!(issued(&late) > READS * 9 / 10, "{late:?}");
}

#[test]
fn entries_too_far_ahead_are_held_back_until_the_program_has_moved_on() {
    let held = account(1_000_000, i64::MIN, 16);
    let free = account(1_000_000, i64::MIN, 4096);
    assert!((8..=17).contains(&held.1), "{held:?}");
    assert!(free.1 > 500, "{free:?}");
    // None of them is dropped.
    assert!(
        held.0.issued + 64 * PAGE > free.0.issued,
        "{held:?}, {free:?}"
    );
}
