//! The parts of ring reports that no event shows: the codes of calls, and the effect of an open on a file.

use foreread_plan::Kind::{self, Pread};
use foreread_ring::{OPEN_CREATED, OPEN_FOUND, OPEN_TRUNCATED, OPEN_UNREAD, OPEN_WRITTEN, kind};
use foreread_tests::Need;

use super::harness::{Read, Stage, check_end, observe};
use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "call_kinds_have_the_codes_of_the_durable_format",
        ALL,
        &[],
        codes,
    ),
    (
        "every_open_names_its_file_and_says_what_it_does_to_it",
        ALL,
        &[Need::Command("cc")],
        open,
    ),
    (
        "a_file_that_is_found_open_is_said_to_be",
        ALL,
        &[Need::Command("cc")],
        found,
    ),
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

fn found() {
    let stage = Stage::new();
    let program = stage.cc("byfd", &[]);
    let seen = observe(program, |command| {
        command.stdin(std::fs::File::open(stage.data()).expect("the data file"));
    });
    check_end(&seen, 0);
    assert_eq!(seen.opens(&stage.data()), [OPEN_FOUND; 4]);
}
