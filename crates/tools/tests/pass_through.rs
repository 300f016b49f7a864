//! `foreread run` is the program to whoever started it: status, signals, streams, even
//! where foreread itself can do nothing.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Runs a shell line in which `$foreread` runs a command that cannot be observed.
fn shell(line: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new("bash")
        .args(["-c", line])
        .env("foreread", assert_cmd::cargo::cargo_bin("foreread"))
        .env("FOREREAD_PRELOAD", "/no/such/library.so")
        .env("XDG_DATA_HOME", home.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_exit_status_is_the_programs() {
    for (command, status) in [
        ("sh -c 'exit 42'", 42),
        ("true", 0),
        ("/no/such/program", 127),
        ("no-such-program", 127),
        ("/etc/passwd", 126),
    ] {
        let output = shell(&format!("$foreread run -q -- {command}"));
        assert_eq!(output.status.code(), Some(status), "{command}");
    }
}

#[test]
fn a_program_ended_by_a_signal_is_seen_to_be() {
    let output = shell("exec $foreread run -q -- sh -c 'kill -TERM $$'");
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn a_signal_sent_to_foreread_reaches_the_program() {
    let output = shell(
        "exec 3< <($foreread run -q -- bash -c 'trap \"echo told; exit 7\" USR1; echo ready $PPID
            while :; do sleep 0.05; done'; echo status $?)
         read -r _ pid <&3; kill -USR1 $pid; cat <&3",
    );
    assert_eq!(text(&output.stdout), "told\nstatus 7\n");
}

#[test]
fn signals_are_ignored_and_blocked_as_without_foreread() {
    let look = "grep -E 'Sig(Ign|Blk)' /proc/self/status";
    for trap in ["", "trap '' PIPE;", "trap '' HUP INT;"] {
        let alone = shell(&format!("{trap} {look}"));
        let ours = shell(&format!("{trap} $foreread run -q -- {look}"));
        assert_eq!(text(&ours.stdout), text(&alone.stdout), "{trap}");
    }
}

#[test]
fn quiet_adds_nothing_and_otherwise_one_line_says_why_it_could_not_help() {
    let quiet = shell("echo in | $foreread run -q -- sh -c 'cat; echo err >&2'");
    assert_eq!(text(&quiet.stdout), "in\n");
    assert_eq!(text(&quiet.stderr), "err\n");
    // What a program has not waited for is not told: on a busy machine that may take a while.
    for seconds in [0, 1, 10] {
        let told = text(&shell(&format!("$foreread run -- sleep {seconds}")).stderr);
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.starts_with("foreread: "), "{told}");
        if told.contains("/no/such/library.so") {
            return;
        }
    }
    panic!("the library is not named");
}
