//! The observers in real programs: every way of reading files, each with a program
//! that reads in a known pattern and a byte-exact check of what was reported; process
//! trees and languages; and programs unharmed whatever happens to the supervisor.
//!
//! The programs are in `tests/observe`. A test that depends on what other processes do is repeated if they disturbed it
//! ([`foreread_tests::rounds`]). What this machine has no compiler for is reported
//! as ignored, with the reason.

#[path = "observer/conform.rs"]
mod conform;
#[path = "observer/harm.rs"]
mod harm;
#[path = "observer/harness.rs"]
mod harness;
#[path = "observer/languages.rs"]
mod languages;
#[path = "observer/names.rs"]
mod names;
#[path = "observer/oracle.rs"]
mod oracle;
#[path = "observer/processes.rs"]
mod processes;
#[path = "observer/reading.rs"]
mod reading;
#[path = "observer/unharmed.rs"]
mod unharmed;

use foreread_tests::rounds;
use harness::Outcome;
use libtest_mimic::{Arguments, Trial};

/// A test, and the command without which it cannot run.
type Test = (&'static str, &'static str, fn());

fn main() {
    if std::env::var_os(harm::HOLD).is_some() {
        harm::hold();
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, needs, test) in [
        reading::TESTS,
        names::TESTS,
        processes::TESTS,
        languages::TESTS,
        oracle::TESTS,
        conform::TESTS,
        harm::TESTS,
        unharmed::TESTS,
    ]
    .concat()
    {
        let run = move || -> Outcome {
            rounds(test);
            Ok(())
        };
        trials.push(if needs.is_empty() || harness::exists(needs) {
            Trial::test(name, run)
        } else {
            Trial::test(format!("{name} (cannot run here: no {needs})"), run)
                .with_ignored_flag(true)
        });
    }
    let refused = foreread_ebpf::probe().err();
    for &(name, _, test) in conform::EBPF {
        trials.push(match &refused {
            None => Trial::test(name, move || -> Outcome {
                rounds(test);
                Ok(())
            }),
            Some(why) => Trial::test(format!("{name} (cannot run here: {why})"), || Ok(()))
                .with_ignored_flag(true),
        });
    }
    libtest_mimic::run(&arguments, trials).exit();
}
