//! The kernel's own read-ahead is larger for a program that is known to read from front to back.

use foreread_tests::{Lab, Need, check};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[(
    "the_kernel_reads_further_ahead_in_a_file_read_from_front_to_back",
    ALL,
    &[Need::ReadAhead],
    further,
)];

/// Pages that the command reads. Those in memory beyond them were read ahead: how many depends on where the last window ended.
const READ: &str = "8192";

fn further() {
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
