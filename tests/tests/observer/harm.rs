//! Programs unharmed, whatever happens to the supervisor or to the programs themselves.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use foreread_ring::{Advice, Clock, ENV, Mode, Ring};
use foreread_tests::{Need, check};

use super::harness::{Stage, check_end, library, observe, observe_in, preloaded};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_ring_that_is_not_there_or_not_one_changes_nothing",
        QUICK,
        &[Need::Command("cc")],
        invalid,
    ),
    (
        "a_supervisor_that_never_reads_changes_nothing",
        ALL,
        &[Need::Command("cc")],
        unread,
    ),
    (
        "a_supervisor_killed_in_mid_run_changes_nothing",
        QUICK,
        &[Need::Command("cc")],
        orphaned,
    ),
    (
        "a_program_killed_in_mid_write_costs_its_own_events_only",
        QUICK,
        &[Need::Command("cc")],
        killed,
    ),
    (
        "the_library_needs_nothing_but_the_c_library",
        ALL,
        &[Need::Command("readelf")],
        needs,
    ),
    (
        "the_library_holds_nothing_that_is_not_loaded",
        ALL,
        &[Need::Command("readelf")],
        holds,
    ),
    (
        "a_muted_program_reports_nothing",
        ALL,
        &[Need::Command("cc")],
        muted,
    ),
    (
        "a_static_program_runs_as_ever",
        ALL,
        &[Need::Command("cc")],
        unlinked,
    ),
    (
        "a_cancelled_thread_is_unwound_through_the_hooks",
        ALL,
        &[Need::Command("cc")],
        cancelled,
    ),
    (
        "a_thread_that_cancels_itself_ends_at_its_next_read",
        ALL,
        &[Need::Command("cc")],
        cancels_itself,
    ),
    (
        "a_signal_handler_may_read_at_any_time",
        ALL,
        &[Need::Command("cc")],
        signalled,
    ),
    (
        "advice_turns_the_kernels_read_ahead_off_and_is_taken_back",
        ALL,
        &[Need::Command("fincore"), Need::ReadAhead],
        advised,
    ),
];

/// With this variable the test program holds a ring and polls it until it is killed.
pub const HOLD: &str = "FOREREAD_TEST_HOLD";

const ROUNDS: &str = "300000";

/// The supervisor of the test that kills it.
pub fn hold() -> ! {
    let mut ring = Ring::create(Clock::detect()).expect("a ring");
    ring.set_mode(Mode::Record);
    println!("{}", ring.env_value());
    loop {
        ring.poll(&mut |_| true);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs the reading program with this value of the ring's variable; compares it with a plain run.
fn compare(stage: &Stage, program: &Path, ring: &str) {
    let plain = run(Command::new(program).args([ROUNDS.as_ref(), stage.data().as_os_str()]));
    assert_eq!(plain.status.code(), Some(5));
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library()).env(ENV, ring);
    let began = Instant::now();
    let observed = run(command.args([ROUNDS.as_ref(), stage.data().as_os_str()]));
    assert_eq!(observed, plain, "with the ring {ring}");
    // The program waits for nothing.
    let took = began.elapsed();
    check!(took < Duration::from_secs(10), "{took:?}");
}

fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn invalid() {
    let stage = Stage::new();
    let program = stage.cc("endless", &[]);
    let ring = Ring::create(Clock::Monotonic).expect("a ring");
    let value = ring.env_value();
    let (token, path) = value.split_at(16);
    // A file of the ring's size that is no ring.
    let foreign = stage.path("foreign");
    let len = std::fs::metadata(path).expect("the ring").len();
    std::fs::File::create(&foreign)
        .and_then(|file| file.set_len(len))
        .expect("a sparse file");
    let pipe = stage.path("pipe");
    stage.build(Command::new("mkfifo").arg(&pipe));
    let data = stage.data();
    let other = if token.starts_with('0') { "1" } else { "0" };
    let another = format!("{other}{}", &token[1..]);
    for value in [
        String::new(),
        token.into(),
        path.into(),
        // A ring's path with a wrong token.
        format!("{another}{path}"),
        format!("{token}/does/not/exist"),
        format!("{token}/"),
        format!("{token}/dev/tty"),
        format!("{token}/dev/zero"),
        format!("{token}{}", pipe.display()),
        format!("{token}{}", data.display()),
        format!("{token}{}", foreign.display()),
    ] {
        ring.set_mode(Mode::Record);
        compare(&stage, &program, &value);
        assert!(ring.drained() && ring.lost() == 0, "{value} was taken");
    }
    compare(&stage, &program, &value);
    assert!(!ring.drained(), "the right one was not taken");
}

fn unread() {
    let stage = Stage::new();
    let program = stage.cc("endless", &[]);
    for mode in [Mode::Mute, Mode::Progress, Mode::Record] {
        let ring = Ring::create(Clock::detect()).expect("a ring");
        ring.set_mode(mode);
        compare(&stage, &program, &ring.env_value());
        assert_eq!(
            ring.lost() == 0,
            mode == Mode::Mute,
            "{mode:?}: {} lost",
            ring.lost()
        );
    }
}

fn orphaned() {
    let stage = Stage::new();
    let program = stage.cc("endless", &[]);
    let rounds = "3000000";
    let plain = run(Command::new(&program).args([rounds.as_ref(), stage.data().as_os_str()]));
    let mut holder = Command::new(std::env::current_exe().expect("this program"))
        .env(HOLD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program");
    let mut ring = String::new();
    let out = holder.stdout.take().expect("its output");
    BufReader::new(out)
        .read_line(&mut ring)
        .expect("the ring's name");
    let child = Command::new(&program)
        .args([rounds.as_ref(), stage.data().as_os_str()])
        .env("LD_PRELOAD", library())
        .env(ENV, ring.trim())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    std::thread::sleep(Duration::from_millis(100));
    holder.kill().expect("the supervisor");
    holder.wait().expect("the supervisor");
    let began = Instant::now();
    let observed = child.wait_with_output().expect("the program's output");
    assert_eq!(observed, plain);
    let took = began.elapsed();
    check!(took < Duration::from_secs(20), "{took:?}");
    // A program that starts after the supervisor's end.
    compare(&stage, &program, ring.trim());
}

fn killed() {
    let stage = Stage::new();
    let program = stage.cc("endless", &[]);
    let mut ring = Ring::create(Clock::detect()).expect("a ring");
    ring.set_mode(Mode::Progress);
    let mut events = 0;
    // More programs than there are rings.
    for _ in 0..130 {
        let mut child = preloaded(&ring, &program);
        let mut child = child
            .args(["100000000".as_ref(), stage.data().as_os_str()])
            .spawn()
            .expect("a child");
        let before = events;
        let began = Instant::now();
        while events < before + 100 {
            ring.poll(&mut |_| {
                events += 1;
                true
            });
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "nothing reported"
            );
        }
        child.kill().expect("the child");
        child.wait().expect("the child");
    }
    ring.poll(&mut |_| true);
    assert!(ring.drained());
}

fn needs() {
    let output = run(Command::new("readelf").arg("-d").arg(library()));
    let text = String::from_utf8_lossy(&output.stdout);
    let needed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .collect();
    assert!(!needed.is_empty(), "{text}");
    let known = |line: &&str| line.contains("[libc.so.6]") || line.contains("[ld-linux");
    assert!(needed.iter().all(known), "{needed:?}");
}

/// A small library is read faster where a program starts cold, because reading ahead brings all of its file.
fn holds() {
    let output = run(Command::new("readelf").arg("-SW").arg(library()));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(".dynsym"), "{text}");
    let names = [".symtab", ".debug"];
    let is_left_out = |name: &&str| !text.contains(name);
    assert!(names.iter().all(is_left_out), "{text}");
}

fn muted() {
    let stage = Stage::new();
    let program = stage.cc("read", &[]);
    let seen = observe_in(Mode::Mute, program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    assert_eq!(seen.events, []);
}

fn unlinked() {
    let stage = Stage::new();
    let program = stage.cc("static", &["-static"]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 6);
    assert_eq!(seen.output.stdout, b"0000000\n");
    assert_eq!(seen.events, []);
}

fn cancelled() {
    let stage = Stage::new();
    let program = stage.cc("cancel", &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    assert_eq!(seen.reads(&stage.data()).len(), 1);
}

fn cancels_itself() {
    let stage = Stage::new();
    let program = stage.cc("cancel_self", &[]);
    let plain = run(Command::new(&program).arg(stage.data()));
    assert_eq!(plain.status.code(), Some(0));
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    assert_eq!(seen.reads(&stage.data()).len(), 1000);
}

fn signalled() {
    let stage = Stage::new();
    let program = stage.cc("signals", &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    let errors = String::from_utf8_lossy(&seen.output.stderr);
    assert_eq!(
        seen.output.status.code(),
        Some(0),
        "{:?} {errors}",
        seen.output.status
    );
    // A handler's reads are lost if they come while an event is being written, and a supervisor without processor time may lose others;
    // no event may be damaged by that.
    let mut own = 0;
    for (_, offset, len) in seen.reads(&stage.data()) {
        match len {
            64 => {
                assert!(offset < 1000);
                own += 1;
            }
            16 => assert_eq!(offset, 4096),
            _ => panic!("{len} bytes at {offset}"),
        }
    }
    assert!(own + seen.lost >= 200_000, "{own} seen, {} lost", seen.lost);
}

fn advised() {
    let stage = Stage::new();
    let program = stage.cc("advice", &[]);
    let data = stage.data();
    std::fs::write(&data, vec![1; 8 << 20]).expect("the data file");
    let evict = || {
        let file = std::fs::File::open(&data).expect("the data file");
        file.sync_all().expect("written back");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("evicted");
    };
    let resident = || {
        let output = run(Command::new("fincore")
            .args(["-n", "-o", "PAGES"])
            .arg(&data));
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim()
            .parse::<u64>()
            .unwrap_or_else(|_| panic!("{output:?}"))
    };
    let ring = Ring::create(Clock::detect()).expect("a ring");
    ring.set_mode(Mode::Progress);
    assert_eq!(ring.set_advice([(&data, Advice::Random)]), 1);
    evict();
    let mut child = preloaded(&ring, &program)
        .arg(&data)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut input = child.stdin.take().expect("its input");
    let mut output = child.stdout.take().expect("its output");
    let mut word = [0; 7];
    output.read_exact(&mut word).expect("its first word");
    let first = resident();
    check!(first == 1, "{first} pages: the kernel reads ahead");
    ring.give_up(true);
    evict();
    input.write_all(b"\n").expect("its input");
    output.read_exact(&mut word[..5]).expect("its second word");
    let second = resident();
    check!(second > 2, "{second} pages: the kernel does not read ahead");
    input.write_all(b"\n").expect("its input");
    assert!(child.wait().is_ok_and(|status| status.success()));
}
