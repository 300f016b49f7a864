//! `foreread run` with real programs: it never harms them, it keeps ahead of their second run,
//! and bad input costs the speed-up and nothing else.
//!
//! Behaviour alone is tested, no absolute times. How much was fetched in time, and what is still in memory, depends on
//! what other processes do: such a check is a `check!`, and its test is repeated if others disturbed it
//! ([`foreread_tests::rounds`]). What this machine cannot run is reported as ignored, with the reason.

#[path = "run/accounts.rs"]
mod accounts;
#[path = "run/aside.rs"]
mod aside;
#[path = "run/automount.rs"]
mod automount;
#[path = "run/files.rs"]
mod files;
#[path = "run/first.rs"]
mod first;
#[path = "run/foreign.rs"]
mod foreign;
#[path = "run/held.rs"]
mod held;
#[path = "run/held_up.rs"]
mod held_up;
#[path = "run/hot.rs"]
mod hot;
#[path = "run/limits.rs"]
mod limits;
#[path = "run/mapped.rs"]
mod mapped;
#[path = "run/memory.rs"]
mod memory;
#[path = "run/names.rs"]
mod names;
#[path = "run/oracle.rs"]
mod oracle;
#[path = "run/readahead.rs"]
mod readahead;
#[path = "run/real.rs"]
mod real;
#[path = "run/records.rs"]
mod records;
#[path = "run/replay.rs"]
mod replay;
#[path = "run/signals.rs"]
mod signals;
#[path = "run/store.rs"]
mod store;
#[path = "run/streams.rs"]
mod streams;
#[path = "run/together.rs"]
mod together;
#[path = "run/unkept.rs"]
mod unkept;

use foreread_tests::{Need, rounds};
use libtest_mimic::{Arguments, Failed, Trial};

/// A test, and what it cannot do without.
type Test = (&'static str, &'static [Need], fn());

fn main() {
    let mut arguments = Arguments::from_args();
    // One at a time, unless asked for otherwise: a program that has to share its processor with
    // another test's is hard to keep ahead of.
    arguments.test_threads.get_or_insert(1);
    let mut trials = Vec::new();
    for &(name, needs, test) in [
        accounts::TESTS,
        real::TESTS,
        automount::TESTS,
        first::TESTS,
        streams::TESTS,
        signals::TESTS,
        readahead::TESTS,
        replay::TESTS,
        records::TESTS,
        files::TESTS,
        foreign::TESTS,
        held_up::TESTS,
        hot::TESTS,
        held::TESTS,
        limits::TESTS,
        mapped::TESTS,
        memory::TESTS,
        aside::TESTS,
        store::TESTS,
        oracle::TESTS,
        names::TESTS,
        together::TESTS,
        unkept::TESTS,
    ]
    .into_iter()
    .flatten()
    {
        let run = move || -> Result<(), Failed> {
            rounds(test);
            Ok(())
        };
        trials.push(match needs.iter().find_map(|need| need.missing()) {
            None => Trial::test(name, run),
            Some(missing) => Trial::test(format!("{name} (cannot run here: {missing})"), run)
                .with_ignored_flag(true),
        });
    }
    libtest_mimic::run(&arguments, trials).exit();
}
