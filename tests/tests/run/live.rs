//! A running run is found by other foreread commands, which do not affect it.

use std::io::Read;
use std::process::{Child, Stdio};

use foreread_tests::suite::{QUICK, Test};
use foreread_tests::{Lab, eventually, finish, foreread, start, text};
use serde_json::Value;

pub const TESTS: &[Test] = &[
    (
        "a_run_that_is_going_on_is_shown_with_what_is_done_for_it",
        QUICK,
        &[],
        shown,
    ),
    (
        "who_asks_for_the_record_of_a_first_run_that_is_going_on_hears_so",
        QUICK,
        &[],
        first,
    ),
];

/// The entry for this process's run, as `foreread top` shows it.
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

/// Starts foreread with a program that has read its file and now waits for the end of its input.
fn holding(lab: &Lab, words: &[&str]) -> Child {
    let mut command = lab.command(foreread());
    command.args(words).args(["--", "./hold", "data"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = start(&mut command);
    let output = child.stdout.as_mut().expect("a pipe");
    output.read_exact(&mut [0; 5]).expect("it holds the file");
    child
}

fn first() {
    let lab = Lab::new();
    lab.program("hold", &[]);
    lab.data("data", 1);
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let in_store = [
        "report hold",
        "explain hold",
        "show hold",
        "export hold --to csv",
        "merge hold hold -o merged.fr",
        "forget hold",
        "report",
        "explain",
        "show",
        "show -- ./hold data",
        "report -- ./hold data",
    ];
    let in_file = [
        "report own.fr",
        "explain own.fr",
        "show own.fr",
        "export own.fr --to csv",
        "merge own.fr own.fr -o merged.fr",
        "import own.fr",
        "analyze own.fr",
    ];
    let cases = [
        (&["run", "--quiet"][..], &in_store[..]),
        (&["record", "--quiet", "-o", "own.fr"], &in_file),
    ];
    for (how, asked) in cases {
        let mut child = holding(&lab, how);
        let told = format!(
            "the first run of ./hold data is still going on (process {}, began ",
            child.id()
        );
        let says = |line: &'static str| {
            let answer = lab.foreread(&words(line));
            let said = text(&answer.stderr);
            assert!(
                answer.stdout.is_empty() && !answer.status.success(),
                "{answer:?}"
            );
            (said.contains(&told), said)
        };
        // The run is visible from the moment at which its record begins to grow.
        eventually("the run is seen", || says(asked[0]).0);
        for line in asked {
            let (is_told, said) = says(line);
            assert!(is_told, "{line}: {said}");
        }
        let listed = text(&lab.foreread(&["list"]).stdout);
        assert!(listed.contains(&told) || how[0] == "record", "{listed}");
        drop(child.stdin.take());
        assert!(finish(child).status.success());
        for line in [asked[1], asked[2]] {
            // If the disk is busy, the record may come a moment later.
            eventually(line, || lab.foreread(&words(line)).status.success());
        }
    }
}
