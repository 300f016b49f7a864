//! The program behaves as if started directly: its inputs, its output, its end.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use foreread_tests::{Lab, Need, finish, foreread, start, text};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    ("output_passes_through_byte_for_byte", QUICK, &[], output),
    ("input_and_both_outputs_pass_through", QUICK, &[], input),
    (
        "what_the_program_closes_is_closed_for_who_is_at_its_other_end",
        QUICK,
        &[],
        closed_early,
    ),
    ("the_exit_status_is_the_programs", QUICK, &[], statuses),
    (
        "a_program_killed_by_a_signal_ends_foreread_by_the_same",
        QUICK,
        &[],
        killed,
    ),
    (
        "a_command_that_cannot_be_started_ends_as_in_a_shell",
        QUICK,
        &[],
        not_started,
    ),
    (
        "descriptors_and_signal_state_are_as_if_started_directly",
        QUICK,
        &[],
        inherited,
    ),
    (
        "standard_descriptors_that_are_closed_stay_closed",
        ALL,
        &[],
        closed,
    ),
    (
        "a_program_built_with_a_sanitizer_runs_as_ever",
        ALL,
        &[],
        sanitized,
    ),
    (
        "the_environment_is_as_given_but_for_what_observing_takes",
        ALL,
        &[],
        environment,
    ),
    (
        "a_reader_that_leaves_ends_the_program_as_it_would_without",
        QUICK,
        &[],
        reader_leaves,
    ),
    (
        "a_report_that_nobody_reads_to_its_end_is_no_failure",
        ALL,
        &[],
        report_unread,
    ),
    (
        "on_a_terminal_the_program_sees_the_terminal",
        ALL,
        &[Need::Command("script")],
        terminal,
    ),
    ("quiet_adds_nothing_to_standard_error", ALL, &[], quiet),
    ("one_line_is_added_to_standard_error", QUICK, &[], one_line),
    (
        "explain_says_more_and_all_of_it_is_signed",
        ALL,
        &[],
        explain,
    ),
    (
        "an_account_that_cannot_be_written_costs_only_the_account",
        ALL,
        &[],
        no_account,
    ),
];

fn output() {
    let lab = Lab::new();
    lab.data("data", 8);
    let plain = lab.plain(&["cat", "data"]);
    assert_eq!(plain.stdout.len(), 8 << 20);
    for _ in 0..3 {
        lab.cold(&["data"]);
        lab.run(&["cat", "data"]).assert_as(&plain);
    }
}

fn input() {
    let lab = Lab::new();
    let given: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for options in [&[][..], &["--no-prefetch"], &["--no-record"]] {
        let (mut command, account) = lab.running(
            options,
            &["sh", "-c", "cat; echo 'to standard error' >&2; exit 3"],
        );
        let mut child = start(command.stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().expect("a pipe");
        let bytes = given.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&bytes));
        let outcome = account.of(finish(child));
        writer.join().expect("our own thread").expect("a reader");
        assert!(outcome.output.stdout == given, "{options:?}");
        assert!(outcome.stderr().starts_with("to standard error\n"));
        assert_eq!(outcome.output.status.code(), Some(3));
    }
}

fn statuses() {
    let lab = Lab::new();
    for status in [0, 1, 3, 127, 139, 255] {
        for _ in 0..2 {
            let outcome = lab.run(&["sh", "-c", &format!("exit {status}")]);
            assert_eq!(outcome.output.status.code(), Some(status));
        }
    }
}

fn killed() {
    let lab = Lab::new();
    for signal in [6, 9, 11, 15] {
        for _ in 0..2 {
            let outcome = lab.run(&["sh", "-c", &format!("echo going; kill -{signal} $$")]);
            assert_eq!(outcome.output.status.signal(), Some(signal));
            assert_eq!(outcome.account["exit_status"], 128 + signal);
            assert_eq!(outcome.stdout(), "going\n");
        }
    }
}

fn not_started() {
    let lab = Lab::new();
    lab.write("data", "not a program");
    lab.script("bare", "echo \"bare script $1\"\n");
    for (command, status) in [
        (&["no-such-command"][..], 127),
        (&["./no-such-file"], 127),
        (&["./data"], 126),
        (&["/"], 126),
    ] {
        let output = lab.foreread(&[&["run", "--"], command].concat());
        assert_eq!(output.status.code(), Some(status), "{command:?}");
        let said = text(&output.stderr);
        assert!(said.contains(command[0]), "{said}");
        assert!(output.stdout.is_empty());
    }
    assert!(
        lab.records().is_empty(),
        "nothing is left of what never ran"
    );
    // A shell runs a file without a `#!` line as a script.
    assert_eq!(lab.run(&["./bare", "one"]).stdout(), "bare script one\n");
}

/// Signals blocked, ignored and caught, up to 31; higher ones belong to the C library.
const SIGNALS: &str = "grep '^Sig[BIC]' /proc/self/status | sed 's/:.*\\(.\\{8\\}\\)$/ \\1/; s/[89a-f]\\(.\\{7\\}\\)$/-\\1/'";

fn inherited() {
    let lab = Lab::new();
    for command in [
        &["sh", "-c", "ls /proc/self/fd"][..],
        &["sh", "-c", SIGNALS],
        &["sh", "-c", "umask; ulimit -a; pwd; nice"],
    ] {
        let plain = lab.plain(command);
        for _ in 0..2 {
            lab.run(command).assert_as(&plain);
        }
    }
}

fn closed() {
    let lab = Lab::new();
    // Its own output would hide the state of its descriptors.
    let look = "for n in 0 1 2; do test -e /proc/$$/fd/$n && open=\"$open$n\"; done; echo \"$open\" > seen";
    lab.script("look", &format!("#!/bin/sh\n{look}\n"));
    let foreread = foreread();
    for (closing, open) in [
        (">&-", "02\n"),
        ("<&-", "12\n"),
        ("2>&-", "01\n"),
        ("<&- >&- 2>&-", "\n"),
    ] {
        for command in [
            "./look".to_owned(),
            format!("{} run -- ./look", foreread.display()),
        ] {
            lab.plain(&["sh", "-c", &format!("exec {command} {closing}")]);
            let seen = std::fs::read_to_string(lab.path("seen")).expect("what was seen");
            assert_eq!(seen, open, "{command} {closing}");
            std::fs::remove_file(lab.path("seen")).expect("our own file");
        }
    }
}

fn environment() {
    let lab = Lab::new();
    let home = format!("XDG_DATA_HOME={}", lab.path("home").display());
    let given = ["ZEBRA=1", "ANT=a b=c", "LC_ALL=C", "CAT="];
    let given = [&["env", "-i", &home][..], &given].concat();
    let foreread = foreread();
    let foreread = foreread.to_str().expect("a readable path");
    let said = |command: &[&str]| text(&lab.plain(&[&given, command].concat()).stdout);
    let plain = said(&["/usr/bin/env"]);
    let observed = said(&[foreread, "run", "-q", "--", "/usr/bin/env"]);
    let added = ["LD_PRELOAD=", "FOREREAD_RING=", "ASAN_OPTIONS="];
    let (own, others): (Vec<_>, Vec<_>) = observed
        .lines()
        .partition(|line| added.iter().any(|name| line.starts_with(name)));
    assert_eq!(own.len(), added.len(), "{observed}");
    assert!(others.into_iter().eq(plain.lines()), "{observed}");
}

/// The sanitizers' libraries must be loaded first.
fn sanitized() {
    for sanitizer in ["address", "thread", "undefined"] {
        let lab = Lab::new();
        lab.program("scatter", &["-g", &format!("-fsanitize={sanitizer}")]);
        lab.data("data", 8);
        let command = ["./scatter", "500", "0", "data"];
        let outcome = lab.run(&command);
        outcome.assert_as(&lab.plain(&command));
        assert_eq!(outcome.mode(), "recorded", "{sanitizer}: {outcome:?}");
    }
}

fn report_unread() {
    let lab = Lab::new();
    for args in [
        &["list"][..],
        &["doctor"],
        &["completions", "bash"],
        &["man"],
        &["slowdisk", "models"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = lab.command(foreread());
        command.args(args).stdout(writer).stderr(Stdio::piped());
        let output = finish(start(&mut command));
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert_eq!(text(&output.stderr), "", "{args:?}");
    }
}

fn reader_leaves() {
    let lab = Lab::new();
    lab.data("data", 8);
    let line = "cat data | head -c 5000 | cksum; echo ${PIPESTATUS[0]}";
    let plain = lab.plain(&["bash", "-c", line]);
    assert!(
        text(&plain.stdout).ends_with("141\n"),
        "cat dies by SIGPIPE"
    );
    let observed = format!("{} run -q -- {line}", foreread().display());
    for _ in 0..2 {
        assert_eq!(lab.plain(&["bash", "-c", &observed]), plain);
    }
}

fn terminal() {
    let lab = Lab::new();
    let asks = "test -t 0 && test -t 1 && test -t 2 && echo all three";
    lab.script("ask", &format!("#!/bin/sh\n{asks}\n"));
    for _ in 0..2 {
        let (command, account) = lab.running(&[], &["./ask"]);
        let line: Vec<_> = [command.get_program()]
            .into_iter()
            .chain(command.get_args())
            .map(|word| word.to_str().expect("a readable path"))
            .collect();
        let output = lab.plain(&["script", "-qec", &line.join(" "), "/dev/null"]);
        let outcome = account.of(output);
        assert!(outcome.stdout().starts_with("all three\r\nforeread: "));
    }
}

fn quiet() {
    let lab = Lab::new();
    lab.data("data", 8);
    let plain = lab.plain(&["sh", "-c", "cat data; echo mine >&2"]);
    for _ in 0..3 {
        lab.cold(&["data"]);
        let outcome = lab.run_with(&["--quiet"], &["sh", "-c", "cat data; echo mine >&2"]);
        assert_eq!(outcome.output, plain);
    }
    let broken = lab.with("FOREREAD_PRELOAD", "/nonexistent");
    let outcome = broken.run_with(&["--quiet"], &["sh", "-c", "echo mine >&2"]);
    assert_eq!(outcome.stderr(), "mine\n");
    assert!(outcome.reason().contains("/nonexistent"), "{outcome:?}");
}

fn one_line() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    // Recorded, prefetched, hot.
    for (cold, mode) in [(true, "recorded"), (true, "prefetched"), (false, "aside")] {
        let _held = if cold {
            lab.cold(&["data"]);
            None
        } else {
            Some(lab.held(&["data", "scatter"]))
        };
        let outcome = lab.run(&["./scatter", "500", "50", "data"]);
        outcome.check_mode(mode);
        let said = outcome.stderr();
        assert!(
            said.starts_with("foreread: ") && said.ends_with('\n'),
            "{said:?}"
        );
        assert_eq!(said.lines().count(), 1, "{said:?}");
    }
}

fn explain() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    for mode in ["recorded", "prefetched"] {
        lab.cold(&["data"]);
        let outcome = lab.run_with(&["--explain"], &["./scatter", "500", "50", "data"]);
        outcome.check_mode(mode);
        let said = outcome.stderr();
        assert!(said.lines().count() > 2, "{said}");
        assert!(
            said.lines().all(|line| line.starts_with("foreread:")),
            "{said}"
        );
        if mode == "prefetched" {
            assert!(
                said.contains("coverage") && said.contains("timeliness"),
                "{said}"
            );
        }
    }
}

fn no_account() {
    let lab = Lab::new();
    let output = lab.foreread(&[
        "run",
        "--json",
        "no/such/folder",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(
        text(&output.stderr).contains("no/such/folder"),
        "{output:?}"
    );
}

fn closed_early() {
    let lab = Lab::new();
    let script = "exec <&-; echo said; exec >&-; until test -e go; do sleep 0.01; done";
    for words in [
        &["sh"][..],
        &["run", "--quiet", "--", "sh"],
        &["run", "--quiet", "--", "sh"],
    ] {
        let mut command = match words {
            [_] => lab.command("sh"),
            words => {
                let mut command = lab.command(foreread());
                command.args(words);
                command
            }
        };
        let mut child = start(command.args(["-c", script]).stdin(Stdio::piped()));
        let mut input = child.stdin.take().expect("a pipe");
        let mut output = child.stdout.take().expect("a pipe");
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut said = String::new();
            let read = output.read_to_string(&mut said);
            let _ = sender.send(read.map(|_| said));
        });
        // The program keeps running meanwhile.
        let said = receiver.recv_timeout(Duration::from_secs(20));
        let written = input.write_all(b"nobody reads this\n");
        lab.write("go", "");
        assert!(finish(child).status.success());
        std::fs::remove_file(lab.path("go")).expect("our own file");
        let said = said.unwrap_or_else(|_| panic!("{words:?}: no end of the output"));
        assert_eq!(said.expect("the output"), "said\n");
        let why = written.expect_err("somebody reads");
        assert_eq!(why.kind(), io::ErrorKind::BrokenPipe, "{words:?}");
    }
}
