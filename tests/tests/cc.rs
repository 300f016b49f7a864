//! `foreread cc` in the place of a C compiler: what it is given comes out as the compiler would
//! leave it, objects carry how they were compiled, and programs are linked with what the slicer made
//! of their units.
//!
//! Most tests have a slicer and a runtime of their own, so that what the driver does shows: a unit
//! with the comment `here` in it is changed to report itself when the program comes by. The tests with the
//! real slicer need `make slicer`.

#[path = "cc/builds.rs"]
mod builds;
#[path = "cc/driver.rs"]
mod driver;
#[path = "cc/faithful.rs"]
mod faithful;
#[path = "cc/links.rs"]
mod links;
#[path = "cc/objects.rs"]
mod objects;
#[path = "cc/sliced.rs"]
mod sliced;

use foreread_tests::Need;
use libtest_mimic::{Arguments, Failed, Trial};

/// A test, and what it cannot do without.
type Test = (&'static str, &'static [Need], fn());

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let mut add = |&(name, needs, test): &Test, missing: Option<String>| {
        let run = move || -> Result<(), Failed> {
            test();
            Ok(())
        };
        let missing = missing.or_else(|| needs.iter().find_map(|need| need.missing()));
        trials.push(match missing {
            None => Trial::test(name, run),
            Some(missing) => Trial::test(format!("{name} (cannot run here: {missing})"), run)
                .with_ignored_flag(true),
        });
    };
    for test in [objects::TESTS, links::TESTS, faithful::TESTS, builds::TESTS]
        .into_iter()
        .flatten()
    {
        add(test, None);
    }
    for test in sliced::TESTS {
        add(test, driver::no_slicer());
    }
    libtest_mimic::run(&arguments, trials).exit();
}
