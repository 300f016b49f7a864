//! The daemon's cost, counted: no figure here depends on the machine's speed.

use super::*;

/// Opens of a flood, and the largest number of them that is reported per tenth of a second: the limit of one process.
const OPENS: u64 = 100_000;
const REPORTED: u64 = 500;
/// The shortest time between two turns of the daemon's loop (its breath).
const TURN: Duration = Duration::from_millis(4);

/// Number of times that the daemon's main thread has gone to sleep.
fn sleeps(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok())
        .expect("a number")
}

pub(super) fn of_a_flood() {
    let lab = Lab::new();
    lab.write("file", "1");
    lab.write(
        "flood.py",
        format!(
            "import os\nfor _ in range({OPENS}):\n    os.close(os.open('file', os.O_RDONLY))\n"
        ),
    );
    let daemon = Daemon::start(&lab, "own");
    let before = daemon.status();
    let pid = before["pid"].as_u64().expect("a process");
    let slept = sleeps(pid);
    let began = Instant::now();
    let output = lab.plain(&["python3", "flood.py"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let after = daemon.status();
    let slept = sleeps(pid) - slept;
    let (turns, windows) = {
        let passed = began.elapsed();
        let turns = passed.as_nanos() / TURN.as_nanos();
        (turns as u64 + 1, passed.as_millis() as u64 / 100 + 2)
    };
    let floods = after["lost"].as_array().expect("a list").iter();
    let floods = floods.filter(|one| one[0] == "floods");
    let lost: u64 = floods.filter_map(|one| one[1].as_u64()).sum();
    assert!(
        lost > 0 && lost + REPORTED * windows >= OPENS,
        "{lost} in {windows}"
    );
    // A turn sleeps at most twice (for an event, and for the pause of the loop); an answer to `status` takes a few more.
    assert!(slept <= 2 * turns + 50, "{slept} in {turns} turns");
}
