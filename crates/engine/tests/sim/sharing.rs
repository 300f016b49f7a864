//! Several sessions in one memory: AIMD shares it out.

use std::sync::{Arc, Mutex};

use foreread_backend::{Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine, Horizon, Profile};
use foreread_plan::{Access, Extent, FileId, PAGE};
use foreread_sources::Replay;

use super::{GIB, Player, page_read, play, scattered};

/// Result of one of several sessions.
struct Share {
    /// The mean of its target over the second half, in pages.
    target: f64,
    /// Pages read in that time, and evicted pages among them.
    read: u64,
    evicted: u64,
}

/// Pages a second that a network disk of the model gives.
const PAGES_A_SECOND: u64 = 3000;

/// Number of reads of each session before the measurement, and in all.
const BEFORE: usize = 10000;
const READS: usize = 18000;

/// A network disk's profile, with a horizon that lets each session have more than its share of memory, but
/// not so much that the first burst outlasts the test.
fn near_sighted() -> Profile {
    let profile = Profile::solid_state();
    Profile {
        horizon: Horizon {
            queue_threshold: 1000,
            ..profile.horizon
        },
        ..profile
    }
}

/// `sessions` sessions, each with the belief that all `capacity` pages are free, and each with a file of its own; together they request
/// `load` percent of the device's throughput.
fn share(sessions: usize, capacity: usize, load: u64, explicit: bool) -> Vec<Share> {
    let mut machine = SimMachine::new(Model::NetworkSsd, 64 * GIB, capacity);
    for file in 0..sessions {
        machine.place(FileId(file as u32), (1 + 4 * file as u64) * GIB);
    }
    let machine = Arc::new(Mutex::new(machine));
    let pages = scattered(READS as u64, 200_000);
    let plan = |file: usize| -> Vec<Access> {
        // Each from another place on, or they would run in step; too far apart for the gaps to be read along.
        let from = file * 997 % READS;
        let (head, tail) = pages.split_at(from);
        tail.iter()
            .chain(head)
            .map(|&page| Access {
                file: FileId(file as u32),
                ..page_read(page * 32)
            })
            .collect()
    };
    let plans: Vec<Vec<Access>> = (0..sessions).map(plan).collect();
    let mut engines: Vec<Engine<Sim>> = plans
        .iter()
        .map(|plan| {
            let config = Config {
                budget_pages: capacity as u64,
                ..Config::default()
            };
            let source = Box::new(Replay::new(plan.clone()));
            Engine::new(Sim::new(Arc::clone(&machine)), config)
                .with_strand("replay", source)
                .with_profiles(|_, _| Some(near_sighted()))
        })
        .collect();
    let compute = sessions as u64 * 1_000_000_000 / PAGES_A_SECOND * 100 / load;
    let mut players: Vec<Player> = engines
        .iter_mut()
        .zip(&plans)
        .map(|(engine, plan)| Player {
            every: 5_000_000,
            ..Player::new(Some(engine), plan, compute)
        })
        .collect();
    let mut sums = vec![0u64; sessions];
    let mut evicted = vec![None; sessions];
    let mut looks = 0u64;
    play(&machine, &mut players, explicit, |players| {
        // While all of them read, and have found their share.
        if players.iter().any(|player| player.program.is_empty())
            || players
                .iter()
                .any(|player| player.program.len() > READS - BEFORE)
        {
            return;
        }
        looks += 1;
        for ((sum, gone), player) in sums.iter_mut().zip(&mut evicted).zip(players) {
            let engine = player.engine.as_mut().expect("each has one");
            *sum += engine.target();
            gone.get_or_insert(engine.ledger().evicted);
        }
    });
    let end = players.iter().map(|player| player.ready).max().unwrap_or(0);
    assert!(looks > 0, "they all read at one time");
    engines
        .into_iter()
        .zip(sums)
        .zip(evicted)
        .map(|((mut engine, sum), before)| Share {
            target: sum as f64 / looks as f64,
            read: (READS - BEFORE) as u64,
            evicted: (engine.finish(end).ledger.evicted - before.unwrap_or(0)) / PAGE,
        })
        .collect()
}

/// Jain's fairness index: 1 if all are equal, 1/n if one has it all.
fn fairness(shares: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares: f64 = shares.clone().map(|share| share.powi(2)).sum();
    let count = shares.clone().count() as f64;
    shares.sum::<f64>().powi(2) / (count * squares)
}

/// For any number of sessions in a memory too small for all of them, whether reads are timed or announced by position: each gets its share,
/// the sum is about the available memory, and few pages are lost in finding that out.
#[test]
fn sessions_share_memory_fairly_and_do_not_thrash() {
    for (sessions, load, explicit) in [
        (2, 57, true),
        (3, 20, false),
        (5, 20, false),
        (6, 69, true),
        (7, 42, false),
        (8, 55, false),
    ] {
        // Read pages stay for a while as well, so only a part of the memory is left for unread pages.
        let capacity = 1024 * sessions;
        let shares = share(sessions, capacity, load, explicit);
        let sum: f64 = shares.iter().map(|share| share.target).sum();
        let used = sum / capacity as f64;
        let read: u64 = shares.iter().map(|share| share.read).sum();
        let evicted: u64 = shares.iter().map(|share| share.evicted).sum();
        let case = format!("{sessions} sessions, load {load} %, explicit {explicit}");
        let fair = fairness(shares.iter().map(|share| share.target));
        assert!(fair >= 0.9, "{case}: {fair}");
        assert!((0.2..1.0).contains(&used), "{case}: {used}");
        assert!(evicted * 10 < read, "{case}: {evicted} of {read} lost");
    }
}

/// Times in ns until each of several programs has ended. All start at once, each with a list that fits in memory alone; without engines
/// unless `ahead`.
fn start_at_once(model: Model, sessions: usize, capacity: usize, ahead: bool) -> Vec<u64> {
    const BLOCK: u64 = 8;
    let mut machine = SimMachine::new(model, 64 * GIB, capacity);
    for file in 0..sessions {
        machine.place(FileId(file as u32), (1 + 4 * file as u64) * GIB);
    }
    let machine = Arc::new(Mutex::new(machine));
    let plans: Vec<Vec<Access>> = (0..sessions)
        .map(|file| {
            let mut blocks = scattered(500, 8000);
            blocks.rotate_left(file * 61);
            let block = |block| Access {
                file: FileId(file as u32),
                extent: Extent::new(block * BLOCK * PAGE, BLOCK * PAGE),
                ..page_read(0)
            };
            blocks.into_iter().map(block).collect()
        })
        .collect();
    let mut engines: Vec<Option<Engine<Sim>>> = plans
        .iter()
        .map(|plan| {
            let config = Config {
                budget_pages: capacity as u64 * 3 / 4,
                ..Config::default()
            };
            let source = Box::new(Replay::new(plan.clone()));
            let engine =
                Engine::new(Sim::new(Arc::clone(&machine)), config).with_strand("replay", source);
            ahead.then_some(engine)
        })
        .collect();
    let mut players: Vec<Player> = engines
        .iter_mut()
        .zip(&plans)
        .map(|(engine, plan)| Player {
            every: 5_000_000,
            ..Player::new(engine.as_mut(), plan, 10_000)
        })
        .collect();
    play(&machine, &mut players, false, |_| {});
    players.iter().map(|player| player.ready).collect()
}

#[test]
fn sessions_that_start_at_once_find_their_share_before_they_push_each_other_out() {
    const MEMORY: usize = 6144;
    for (model, sessions, at_most) in [
        (Model::Hdd7200, 2, 0.6),
        (Model::Hdd7200, 4, 0.75),
        (Model::Hdd7200, 8, 0.8),
        (Model::NetworkSsd, 2, 0.9),
        (Model::NetworkSsd, 4, 1.0),
    ] {
        let plain = start_at_once(model, sessions, MEMORY, false);
        let ahead = start_at_once(model, sessions, MEMORY, true);
        let last = |times: &[u64]| times.iter().copied().max().unwrap_or(0) as f64;
        let part = last(&ahead) / last(&plain);
        let fair = fairness(ahead.iter().map(|&time| 1.0 / time as f64));
        assert!(part <= at_most, "{sessions} on {model:?}: {part}");
        assert!(fair >= 0.9, "{sessions} on {model:?}: {fair}");
    }
}
