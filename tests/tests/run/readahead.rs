//! The kernel's own read-ahead is twice as large for a program that is known to read from front to back.

use foreread_tests::{Lab, Need, check};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[(
    "the_kernel_reads_twice_as_far_ahead_in_a_file_read_from_front_to_back",
    ALL,
    &[Need::ReadAhead],
    twice_as_far,
)];

/// The pages in memory beyond this many were read ahead, usually up to 8 MiB.
const READ: &str = "8192";

fn twice_as_far() {
    let lab = Lab::new();
    lab.data("data", 96);
    lab.write("count", "24576");
    let command = "dd if=data of=/dev/null bs=4k count=$(cat count) status=none";
    let command = ["sh", "-c", command];
    lab.cold(&["data"]);
    lab.run(&command);
    lab.write("count", READ);
    lab.cold(&["data"]);
    lab.plain(&command);
    let by_itself = lab.cached("data");
    lab.cold(&["data"]);
    let outcome = lab.run(&command);
    assert!(outcome.account["followed"].is_string(), "{outcome:?}");
    let followed = lab.cached("data");
    check!(
        followed > by_itself,
        "{followed} bytes, {by_itself} without: {outcome:?}"
    );
}
