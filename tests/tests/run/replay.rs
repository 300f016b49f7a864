//! The first run is recorded, the second kept ahead of, and a hot one left alone.

use foreread_tests::{Lab, Outcome};

use crate::Test;

pub const TESTS: &[Test] = &[(
    "the_second_cold_run_is_kept_ahead_of_and_a_hot_one_left_alone",
    &[],
    three_runs,
)];

/// Runs a command on cold files twice, to be recorded and prefetched.
#[track_caller]
fn twice(lab: &Lab, files: &[&str], command: &[&str]) -> Outcome {
    let plain = lab.plain(command);
    lab.cold(files);
    let first = lab.run(command);
    assert_eq!(first.mode(), "recorded", "{first:?}");
    first.assert_as(&plain);
    lab.cold(files);
    let second = lab.run(command);
    second.assert_as(&plain);
    second
}

#[track_caller]
fn assert_covered(outcome: &Outcome, needed: u64) {
    assert_eq!(outcome.mode(), "prefetched", "{outcome:?}");
    assert!(outcome.coverage() > 0.9, "{outcome:?}");
    let read = outcome.bytes("useful") + outcome.bytes("late");
    assert!(
        read as f64 > needed as f64 * 0.9,
        "of {needed}: {outcome:?}"
    );
}

fn three_runs() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let command = &["./scatter", "1000", "50", "data"];
    let second = twice(&lab, &["data"], command);
    assert_covered(&second, 1000 * 4096);
    assert_eq!(second.account["followed"], lab.record().to_str().unwrap());
    let third = lab.run(command);
    assert_eq!((third.mode(), third.bytes("issued")), ("aside", 0));
    assert!(third.reason().contains("in memory already"), "{third:?}");
    third.assert_as(&lab.plain(command));
}
