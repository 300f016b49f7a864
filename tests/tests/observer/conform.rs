//! One suite for every observer: the same programs, seen by `foreread run` and by the daemon, through each of their observers.
//!
//! [`cases`] has the programs and the events of each, [`sight`] the events that an observer does not see, with the reason. A case must
//! match, or its difference must be in that list. For `foreread run` the record is compared as well.
//!
//! Data flow: [`CASES`] → a program that runs and stops before its end → [`Watch`] → words → compared with [`Sight::delivered`].

mod cases;
mod seen;
mod sight;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use foreread_ebpf as ebpf;
use foreread_fanotify::Fanotify;
use foreread_observe::{OwnPrograms, Reports, Wanted, now};
use foreread_plan::Kind;
use foreread_plan::format::Reader;
use foreread_ring::{Clock, Ring};
use foreread_tests::suite::{ALL, QUICK, Test};
use foreread_tests::{Need, check, eventually, root, try_compiled};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::harness::{Stage, library, source};
use super::recorded::record;
use cases::{CASES, Case};
use seen::Watch;
use sight::{Delivers, SIGHTS, Sight};

pub const TESTS: &[Test] = &[
    (
        "foreread_run_sees_by_the_library_what_programs_do",
        QUICK,
        &[Need::Command("cc")],
        || conform("run", "preload"),
    ),
    (
        "the_daemon_sees_by_fanotify_what_programs_do",
        QUICK.one_at_a_time(),
        &[Need::Command("cc"), Need::Fanotify],
        || conform("daemon", "fanotify"),
    ),
    (
        "the_daemon_sees_by_the_library_what_programs_do",
        ALL,
        &[Need::Command("cc"), Need::Fanotify],
        || conform("daemon", "preload"),
    ),
    (
        "records_of_the_library_have_what_programs_read",
        ALL,
        &[Need::Command("cc")],
        || records("preload"),
    ),
    (
        "what_observers_do_not_see_stands_in_their_document",
        QUICK,
        &[],
        documented,
    ),
];

/// The tests that need eBPF.
pub const EBPF: &[Test] = &[
    (
        "foreread_run_sees_by_ebpf_what_programs_do",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        || conform("run", "ebpf"),
    ),
    (
        "the_daemon_sees_by_ebpf_what_programs_do",
        QUICK.one_at_a_time(),
        &[Need::Ebpf, Need::Command("cc")],
        || conform("daemon", "ebpf"),
    ),
    (
        "records_of_ebpf_have_what_programs_read",
        ALL,
        &[Need::Ebpf, Need::Command("cc")],
        || records("ebpf"),
    ),
];

/// The exit status of a program that lacks something on this machine.
const MISSING: i32 = 99;

fn sight(door: &str, observer: &str) -> &'static Sight {
    let mut sights = SIGHTS.iter();
    let found = sights.find(|sight| sight.door == door && sight.observer == observer);
    found.expect("an observer at a door")
}

impl Sight {
    /// Opens the observer.
    fn open(&self) -> Watch {
        match (self.door, self.observer) {
            ("run", "preload") => {
                let ring = Ring::create(Clock::detect()).expect("a ring");
                let mut watch = Watch::of_ring(Reports::new(ring, now()));
                watch.observer.want(Wanted::Everything);
                watch
            }
            ("run", _) => {
                let kernel = ebpf::observe(std::process::id(), ebpf::RING, now());
                let mut watch = Watch::of_kernel(kernel.expect("eBPF"));
                watch.observer.want(Wanted::Everything);
                watch
            }
            (_, "ebpf") => Watch::of_kernel(ebpf::system::observe().expect("eBPF")),
            (_, "fanotify") => Watch::of_kernel(Fanotify::new(false).expect("fanotify")),
            _ => Watch::of_kernel(OwnPrograms::begin(false).expect("a ring")),
        }
    }

    /// True if the case's program can be tried.
    fn tries(&self, case: &Case) -> bool {
        let is_outside = matches!(
            self.otherwise(case.name),
            Some(one) if matches!(one.delivers, Delivers::Nothing)
        );
        // A loader other than glibc's refuses the library.
        !(self.observer == "preload" && is_outside && case.compiler == "musl-gcc")
    }
}

/// Evicts a file from memory.
fn make_cold(path: &Path) {
    let file = File::open(path).expect("a file");
    file.sync_all().expect("a disk");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
}

/// Builds the program of a case outside of the folder that it uses; `None` if it cannot be built.
fn built(case: &Case) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = match case.program.split_once('.') {
        Some(_) => case.program.to_owned(),
        None => format!("{}.c", case.program),
    };
    let program = folder.path().join(case.program);
    let options = [&["-O1", "-w", "-pthread"], case.options].concat();
    let built = try_compiled(case.compiler, &options, &source(&file), &program);
    if let Err(why) = built {
        let why = why.lines().next().unwrap_or_default().to_owned();
        eprintln!("skipped: {}: {why}", case.name);
        return None;
    }
    Some((folder, program))
}

/// Gives a command the arguments and the standard input in a case's words.
fn given(command: &mut Command, words: &str, stage: &Stage) {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // A shell would take its folder's path from PWD.
    command.current_dir(stage.path("")).env_remove("PWD");
    for word in words.split(' ') {
        if let Some(name) = word.strip_prefix("<@") {
            command.stdin(File::open(stage.path(name)).expect("a file"));
        } else if let Some(name) = word.strip_prefix('@') {
            command.arg(stage.path(name));
        } else {
            command.arg(word);
        }
    }
}

/// Runs the program of a case; returns its process and the events delivered of it. The observer is polled all the time, and before the
/// program's end.
fn run(case: &Case, sight: &Sight, watch: &mut Watch) -> Option<(u32, Vec<String>)> {
    let (_folder, program) = built(case)?;
    let stage = Stage::new();
    let data = fs::metadata(stage.data()).expect("a file");
    if case.does.contains("fetch data") {
        make_cold(&stage.data());
    }
    let mut command = Command::new(&program);
    command.env("FOREREAD_TEST_HOLD", std::process::id().to_string());
    if sight.observer == "preload" {
        command.env("LD_PRELOAD", library()).stderr(Stdio::null());
        command.envs(watch.observer.environment());
    }
    given(&mut command, case.words, &stage);
    // The loop below waits for the program each time it stops.
    let pid = Pid::from_child(&command.spawn().expect("the program"));
    loop {
        watch.poll();
        let changed = waitpid(Some(pid), WaitOptions::UNTRACED | WaitOptions::NOHANG);
        match changed.expect("our child") {
            Some((_, status)) if status.stopped() => {
                watch.poll();
                kill_process(pid, Signal::CONT).expect("our child");
            }
            Some((_, status)) if status.exit_status() == Some(MISSING) => {
                eprintln!("skipped: {} is not to be had here", case.name);
                return None;
            }
            Some((_, status)) => {
                assert_eq!(status.exit_status(), Some(0), "{}", case.name);
                break;
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    let at = (data.dev(), data.ino());
    let pid = pid.as_raw_pid().unsigned_abs();
    let delivered = watch.delivered(pid, &stage.path(""), at, case.does);
    Some((pid, delivered))
}

/// True if every word of `part` is in `whole`, in the same order.
fn is_part(part: &[String], whole: &[String]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|word| whole.any(|other| other == word))
}

fn conform(door: &str, observer: &str) {
    let sight = sight(door, observer);
    let mut watch = sight.open();
    let mut ends = Vec::new();
    for case in CASES.iter().filter(|case| sight.tries(case)) {
        if door == "run" {
            watch = sight.open();
        }
        let Some((pid, mut delivered)) = run(case, sight, &mut watch) else {
            continue;
        };
        if observer == "fanotify" {
            // Successive equal opens may be one event if the observer is not polled in between.
            delivered.dedup();
        }
        let mut expected = vec![format!("begin {}", case.program)];
        expected.extend(sight.delivered(case.name, case.does));
        let otherwise = sight.otherwise(case.name).map(|one| one.delivers);
        let is_right = match otherwise {
            Some(Delivers::Nothing) => delivered.is_empty(),
            Some(Delivers::Part) => is_part(&delivered, &expected),
            _ => delivered == expected,
        };
        check!(
            is_right,
            "{door}, {observer}, {}: {}, not {}",
            case.name,
            delivered.join(", "),
            expected.join(", ")
        );
        if !delivered.is_empty() && door == "daemon" {
            ends.push(pid);
        }
    }
    eventually("all ends are delivered", || {
        ends.iter().all(|pid| watch.has_ended(*pid))
    });
}

/// The record's accesses to files in the stage, as words.
fn reads(stage: &Stage) -> Vec<String> {
    let Ok(mut record) = Reader::open(&stage.path("kept.fr")) else {
        // There is no record if nothing was to be recorded.
        return Vec::new();
    };
    let files = record.files().clone();
    let mut words = Vec::new();
    for access in record.accesses().map(|access| access.expect("an access")) {
        let path = files.get(&access.file).map(|meta| meta.path.as_path());
        let name = path.and_then(|path| path.strip_prefix(stage.path("")).ok());
        if let Some(name) = name
            && access.kind.reads()
            && access.kind != Kind::Touch
        {
            let (verb, at) = (access.kind.name(), access.extent);
            words.push(format!(
                "{verb} {} {}+{}",
                name.display(),
                at.offset,
                at.len
            ));
        }
    }
    words
}

fn records(observer: &str) {
    let sight = sight("run", observer);
    for case in CASES {
        let otherwise = sight.otherwise(case.name).map(|one| one.delivers);
        if matches!(otherwise, Some(Delivers::Nothing)) {
            continue;
        }
        let Some((_folder, program)) = built(case) else {
            continue;
        };
        let stage = Stage::new();
        // No observer looks before the program's end, so the program must not stop.
        let words = case.words.trim_start_matches("hold ");
        let output = record(&stage, observer, &program, |command| {
            given(command, words, &stage);
        });
        if output.status.code() == Some(MISSING) {
            eprintln!("skipped: {} is not to be had here", case.name);
            continue;
        }
        assert!(output.status.success(), "{}: {output:?}", case.name);
        let mut expected = sight.delivered(case.name, case.does);
        let is_read = |word: &String| word.contains('+') && !word.starts_with("touch");
        expected.retain(is_read);
        let kept = reads(&stage);
        check!(
            kept == expected,
            "{observer}, {}: {kept:?}, not {expected:?}",
            case.name
        );
    }
}

fn documented() {
    let text = fs::read_to_string(root().join("docs/observers.md")).expect("the document");
    let rows: Vec<String> = SIGHTS.iter().flat_map(Sight::rows).collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !text.contains(*row)).collect();
    let missing: Vec<&str> = missing.into_iter().map(String::as_str).collect();
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    for sight in SIGHTS {
        for case in sight.cases.iter().flat_map(|one| one.cases) {
            assert!(names.contains(case), "{case} is no case");
        }
    }
    // The document has no other rows.
    let doors = ["| run | ", "| daemon | "];
    let is_row = |line: &&str| doors.iter().any(|door| line.starts_with(door));
    let written = text.lines().filter(is_row).count();
    assert_eq!(written, rows.len(), "rows of what is not seen");
}
