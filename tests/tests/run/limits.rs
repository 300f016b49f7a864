//! Under limits that leave foreread less than it wants, the program gets everything that it would have without foreread.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use foreread_tests::{Lab, Need, Outcome, eventually, finish, foreread, start, text};
use rustix::process::{Pid, Signal, kill_process};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_limit_on_file_sizes_below_the_rings_leaves_the_program_unobserved_and_alive",
        QUICK,
        &[],
        ring_too_large,
    ),
    (
        "a_limit_on_file_sizes_below_the_records_leaves_the_program_unrecorded_and_alive",
        ALL,
        &[Need::Command("prlimit")],
        record_too_large,
    ),
    (
        "with_hardly_any_descriptors_the_program_runs_as_ever",
        QUICK,
        &[Need::Command("env")],
        few_descriptors,
    ),
    (
        "without_a_descriptor_to_spare_the_program_takes_the_place_of_foreread",
        ALL,
        &[],
        no_descriptors,
    ),
    (
        "with_hardly_any_processes_the_program_runs_as_ever",
        QUICK,
        &[Need::Nobody, Need::Command("prlimit")],
        few_processes,
    ),
    (
        "what_a_system_call_filter_refuses_is_named_and_the_program_runs_as_ever",
        QUICK,
        &[],
        refused_calls,
    ),
    (
        "of_limited_memory_the_program_has_all",
        QUICK,
        &[],
        limited_memory,
    ),
    (
        "children_with_hardly_any_memory_or_descriptors_start_or_fail_as_ever",
        QUICK,
        &[],
        limited_children,
    ),
    (
        "with_hardly_any_descriptors_signals_and_stops_are_passed_through",
        ALL,
        &[],
        few_descriptors_and_signals,
    ),
    (
        "arguments_that_only_just_fit_leave_the_program_as_ever",
        QUICK,
        &[],
        long_arguments,
    ),
];

/// A command under a limit set by the shell's `ulimit`.
fn limited(lab: &Lab, limit: &str, command: &Command) -> Command {
    let mut shell = lab.command("sh");
    shell
        .args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

/// Runs a command under `foreread run` with a limit.
fn under(lab: &Lab, limit: &str, args: &[&str]) -> Outcome {
    let (command, account) = lab.running(&[], args);
    account.of(finish(start(&mut limited(lab, limit, &command))))
}

/// Arguments and environment share a limit of the kernel's, and foreread's variables must find room there, too.
fn long_arguments() {
    let lab = Lab::new();
    let command = |bytes: usize| {
        let mut words = vec!["x".repeat(65535); bytes / 65536];
        words.push("x".repeat(bytes % 65536));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = lab.command(foreread());
        command.args(["run", "-q", "--", "/bin/true"]).args(words);
        command
    };
    // The most that foreread itself can be started with.
    let starts = |bytes: usize| {
        let child = command(bytes).spawn();
        child.map(finish).map(|output| output.status.code()).ok()
    };
    let (mut fits, mut exceeds) = (0, 1 << 20);
    while starts(exceeds).is_some() {
        (fits, exceeds) = (exceeds, exceeds * 2);
    }
    while exceeds - fits > 1 {
        let between = usize::midpoint(fits, exceeds);
        match starts(between) {
            Some(_) => fits = between,
            None => exceeds = between,
        }
    }
    for spare in [0, 8, 64, 512] {
        assert_eq!(
            starts(fits - spare),
            Some(Some(0)),
            "{spare} bytes to spare"
        );
    }
}

fn ring_too_large() {
    let lab = Lab::new();
    lab.data("data", 8);
    let command = ["sh", "-c", "sleep 0.2; cksum data; exit 3"];
    let plain = lab.plain(&command);
    for _ in 0..2 {
        // 10 or 20 MiB: shells use different units.
        let outcome = under(&lab, "-f 20000", &command);
        outcome.assert_as(&plain);
        assert_eq!(outcome.mode(), "aside", "{outcome:?}");
        assert!(outcome.reason().contains("File too large"), "{outcome:?}");
    }
}

/// The program itself sets the limit, so the ring exists and the record fails. The account goes to a pipe, which has no limit.
fn record_too_large() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    // Limits foreread's processes to their end.
    let limit = "for process in $PPID $(cat /proc/$PPID/task/$PPID/children); do
        test $process = $$ || prlimit --pid $process --fsize=0
    done; ./scatter 900 0 data; echo alive; exit 7";
    let begun = "./scatter 500 0 data; until [ -e go ]; do sleep 0.01; done";
    // In the first script the record cannot be begun, in the second it cannot be continued.
    for (script, is_begun) in [
        (limit.to_owned(), false),
        (format!("{begun}; {limit}"), true),
    ] {
        let run = ["run", "--json", "/dev/stdout", "--", "sh", "-c", &script];
        let child = start(lab.command(foreread()).args(run));
        if is_begun {
            lab.await_recorded("data");
            lab.write("go", "");
        }
        let output = finish(child);
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        let said = text(&output.stdout);
        let (said, account) = said.split_once('{').expect("an account");
        assert!(said.ends_with("alive\n"), "{output:?}");
        let account: serde_json::Value =
            serde_json::from_str(&format!("{{{account}")).expect("JSON");
        assert_eq!(account["mode"], "aside", "{account}");
        let reason = account["reason"].as_str().expect("a reason");
        assert!(
            reason.ends_with("File too large; not recorded"),
            "{account}"
        );
        assert!(lab.records().is_empty(), "{:?}", lab.records());
    }
}

/// Besides the standard descriptors foreread needs three before a program can be observed: for signals, the ring and the process group.
fn few_descriptors() {
    let lab = Lab::new();
    let foreread = foreread();
    let foreread = foreread.to_str().expect("a readable path");
    // A program that must inherit SIGCHLD as ignored is started in another way.
    let ways = ["--default-signal=CHLD", "--ignore-signal=CHLD"];
    for (limit, way) in (4..16)
        .chain(4..16)
        .flat_map(|limit| ways.map(|way| (limit, way)))
    {
        let mut run = lab.command("env");
        run.args([way, foreread, "run", "--", "sh", "-c", "echo out; exit 5"]);
        let output = finish(start(&mut limited(&lab, &format!("-n {limit}"), &run)));
        let (code, said) = (output.status.code(), text(&output.stderr));
        assert_eq!((code, &*output.stdout), (Some(5), &b"out\n"[..]), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("foreread: "), "{said}");
    }
}

/// A dynamically linked program could not even load its libraries.
fn no_descriptors() {
    let lab = Lab::new();
    lab.program("scatter", &["-static"]);
    lab.data("data", 8);
    // The program can open its file only because the closed descriptor is free.
    let limit = "-c 0; exec <&-; ulimit -n 3";
    let mut plain = lab.command("./scatter");
    plain.args(["50", "0", "data"]);
    let plain = finish(start(&mut limited(&lab, limit, &plain)));
    assert!(plain.status.success(), "{plain:?}");
    let mut run = lab.command(foreread());
    run.args(["run", "--", "./scatter", "50", "0", "data"]);
    let output = finish(start(&mut limited(&lab, limit, &run)));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), plain.status.code(), "{said}");
    assert_eq!(output.stdout, plain.stdout);
    assert_eq!(
        said,
        "foreread: stood aside: no signalfd can be made: Too many open files\n"
    );
    let mut run = lab.command(foreread());
    run.args(["run", "-q", "--", "./none"]);
    let output = finish(start(&mut limited(&lab, limit, &run)));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(127), "{said}");
    assert_eq!(said, "foreread: ./none: No such file or directory\n");
}

/// If no process can be created for the program, the program replaces foreread, and has no unexpected child.
fn few_processes() {
    let lab = Lab::new();
    // A shell needs no process for these built-in commands.
    let script = "read children < /proc/$$/task/$$/children; echo out $children; exit 5";
    let (mut in_place, mut beside) = (0, 0);
    for limit in 0..16 {
        let mut run = lab.command("setpriv");
        // A user without any other process.
        run.args(["--reuid=54321", "--regid=54321", "--clear-groups"]);
        let limit = format!("--nproc={limit}");
        run.args(["prlimit", &limit, foreread().to_str().expect("a path")]);
        let run = run.args(["run", "--", "sh", "-c", script]);
        let output = finish(start(run));
        let (code, said) = (output.status.code(), text(&output.stderr));
        assert_eq!((code, &*output.stdout), (Some(5), &b"out\n"[..]), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("foreread: "), "{said}");
        if said.contains("no process can be made") {
            in_place += 1;
        } else {
            beside += 1;
        }
    }
    assert!(in_place > 1 && beside > 0, "{in_place} and {beside}");
}

/// The reason names the call that failed: "Operation not permitted" alone would not show what must be allowed.
fn refused_calls() {
    let lab = Lab::new();
    lab.program("refused", &[]);
    lab.data("data", 8);
    let command = ["cksum", "data"];
    let plain = lab.plain(&command);
    for (call, refused) in [
        ("rt_sigprocmask", "signals cannot be blocked: "),
        ("signalfd", "no signalfd can be made: "),
        ("memfd_create", "cannot make the shared ring of "),
        ("socketpair", "no socket pair can be made: "),
        // If the C library starts programs by this call as well, none can be started beside foreread.
        ("clone", "process can be made: "),
    ] {
        let (command, account) = lab.running(&[], &command);
        let mut under = lab.command("./refused");
        under
            .arg(call)
            .arg(command.get_program())
            .args(command.get_args());
        let outcome = account.of(finish(start(&mut under)));
        outcome.assert_as(&plain);
        assert_eq!(outcome.mode(), "aside", "{call}: {outcome:?}");
        let reason = outcome.reason();
        let is_named = reason.contains(refused) && reason.ends_with(": Operation not permitted");
        assert!(is_named, "{call}: {reason}");
    }
}

fn few_descriptors_and_signals() {
    let lab = Lab::new();
    let script = "trap 'echo usr1' USR1; trap 'exit 6' TERM
        echo ready; kill -STOP $$; while :; do sleep 0.01; done";
    for limit in [4, 5, 6] {
        let mut run = lab.command("env");
        // The process that started the tests may ignore some signals.
        let run = run.args(["--default-signal", foreread().to_str().expect("a path")]);
        let run = run.args(["run", "-q", "--", "sh", "-c", script]);
        let mut child = start(limited(&lab, &format!("-n {limit}"), run).process_group(0));
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let pid = Pid::from_child(&child);
        let signal = |signal| kill_process(pid, signal).expect("our own child");
        let stat = format!("/proc/{}/stat", child.id());
        eventually("foreread stops too", || {
            std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))
        });
        signal(Signal::CONT);
        signal(Signal::USR1);
        line.clear();
        stdout.read_line(&mut line).expect("a line");
        assert_eq!(line, "usr1\n");
        signal(Signal::TERM);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("output");
        assert_eq!((rest.as_str(), finish(child).status.code()), ("", Some(6)));
    }
}

/// Limits of `ulimit` on memory that are large enough for foreread, in KiB.
const MEMORY: [&str; 2] = ["-v 1000000", "-d 500000"];

fn limited_memory() {
    let lab = Lab::new();
    lab.program("fill", &[]);
    let pieces = |output: &Output| -> u64 {
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout).trim().parse().expect("a number")
    };
    for limit in MEMORY {
        let plain = finish(start(&mut limited(&lab, limit, &lab.command("./fill"))));
        let plain = pieces(&plain);
        assert!(plain > 1000, "{plain}");
        let all = under(&lab, limit, &["./fill"]);
        assert!(all.reason().contains("is limited"), "{all:?}");
        // A program that sets its own limit.
        let script = format!("ulimit {limit}; exec ./fill");
        let own = lab.run(&["sh", "-c", &script]);
        for outcome in [all, own] {
            // The position of the stack may cost a page or two.
            let left = pieces(&outcome.output);
            assert!(left.abs_diff(plain) <= 1, "{limit}: {left}, alone {plain}");
        }
    }
}

/// The library would take 250 KiB of their address space, and 100 KiB of their data.
fn limited_children() {
    let lab = Lab::new();
    let script = "try() { (ulimit $1 $2; /bin/true); echo $1: $?; }
        for kib in $(seq 1500 50 5000); do try -v $kib; done
        for kib in $(seq 20 20 800); do try -d $kib; done
        try -n 3";
    let command = ["bash", "-c", script];
    let begun = |output: &[u8]| {
        let said = text(output);
        ["-v", "-d", "-n"].map(|limit| {
            let begins = format!("{limit}: 0");
            said.lines().filter(|line| *line == begins).count()
        })
    };
    let plain = lab.plain(&command);
    let alone = begun(&plain.stdout);
    assert!(alone[0] > 0 && alone[1] > 0 && alone[2] == 0, "{plain:?}");
    let outcome = lab.run_with(&["--quiet", "--observer", "preload"], &command);
    for (begun, alone) in begun(&outcome.output.stdout).into_iter().zip(alone) {
        // The environment may be one page longer.
        assert!(
            begun.abs_diff(alone) <= 1,
            "{begun}, alone {alone}: {outcome:?}"
        );
    }
    assert!(!outcome.stderr().contains("preload"), "{outcome:?}");
}
