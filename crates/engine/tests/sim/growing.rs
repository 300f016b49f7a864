//! A list with entries beyond the present end of its file.

use std::sync::{Arc, Mutex};

use foreread_backend::{Sim, SimMachine};
use foreread_disk::Model;
use foreread_engine::{Config, Engine};
use foreread_plan::{Access, Kind, PAGE, Seen};
use foreread_sources::{AccessList, Entry, Feed};

use super::{FILE, GIB, apart, machine, scattered};

/// Reads as a program lists them.
fn entries(reads: &[Access]) -> Vec<Entry> {
    let entry = |&Access { file, extent, .. }: &Access| Entry {
        file,
        extent,
        marked: false,
    };
    reads.iter().map(entry).collect()
}

/// An engine that follows a program's list of these reads.
fn follow(shared: &Arc<Mutex<SimMachine>>, reads: &[Access]) -> Engine<Sim> {
    follow_list(shared, reads).0
}

/// The same, and the list.
fn follow_list(
    shared: &Arc<Mutex<SimMachine>>,
    reads: &[Access],
) -> (Engine<Sim>, Arc<Mutex<AccessList>>) {
    let mut list = AccessList::new(1 << 20);
    list.region(FILE, 0..u64::MAX);
    assert_eq!(list.set(&entries(reads)), reads.len());
    let list = Arc::new(Mutex::new(list));
    let feed = Box::new(Feed::new(Arc::clone(&list)));
    let config = Config {
        budget_pages: 1000,
        ..Config::default()
    };
    let engine = Engine::new(Sim::new(Arc::clone(shared)), config);
    (engine.with_strand("access_list", feed), list)
}

/// Lets `ns` pass from `now` on.
fn pass(shared: &Mutex<SimMachine>, engine: &mut Engine<Sim>, now: &mut u64, ns: u64) {
    let until = *now + ns;
    while *now < until {
        *now += 200_000;
        shared.lock().unwrap().advance(*now);
        engine.step(*now);
    }
}

/// A read reported by a program that is not observed.
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
        // More entries beyond the end than there is memory, then entries that exist.
        let beyond = scattered(4000, 10_000);
        let beyond = beyond.iter().map(|n| n + 10_000);
        let reads = apart(beyond.chain([7, 3077, 9077]));
        let mut engine = follow(&shared, &reads);
        let mut now = 0;
        pass(&shared, &mut engine, &mut now, 10_000_000_000);
        let fetched = || shared.lock().unwrap().fetched_pages();
        assert_eq!(fetched(), 3, "{model:?}");
        assert_eq!(engine.ledger().issued, 3 * PAGE);
        // The program reads a quarter of them in vain, and the file grows by half of them.
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

#[test]
fn a_file_that_could_not_be_opened_is_fetched_of_once_the_program_has_it() {
    let mut disk = SimMachine::new(Model::Hdd7200, 8 * GIB, 1 << 20);
    // The file has a name, but no blocks yet.
    disk.name(FILE, Kind::Open, GIB);
    let shared = Arc::new(Mutex::new(disk));
    let reads = apart(scattered(200, 10_000));
    let (mut engine, list) = follow_list(&shared, &reads[..100]);
    let mut now = 0;
    pass(&shared, &mut engine, &mut now, 1_000_000_000);
    assert_eq!(shared.lock().unwrap().fetched_pages(), 0);
    shared.lock().unwrap().place(FILE, GIB);
    engine.see(&Seen::File {
        file: FILE,
        size: 320_000 * PAGE,
        written: false,
    });
    list.lock().unwrap().set(&entries(&reads[100..]));
    pass(&shared, &mut engine, &mut now, 10_000_000_000);
    let report = engine.finish(now);
    let wanted = report.ledger.issued - report.ledger.infill;
    assert_eq!(wanted, 100 * PAGE, "{report:?}");
    assert!(report.gone.is_empty(), "{:?}", report.gone);
}
