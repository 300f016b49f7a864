//! Unusual and hostile programs: under the library each behaves as it does alone.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use foreread_plan::Kind::{Pread, Read};
use foreread_ring::{Advice, Clock, ENV, Mode, Ring};
use foreread_tests::symbols::{interposed, needed_versions, unnamed};
use foreread_tests::{Need, check, root};

use super::harness::{Stage, check_end, library, observe, observe_by};
use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "every_function_does_the_same_with_any_arguments",
        QUICK,
        &[Need::Command("readelf")],
        conforms,
    ),
    (
        "programs_with_an_older_c_library_load_it",
        QUICK,
        &[Need::Command("readelf")],
        loads_with_older,
    ),
    (
        "a_process_that_confines_itself_is_observed_no_further_than_that_allows",
        QUICK,
        &[Need::Command("cc")],
        confined,
    ),
    (
        "a_handler_needs_no_larger_stack",
        QUICK,
        &[Need::Command("cc")],
        small_stack,
    ),
    (
        "a_handler_that_jumps_out_of_an_event_costs_no_more_than_some_others",
        QUICK,
        &[Need::Command("cc")],
        jumps,
    ),
    (
        "loading_forking_and_reading_at_once_wait_for_nobody",
        QUICK,
        &[Need::Command("cc")],
        loads,
    ),
    (
        "descriptors_have_the_numbers_they_must_have",
        QUICK,
        &[Need::Command("cc")],
        numbers,
    ),
    (
        "all_memory_can_be_locked_and_no_core_holds_the_ring",
        QUICK,
        &[Need::Command("cc")],
        locked,
    ),
    (
        "limits_of_memory_are_the_programs_own",
        QUICK,
        &[Need::Command("prlimit")],
        limited,
    ),
];

/// A run under the library, or without it.
struct Run<'a> {
    name: &'static str,
    prepare: Box<dyn Fn(&mut Command) + 'a>,
}

/// The states of the ring by name.
fn rings(stage: &Stage) -> Vec<(&'static str, Ring)> {
    let made = |mode| {
        let ring = Ring::create(Clock::detect()).expect("a ring");
        ring.set_mode(mode);
        ring
    };
    let advised = made(Mode::Progress);
    advised.set_advice([(stage.data(), Advice::Random)]);
    vec![
        ("muted", made(Mode::Mute)),
        ("recording", made(Mode::Record)),
        ("keeping ahead", advised),
    ]
}

/// Checks that a command behaves in each state of the library as it does alone, each time in surroundings that `fresh` makes. Returns
/// the output of the run alone.
fn same(stage: &Stage, fresh: impl Fn(), command: impl Fn() -> Command) -> Output {
    let run = |prepare: &dyn Fn(&mut Command)| {
        fresh();
        let mut command = command();
        command
            .env_remove("LD_PRELOAD")
            .env_remove(ENV)
            .stdin(fs::File::open(stage.data()).expect("the data"));
        prepare(&mut command);
        command
            .output()
            .unwrap_or_else(|why| panic!("{command:?}: {why}"))
    };
    let plain = run(&|_| {});
    let check = |name: &str, got: Output| {
        assert_eq!(got.status, plain.status, "{name}: {got:?}");
        if got.stdout != plain.stdout {
            let (got, plain) = (text(&got.stdout), text(&plain.stdout));
            let differ = got
                .lines()
                .zip(plain.lines())
                .find(|(got, plain)| got != plain);
            let count = got
                .lines()
                .zip(plain.lines())
                .filter(|(got, plain)| got != plain);
            panic!("{name}: {} lines differ, first: {differ:#?}", count.count());
        }
    };
    let detached = Run {
        name: "without a ring",
        prepare: Box::new(|command| {
            command.env("LD_PRELOAD", library());
        }),
    };
    let dead = Ring::create(Clock::detect()).expect("a ring").env_value();
    let orphaned = Run {
        name: "after the supervisor's death",
        prepare: Box::new(move |command| {
            command.env("LD_PRELOAD", library()).env(ENV, &dead);
        }),
    };
    for Run { name, prepare } in [detached, orphaned] {
        check(name, run(&*prepare));
    }
    for (name, ring) in rings(stage) {
        fresh();
        let seen = observe_by(ring, command().get_program(), |observed| {
            observed
                .args(command().get_args())
                .stdin(fs::File::open(stage.data()).expect("the data"));
            if let Some(folder) = command().get_current_dir() {
                observed.current_dir(folder);
            }
        });
        check(name, seen.output);
    }
    plain
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A loader that lacks one glibc version that a preloaded library needs does not start the program.
fn loads_with_older() {
    let newest = needed_versions(&library()).into_iter().max();
    assert!(newest <= Some((2, 17)), "glibc {newest:?}");
}

fn conforms() {
    let source = fs::read_to_string(root().join("tests/observe/conform.c")).expect("a source");
    let uncalled = unnamed(interposed(&library()), &source);
    assert!(uncalled.is_empty(), "no call tried: {uncalled:?}");
    let stage = Stage::new();
    let program = stage.cc("conform", &["-w"]);
    let folder = stage.path("surroundings");
    let fresh = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        fs::copy(stage.data(), folder.join("data")).expect("the data");
    };
    let plain = same(&stage, fresh, || {
        let mut command = Command::new(&program);
        command.arg(folder.join("data")).current_dir(&folder);
        command
    });
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    assert!(text(&plain.stdout).lines().count() > 5000);
}

fn confined() {
    let stage = Stage::new();
    let program = stage.cc("confined", &[]);
    for how in ["filter", "raw", "threads", "strict", "counter"] {
        let plain = same(
            &stage,
            || {},
            || {
                let mut command = Command::new(&program);
                command.arg(how).arg(stage.data());
                command
            },
        );
        assert!(
            plain.status.success() && !plain.stdout.is_empty(),
            "{how}: {plain:?}"
        );
    }
    // Programs that are under a filter from their start, installed in each of three ways.
    let program = stage.cc("heir", &[]);
    for how in ["library", "own", "child"] {
        let heir = || {
            let mut command = Command::new(&program);
            command.arg(how).arg(stage.data());
            command
        };
        let plain = same(&stage, || {}, heir);
        assert_eq!(plain.status.code(), Some(7), "{how}: {plain:?}");
    }
    let program = stage.cc("confined", &[]);
    // The library's knowledge of a descriptor from before the filter suffices to see the reads from it.
    let seen = observe(&program, |command| {
        command.arg("filter").arg(stage.data());
        command.stdin(fs::File::open(stage.other()).expect("a file"));
    });
    check_end(&seen, 0);
    let reads = seen.reads(&stage.data());
    let placed = reads.iter().filter(|read| read.0 == Pread).count();
    assert_eq!(placed, 100, "{reads:?}");
    assert!(reads.contains(&(Read, 0, 10)), "{reads:?}");
    assert!(
        seen.reads(&stage.other()).is_empty(),
        "it would have been asked about"
    );
}

fn small_stack() {
    let stage = Stage::new();
    let program = stage.cc("altstack", &[]);
    let plain = same(
        &stage,
        || {},
        || {
            let mut command = Command::new(&program);
            command.arg(stage.data());
            command
        },
    );
    if plain.status.code() != Some(7) {
        // On this processor the registers may need more room than the stack has.
        eprintln!(
            "skipped: the handler does not run on 8192 bytes here: {:?}",
            plain.status
        );
    }
}

/// All symbols are bound at the program's start, because a jump out of the loader would itself harm a program.
fn jumps() {
    let stage = Stage::new();
    let program = stage.cc("longjmp", &["-Wl,-z,now"]);
    let seen = observe(&program, |command| {
        command.arg(stage.data());
        command.current_dir(stage.data().parent().expect("a folder"));
    });
    assert_eq!(seen.output.status.code(), Some(0), "{:?}", seen.output);
    let reads = seen.reads(&stage.data());
    let last: Vec<_> = reads.iter().rev().take_while(|read| read.2 == 3).collect();
    let (last, lost) = (last.len(), seen.lost);
    check!(last >= 100, "{last} of the last 200 reads, {lost} lost");
}

fn loads() {
    let stage = Stage::new();
    let program = stage.cc("loads", &["-ldl"]);
    let object = stage.path("constructor.so");
    let mut compile = Command::new("cc");
    let source = super::harness::source("loads.c");
    compile.args(["-DCONSTRUCTOR", "-shared", "-fPIC", "-pthread", "-o"]);
    stage.build(compile.arg(&object).arg(source));
    let plain = same(
        &stage,
        || {},
        || {
            let mut command = Command::new("timeout");
            command.arg("100").arg(&program).arg(stage.data());
            command.current_dir(stage.data().parent().expect("a folder"));
            command
        },
    );
    assert!(plain.status.success(), "{plain:?}");
}

fn numbers() {
    let stage = Stage::new();
    let program = stage.cc("numbers", &[]);
    let plain = same(
        &stage,
        || {},
        || {
            let mut command = Command::new(&program);
            command.arg(stage.data());
            command
        },
    );
    assert_eq!(text(&plain.stdout), "0\n");
}

fn locked() {
    let stage = Stage::new();
    let program = stage.cc("locked", &[]);
    let run = || {
        let mut command = Command::new(&program);
        command.arg(stage.data());
        command
    };
    same(&stage, || {}, run);
    let seen = observe(&program, |command| {
        command.arg(stage.data());
    });
    let sizes = text(&seen.output.stderr);
    let sizes: Vec<u64> = sizes
        .split_whitespace()
        .map(|n| n.parse().expect("KiB"))
        .collect();
    // The memory that all threads share, and the rings of two threads.
    assert!((512..1200).contains(&sizes[0]), "{sizes:?}");
    assert_eq!(sizes[1], 0, "in a core file");
}

fn limited() {
    let stage = Stage::new();
    let truth = PathBuf::from("/bin/true");
    for limit in [
        "--as=3000000",
        "--as=4000000",
        "--data=600000",
        "--stack=200000",
    ] {
        let plain = same(
            &stage,
            || {},
            || {
                let mut command = Command::new("prlimit");
                command.arg(limit).arg(&truth);
                command
            },
        );
        if !plain.status.success() {
            eprintln!(
                "skipped: {} does not start with {limit} here",
                truth.display()
            );
        }
    }
}
