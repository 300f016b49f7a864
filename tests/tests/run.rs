//! `foreread run` with real programs: it never harms them, its accounts are closed, and bad input costs only the speed-up.
//!
//! These tests check behaviour, not absolute times. How much is fetched in time, and which pages are still in memory, depends on other
//! processes: such a check is a `check!`, and its test is repeated alone.

mod accounts;
mod aside;
mod automount;
mod files;
mod first;
mod foreign;
mod held;
mod held_up;
mod hot;
mod limits;
mod live;
mod mapped;
mod memory;
mod names;
mod oracle;
mod readahead;
mod real;
mod records;
mod replay;
mod report;
mod services;
mod signals;
mod store;
mod streams;
mod travel;
mod unkept;

use foreread_tests::suite::Suite;

pub fn add(suite: &mut Suite) {
    for tests in [
        accounts::TESTS,
        aside::TESTS,
        automount::TESTS,
        files::TESTS,
        first::TESTS,
        foreign::TESTS,
        held::TESTS,
        held_up::TESTS,
        hot::TESTS,
        limits::TESTS,
        live::TESTS,
        mapped::TESTS,
        memory::TESTS,
        names::TESTS,
        oracle::TESTS,
        readahead::TESTS,
        real::TESTS,
        records::TESTS,
        replay::TESTS,
        report::TESTS,
        services::TESTS,
        signals::TESTS,
        store::TESTS,
        streams::TESTS,
        travel::TESTS,
        unkept::TESTS,
    ] {
        suite.add("run", tests);
    }
}
