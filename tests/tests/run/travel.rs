//! Portable records: lists to and from other tools, other machines, partial records, several records merged into one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use foreread_plan::format::Reader;
use foreread_tests::{Lab, Need, check, text};

use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "a_list_that_was_exported_is_imported_and_fetched_ahead",
        QUICK,
        &[Need::Command("python3")],
        round_trip,
    ),
    (
        "vmtouch_reads_its_list",
        ALL,
        &[Need::Command("python3"), Need::Command("vmtouch")],
        vmtouch,
    ),
    (
        "fio_repeats_its_log",
        ALL,
        &[Need::Command("python3"), Need::Command("fio")],
        fio,
    ),
    (
        "a_trace_of_strace_is_imported_and_fetched_ahead",
        ALL,
        &[Need::Command("python3"), Need::Command("strace")],
        strace,
    ),
    (
        "a_record_from_elsewhere_is_followed_where_its_files_fit",
        QUICK,
        &[Need::Command("python3")],
        elsewhere,
    ),
    (
        "files_that_have_moved_are_followed_by_their_map",
        ALL,
        &[Need::Command("python3")],
        moved,
    ),
    (
        "of_a_record_cut_to_a_limit_the_part_that_waited_longest_is_kept_and_followed",
        QUICK,
        &[Need::Command("python3")],
        limits,
    ),
    (
        "of_several_runs_what_most_read_is_kept_and_of_a_job_all",
        ALL,
        &[Need::Command("python3")],
        merged,
    ),
];

/// Reads 300 of the 1,024 pages of each named file, in no order.
const PROGRAM: &str = "import os, sys
for name in sys.argv[1:]:
    data = os.open(name, os.O_RDONLY)
    for page in range(300):
        os.pread(data, 4096, page * 37 % 1024 * 4096)
";

/// A lab with two files of 4 MiB, and the command that reads them.
fn lab() -> (Lab, [&'static str; 4]) {
    let lab = Lab::new();
    lab.data("a", 4);
    lab.data("b", 4);
    lab.write("program.py", PROGRAM);
    (lab, ["python3", "program.py", "a", "b"])
}

/// Runs `foreread` with these arguments, which must succeed; returns its standard output.
#[track_caller]
fn done(lab: &Lab, args: &[&str]) -> String {
    let output = lab.foreread(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    text(&output.stdout)
}

/// Runs the command cold, and checks that at least half of its pages were issued and some of them were read; returns standard error.
#[track_caller]
fn is_fetched(lab: &Lab, options: &[&str], command: &[&str], files: &[&str]) -> String {
    let plain = lab.plain(command);
    lab.cold(files);
    let outcome = lab.run_with(options, command);
    outcome.assert_as(&plain);
    outcome.check_mode("prefetched");
    let pages = files.len() as u64 * 300;
    check!(outcome.bytes("issued") >= pages / 2 * 4096, "{outcome:?}");
    check!(
        outcome.bytes("useful") + outcome.bytes("late") > 0,
        "{outcome:?}"
    );
    outcome.stderr()
}

fn round_trip() {
    let (lab, command) = lab();
    lab.cold(&["a", "b"]);
    lab.run(&command);
    assert!(done(&lab, &["show", "--last", "--json"]).contains("/a"));
    for format in ["csv", "jsonl", "vmtouch", "soci", "fio"] {
        let list = format!("list.{format}");
        let said = done(&lab, &["export", "--last", "--to", format, "-o", &list]);
        assert!(said.starts_with(&format!("{list}: ")), "{said}");
    }
    // Lists of whole files: all other files are in memory, and a sample of the list could contain only those.
    let [a, b] = ["a", "b"].map(|name| lab.path(name).display().to_string());
    for (format, list) in [
        ("vmtouch", format!("{a}\n{b}\n")),
        ("soci", format!("[{a:?}, {b:?}]")),
    ] {
        let listed = fs::read_to_string(lab.path(&format!("list.{format}"))).expect("a list");
        assert!(listed.contains(&a) && listed.contains(&b), "{listed}");
        lab.write(&format!("list.{format}"), list);
    }
    for format in ["csv", "jsonl", "vmtouch", "soci", "fio"] {
        done(&lab, &["forget", "--all"]);
        let list = format!("list.{format}");
        let said = done(&lab, &[&["import", &list, "--"], &command[..]].concat());
        assert!(said.contains("fit here"), "{said}");
        let said = is_fetched(&lab, &[], &command, &["a", "b"]);
        let whose = if format == "fio" {
            "by a trace"
        } else {
            "list"
        };
        check!(said.contains(whose), "{format}: {said}");
        // A partial record is not replaced by the reads of a run.
        let record = Reader::open(&lab.record()).expect("a record");
        let foot = record.summary().expect("a foot");
        assert!(foot.partial && foot.imported.is_some(), "{foot:?}");
    }
}

fn vmtouch() {
    let (lab, command) = lab();
    lab.cold(&["a", "b"]);
    lab.run(&command);
    done(&lab, &["export", "--last", "--to", "vmtouch", "-o", "list"]);
    lab.cold(&["a", "b"]);
    let touched = lab.plain(&["vmtouch", "-t", "-b", "list"]);
    assert!(touched.status.success(), "{touched:?}");
    check!(lab.cached("a") == 4 << 20 && lab.cached("b") == 4 << 20);
}

fn fio() {
    let (lab, command) = lab();
    lab.cold(&["a", "b"]);
    lab.run(&command);
    done(&lab, &["export", "--last", "--to", "fio", "-o", "iolog"]);
    lab.cold(&["a", "b"]);
    let log = "--read_iolog=iolog";
    let repeated = lab.plain(&["fio", "--name=x", "--ioengine=psync", "--readonly", log]);
    assert!(repeated.status.success(), "{repeated:?}");
    check!(lab.cached("a") >= 300 * 4096 && lab.cached("b") >= 300 * 4096);
}

fn strace() {
    let (lab, command) = lab();
    let traced = ["strace", "-f", "-ttt", "-y", "-T", "-o", "trace"];
    let output = lab.plain(&[&traced, &command[..]].concat());
    assert!(output.status.success(), "{output:?}");
    done(&lab, &[&["import", "trace", "--"], &command[..]].concat());
    is_fetched(&lab, &[], &command, &["a", "b"]);
}

/// A copy with the same size and modification time, like an image that is unpacked elsewhere.
fn copy(lab: &Lab, from: &str, to: &str) {
    fs::copy(lab.path(from), lab.path(to)).expect("room");
    let time = lab.path(from).metadata().expect("a file").modified();
    let copy = fs::File::options()
        .write(true)
        .open(lab.path(to))
        .expect("ours");
    copy.set_modified(time.expect("a time")).expect("ours");
}

fn elsewhere() {
    let (lab, command) = lab();
    lab.cold(&["a", "b"]);
    lab.foreread(&[&["record", "-o", "x.fr", "--"], &command[..]].concat());
    // Other inodes, as on another machine, with the same sizes and times.
    for name in ["a", "b"] {
        copy(&lab, name, "copy");
        fs::rename(lab.path("copy"), lab.path(name)).expect("ours");
    }
    done(&lab, &["import", "x.fr"]);
    let inode = |name: &str| lab.path(name).metadata().expect("a file").ino();
    let record = Reader::open(&lab.record()).expect("a record");
    let here = |name: &str| {
        let path = lab.path(name);
        record
            .files()
            .values()
            .find(|meta| meta.path == path)
            .map(|meta| meta.ino)
    };
    assert_eq!(here("a"), Some(inode("a")));
    let said = is_fetched(&lab, &[], &command, &["a", "b"]);
    assert!(!said.contains("another file"), "{said}");
    // Without an import: copies are followed, and the number of matching files is reported.
    for name in ["a", "b"] {
        copy(&lab, name, "copy");
        fs::rename(lab.path("copy"), lab.path(name)).expect("ours");
    }
    let said = is_fetched(&lab, &[], &command, &["a", "b"]);
    check!(said.contains("2 fit"), "{said}");
    // The record now has the copies' inodes, so nothing is reported.
    let said = is_fetched(&lab, &[], &command, &["a", "b"]);
    check!(!said.contains("fit"), "{said}");
    // A file of another size is left out and named.
    fs::write(lab.path("b"), "short").expect("ours");
    let output = lab.foreread(&["import", "x.fr"]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("/b: it has 5 B here"), "{said}");
}

fn moved() {
    let (lab, _) = lab();
    let [old, new] = ["old", "new"].map(|name| lab.path(name));
    fs::create_dir(&old).expect("a folder");
    for name in ["a", "b"] {
        fs::rename(lab.path(name), old.join(name)).expect("ours");
    }
    let paths = |folder: &Path| ["a", "b"].map(|name| folder.join(name).display().to_string());
    let there = paths(&old);
    lab.cold(&["old/a", "old/b"]);
    lab.run(&["python3", "program.py", &there[0], &there[1]]);
    fs::rename(&old, &new).expect("ours");
    let map = format!("{}={}", old.display(), new.display());
    let here = paths(&new);
    let command = ["python3", "program.py", &here[0], &here[1]];
    is_fetched(&lab, &["--map", &map], &command, &["new/a", "new/b"]);
    // The command now has a record of its own.
    assert_eq!(lab.records().len(), 2);
    let listed = done(
        &lab,
        &[
            "export",
            "--to",
            "vmtouch",
            "--map",
            &map,
            "--",
            "python3",
            "program.py",
            &there[0],
            &there[1],
        ],
    );
    assert!(
        listed.contains(&here[0]) && !listed.contains(&there[0]),
        "{listed}"
    );
}

fn limits() {
    let (lab, command) = lab();
    lab.cold(&["a", "b"]);
    let whole = lab.foreread(&[&["record", "-o", "whole.fr", "--"], &command[..]].concat());
    assert!(whole.status.success(), "{whole:?}");
    lab.cold(&["a", "b"]);
    let limits = [
        "record",
        "-o",
        "part.fr",
        "--max-size",
        "12K",
        "--max-files",
        "2",
        "--",
    ];
    let output = lab.foreread(&[&limits, &command[..]].concat());
    let said = text(&output.stderr);
    assert!(said.contains("left out"), "{said}");
    let size = |name: &str| lab.path(name).metadata().expect("a record").len();
    assert!(size("part.fr") <= 12 << 10 && size("part.fr") < size("whole.fr"));
    let part = Reader::open(&lab.path("part.fr")).expect("a record");
    assert!(part.files().len() <= 2 && part.summary().is_some_and(|foot| foot.partial));
    let kept: Vec<_> = part
        .files()
        .values()
        .map(|meta| meta.path.clone())
        .collect();
    check!(kept == [lab.path("a"), lab.path("b")], "{kept:?}");
    done(&lab, &["import", "part.fr"]);
    lab.cold(&["a", "b"]);
    let outcome = lab.run(&command);
    outcome.check_mode("prefetched");
    // The record stays partial, although the run read more than it contains.
    let kept = Reader::open(&lab.record()).expect("a record");
    assert!(kept.summary().is_some_and(|foot| foot.partial));
    // If no part fits, nothing is recorded, and an existing file stays.
    let none = ["record", "-o", "whole.fr", "--max-size", "64", "--"];
    let output = lab.foreread(&[&none, &command[..]].concat());
    assert!(
        text(&output.stderr).contains("no part of the record fits"),
        "{output:?}"
    );
}

fn merged() {
    let (lab, _) = lab();
    lab.data("c", 4);
    // Three runs of one command, each of which also reads a different file.
    for (number, third) in ["a", "b", "c"].into_iter().enumerate() {
        lab.write("names", format!("a {third}"));
        let name = format!("{number}.fr");
        let command = "python3 program.py $(cat names)";
        lab.foreread(&["record", "-o", &name, "--", "sh", "-c", command]);
    }
    let said = done(&lab, &["merge", "0.fr", "1.fr", "2.fr", "-o", "all.fr"]);
    assert!(said.contains("which most of 3 records have"), "{said}");
    let all = Reader::open(&lab.path("all.fr")).expect("a record");
    let has = |reader: &Reader, name: &str| {
        let path = lab.path(name);
        reader
            .files()
            .values()
            .any(|meta| meta.path == path && !meta.directory)
    };
    assert!(has(&all, "a"));
    let mut all = all;
    let ids: Vec<_> = all
        .files()
        .iter()
        .map(|(id, meta)| (*id, meta.path.clone()))
        .collect();
    let reads = all
        .accesses()
        .filter_map(Result::ok)
        .filter(|one| one.kind.reads());
    let read: Vec<_> = reads.map(|one| one.file).collect();
    for (id, path) in ids {
        if path == lab.path("b") || path == lab.path("c") {
            assert!(!read.contains(&id), "{}", path.display());
        }
    }
    // When a job's parts are merged, all reads are kept.
    for name in ["a", "b"] {
        let file = format!("{name}.fr");
        lab.foreread(&["record", "-o", &file, "--", "python3", "program.py", name]);
    }
    lab.write("job.sh", "python3 program.py a\npython3 program.py b\n");
    let job = ["sh", "job.sh"];
    done(&lab, &[&["merge", "a.fr", "b.fr", "--"], &job[..]].concat());
    is_fetched(&lab, &[], &job, &["a", "b"]);
}
