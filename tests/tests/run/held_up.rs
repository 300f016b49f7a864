//! A file system that does not answer delays neither the program's start nor its end, nor any signal.
//!
//! It does not answer for the whole run: if foreread waited for it, the run would not end.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Instant;

use foreread_backend::PageCache;
use foreread_engine::{Config, Engine, Session};
use foreread_plan::format::{Reader, RecordFile};
use foreread_plan::{
    Access, Advice, Extent, FileId, FileMeta, Kind, PAGE, Summary, ThreadId, ThreadMeta,
};
use foreread_sources::Replay;
use foreread_tests::silent::{FILE, Silent};
use foreread_tests::{Lab, Need, check, eventually, finish, foreread, start, text};
use rustix::process::{Pid, Signal, kill_process};

use foreread_tests::suite::{QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_store_that_does_not_answer_holds_nothing_up",
        QUICK,
        &[Need::Fuse],
        store,
    ),
    (
        "a_preload_library_that_does_not_answer_leaves_the_program_unobserved",
        QUICK,
        &[Need::Fuse],
        library,
    ),
    (
        "a_file_at_the_head_of_the_plan_that_does_not_answer_holds_nothing_up",
        QUICK,
        &[Need::Fuse],
        head,
    ),
    (
        "an_engine_goes_on_fetching_while_a_file_system_does_not_answer",
        QUICK,
        &[Need::Fuse],
        engine,
    ),
    (
        "signals_reach_the_program_while_foreread_is_held_up",
        QUICK,
        &[Need::Fuse],
        signals,
    ),
    (
        "an_account_that_cannot_be_written_yet_is_not_waited_for",
        QUICK,
        &[Need::Fuse],
        account,
    ),
    (
        "a_record_that_cannot_be_written_yet_is_not_waited_for",
        QUICK,
        &[Need::Fuse],
        record,
    ),
    (
        "a_file_that_the_program_wrote_and_that_does_not_answer_is_not_waited_for",
        QUICK,
        &[Need::Fuse],
        written,
    ),
    (
        "a_working_directory_that_does_not_answer_holds_nothing_up",
        QUICK,
        &[Need::Fuse],
        working_directory,
    ),
    (
        "what_foreread_could_not_wait_for_is_done_once_it_can_be",
        QUICK,
        &[Need::Fuse],
        done_later,
    ),
    (
        "nobody_waits_for_a_pipe_because_foreread_is_held_up",
        QUICK,
        &[Need::Fuse],
        pipes,
    ),
    (
        "an_account_goes_to_the_descriptors_that_the_user_gave",
        QUICK,
        &[],
        given_descriptors,
    ),
];

const COMMAND: &[&str] = &["sh", "-c", "read line < /etc/passwd; echo out; exit 3"];

fn silent(lab: &Lab) -> Silent {
    Silent::mount(&lab.path("mnt")).expect("tests that need FUSE are run where there is FUSE")
}

/// `foreread` with these arguments and this program.
fn command(lab: &Lab, args: &[&str], program: &[&str]) -> Command {
    let mut command = lab.command(foreread());
    command.args(args).arg("--").args(program);
    command
}

/// Checks that a run behaves like the program alone, and that it reports what was not waited for.
#[track_caller]
fn assert_told(output: &Output, what: &str) {
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "out\n", "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("not waited for"), "{said}");
    // A busy disk may have held up an earlier step.
    check!(said.contains(what), "{said}");
}

fn store() {
    let lab = Lab::new().with_home(Path::new("mnt/home"));
    let mount = silent(&lab);
    mount.fall_silent();
    for options in [&["run"][..], &["run", "--redact"], &["record"]] {
        let output = finish(start(&mut command(&lab, options, COMMAND)));
        assert_told(
            &output,
            "opening the folder of records took longer than 50 ms",
        );
    }
    let output = finish(start(&mut command(&lab, &["run", "-q"], COMMAND)));
    assert_eq!(
        (text(&output.stderr), output.status.code()),
        (String::new(), Some(3))
    );
    assert!(mount.held() > 0);
}

fn library() {
    let lab = Lab::new().with("FOREREAD_PRELOAD", "mnt/lib.so");
    let mount = silent(&lab);
    mount.fall_silent();
    let output = finish(start(&mut command(&lab, &["run"], COMMAND)));
    assert_told(&output, "looking for the preload library");
}

/// Makes a command's record begin with a read of the file that will not answer.
fn begins_with(lab: &Lab, mount: &Silent) {
    let path = lab.record();
    let mut reader = Reader::open(&path).expect("the record");
    let mut record = RecordFile::create(&path, reader.meta(), u64::MAX).expect("a record");
    let file = FileMeta::regular(mount.folder.join(FILE), (1, 2), 4 << 20, 0);
    record.file(FileId(0), file).expect("a record");
    let thread = ThreadMeta {
        pid: 1,
        tid: 1,
        ppid: 0,
        exe: "/bin/sh".into(),
    };
    record.thread(ThreadId(0), thread).expect("a record");
    for page in 0..256 {
        let access = Access {
            file: FileId(0),
            extent: Extent::new(page * PAGE, PAGE),
            thread: ThreadId(0),
            kind: Kind::Read,
            start: page * 100_000,
            took: 90_000,
        };
        record.access(&access).expect("a record");
    }
    let summary = reader.summary().expect("a whole record").clone();
    assert!(reader.accesses().count() > 0);
    record
        .commit(Summary {
            accesses: 256,
            ..summary
        })
        .expect("a record");
}

fn head() {
    let lab = Lab::new();
    let mount = silent(&lab);
    lab.run(COMMAND);
    begins_with(&lab, &mount);
    mount.fall_silent();
    let output = finish(start(&mut command(&lab, &["run"], COMMAND)));
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "out\n", "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    // On a busy machine foreread itself may be late, and then no wait is reported.
    check!(said.contains("no answer within 50 ms"), "{said}");
    assert!(mount.held() > 0);
}

/// The state of a file as an earlier run recorded it.
fn unanswering(path: PathBuf) -> FileMeta {
    FileMeta {
        advice: Advice::Random,
        ..FileMeta::regular(path, (1, 2), 4 << 20, 0)
    }
}

fn engine() {
    const PAGES: u64 = 400;
    let lab = Lab::new();
    let mount = silent(&lab);
    let path = lab.data("cold", 16);
    lab.cold(&["cold"]);
    let facts = path.metadata().expect("a file");
    let cold = FileMeta {
        dev: facts.dev(),
        ino: facts.ino(),
        size: facts.len(),
        mtime_ns: facts.mtime() * 1_000_000_000 + facts.mtime_nsec(),
        ..unanswering(path.clone())
    };
    mount.fall_silent();
    let files = [unanswering(mount.folder.join(FILE)), cold];
    let files = (0..).map(FileId).zip(files).collect();
    // Reads of both files alternately, in no order.
    let reads = (0..2 * PAGES).map(|n| Access {
        file: FileId((n % 2) as u32),
        extent: Extent::new(n / 2 * 7919 % 1000 * 4 * PAGE, PAGE),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 0,
    });
    let source = Box::new(Replay::new(reads));
    let backend = PageCache::new(&Arc::new(files));
    let make = move || Engine::new(backend, Config::default()).with_strand("replay", source);
    let session = Session::start(make, Instant::now()).expect("a thread");
    eventually("it is asked", || mount.held() > 0);
    eventually("the other file is fetched", || {
        // More if another process drops the caches: some pages are then requested again.
        session.ledger().issued >= PAGES * PAGE
    });
    let report = session.finish().expect("an engine that waits for nothing");
    assert!(report.ledger.is_closed(), "{:?}", report.ledger);
    mount.answer();
}

fn signals() {
    let lab = Lab::new();
    let mount = silent(&lab);
    let script = "trap 'echo usr1' USR1; trap 'echo end; exit 6' TERM
        echo ready; while :; do sleep 0.01; done";
    let program = ["env", "--default-signal", "sh", "-c", script];
    let run = |lab: &Lab| {
        let mut child = start(&mut command(lab, &["run", "-q"], &program));
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let pid = Pid::from_child(&child);
        for (signal, said) in [
            (None, "ready\n"),
            (Some(Signal::USR1), "usr1\n"),
            (Some(Signal::TERM), "end\n"),
        ] {
            if let Some(signal) = signal {
                kill_process(pid, signal).expect("our own child");
            }
            let mut line = String::new();
            stdout.read_line(&mut line).expect("a line");
            assert_eq!(line, said);
        }
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("output");
        assert_eq!(finish(child).status.code(), Some(6));
    };
    run(&lab);
    begins_with(&lab, &mount);
    mount.fall_silent();
    run(&lab);
    assert!(mount.held() > 0);
}

/// A command whose last action silences the file system.
const STOPS: &[&str] = &[
    "sh",
    "-c",
    "cat /etc/passwd > /dev/null; test -e mnt/stop; echo out; exit 3",
];

fn account() {
    let lab = Lab::new();
    let mount = silent(&lab);
    let args = ["run", "--json", "mnt/account.json"];
    let output = finish(start(&mut command(&lab, &args, STOPS)));
    assert_told(&output, "writing the account mnt/account.json took longer");
    mount.answer();
    let args = ["run", "-q", "--json", "mnt/account.json"];
    let output = finish(start(&mut command(&lab, &args, STOPS)));
    assert_told(
        &output,
        "foreread: no account was written: writing the account",
    );
}

fn record() {
    let lab = Lab::new();
    let _mount = silent(&lab);
    let args = ["record", "-o", "mnt/x.fr"];
    let output = finish(start(&mut command(&lab, &args, STOPS)));
    assert_told(&output, "writing the record");
}

/// Runs a program that writes a file of the file system, and silences it once foreread knows of that file.
fn writes(lab: &Lab) -> Output {
    let script = "exec 5<> mnt/data; exec 5<&-; read line < /etc/passwd
        until [ -e go ]; do sleep 0.01; done; test -e mnt/stop; echo out; exit 3";
    let child = start(&mut command(lab, &["run"], &["sh", "-c", script]));
    lab.await_recorded("passwd");
    lab.write("go", "");
    finish(child)
}

fn written() {
    let lab = Lab::new();
    let _mount = silent(&lab);
    let output = writes(&lab);
    assert_told(&output, "looking at the files that the program wrote");
}

fn working_directory() {
    let lab = Lab::new();
    let mount = silent(&lab);
    let foreread = foreread();
    let script = "cd mnt && ! test -e stop && exec \"$0\" run --json account.json -- /bin/echo out";
    let mut shell = lab.command("sh");
    shell.args(["-c", script, foreread.to_str().expect("a path")]);
    let output = finish(start(&mut shell));
    let said = text(&output.stderr);
    assert_eq!(
        (&*text(&output.stdout), output.status.code()),
        ("out\n", Some(0)),
        "{said}"
    );
    assert!(said.contains("not waited for"), "{said}");
    assert!(mount.held() > 0);
}

/// The record goes to a store that answers; the look at the written files, which comes later, does not.
fn done_later() {
    let lab = Lab::new();
    let mount = silent(&lab);
    let output = writes(&lab);
    assert_told(&output, "looking at the files that the program wrote");
    let is_whole = || {
        let records = lab.records();
        records.len() == 1 && Reader::open(&records[0]).is_ok_and(|record| record.is_complete())
    };
    assert!(!is_whole());
    mount.answer();
    eventually("the record is kept", is_whole);
}

/// A process that reads a command's output waits until the last writer has closed it.
fn pipes() {
    let lab = Lab::new().with_home(Path::new("mnt/home"));
    let mount = silent(&lab);
    mount.fall_silent();
    let foreread = foreread();
    let script = "all=$({ \"$0\" run -- sh -c 'echo out; exit 3' 2>&1 3>&1; } 4>&1); echo \"${all%%foreread*}\"";
    let mut shell = lab.command("sh");
    shell.args(["-c", script, foreread.to_str().expect("a path")]);
    let output = finish(start(&mut shell));
    assert!(text(&output.stdout).starts_with("out\n"), "{output:?}");
    assert!(mount.held() > 0);
}

fn given_descriptors() {
    let lab = Lab::new();
    for (path, redirected) in [
        ("/dev/stdout", "> got"),
        ("/dev/fd/7", "7> got"),
        ("/proc/self/fd/7", "7> got"),
        ("/dev/fd/7", "7>&1 | cat > got"),
    ] {
        let foreread = foreread();
        let script = format!("\"$0\" run -q --json {path} -- true {redirected}");
        let mut shell = lab.command("sh");
        shell.args(["-c", &script, foreread.to_str().expect("a path")]);
        let output = finish(start(&mut shell));
        assert!(output.status.success(), "{path}: {output:?}");
        // If the disk is busy, the account may come a moment later.
        eventually(path, || {
            let got = std::fs::read_to_string(lab.path("got")).expect("what was written");
            got.contains("\"exit_status\": 0")
        });
    }
}
