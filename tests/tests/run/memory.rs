//! A program under a memory limit of its own: its output is as without foreread, and the account is closed.

use std::process::Command;

use foreread_tests::{Lab, MemoryGroup, Need, Outcome, finish, start};

use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "a_plan_larger_than_the_memory_limit_costs_neither_output_nor_account",
        ALL,
        &[Need::MemoryGroup],
        larger_than_memory,
    ),
    (
        "memory_that_others_take_meanwhile_costs_neither_output_nor_account",
        ALL,
        &[Need::MemoryGroup, Need::Command("python3")],
        squeezed,
    ),
    (
        "a_control_group_with_hardly_any_memory_is_left_to_the_program",
        ALL,
        &[Need::MemoryGroup],
        cramped,
    ),
];

const LIMIT_MIB: u64 = 32;
/// Reads of one page each: twice as many as the limit holds.
const READS: &str = "16384";

/// Runs a command in the memory group.
fn run_in(lab: &Lab, group: &MemoryGroup, command: &[&str]) -> Outcome {
    let (inner, account) = lab.running(&[], command);
    let mut outer = lab.command("sh");
    outer
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(group.members())
        .arg(inner.get_program())
        .args(inner.get_args());
    account.of(finish(start(&mut outer)))
}

fn recorded(lab: &Lab, group: &MemoryGroup, command: &[&str]) {
    lab.program("scatter", &[]);
    lab.data("data", 128);
    lab.cold(&["data"]);
    let first = run_in(lab, group, command);
    assert_eq!(first.mode(), "recorded", "{first:?}");
}

/// foreread's own memory is a small part of 32 MiB, and too much for 12 MiB.
fn cramped() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 16);
    for (limit, aside) in [(12, true), (LIMIT_MIB, false)] {
        let group = MemoryGroup::new(limit << 20);
        let outcome = run_in(&lab, &group, &["./scatter", "512", "0", "data"]);
        assert_eq!(outcome.output.status.code(), Some(0), "{outcome:?}");
        let why = "the control group has";
        let left = outcome.says(&format!("stood aside: {why}"));
        assert_eq!(left, aside, "{limit} MiB: {outcome:?}");
        // The account has the same form, although foreread is gone when the program ends.
        assert_eq!(outcome.mode() == "aside", aside, "{outcome:?}");
        assert_eq!(outcome.reason().contains(why), aside, "{outcome:?}");
        assert_eq!(outcome.account["wall_ns"] == 0, aside, "{outcome:?}");
        // In a group that is too small nothing is recorded either.
        assert_eq!(lab.records().is_empty(), aside, "{limit} MiB: {outcome:?}");
    }
}

fn larger_than_memory() {
    let lab = Lab::new();
    let group = MemoryGroup::new(LIMIT_MIB << 20);
    let command = &["./scatter", READS, "0", "data"];
    recorded(&lab, &group, command);
    lab.cold(&["data"]);
    let plain = lab.plain(command);
    lab.cold(&["data"]);
    let second = run_in(&lab, &group, command);
    second.assert_as(&plain);
    second.check_mode("prefetched");
}

fn squeezed() {
    let lab = Lab::new();
    let group = MemoryGroup::new(LIMIT_MIB << 20);
    // Half-way, another process takes a quarter of the memory, and the interpreter another. More than that may not be left of what
    // foreread needs for full rings and for pages on their way; then the kernel would kill one of the processes.
    let taker = "import time; time.sleep(0.1); taken = bytearray(8 << 20); time.sleep(2)";
    let script = format!("python3 -c '{taker}' & ./scatter {READS} 50 data; wait");
    let command: &[&str] = &["sh", "-c", &script];
    recorded(&lab, &group, command);
    lab.cold(&["data"]);
    let plain = Command::new("sh")
        .args(["-c", &script])
        .current_dir(lab.path(""))
        .output()
        .expect("a shell");
    lab.cold(&["data"]);
    let second = run_in(&lab, &group, command);
    second.assert_as(&plain);
    second.check_mode("prefetched");
}
