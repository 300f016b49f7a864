//! Where foreread cannot help, it stands aside and says why, and the program runs as without it.

use std::fs;
use std::process::Output;

use foreread_tests::{Lab, Need, Outcome, attempt, check, text};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "without_the_preload_library_it_stands_aside",
        QUICK,
        &[],
        no_library,
    ),
    (
        "a_statically_linked_program_is_left_alone",
        QUICK,
        &[Need::StaticC],
        statically_linked,
    ),
    (
        "a_program_that_clears_its_environment_runs_as_ever_and_it_is_said",
        QUICK,
        &[],
        cleared_environment,
    ),
    (
        "what_was_not_observed_when_recorded_is_said_of_a_run_that_nobody_observes",
        ALL,
        &[],
        unobserved_and_hot,
    ),
    (
        "a_program_half_of_which_was_not_seen_is_given_to_ebpf_by_its_record",
        ALL,
        &[Need::Ebpf],
        half_unseen,
    ),
    (
        "nothing_is_loaded_into_the_kernel_for_a_static_program_that_is_in_memory",
        ALL,
        &[Need::Ebpf, Need::StaticC],
        static_and_hot,
    ),
    (
        "a_statically_linked_child_runs_as_ever_and_it_is_said",
        QUICK,
        &[Need::StaticC],
        static_child,
    ),
    (
        "of_a_statically_linked_program_with_children_it_is_said_that_it_was_not_observed",
        ALL,
        &[Need::StaticC],
        static_parent,
    ),
    (
        "a_child_in_another_pid_namespace_runs_as_ever_and_it_is_said",
        QUICK,
        &[
            Need::Root,
            Need::Command("unshare"),
            Need::Command("python3"),
        ],
        other_namespace,
    ),
    (
        "programs_that_are_observed_are_not_said_to_be_unobserved",
        ALL,
        &[Need::Command("python3")],
        all_observed,
    ),
    (
        "a_program_that_closes_every_descriptor_runs_as_ever",
        QUICK,
        &[Need::Command("python3")],
        closed,
    ),
    (
        "a_program_that_reads_no_file_runs_as_ever",
        QUICK,
        &[],
        reads_nothing,
    ),
    (
        "a_long_plan_of_files_all_but_in_memory_is_hot_from_the_start",
        ALL,
        &[],
        nearly_whole,
    ),
    (
        "a_run_that_is_not_recorded_is_not_said_to_read_nothing",
        ALL,
        &[],
        not_recorded,
    ),
    (
        "an_account_that_cannot_be_written_is_told_in_the_one_line",
        QUICK,
        &[],
        unwritten,
    ),
    (
        "of_a_program_killed_at_once_nothing_is_claimed",
        ALL,
        &[],
        killed_at_once,
    ),
    (
        "after_its_plan_the_kernel_reads_ahead_of_a_program_again",
        ALL,
        &[Need::ReadAhead],
        onward,
    ),
    (
        "the_kernel_reads_ahead_again_once_foreread_was_killed",
        ALL,
        &[Need::ReadAhead],
        left_behind,
    ),
    (
        "a_command_that_cannot_be_started_is_named_with_the_reason_in_words",
        QUICK,
        &[],
        not_started,
    ),
    (
        "what_the_device_gave_and_nobody_saw_is_said",
        ALL,
        &[],
        direct_calls,
    ),
    (
        "what_is_read_in_sight_is_not_called_unseen",
        ALL,
        &[Need::Command("python3")],
        in_sight,
    ),
    (
        "a_program_under_another_root_runs_as_ever_and_it_is_said",
        QUICK,
        &[Need::Root, Need::Command("chroot")],
        other_root,
    ),
];

/// The preload library and not eBPF, from which no process is hidden.
const BY_LIBRARY: &[&str] = &["--observer", "preload"];

/// Runs a command that reads `data` cold, twice, and compares it with a plain run.
#[track_caller]
fn twice(lab: &Lab, command: &[&str]) -> Outcome {
    let plain = lab.plain(command);
    let mut outcomes = (0..2).map(|_| {
        lab.cold(&["data"]);
        let outcome = lab.run_with(BY_LIBRARY, command);
        outcome.assert_as(&plain);
        assert_eq!(outcome.stderr().lines().count(), 1, "{outcome:?}");
        outcome
    });
    outcomes.next();
    outcomes.next().expect("the second of two")
}

fn no_library() {
    let lab = Lab::new().with("FOREREAD_PRELOAD", "/nonexistent");
    lab.data("data", 8);
    let outcome = twice(&lab, &["cksum", "data"]);
    assert_eq!(outcome.mode(), "aside");
    assert!(outcome.reason().contains("/nonexistent"), "{outcome:?}");
    assert!(outcome.says("/nonexistent"), "{outcome:?}");
    assert!(lab.records().is_empty());
}

fn statically_linked() {
    let lab = Lab::new();
    lab.program("scatter", &["-static"]);
    lab.data("data", 8);
    let command = ["./scatter", "500", "0", "data"];
    let unrecorded = [BY_LIBRARY, &["--no-record"]].concat();
    for outcome in [twice(&lab, &command), lab.run_with(&unrecorded, &command)] {
        assert_eq!(outcome.mode(), "aside");
        assert_eq!(
            outcome.reason(),
            "scatter could not be observed: it is statically linked, and the preload library cannot be loaded into it",
            "{outcome:?}"
        );
    }
    assert!(lab.records().is_empty());
}

/// A process with an empty environment, which lives until foreread has looked at it if the file `watched` exists.
const CLEARED: &[&str] = &[
    "env",
    "-i",
    "/bin/sh",
    "-c",
    "./scatter 500 0 data; test ! -e watched || exec ./looked_at looked_at",
];
const WITHOUT_VARIABLES: &str =
    "1 process was not observed: given an environment without foreread's variables";

/// A lab with the record of [`CLEARED`], made while the file was cold, and the outcome of a run without foreread.
fn cleared() -> (Lab, Output) {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.program("looked_at", &[]);
    lab.data("data", 8);
    let plain = lab.plain(CLEARED);
    let watched = lab.write("watched", "");
    lab.cold(&["data"]);
    let first = lab.run_with(BY_LIBRARY, CLEARED);
    fs::remove_file(watched).expect("our own file");
    first.assert_as(&plain);
    assert_eq!(first.stderr().lines().count(), 1, "{first:?}");
    assert!(first.reason().contains(WITHOUT_VARIABLES), "{first:?}");
    assert!(first.says(WITHOUT_VARIABLES), "{first:?}");
    (lab, plain)
}

fn cleared_environment() {
    let (lab, plain) = cleared();
    lab.cold(&["data"]);
    let second = lab.run_with(BY_LIBRARY, CLEARED);
    second.assert_as(&plain);
    assert!(second.says("1 process was not observed:"), "{second:?}");
    // Programs and libraries may be fetched, if another process has emptied the page cache.
    check!(second.bytes("issued") == 0, "{second:?}");
    // The environment stays empty.
    assert_eq!(lab.run(&["env", "-i", "env"]).stdout(), "");
}

fn unobserved_and_hot() {
    let (lab, _) = cleared();
    let hot = lab.run_with(BY_LIBRARY, CLEARED);
    // If another process has emptied the page cache, the run is observed.
    let said = format!("when recorded, {WITHOUT_VARIABLES}");
    check!(hot.reason().contains(&said), "{hot:?}");
}

const UNSEEN: &[&str] = &["env", "-i", "./scatter", "1000", "0", "data"];

fn half_unseen() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let by_kernel =
        "observed by eBPF: the preload library sees less than half of what the program reads";
    let runs: Vec<_> = (0..3)
        .map(|_| {
            lab.cold(&["data"]);
            lab.run(UNSEEN)
        })
        .collect();
    let turned: Vec<_> = runs
        .iter()
        .map(|run| run.reason().contains(by_kernel))
        .collect();
    assert_eq!(turned, [false, true, true], "{runs:?}");
    assert_eq!(runs[0].bytes("issued"), 0, "{runs:?}");
    assert!(!runs[2].reason().contains("not observed"), "{runs:?}");
    check!(
        runs[2].bytes("useful") + runs[2].bytes("late") > 3 << 20,
        "{runs:?}"
    );
}

fn static_and_hot() {
    let lab = Lab::new();
    lab.program("scatter", &["-static"]);
    lab.data("data", 1);
    // A program that reads nothing.
    lab.write("none.c", "int main(void) { return 0; }");
    let built = lab.plain(&["cc", "-static", "-o", "none", "none.c"]);
    assert!(built.status.success(), "{built:?}");
    let is_loaded = |run: &Outcome| run.reason().contains("observed by eBPF");
    for command in [&["./scatter", "100", "0", "data"][..], &["./none"]] {
        let first = lab.first_by_kernel(command);
        assert!(is_loaded(&first), "{first:?}");
        // Another process may empty the page cache, and unloading eBPF may hold a run up.
        let is_spared = |_| attempt(|| lab.run(command)).is_ok_and(|run| !is_loaded(&run));
        check!((0..5).any(is_spared), "{command:?}");
    }
}

fn static_child() {
    let lab = Lab::new();
    lab.program("scatter", &["-static"]);
    lab.program("looked_at", &["-static"]);
    lab.data("data", 8);
    let outcome = lab.run(&[
        "sh",
        "-c",
        "./looked_at looked_at; exec ./looked_at looked_at",
    ]);
    let said = "2 processes were not observed: statically linked";
    assert!(outcome.reason().contains(said), "{outcome:?}");
    // The same if the program is started by posix_spawn.
    let spawn = "import os; pid = os.posix_spawn('./scatter', ['scatter', '9', '0', 'data'], os.environ); \
                 os.waitpid(pid, 0)";
    let outcome = lab.run(&["python3", "-c", spawn]);
    assert!(outcome.says("1 process was not observed:"), "{outcome:?}");
}

fn static_parent() {
    let lab = Lab::new();
    lab.program("starter", &["-static"]);
    lab.program("scatter", &[]);
    lab.program("looked_at", &[]);
    lab.data("data", 8);
    let script = "./scatter 500 0 data; ./looked_at starter";
    let outcome = lab.run_with(BY_LIBRARY, &["./starter", "sh", "-c", script]);
    assert_eq!(outcome.mode(), "recorded");
    assert_eq!(
        outcome.reason(),
        "1 process was not observed: statically linked",
        "{outcome:?}"
    );
}

/// The root has libraries of its own, and none of foreread's.
fn other_root() {
    let lab = Lab::new();
    let root = lab.root_with(&["/bin/sh", "/bin/cat"]);
    fs::write(root.join("data"), "of the other root\n").expect("our own file");
    // The shell starts one program, and then executes another in its own place.
    let script = "cat data; exec cat data";
    let command = ["chroot", "root", "/bin/sh", "-c", script];
    let plain = lab.plain(&command);
    assert!(plain.status.success(), "{plain:?}");
    let outcome = lab.run_with(&["-q"], &command);
    outcome.assert_as(&plain);
    assert_eq!(outcome.stderr(), "", "{outcome:?}");
    let said = lab.run(&command);
    assert_eq!(said.stderr().lines().count(), 1, "{said:?}");
    assert!(said.says("not observed"), "{said:?}");
    // If the library exists there, it is loaded.
    let here = lab.run(&["chroot", "/", "/bin/cat", "/etc/passwd"]);
    assert!(!here.says("not observed"), "{here:?}");
}

/// In another PID namespace a program finds the ring, but not the processes that its children's numbers name.
fn other_namespace() {
    let lab = Lab::new();
    lab.data("data", 8);
    let said = |count: &str| {
        format!("{count} not observed: in another PID namespace, or without foreread's /proc")
    };
    let run = |command: &[&str], count: &str| {
        let outcome = lab.run(command);
        outcome.assert_as(&lab.plain(command));
        // Other remarks may follow, if another process has emptied the page cache.
        assert!(outcome.reason().contains(&said(count)), "{outcome:?}");
        assert_eq!(outcome.account["lost"], 0, "{outcome:?}");
    };
    run(&["unshare", "-p", "-f", "cksum", "data"], "1 process was");
    // One shell executes another, which starts two programs.
    let script = "exec sh -c 'cksum data; cksum data; :'";
    run(
        &["unshare", "-p", "-f", "sh", "-c", script],
        "3 processes were",
    );
    // With a /proc of its own, in which the ring is not found.
    run(
        &["unshare", "-p", "-f", "--mount-proc", "cksum", "data"],
        "1 process was",
    );
    // A process that only forks, and one that is spawned.
    let ways = "import ctypes, os
assert ctypes.CDLL(None).unshare(0x20000000) == 0  # CLONE_NEWPID
wait, go = os.pipe()
if os.fork() == 0:
    os.close(go)
    open('data', 'rb').read()
    os.read(wait, 1)  # With the first of them the namespace ends.
    os._exit(0)
os.waitpid(os.posix_spawn('/usr/bin/env', ['env', 'cksum', 'data'], os.environ), 0)
os.close(go)
os.wait()
";
    run(&["python3", "-c", ways], "2 processes were");
}

fn all_observed() {
    let lab = Lab::new();
    lab.data("data", 8);
    let ways = "import os, subprocess
for _ in range(20):
    os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)
    subprocess.run(['sh', '-c', 'env cksum data; no-such-command; true'], stderr=subprocess.DEVNULL)
    subprocess.run(['true'], close_fds=False)
    os.system('true')
try:
    os.execv('/no/such/program', ['it'])
except OSError:
    pass
";
    let outcome = lab.run(&["python3", "-c", ways]);
    assert!(outcome.output.status.success(), "{outcome:?}");
    assert!(!outcome.says("not observed"), "{outcome:?}");
}

fn closed() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 8);
    let close = "import os; os.closerange(3, 1024); \
                 fd = os.open('data', os.O_RDONLY); print(fd, len(os.pread(fd, 4096, 8192))); \
                 os.execv('./scatter', ['scatter', '500', '100', 'data'])";
    twice(&lab, &["python3", "-c", close]);
}

fn reads_nothing() {
    let lab = Lab::new();
    lab.data("data", 8);
    twice(&lab, &["sh", "-c", ":"]);
}

fn nearly_whole() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 64);
    lab.data("other", 1);
    let script = "head -c 4096 other > /dev/null; exec ./scatter 40000 0 data";
    let command = &["sh", "-c", script];
    lab.cold(&["data", "other"]);
    assert_eq!(lab.run(command).mode(), "recorded");
    let _held = lab.held(&["data", "scatter"]);
    lab.cold(&["other"]);
    let hot = lab.run(command);
    hot.assert_as(&lab.plain(command));
    check!(hot.reason() == "all of it was in memory already", "{hot:?}");
}

fn not_recorded() {
    let lab = Lab::new();
    lab.data("data", 8);
    for (options, reason) in [
        (
            &["--no-record"][..],
            "nothing is known of cksum, and it was not to be recorded",
        ),
        (
            &["--no-prefetch", "--no-record"],
            "neither prefetching nor recording was asked for",
        ),
    ] {
        lab.cold(&["data"]);
        let outcome = lab.run_with(options, &["cksum", "data"]);
        // Bytes read before the observer looked may be reported after the reason.
        assert_eq!(outcome.mode(), "aside");
        assert!(outcome.reason().starts_with(reason), "{outcome:?}");
    }
    assert!(lab.records().is_empty());
}

fn unwritten() {
    let lab = Lab::new();
    let run = |options: &[&str]| {
        let place = ["--json", "/nonexistent/x", "--", "true"];
        let output = lab.foreread(&[&["run"], options, &place].concat());
        assert!(output.status.success());
        text(&output.stderr)
    };
    let said = "no account was written: /nonexistent/x: No such file or directory\n";
    assert_eq!(run(&["-q"]), format!("foreread: {said}"));
    let line = run(&[]);
    assert!(line.ends_with(&format!("; {said}")), "{line}");
    assert_eq!(line.lines().count(), 1);
    let full = run(&["--explain"]);
    assert!(full.ends_with(&format!("\nforeread:   {said}")), "{full}");
}

fn killed_at_once() {
    const ROUNDS: usize = 20;
    let lab = Lab::new();
    // The mappings may be sampled just before the kill, and then something is recorded.
    let aside = (0..ROUNDS).find_map(|_| {
        lab.foreread(&["forget", "--all"]);
        let outcome = lab.run(&["sh", "-c", "kill -KILL $$"]);
        (outcome.mode() != "recorded").then_some(outcome)
    });
    let aside = aside.expect("a round in which nothing was seen");
    assert_eq!(
        aside.reason(),
        "sh was killed before it was seen to read a regular file"
    );
}

fn not_started() {
    let lab = Lab::new();
    lab.write("plain", "no program");
    for (name, status, said) in [
        ("no-such", 127, "no-such: No such file or directory"),
        ("./plain", 126, "./plain: Permission denied"),
        ("", 127, "'': No such file or directory"),
    ] {
        let output = lab.foreread(&["run", "--", name]);
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(text(&output.stderr), format!("foreread: {said}\n"));
    }
}

/// Checks the output of `onward` in a cold run with a record that has only its first part.
fn check_reads_ahead(lab: &Lab, how: &str) {
    lab.program("onward", &[]);
    lab.data("data", 16);
    lab.cold(&["data"]);
    let recorded = lab.run(&["./onward", "data"]);
    assert_eq!(recorded.mode(), "recorded", "{recorded:?}");
    lab.write(how, "");
    lab.cold(&["data"]);
    let output = lab.foreread(&["run", "--no-record", "--", "./onward", "data"]);
    let said = text(&output.stdout);
    // Pages read ahead may be evicted before the program looks.
    check!(said == "the kernel reads ahead\n", "{output:?}");
}

fn onward() {
    check_reads_ahead(&Lab::new(), "further");
}

fn left_behind() {
    check_reads_ahead(&Lab::new(), "killer");
}

fn direct_calls() {
    let lab = Lab::new();
    lab.program("direct", &[]);
    lab.data("data", 16);
    lab.data("seen", 16);
    // The program alone, and next to reads that are seen.
    for (command, mode) in [
        (&["./direct", "data"][..], "aside"),
        (&["sh", "-c", "cksum seen; ./direct data"], "recorded"),
    ] {
        let plain = lab.plain(command);
        lab.cold(&["data", "seen"]);
        let outcome = lab.run(command);
        outcome.assert_as(&plain);
        let unseen = outcome.account["unseen_bytes"].as_u64().unwrap_or(0);
        // Possible read-ahead, also of libraries in memory, is not counted. Pages that other processes have evicted meanwhile are read
        // twice.
        assert!(unseen >= 12 << 20, "{outcome:?}");
        check!(unseen <= 17 << 20, "{outcome:?}");
        let said = "from the device came by reads that cannot be observed";
        assert!(outcome.says(said), "{outcome:?}");
        assert!(outcome.reason().contains(said), "{outcome:?}");
        // The program's own libraries are seen, and may be recorded.
        if outcome.mode() != mode {
            assert_eq!(outcome.mode(), "recorded", "{outcome:?}");
        }
    }
    lab.cold(&["data", "seen"]);
    let explained = lab.run_with(&["--explain", "--no-prefetch"], &["./direct", "data"]);
    assert!(explained.says("unseen"), "{explained:?}");
    // In a hot run no read is unseen.
    let _held = lab.held(&["data"]);
    let hot = lab.run_with(&["--no-prefetch"], &["./direct", "data"]);
    assert!(hot.account["unseen_bytes"].is_null(), "{hot:?}");
}

/// In observed reads of every kind, read-ahead is not counted as unseen reads.
fn in_sight() {
    let lab = Lab::new();
    lab.program("scatter", &[]);
    lab.data("data", 64);
    let mapped = "import mmap
with open('data', 'rb') as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
    print(sum(m[n * 4096 * 61] for n in range(len(m) // 4096 // 61)))";
    for command in [
        &["./scatter", "500", "0", "data"][..],
        &["cksum", "data"],
        &["head", "-c", "5000000", "data"],
        &["python3", "-c", mapped],
    ] {
        lab.cold(&["data"]);
        for options in [&["--no-prefetch"][..], &[]] {
            lab.cold(&["data"]);
            let outcome = lab.run_with(options, command);
            // Pages that other processes have evicted meanwhile come from the device once more.
            check!(outcome.account["unseen_bytes"].is_null(), "{outcome:?}");
        }
    }
}
