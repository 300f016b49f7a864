//! Traces of real programs by other tools, compared with foreread's own record of the same programs.

use std::path::Path;

use foreread_plan::format::Reader;
use foreread_tests::suite::{ALL, QUICK, Suite, Test};
use foreread_tests::{Lab, Need, text};
use foreread_traces::{Names, Operation, Trace};

const TESTS: &[Test] = &[
    (
        "strace_shows_the_reads_that_foreread_records",
        QUICK,
        &[Need::Command("strace"), Need::Command("cc")],
        strace,
    ),
    (
        "the_iolog_of_fio_has_the_reads_that_foreread_records",
        ALL,
        &[Need::Command("fio")],
        fio,
    ),
];

pub fn add(suite: &mut Suite) {
    suite.add("traces", TESTS);
}

/// Offset and length of the recorded reads of a file, in order.
fn recorded(record: &Path, file: &Path) -> Vec<(u64, u64)> {
    let mut reader = Reader::open(record).expect("a record");
    let files = reader.files().clone();
    let accesses = reader
        .accesses()
        .map(|access| access.expect("a sound record"));
    accesses
        .filter(|access| access.kind.reads() && access.extent.len > 0)
        .filter(|access| {
            files
                .get(&access.file)
                .is_some_and(|meta| meta.path == file)
        })
        .map(|access| (access.extent.offset, access.extent.len))
        .collect()
}

/// Offset and length of the reads of a file in a trace, which must be valid.
fn traced(trace: &Path, file: &Path) -> Vec<(u64, u64)> {
    let mut trace = Trace::open(trace, None).expect("a trace");
    let mut names = Names::new();
    let mut reads = Vec::new();
    while let Some(access) = trace.next(&mut names) {
        let here = Path::new(names.file(access.file)) == file;
        if access.operation == Operation::Read && here && access.extent.len > 0 {
            reads.push((access.extent.offset, access.extent.len));
        }
    }
    assert_eq!(trace.problems().count(), 0, "{:?}", trace.problems());
    reads
}

fn strace() {
    let lab = Lab::new();
    lab.program("cursors", &["-pthread"]);
    let data = lab.data("data", 1);
    let record = lab.path("record.fr");
    let program = ["./cursors", data.to_str().expect("UTF-8"), "out"];
    let own = ["record", "-o", record.to_str().expect("UTF-8"), "--"];
    let output = lab.foreread(&[&own[..], &program[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let expected = recorded(&record, &data);
    // 20 + 1 + 3 + 5 + 1 + 50 + 2 + 1: if the record lacked most of them, the comparison would prove nothing.
    assert_eq!(expected.len(), 83);
    // In a file and among the program's own messages; with names of files and without.
    for options in [&["-f", "-ttt", "-y", "-T"][..], &["-f", "-ttt"], &["-f"]] {
        for file in [Some("trace"), None] {
            let to: Vec<&str> = file.iter().flat_map(|file| ["-o", *file]).collect();
            let words = [&["strace"][..], options, &to[..], &program[..]].concat();
            let output = lab.plain(&words);
            assert!(output.status.success(), "{}", text(&output.stderr));
            let trace = match file {
                Some(file) => lab.path(file),
                None => lab.write("messages", &output.stderr),
            };
            // No two threads of the program read at once, so the order is unique.
            assert_eq!(traced(&trace, &data), expected, "{words:?}");
        }
    }
}

fn fio() {
    let lab = Lab::new();
    let data = lab.data("data", 1);
    let (record, log) = (lab.path("record.fr"), lab.path("job.log"));
    let filename = format!("--filename={}", data.display());
    let iolog = format!("--write_iolog={}", log.display());
    let job = [
        "fio",
        "--name=job",
        "--ioengine=psync",
        "--rw=randread",
        "--bs=4k",
        "--size=1m",
        "--thread",
        "--invalidate=0",
        &filename,
        &iolog,
    ];
    let own = ["record", "-o", record.to_str().expect("UTF-8"), "--"];
    let output = lab.foreread(&[&own[..], &job[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let traced = traced(&log, &data);
    assert_eq!(traced.len(), 256);
    assert_eq!(traced, recorded(&record, &data));
}
