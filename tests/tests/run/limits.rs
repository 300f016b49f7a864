//! Under limits that leave foreread less than it asks for, the program has all that it would have without it.

use foreread_tests::{Lab, Need, Outcome, finish, start};

use crate::Test;

pub const TESTS: &[Test] = &[
    (
        "a_limit_on_file_sizes_below_the_rings_leaves_the_program_unobserved_and_alive",
        &[],
        ring_too_large,
    ),
    (
        "a_limit_on_file_sizes_below_the_records_leaves_the_program_unrecorded_and_alive",
        &[Need::Command("prlimit")],
        record_too_large,
    ),
];

/// `foreread run` of a command, under a limit of the shell's `ulimit`.
fn under(lab: &Lab, limit: &str, args: &[&str]) -> Outcome {
    let (command, account) = lab.running(&[], args);
    let mut shell = lab.command("sh");
    shell
        .args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    account.of(finish(start(&mut shell)))
}

fn ring_too_large() {
    let lab = Lab::new();
    lab.data("data", 8);
    let command = ["sh", "-c", "sleep 0.2; cksum data; exit 3"];
    let plain = lab.plain(&command);
    for _ in 0..2 {
        // 10 or 20 MiB: shells differ in the unit.
        let outcome = under(&lab, "-f 20000", &command);
        outcome.assert_as(&plain);
        assert_eq!(outcome.mode(), "aside", "{outcome:?}");
        assert!(outcome.reason().contains("File too large"), "{outcome:?}");
    }
}

/// The program sets the limit, so that the ring is there and the record is not.
fn record_too_large() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let begin = "./scatter 500 0 data; sleep 0.5";
    let limit = "prlimit --pid $PPID --fsize=0:unlimited; ./scatter 900 0 data; sleep 0.5";
    // For the account.
    let end = "prlimit --pid $PPID --fsize=unlimited; echo alive; exit 7";
    // The record cannot be begun, and cannot be gone on with.
    for script in [
        format!("{limit}; {end}"),
        format!("{begin}; {limit}; {end}"),
    ] {
        let outcome = lab.run(&["sh", "-c", &script]);
        assert_eq!(outcome.output.status.code(), Some(7), "{outcome:?}");
        assert!(outcome.stdout().ends_with("alive\n"), "{outcome:?}");
        assert_eq!(outcome.mode(), "aside", "{outcome:?}");
        assert!(
            outcome.reason().ends_with("File too large; not recorded"),
            "{outcome:?}"
        );
        assert!(lab.records().is_empty(), "{:?}", lab.records());
    }
}
