//! What the kernel reads ahead by itself, it reads twice as far ahead of a program that is known to read from front to
//! back.

use foreread_tests::{Lab, check};

use crate::Test;

pub const TESTS: &[Test] = &[(
    "the_kernel_reads_no_less_far_ahead_in_a_file_read_from_front_to_back",
    &[],
    no_less_far,
)];

/// Beyond what is read here lies what was read ahead, however far that is as a rule (up to 8 MiB).
const COUNTS: [u32; 9] = [8192, 7000, 9000, 6000, 10000, 5000, 11000, 4000, 12000];

fn no_less_far() {
    let lab = Lab::new();
    lab.data("data", 96);
    lab.write("count", "24576");
    let command = "dd if=data of=/dev/null bs=4k count=$(cat count) status=none";
    let command = ["sh", "-c", command];
    lab.cold(&["data"]);
    lab.run(&command);
    // Twice as far, where the program is not left to itself before it opens the file; never by single pages, as files are
    // read that the plan reads in no order.
    let reaches_as_far = |count: &u32| {
        lab.write("count", count.to_string());
        lab.cold(&["data"]);
        lab.plain(&command);
        let by_itself = lab.cached("data");
        lab.cold(&["data"]);
        let outcome = lab.run(&command);
        assert!(outcome.account["followed"].is_string(), "{outcome:?}");
        lab.cached("data") >= by_itself
    };
    check!(COUNTS.iter().any(reaches_as_far));
}
