//! Whole programs, as users run them. One test program, in groups; the table of each group states each test's ring and its needs
//! ([`foreread_tests::suite`]). Tests that this machine cannot run are reported as ignored, with the reason.

mod cache;
mod cc;
mod daemon;
mod learns;
mod mpi;
mod observer;
mod readme;
mod run;
mod traces;

use foreread_tests::suite::Suite;

fn main() {
    if std::env::var_os(observer::harm::HOLD).is_some() {
        observer::harm::hold();
    }
    let mut suite = Suite::from_args();
    run::add(&mut suite);
    observer::add(&mut suite);
    mpi::add(&mut suite);
    cc::add(&mut suite);
    cache::add(&mut suite);
    daemon::add(&mut suite);
    learns::add(&mut suite);
    traces::add(&mut suite);
    readme::add(&mut suite);
    suite.run();
}
