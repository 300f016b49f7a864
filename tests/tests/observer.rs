//! The observers in real programs: every way of reading files, each with a program
//! that reads in a known pattern and a byte-exact check of what was reported; process
//! trees and languages; and programs unharmed whatever happens to the supervisor.
//!
//! The programs are in `tests/observe`.

mod conform;
pub mod harm;
mod harness;
mod languages;
mod liburing;
mod machine;
mod names;
mod oracle;
mod processes;
mod quick;
mod reading;
mod switched;
mod unharmed;

use foreread_tests::suite::Suite;

pub fn add(suite: &mut Suite) {
    for tests in [
        conform::TESTS,
        harm::TESTS,
        languages::TESTS,
        liburing::TESTS,
        machine::TESTS,
        names::TESTS,
        oracle::TESTS,
        processes::TESTS,
        quick::TESTS,
        reading::TESTS,
        unharmed::TESTS,
        switched::TESTS,
        conform::EBPF,
        liburing::EBPF,
    ] {
        suite.add("observer", tests);
    }
}
