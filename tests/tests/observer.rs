//! The observers in real programs: one suite of programs that use files in every way, with known results, for all observers (`conform`);
//! process trees and languages; and programs unharmed whatever happens to the supervisor.
//!
//! The programs are in `tests/observe`.

mod conform;
pub mod harm;
mod harness;
mod languages;
mod liburing;
mod names;
mod oracle;
mod processes;
mod quick;
mod reading;
mod recorded;
mod switched;
mod unharmed;

use foreread_tests::suite::Suite;

pub fn add(suite: &mut Suite) {
    for tests in [
        conform::TESTS,
        recorded::TESTS,
        harm::TESTS,
        languages::TESTS,
        liburing::TESTS,
        names::TESTS,
        oracle::TESTS,
        processes::TESTS,
        quick::TESTS,
        reading::TESTS,
        unharmed::TESTS,
        switched::TESTS,
        conform::EBPF,
        recorded::EBPF,
    ] {
        suite.add("observer", tests);
    }
}
