//! The exit status of every command: 0 done, 1 could not do its work, 2 nothing to be done with its words or files
//! (docs/command-line.md). `run`, `record` and the compilers end as what they run.

use std::collections::BTreeSet;
use std::process::Output;

use assert_cmd::Command;

/// Words of a command line, and the status that it has with them.
type Case = (&'static [&'static str], i32);

/// Each command with the status that it has without arguments, and with a file or record that is not there, where it takes one.
const COMMANDS: &[(&[&str], i32, Option<Case>)] = &[
    (&["run"], 2, Some((&["/no/such/program"], 127))),
    (&["record"], 2, Some((&["/no/such/program"], 127))),
    (&["list"], 0, None),
    (&["show"], 2, Some((&["/no/such.fr"], 2))),
    (&["explain"], 2, Some((&["/no/such.fr"], 2))),
    (&["report"], 2, Some((&["/no/such.fr"], 2))),
    (&["forget"], 2, Some((&["nosuch"], 2))),
    (&["prune"], 0, None),
    (&["analyze"], 2, Some((&["/no/such/trace"], 2))),
    (&["sim"], 2, Some((&["/no/such/trace"], 2))),
    (&["predict"], 2, Some((&["/no/such/file"], 1))),
    (&["export", "--to", "csv"], 2, Some((&["/no/such.fr"], 2))),
    (&["import"], 2, Some((&["/no/such/list", "--", "true"], 2))),
    (&["merge"], 2, Some((&["/no/such.fr", "/nor/such.fr"], 2))),
    (&["service"], 2, None),
    (&["service", "enable"], 2, Some((&["no-such-unit"], 2))),
    (&["service", "disable"], 2, Some((&["no-such-unit"], 2))),
    (
        &["top", "--once"],
        0,
        Some((&["--socket", "/no/such/socket"], 0)),
    ),
    (&["top"], 2, None),
    (&["cache"], 2, None),
    (
        &["cache", "save"],
        2,
        Some((&["saved", "/no/such/file"], 2)),
    ),
    (&["cache", "restore"], 2, Some((&["/no/such/cache"], 2))),
    (&["daemon"], 2, None),
    (
        &["daemon", "env"],
        1,
        Some((&["--socket", "/no/such/socket"], 1)),
    ),
    (
        &["daemon", "status"],
        1,
        Some((&["--socket", "/no/such/socket"], 1)),
    ),
    (
        &["daemon", "metrics"],
        1,
        Some((&["--socket", "/no/such/socket"], 1)),
    ),
    (
        &["daemon", "stop"],
        1,
        Some((&["--socket", "/no/such/socket"], 1)),
    ),
    (
        &[
            "daemon",
            "run",
            "--socket",
            "/no/such/socket",
            "--state",
            "state",
        ],
        1,
        None,
    ),
    (
        &[
            "daemon",
            "start",
            "--socket",
            "/no/such/socket",
            "--state",
            "state",
        ],
        1,
        None,
    ),
    (&["calibrate"], 2, Some((&["/no/such/folder"], 2))),
    (&["slowdisk"], 2, None),
    (&["slowdisk", "stats"], 2, Some((&["/no/such/folder"], 1))),
    (&["completions"], 2, Some((&["no-such-shell"], 2))),
    (&["man"], 0, Some((&["--output", "/dev/null/pages"], 1))),
    (&["help"], 0, Some((&["no-such-command"], 2))),
];

/// Those whose status depends on the machine, or is another program's.
const OTHERS: [&str; 4] = ["doctor", "cc", "c++", "slice"];

fn foreread(words: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("foreread").unwrap();
    command
        .env("XDG_DATA_HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .env_remove("FOREREAD_STORE_LIMIT")
        .current_dir(home.path())
        .timeout(std::time::Duration::from_secs(60))
        .args(words);
    // A daemon of root's may be running, whom nobody is to stop here.
    if words[0] == "daemon" && !words.contains(&"--socket") && words.len() > 1 {
        command.args(["--socket", "none"]);
    }
    command.output().unwrap()
}

fn has_status(words: &[&str], status: i32) {
    let output = foreread(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
    // A failure is said, and by name.
    assert_eq!(status == 0, said.is_empty(), "{words:?}: {said}");
    assert!(!said.contains("panicked"), "{words:?}: {said}");
}

#[test]
fn every_command_ends_with_the_status_that_its_failure_has() {
    for &(words, without, with) in COMMANDS {
        has_status(words, without);
        if let Some((bad, status)) = with {
            has_status(&[words, bad].concat(), status);
        }
        if words != ["help"] {
            has_status(&[words, &["--no-such-option"]].concat(), 2);
        }
    }
}

#[test]
fn no_command_is_left_out() {
    let help = foreread(&["help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Options:").next().unwrap();
    let named = commands.lines().filter_map(|line| line.strip_prefix("  "));
    let named = named.filter_map(|line| line.split_whitespace().next());
    let named: BTreeSet<&str> = named.collect();
    let known = COMMANDS.iter().map(|(words, ..)| words[0]).chain(OTHERS);
    assert_eq!(named, known.collect::<BTreeSet<_>>());
}

#[test]
fn an_output_that_takes_nothing_is_a_failure_to_do_the_work() {
    for words in [
        &["list"][..],
        &["top", "--once"],
        &["man"],
        &["completions", "bash"],
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let home = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin("foreread"))
            .env("XDG_DATA_HOME", home.path())
            .args(words)
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {output:?}");
    }
}
