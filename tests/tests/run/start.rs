//! A cold start: what a run goes through of foreread's own file lies where the first call asks for it.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::process::Command;

use foreread_sys::own;
use foreread_tests::{Lab, Need, foreread, root, text};

use crate::Test;

pub const TESTS: &[Test] = &[(
    "functions_that_a_run_goes_through_lie_where_foreread_asks_for_its_file",
    &[Need::X86, Need::Command("nm"), Need::Command("cc")],
    functions_lie_together,
)];

/// Functions that may lie elsewhere, in percent: some were added since the order was made, and compilers differ.
const ELSEWHERE: usize = 10;

/// A first run, a second run, and one of which nothing can be known.
fn functions_lie_together() {
    let lab = Lab::new();
    lab.data("data", 2);
    let symbols = Command::new("nm")
        .arg(foreread())
        .output()
        .expect("the symbols");
    let symbols = text(&symbols.stdout);
    let functions: Vec<(u64, &str)> = symbols.lines().filter_map(function).collect();
    let entry = functions.iter().find(|(_, name)| *name == "_start");
    let entry = entry
        .expect("a program that is linked to a fixed address")
        .0;
    let asked = |bytes: usize| entry..entry + bytes as u64;
    let addresses: String = functions
        .iter()
        .map(|(at, _)| format!("{at:x}\n"))
        .collect();
    lab.write("functions", addresses);
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(lab.path("touched"))
        .arg(root().join("crates/cli/start/touched.c"))
        .output()
        .expect("a C compiler");
    assert!(built.status.success(), "{}", text(&built.stderr));
    for command in [&["true"][..], &["cat", "data"], &["cat", "data"]] {
        lab.cold(&["data"]);
        let [before, all] = called(&lab, command);
        for (called, bytes) in [(all, own::FUNCTIONS), (before, own::STARTS)] {
            let elsewhere = names(&functions, &called, &asked(bytes));
            assert!(
                called.len() > 300,
                "{command:?}: {} functions",
                called.len()
            );
            assert!(
                elsewhere.len() * 100 <= called.len() * ELSEWHERE,
                "{command:?}: {} of {} functions lie elsewhere; make start-order: {elsewhere:#?}",
                elsewhere.len(),
                called.len()
            );
            // What is known of a command is gone through before it is started, too, and asked for when it is found.
            if command != ["true"] {
                break;
            }
        }
    }
}

/// Where a function begins, and its name, by a line of `nm`.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut fields = line.split(' ');
    let at = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_function = matches!(fields.next()?, "t" | "T" | "w" | "W");
    is_function.then_some((at, fields.next()?))
}

/// Where the functions begin that `foreread run` of a command goes through before the command is started, and in all.
fn called(lab: &Lab, command: &[&str]) -> [BTreeSet<u64>; 2] {
    let program = foreread();
    let program = program.to_str().expect("a path of characters");
    let run = [
        "./touched",
        "functions",
        "called",
        program,
        "run",
        "--quiet",
        "--",
    ];
    let output = lab.plain(&[&run, command].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let called = fs::read_to_string(lab.path("called")).expect("what was called");
    let addresses = |lines: &str| -> BTreeSet<u64> {
        let lines = lines.lines().filter(|line| *line != "exec");
        let addresses = lines.map(|line| u64::from_str_radix(line, 16));
        addresses.collect::<Result<_, _>>().expect("addresses")
    };
    let (before, _) = called.split_once("exec").expect("it is started");
    [addresses(before), addresses(&called)]
}

/// The names of the functions that lie outside of what is asked for.
fn names<'a>(
    functions: &[(u64, &'a str)],
    called: &BTreeSet<u64>,
    asked: &Range<u64>,
) -> BTreeSet<&'a str> {
    let outside = functions
        .iter()
        .filter(|(at, _)| called.contains(at) && !asked.contains(at));
    outside.map(|&(_, name)| name).collect()
}
