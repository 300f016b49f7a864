//! Each way of reading, byte by byte.

use foreread_plan::Kind::{
    self, CopyFileRange, Pread, Preadv, Read as AtCursor, Readv, Sendfile, Splice, Stdio,
};
use foreread_ring::{OPEN_CREATED, OPEN_FOUND, OPEN_TRUNCATED, OPEN_UNREAD, OPEN_WRITTEN, kind};
use foreread_tests::Need;

use super::harness::{Read, Seen, Stage, check_end, observe};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "call_kinds_have_the_codes_of_the_durable_format",
        ALL,
        &[],
        codes,
    ),
    (
        "read_reports_what_it_returned_at_the_cursor",
        QUICK,
        &[Need::Command("cc")],
        read,
    ),
    (
        "fortified_reads_are_seen",
        ALL,
        &[Need::Command("cc")],
        fortified,
    ),
    (
        "pread_reports_its_offset",
        ALL,
        &[Need::Command("cc")],
        pread,
    ),
    (
        "readv_preadv_and_preadv2_are_seen",
        ALL,
        &[Need::Command("cc")],
        readv,
    ),
    (
        "asynchronous_reads_are_seen_when_they_are_taken",
        ALL,
        &[Need::Command("cc")],
        aio,
    ),
    ("lseek_moves_the_cursor", ALL, &[Need::Command("cc")], lseek),
    (
        "duplicates_share_one_cursor",
        ALL,
        &[Need::Command("cc")],
        dup,
    ),
    (
        "a_descriptor_number_used_again_is_the_new_file",
        ALL,
        &[Need::Command("cc")],
        close,
    ),
    (
        "every_open_names_its_file",
        ALL,
        &[Need::Command("cc")],
        open,
    ),
    (
        "writes_move_the_cursor_of_a_file_open_for_both",
        ALL,
        &[Need::Command("cc")],
        rdwr,
    ),
    (
        "raw_system_calls_are_seen",
        ALL,
        &[Need::Command("cc")],
        syscall,
    ),
    (
        "fread_reports_refills_and_direct_reads",
        ALL,
        &[Need::Command("cc")],
        fread,
    ),
    ("fgets_reports_refills", ALL, &[Need::Command("cc")], || {
        refills("fgets")
    }),
    ("getc_reports_refills", ALL, &[Need::Command("cc")], || {
        refills("getc")
    }),
    (
        "getline_reports_refills",
        ALL,
        &[Need::Command("cc")],
        || refills("getline"),
    ),
    (
        "fscanf_reports_refills",
        ALL,
        &[Need::Command("cc")],
        || refills("fscanf"),
    ),
    (
        "wide_streams_report_refills",
        ALL,
        &[Need::Command("cc")],
        || refills("wide"),
    ),
    (
        "seeking_in_a_stream_reports_what_is_read_again",
        ALL,
        &[Need::Command("cc")],
        fseek,
    ),
    (
        "freopen_and_fdopen_are_followed",
        ALL,
        &[Need::Command("cc")],
        freopen,
    ),
    (
        "a_redirected_standard_input_is_found_out",
        ALL,
        &[Need::Command("cc")],
        stdin,
    ),
    (
        "a_file_opened_by_the_name_of_a_descriptor_is_found_out",
        ALL,
        &[Need::Command("cc")],
        by_descriptor,
    ),
    (
        "sendfile_copy_file_range_and_splice_report_their_source",
        ALL,
        &[Need::Command("cc")],
        sendfile,
    ),
    (
        "iostreams_report_refills",
        ALL,
        &[Need::Command("c++")],
        iostream,
    ),
];

/// Programs whose reads of the data file are known byte by byte, by whatever observer.
pub const EXACT: &[(&str, &[Read])] = &[
    ("read", READ),
    ("pread", &PREADS),
    ("readv", READV),
    ("lseek", LSEEK),
    ("dup", DUP),
    ("sendfile", SENDFILE),
];

const READ: &[Read] = &[
    (AtCursor, 0, 1000),
    (AtCursor, 1000, 8192),
    (AtCursor, 9192, 8192),
    (AtCursor, 17384, 2616),
];

const READV: &[Read] = &[
    (Readv, 0, 4100),
    (Readv, 4100, 100),
    (Preadv, 8000, 4100),
    (Preadv, 19000, 1000),
    (Preadv, 100, 4100),
    (Preadv, 4200, 100),
    (Preadv, 7, 100),
    (AtCursor, 4300, 1),
];

const LSEEK: &[Read] = &[
    (AtCursor, 5000, 100),
    (AtCursor, 5150, 100),
    (AtCursor, 19940, 60),
    (AtCursor, 0, 7),
    (AtCursor, 10000, 8),
];

const DUP: &[Read] = &[
    (AtCursor, 0, 10),
    (AtCursor, 10, 20),
    (AtCursor, 30, 30),
    (AtCursor, 60, 40),
    (AtCursor, 100, 50),
    (AtCursor, 150, 60),
    (AtCursor, 1000, 70),
    (AtCursor, 1070, 80),
    (AtCursor, 1150, 90),
    (AtCursor, 1240, 15),
    (AtCursor, 1255, 25),
];

const SENDFILE: &[Read] = &[
    (Sendfile, 5000, 100),
    (Sendfile, 0, 200),
    (CopyFileRange, 6000, 300),
    (CopyFileRange, 200, 400),
    (Splice, 7000, 500),
    (Splice, 600, 600),
    (AtCursor, 1200, 16),
];

/// The reads that go through a buffer of a page, from start to end.
const REFILLS: [Read; 5] = [
    (Stdio, 0, 4096),
    (Stdio, 4096, 4096),
    (Stdio, 8192, 4096),
    (Stdio, 12288, 4096),
    (Stdio, 16384, 3616),
];

fn codes() {
    let codes = [
        (kind::READ, Kind::Read),
        (kind::PREAD, Kind::Pread),
        (kind::READV, Kind::Readv),
        (kind::PREADV, Kind::Preadv),
        (kind::STDIO, Kind::Stdio),
        (kind::SENDFILE, Kind::Sendfile),
        (kind::COPY_FILE_RANGE, Kind::CopyFileRange),
        (kind::SPLICE, Kind::Splice),
    ];
    for (code, kind) in codes {
        assert_eq!(code, kind as u8, "{}", kind.name());
    }
}

/// Builds and runs a C program on the data file, and lets it end well.
fn run(stage: &Stage, name: &str) -> Seen {
    let program = stage.cc(name, &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    seen
}

fn check_reads(name: &str, expected: &[Read]) {
    let stage = Stage::new();
    let seen = run(&stage, name);
    assert_eq!(seen.reads(&stage.data()), expected, "{name}");
}

fn read() {
    let stage = Stage::new();
    let seen = run(&stage, "read");
    assert_eq!(seen.reads(&stage.data()), READ);
    assert_eq!(seen.opens(&stage.data()), [0]);
}

fn fortified() {
    let stage = Stage::new();
    let program = stage.cc("pread", &["-O2", "-D_FORTIFY_SOURCE=2"]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    assert_eq!(seen.reads(&stage.data()), PREADS);
}

const PREADS: [Read; 4] = [
    (Pread, 12288, 100),
    (Pread, 0, 4096),
    (Pread, 19000, 1000),
    (AtCursor, 0, 10),
];

fn pread() {
    check_reads("pread", &PREADS);
}

fn aio() {
    let stage = Stage::new();
    let program = stage.cc("aio", &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data()).current_dir(stage.path(""));
    });
    check_end(&seen, 0);
    let reads = [
        (Pread, 12000, 5000),
        (Pread, 19000, 1000),
        (Pread, 0, 100),
        (Pread, 4096, 200),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
    assert_eq!(seen.reads(&stage.path("written")), []);
}

fn readv() {
    check_reads("readv", READV);
}

fn lseek() {
    check_reads("lseek", LSEEK);
}

fn dup() {
    check_reads("dup", DUP);
}

fn close() {
    let stage = Stage::new();
    let program = stage.cc("close", &[]);
    let seen = observe(program, |command| {
        command.args([stage.data(), stage.other()]);
    });
    check_end(&seen, 0);
    let data = [(AtCursor, 0, 10), (AtCursor, 0, 30), (AtCursor, 30, 40)];
    assert_eq!(seen.reads(&stage.data()), data);
    assert_eq!(
        seen.reads(&stage.other()),
        [(AtCursor, 0, 20), (AtCursor, 0, 50)]
    );
}

fn open() {
    let stage = Stage::new();
    let program = stage.cc("open", &["-O2", "-D_FORTIFY_SOURCE=2"]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    let reads: Vec<Read> = (1..=14).map(|len| (Pread, 0, len)).collect();
    assert_eq!(seen.reads(&stage.data()), reads);
    assert_eq!(seen.opens(&stage.data()), [0; 14]);
    assert_eq!(seen.reads("/usr/../etc/passwd".as_ref()), [(Pread, 0, 15)]);
    let made = [
        OPEN_WRITTEN | OPEN_UNREAD | OPEN_CREATED | OPEN_TRUNCATED,
        OPEN_WRITTEN | OPEN_TRUNCATED,
        OPEN_WRITTEN | OPEN_UNREAD | OPEN_CREATED,
        OPEN_WRITTEN | OPEN_CREATED | OPEN_TRUNCATED,
    ];
    assert_eq!(seen.opens(&stage.path("data.made")), made);
}

fn rdwr() {
    check_reads(
        "rdwr",
        &[(AtCursor, 0, 10), (AtCursor, 20, 20), (Stdio, 40, 4096)],
    );
}

fn syscall() {
    let stage = Stage::new();
    let seen = run(&stage, "syscall");
    let reads = [
        (AtCursor, 0, 10),
        (Pread, 5000, 20),
        (Readv, 100, 50),
        (Preadv, 7000, 50),
        (AtCursor, 150, 30),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
}

fn fread() {
    // What is left of a request larger than the buffer is read directly, in whole blocks.
    check_reads(
        "fread",
        &[
            (Stdio, 0, 4096),
            (Stdio, 4096, 4096),
            (Stdio, 8192, 4096),
            (Stdio, 12288, 4096),
            (Stdio, 16384, 3616),
        ],
    );
}

fn refills(name: &str) {
    check_reads(name, &REFILLS);
}

fn fseek() {
    let stage = Stage::new();
    let seen = run(&stage, "fseek");
    // glibc does not know where a stream is before its first seek, and reads anew.
    let reads = [
        (Stdio, 0, 4096),
        (Stdio, 0, 4096),
        (Stdio, 12288, 4096),
        (Stdio, 0, 4096),
        (Stdio, 16384, 3616),
        (Stdio, 0, 4096),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
}

fn freopen() {
    let stage = Stage::new();
    let program = stage.cc("freopen", &[]);
    let seen = observe(program, |command| {
        command.args([stage.data(), stage.other()]);
    });
    check_end(&seen, 0);
    let data = [
        (Stdio, 0, 4096),
        (Stdio, 0, 4096),
        (AtCursor, 0, 80),
        (Stdio, 80, 4096),
    ];
    assert_eq!(seen.reads(&stage.data()), data);
    assert_eq!(
        seen.reads(&stage.other()),
        [(Stdio, 0, 4096), (AtCursor, 0, 80)]
    );
}

fn stdin() {
    let stage = Stage::new();
    let program = stage.cc("stdin", &[]);
    let seen = observe(program, |command| {
        command.stdin(std::fs::File::open(stage.data()).expect("the data file"));
    });
    check_end(&seen, 0);
    let reads = [
        (AtCursor, 0, 8),
        (Pread, 4096, 16),
        (Stdio, 8, 4096),
        (Stdio, 4104, 4096),
        (Stdio, 8200, 4096),
        (Stdio, 12296, 4096),
        (Stdio, 16392, 3608),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
    assert_eq!(seen.opens(&stage.data()), [OPEN_FOUND]);
}

fn by_descriptor() {
    let stage = Stage::new();
    let program = stage.cc("byfd", &[]);
    let seen = observe(program, |command| {
        command.stdin(std::fs::File::open(stage.data()).expect("the data file"));
    });
    check_end(&seen, 0);
    let reads = [
        (AtCursor, 0, 8),
        (AtCursor, 0, 10),
        (Pread, 4096, 16),
        (AtCursor, 10, 20),
        (AtCursor, 0, 11),
        (Pread, 8192, 16),
        (AtCursor, 11, 20),
        (AtCursor, 0, 12),
        (Pread, 12288, 16),
        (AtCursor, 12, 20),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
    assert_eq!(seen.opens(&stage.data()), [OPEN_FOUND; 4]);
}

fn sendfile() {
    check_reads("sendfile", SENDFILE);
}

fn iostream() {
    let stage = Stage::new();
    let program = stage.path("iostream");
    let mut compiler = std::process::Command::new("c++");
    let source = super::harness::source("iostream.cpp");
    stage.build(compiler.args(["-O1", "-o"]).arg(&program).arg(source));
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    let ends: Vec<_> = seen
        .reads(&stage.data())
        .iter()
        .map(|read| (read.1, read.2))
        .collect();
    // libstdc++ reads one byte less than its buffer of 8 KiB holds.
    assert_eq!(ends, [(0, 8191), (16384, 3616), (0, 8191)]);
}
