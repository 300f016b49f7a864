//! Runs that are going on are found by whoever looks, and are none the wiser.

use std::io::Read;
use std::process::Stdio;

use foreread_tests::suite::{QUICK, Test};
use foreread_tests::{Lab, eventually, finish, start, text};
use serde_json::Value;

pub const TESTS: &[Test] = &[(
    "a_run_that_is_going_on_is_shown_with_what_is_done_for_it",
    QUICK,
    &[],
    shown,
)];

/// What is shown of the run of this process.
fn run(lab: &Lab, pid: u32) -> Option<Value> {
    let top = lab.foreread(&["top", "--json"]);
    assert!(top.status.success(), "{top:?}");
    let told: Value = serde_json::from_slice(&top.stdout).expect("JSON");
    let runs = told["runs"].as_array().expect("runs").clone();
    runs.into_iter().find(|run| run["pid"] == pid)
}

fn shown() {
    let lab = Lab::new();
    lab.program("hold", &[]);
    lab.data("data", 1);
    let (mut command, account) = lab.running(&[], &["./hold", "data"]);
    let mut child = start(command.stdin(Stdio::piped()));
    let output = child.stdout.as_mut().expect("a pipe");
    output.read_exact(&mut [0; 5]).expect("it holds the file");
    let mut told = None;
    eventually("it answers", || {
        told = run(&lab, child.id()).filter(|run| !run["live"].is_null());
        told.is_some()
    });
    let told = told.expect("it has answered");
    assert_eq!(told["command"], "./hold data", "{told}");
    assert!(
        told["live"]["how"].is_string() && told["age_ns"].as_u64() > Some(0),
        "{told}"
    );
    let once = lab.foreread(&["top", "--once"]);
    let once = text(&once.stdout);
    let line = once
        .lines()
        .find(|line| line.trim_start().starts_with(&format!("{} ", child.id())));
    assert!(
        line.is_some_and(|line| line.ends_with(" ./hold data")),
        "{once}"
    );
    drop(child.stdin.take());
    let pid = child.id();
    let outcome = account.of(finish(child));
    assert!(outcome.output.status.success(), "{outcome:?}");
    assert!(run(&lab, pid).is_none());
}
