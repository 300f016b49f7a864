//! A user's own daemon, without privileges: programs report to it through the preload library.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use foreread_tests::{Need, eventually, foreread, text};
use rustix::process::Signal;

use super::Place;
use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "a_user_without_rights_has_own_programs_seen_and_their_files_fetched",
        ALL,
        &[Need::Fanotify, Need::Nobody],
        a_user_without_rights_has_own_programs_seen_and_their_files_fetched,
    ),
    (
        "a_daemon_that_sees_nothing_sleeps",
        ALL,
        &[Need::Fanotify, Need::Nobody],
        a_daemon_that_sees_nothing_sleeps,
    ),
    (
        "programs_outlive_a_daemon_that_is_killed",
        ALL,
        &[Need::Fanotify, Need::Nobody],
        programs_outlive_a_daemon_that_is_killed,
    ),
    (
        "what_a_full_ring_has_no_room_for_is_counted",
        ALL,
        &[Need::Fanotify, Need::Nobody, Need::Command("python3")],
        what_a_full_ring_has_no_room_for_is_counted,
    ),
    (
        "a_run_in_a_shell_that_reports_to_a_daemon_has_a_ring_of_its_own",
        ALL,
        &[Need::Fanotify, Need::Nobody],
        a_run_in_a_shell_that_reports_to_a_daemon_has_a_ring_of_its_own,
    ),
];

/// The commands that make a shell's programs report to this daemon.
fn environment(place: &Place) -> String {
    place.said(&["daemon", "env"])
}

/// The user's shell, with these commands before the script.
fn shell(place: &Place, environment: &str, script: &str) -> Command {
    let mut command = place.lab.command("sh");
    command.args(["-c", &format!("{environment}\n{script}")]);
    command
}

/// Standard output of a script, which must succeed without an error message.
fn done(output: Output) -> String {
    let complaints = text(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{complaints}"
    );
    text(&output.stdout)
}

fn ran(place: &Place, environment: &str, script: &str) -> String {
    done(shell(place, environment, script).output().expect("a shell"))
}

fn a_user_without_rights_has_own_programs_seen_and_their_files_fetched() {
    let place = Place::of_nobody();
    let names: Vec<String> = (0..10).map(|number| format!("file{number}")).collect();
    for name in &names {
        // Small enough that the first read reads the whole file. In a longer file the rest counts as read a second later, and until then
        // nothing beyond it is fetched.
        place.lab.write(name, vec![b'x'; 100_000]);
    }
    let running = place.running();
    assert_eq!(place.status()["observer"], "preload");
    let environment = environment(&place);
    // The user's own preloads are kept, and no library is named twice.
    let asked = format!(
        "{} daemon env --socket {}",
        foreread().display(),
        place.socket().display()
    );
    assert_eq!(ran(&place, &environment, &asked), environment);
    let read = |environment: &str, names: &[String]| {
        // The shell continues, because predictions for an ended process are dropped.
        let script = format!("cat {} >/dev/null; sleep 0.3", names.join(" "));
        ran(&place, environment, &script)
    };
    read(&environment, &names);
    eventually("the programs are seen", || {
        place.status()["programs"].to_string().contains("65534")
    });
    running.signal(Signal::TERM);
    running.end();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    eventually("a file that nobody has opened is fetched", || {
        let end = |running: super::Running| {
            running.signal(Signal::TERM);
            running.end();
        };
        let running = place.running();
        let environment = self::environment(&place);
        (0..4).for_each(|_| drop(read(&environment, &names)));
        end(running);
        // A daemon that has requested a file assumes for a while that it is in memory; a new daemon has requested none.
        let running = place.running();
        let environment = self::environment(&place);
        place.lab.cold(&all);
        read(&environment, &names[..4]);
        let cached = place.lab.cached(&names[4]);
        end(running);
        cached > 0
    });
}

fn a_daemon_that_sees_nothing_sleeps() {
    let place = Place::of_nobody();
    let running = place.running();
    let slept = || -> u64 {
        let path = format!("/proc/{}/status", running.0.id());
        let status = std::fs::read_to_string(path).expect("our child");
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.expect("a count").trim().parse().expect("a number")
    };
    // Its pauses grow from 20 ms to 160 ms.
    std::thread::sleep(Duration::from_secs(1));
    let (began, before) = (Instant::now(), slept());
    std::thread::sleep(Duration::from_secs(3));
    let (often, time) = (slept() - before, began.elapsed());
    assert!(
        u128::from(often) < time.as_millis() / 40,
        "{often} times in {time:?}"
    );
    running.signal(Signal::TERM);
    running.end();
}

fn programs_outlive_a_daemon_that_is_killed() {
    let place = Place::of_nobody();
    place.lab.write("file", "one line\n");
    let running = place.running();
    let environment = environment(&place);
    let script = "cat /dev/null; read x; for i in 1 2 3 4 5 6 7 8 9; do cat file; done; while read y; do :; done <file; cat file";
    let mut program = shell(&place, &environment, script)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    eventually("a program of the shell is seen", || {
        place.status()["events"].as_u64() > Some(0)
    });
    running.signal(Signal::KILL);
    assert!(!running.end().status.success());
    let mut input = program.stdin.take().expect("a pipe");
    input.write_all(b"go on\n").expect("it reads");
    drop(input);
    let output = program.wait_with_output().expect("our child");
    assert_eq!(done(output), "one line\n".repeat(10));
    assert_eq!(ran(&place, &environment, "cat file"), "one line\n");
    // A newly started daemon has another ring.
    let _again = place.running();
    let anew = self::environment(&place);
    assert_ne!(anew, environment);
    let before = place.status()["events"].clone();
    assert_eq!(ran(&place, &environment, "cat file"), "one line\n");
    assert_eq!(place.status()["events"], before, "of the old environment");
    eventually("programs of the new environment are seen", || {
        ran(&place, &anew, "cat file");
        place.status()["events"] != before
    });
}

fn what_a_full_ring_has_no_room_for_is_counted() {
    let place = Place::of_nobody();
    let file = place.lab.write("file", "one line\n");
    let running = place.running();
    let environment = environment(&place);
    running.signal(Signal::STOP);
    let python = "import os\nfor i in range(20000): os.close(os.open('file', os.O_RDONLY))";
    ran(&place, &environment, &format!("python3 -c \"{python}\""));
    running.signal(Signal::CONT);
    eventually("losses are counted", || {
        let lost = place.status()["lost"].to_string();
        lost.contains("full ring")
    });
    eventually("what comes after is seen", || {
        ran(&place, &environment, "cat file");
        // The request makes the daemon answer; the prediction does not matter.
        place.predicted(&file);
        place.status()["programs"].to_string().contains("cat")
    });
}

fn a_run_in_a_shell_that_reports_to_a_daemon_has_a_ring_of_its_own() {
    let place = Place::of_nobody();
    place.lab.data("file", 4);
    let _running = place.running();
    let environment = environment(&place);
    let script = format!(
        "{} run --observer preload -- cat file >/dev/null",
        foreread().display()
    );
    let output = shell(&place, &environment, &script)
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record = place.lab.record();
    let shown = place.lab.foreread(&["show", &record.display().to_string()]);
    assert!(
        text(&shown.stdout).contains("file"),
        "{}",
        text(&shown.stdout)
    );
}
