//! Each way of reading, byte by byte.

use std::os::unix::process::ExitStatusExt;

use foreread_plan::Kind::{
    self, CopyFileRange, Pread, Preadv, Read as AtCursor, Readv, Sendfile, Splice, Stdio,
};
use foreread_ring::{OPEN_CREATED, OPEN_FOUND, OPEN_TRUNCATED, OPEN_WRITTEN, kind};
use foreread_tests::{Lab, Need, Slow, check};

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
        "a_read_that_waits_among_quick_ones_is_measured",
        ALL,
        &[Need::Command("cc")],
        waits,
    ),
    (
        "a_stream_of_quick_reads_is_seen_to_the_last_before_a_kill",
        ALL,
        &[Need::Command("cc")],
        stream,
    ),
    (
        "whatever_comes_between_many_reads_alike_each_is_seen",
        ALL,
        &[Need::Command("cc")],
        streak,
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

/// What a program may do between quick reads that is taken for part of one that waits, in ns.
const BETWEEN: u64 = 20_000;

fn waits() {
    let stage = Stage::new();
    // Some virtual disks answer before a reader is switched out.
    let lab = Lab::new();
    let can_mount = Need::Root
        .missing()
        .or_else(|| Need::Fuse.missing())
        .is_none();
    let mounted = can_mount.then(|| Slow::mount(&lab, "network-ssd"));
    let file = match mounted {
        Some(_) => lab.path("mnt/cold"),
        None => stage.path("cold"),
    };
    std::fs::write(&file, vec![1; 240 * 4096]).expect("a file");
    let written = std::fs::File::open(&file).expect("the file");
    written.sync_all().expect("a disk");
    let program = stage.cc("waits", &[]);
    let seen = observe(program, |command| {
        command.arg(&file);
    });
    check_end(&seen, 0);
    let times = seen.times(&file);
    let (mut waited, mut measured) = (0, 0);
    for line in String::from_utf8_lossy(&seen.output.stdout).lines() {
        let numbers = line.split(' ').map(|number| number.parse().unwrap_or(0));
        let numbers: Vec<u64> = numbers.collect();
        let &[offset, own, 1] = &numbers[..] else {
            continue;
        };
        let took = |&(at, _, took): &(u64, u64, u64)| (at == offset).then_some(took);
        let took = times.iter().find_map(took).expect("the read");
        waited += 1;
        measured += i32::from((own / 2..own + BETWEEN).contains(&took));
    }
    // Of the program's own time little is between its clock and the call, and of what is taken for the call's little
    // before it, unless another has the processor then.
    check!(
        waited >= 20 && measured >= waited * 9 / 10,
        "{measured} of {waited} that waited"
    );
    // And the others were spared the clock.
    let spared = times.windows(2).filter(|two| two[0].2 == two[1].2);
    let spared = spared.count();
    if seen.tells_switches {
        check!(spared > times.len() / 2, "{spared}");
    } else {
        eprintln!("skipped: this kernel does not tell a thread that it was switched out");
    }
}

fn stream() {
    seen_to_the_last(&[], |n| (AtCursor, n * 512, 512));
    seen_to_the_last(&["scattered"], |n| (Pread, n * 617 % 1000 * 512, 512));
}

fn streak() {
    let stage = Stage::new();
    let program = stage.cc("streak", &[]);
    for number in ["1", "2", "3", "4"] {
        let seen = observe(program.clone(), |command| {
            command.args([stage.data(), stage.other()]).arg(number);
        });
        assert_eq!(seen.output.status.code(), Some(0), "{:?}", seen.output);
        // A handler's own, of the other file, in the moment in which an event is written.
        check!(seen.lost < 100, "{} events were lost", seen.lost);
        let said = String::from_utf8_lossy(&seen.output.stdout);
        let made: Vec<String> = said.lines().map(str::to_owned).collect();
        let reads = seen.reads_by(&stage.data());
        let own = reads.first().expect("a read").0;
        // When a child's came among them is not told so exactly.
        let reported: Vec<String> = reads
            .iter()
            .filter(|(pid, _)| *pid == own)
            .map(|(_, (_, offset, len))| format!("{offset} {len}"))
            .collect();
        if let Some(at) = made.iter().zip(&reported).position(|(one, two)| one != two) {
            let around = at.saturating_sub(3)..(at + 5).min(made.len().min(reported.len()));
            panic!(
                "number {number}, read {at}: {:?} and not {:?}",
                &reported[around.clone()],
                &made[around]
            );
        }
        assert_eq!(made.len(), reported.len(), "number {number}");
    }
}

fn seen_to_the_last(how: &[&str], nth: impl Fn(u64) -> Read) {
    const PIECE: u64 = 512;
    const PIECES: u64 = 1000;
    const PAUSE: u64 = 300_000_000;
    let stage = Stage::new();
    let file = stage.path("streamed");
    std::fs::write(&file, vec![1; (PIECES * PIECE) as usize]).expect("a file");
    let program = stage.cc("stream", &[]);
    let seen = observe(program, |command| {
        command.args(how).arg(&file);
    });
    assert_eq!(seen.output.status.signal(), Some(9), "{:?}", seen.output);
    let reads: Vec<Read> = (0..PIECES).map(nth).collect();
    assert_eq!(seen.reads(&file), reads);
    // It slept before the last hundred, for nobody knows how much longer.
    let starts: Vec<u64> = seen.times(&file).iter().map(|read| read.1).collect();
    assert!(starts.is_sorted());
    let longest = starts.windows(2).map(|two| two[1] - two[0]);
    let longest = longest
        .enumerate()
        .max_by_key(|&(_, gap)| gap)
        .expect("a gap");
    // Unless it had to wait longer for the processor.
    check!(longest.0 as u64 == PIECES - 101, "{longest:?}");
    // The processor's clock is measured against the kernel's: by a machine under load to one part in ten thousand.
    assert!(longest.1 >= PAUSE - PAUSE / 1000, "{longest:?}");
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
        OPEN_WRITTEN | OPEN_CREATED | OPEN_TRUNCATED,
        OPEN_WRITTEN | OPEN_TRUNCATED,
        OPEN_WRITTEN | OPEN_CREATED,
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
