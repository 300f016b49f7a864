//! Threads and process trees.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use foreread_plan::Kind::{Pread, Read as AtCursor};
use foreread_ring::{RINGS, What};

use super::harness::{Seen, Stage, check_end, observe};
use foreread_tests::Need;
use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "every_thread_reports_its_own_reads_in_order",
        ALL,
        &[Need::Command("cc")],
        threads,
    ),
    (
        "more_threads_than_rings_are_counted_as_lost",
        ALL,
        &[Need::Command("cc")],
        crowd,
    ),
    ("a_shell_script_is_followed", ALL, &[], shell),
    (
        "a_parallel_build_is_followed",
        ALL,
        &[Need::Command("make")],
        build,
    ),
];

fn run(stage: &Stage, name: &str) -> Seen {
    let program = stage.cc(name, &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    seen
}

fn threads() {
    let stage = Stage::new();
    let seen = run(&stage, "threads");
    // Thread numbers may be reused, so sequences of reads are distinguished by their length.
    let mut reads: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for event in &seen.events {
        if let What::Access {
            offset, len, kind, ..
        } = event.what
            && kind == Pread as u8
        {
            reads.entry((event.tid, len)).or_default().push(offset);
        }
    }
    let mut rounds = BTreeMap::new();
    for ((_, len), offsets) in reads {
        let me = u64::from(len) - 10;
        for round in offsets.chunks(1000) {
            let expected: Vec<u64> = (0..1000).map(|i| (i * 4 + me) * 4).collect();
            assert_eq!(round, expected, "thread {me}");
            *rounds.entry(me).or_insert(0) += 1;
        }
    }
    assert_eq!(
        rounds,
        BTreeMap::from([(0, 1), (1, 1), (2, 1), (3, 1), (5, 300)])
    );
}

fn crowd() {
    let stage = Stage::new();
    let program = stage.cc("crowd", &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    assert_eq!(seen.output.status.code(), Some(0), "{:?}", seen.output);
    let mut threads: BTreeMap<u64, u64> = BTreeMap::new();
    for (kind, offset, len) in seen.reads(&stage.data()) {
        assert_eq!((kind, offset % 16, len), (Pread, 0, 16));
        *threads.entry(offset).or_default() += 1;
    }
    // One ring is the main thread's.
    assert!(
        threads.len() >= RINGS - 1,
        "{} threads were seen",
        threads.len()
    );
    assert_eq!(threads.values().sum::<u64>() + seen.lost, 2000);
}

fn shell() {
    let stage = Stage::new();
    let script = stage.path("script");
    let lines = "cat data\n\
                 head -c 100 data\n\
                 (cd / && cat < \"$OLDPWD/other\")\n\
                 exec 3< other\n\
                 head -c 50 <&3 | wc -c\n\
                 cat <&3\n\
                 exec cat other\n";
    std::fs::write(&script, lines).expect("the script");
    let seen = observe("/bin/sh", |command| {
        command
            .arg(&script)
            .current_dir(stage.path(""))
            .env("LC_ALL", "C");
    });
    check_end(&seen, 0);
    assert_eq!(
        seen.reads(&stage.data()),
        [(AtCursor, 0, 20000), (AtCursor, 0, 100)]
    );
    let others = [(0, 9000), (0, 50), (50, 8950), (0, 9000)];
    assert_eq!(
        seen.reads(&stage.other()),
        others.map(|(at, len)| (AtCursor, at, len))
    );
    let script_bytes: u64 = seen.reads(&script).iter().map(|read| read.2).sum();
    assert_eq!(script_bytes, lines.len() as u64);
}

fn build() {
    let stage = Stage::new();
    let write = |name: &str, text: &str| std::fs::write(stage.path(name), text).expect("a source");
    write("shared.h", "int half(int);\n");
    write(
        "half.c",
        "#include \"shared.h\"\nint half(int x) { return x / 2; }\n",
    );
    write(
        "main.c",
        "#include \"shared.h\"\nint main(void) { return half(0); }\n",
    );
    write(
        "Makefile",
        "program: main.o half.o\n\t$(CC) -o $@ $^\n%.o: %.c shared.h\n\t$(CC) -c -o $@ $<\n",
    );
    let seen = observe("make", |command| {
        command
            .args(["-j2", "CC=cc"])
            .current_dir(stage.path(""))
            .env_remove("MAKEFLAGS");
    });
    check_end(&seen, 0);
    assert!(
        Command::new(stage.path("program"))
            .status()
            .is_ok_and(|status| status.success())
    );
    let all = |name: &str| {
        let len = std::fs::metadata(stage.path(name))
            .expect("a built file")
            .len();
        let mut reads: Vec<_> = seen
            .reads(&stage.path(name))
            .iter()
            .map(|read| (read.1, read.1 + read.2))
            .collect();
        reads.sort_unstable();
        let reach = reads.iter().fold(0, |reach, &(from, to)| {
            assert!(from <= reach, "{name}: {reads:?}");
            reach.max(to)
        });
        assert_eq!(reach, len, "{name}: {reads:?}");
    };
    ["Makefile", "main.c", "half.c", "shared.h"]
        .into_iter()
        .for_each(all);
    let programs: BTreeSet<_> = seen.programs().into_iter().collect();
    for program in ["make", "cc1"] {
        assert!(programs.contains(program), "{programs:?}");
    }
    let headers = seen.reads_by(&stage.path("shared.h"));
    let compilers: BTreeSet<u32> = headers.iter().map(|(pid, _)| *pid).collect();
    assert_eq!(
        compilers.len(),
        2,
        "both compilers read the header: {headers:?}"
    );
    for object in ["main.o", "half.o"] {
        let written = seen.opens(&stage.path(object));
        assert!(
            written.len() >= 2,
            "{object} is written by one program and read by another"
        );
        assert!(
            !seen.reads(&stage.path(object)).is_empty(),
            "{object} is linked"
        );
    }
}
