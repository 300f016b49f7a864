//! `foreread cc` in the place of a C compiler: what it is given comes out as the compiler would
//! leave it, objects carry how they were compiled, and programs are linked with what the slicer made
//! of their units.
//!
//! Most tests have a slicer and a runtime of their own, so that what the driver does shows: a unit
//! with the comment `here` in it is changed to report itself when the program comes by. The tests with the
//! real slicer need `make slicer`.

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
