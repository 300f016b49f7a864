//! A list that names what its file does not hold yet.

use std::sync::{Arc, Mutex};

use foreread_backend::{Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine};
use foreread_plan::{Access, Kind, PAGE, Seen};
use foreread_sources::{AccessList, Entry, Feed};

use super::{FILE, apart, machine, scattered};

/// An engine that follows a program's list of these reads.
fn follow(shared: &Arc<Mutex<SimMachine>>, reads: &[Access]) -> Engine<Sim> {
    let mut list = AccessList::new(1 << 20);
    let entries: Vec<Entry> = reads
        .iter()
        .map(|&Access { file, extent, .. }| Entry {
            file,
            extent,
            marked: false,
        })
        .collect();
    list.region(FILE, 0..u64::MAX);
    assert_eq!(list.set(&entries), entries.len());
    let feed = Box::new(Feed::new(Arc::new(Mutex::new(list))));
    let config = Config {
        budget_pages: 1000,
        ..Config::default()
    };
    Engine::new(Sim::new(Arc::clone(shared)), config).with_strand("access_list", feed)
}

/// Let so many ns pass from `now` on.
fn pass(shared: &Mutex<SimMachine>, engine: &mut Engine<Sim>, now: &mut u64, ns: u64) {
    let until = *now + ns;
    while *now < until {
        *now += 200_000;
        shared.lock().unwrap().advance(*now);
        engine.step(*now);
    }
}

/// A read as a program tells of it that reads by other means.
fn tell(engine: &mut Engine<Sim>, read: &Access, now: u64) {
    engine.see(&Seen::Read(
        Access {
            kind: Kind::Touch,
            start: now,
            ..*read
        }
        .into(),
    ));
}

#[test]
fn what_lies_past_the_end_is_fetched_when_the_file_has_grown_and_not_what_the_program_has_passed() {
    for model in [Model::NetworkSsd, Model::Hdd7200] {
        let shared = machine(model, 1 << 20);
        let length = |n: u64| shared.lock().unwrap().resize(FILE, 32 * n);
        length(10_000);
        // More past the end than there is memory, and then something that is there.
        let beyond = scattered(4000, 10_000);
        let beyond = beyond.iter().map(|n| n + 10_000);
        let reads = apart(beyond.chain([7, 3077, 9077]));
        let mut engine = follow(&shared, &reads);
        let mut now = 0;
        pass(&shared, &mut engine, &mut now, 10_000_000_000);
        let fetched = || shared.lock().unwrap().fetched_pages();
        assert_eq!(fetched(), 3, "{model:?}");
        assert_eq!(engine.ledger().issued, 3 * PAGE);
        // The program reads a quarter of it in vain, and the file grows by half of it.
        for read in &reads[..1000] {
            tell(&mut engine, read, now);
        }
        length(15_000);
        pass(&shared, &mut engine, &mut now, 60_000_000_000);
        let ahead = reads[1000..4000].iter();
        let ahead = ahead.filter(|read| read.extent.offset < 32 * 15_000 * PAGE);
        let ahead = ahead.count() as u64;
        assert!(ahead > 1000 && fetched() > 900, "{} of {ahead}", fetched());
        for read in &reads[1000..] {
            tell(&mut engine, read, now);
            pass(&shared, &mut engine, &mut now, 20_000_000);
        }
        let ledger = engine.finish(now).ledger;
        assert!(ledger.is_closed(), "{ledger:?}");
        let wanted = ledger.issued - ledger.infill;
        assert_eq!(wanted, (ahead + 3) * PAGE, "{model:?}: {ledger:?}");
        assert_eq!(ledger.useful, wanted, "{model:?}: {ledger:?}");
    }
}
