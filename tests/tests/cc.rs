//! `foreread cc` in place of a C compiler: its results equal the compiler's, objects carry a record of their compilation, and programs
//! are linked with the slicer's output for their units.
//!
//! Most tests use a stand-in for the slicer and the runtime, so that the driver's work is visible: a unit with the comment `here` in it
//! is changed so that it reports itself when the program reaches it. The tests with the real slicer need `make slicer`.

mod builds;
mod driver;
mod faithful;
mod links;
mod objects;
mod sliced;

use foreread_tests::suite::Suite;

pub fn add(suite: &mut Suite) {
    for tests in [
        objects::TESTS,
        links::TESTS,
        faithful::TESTS,
        builds::TESTS,
        sliced::TESTS,
    ] {
        suite.add("cc", tests);
    }
}
