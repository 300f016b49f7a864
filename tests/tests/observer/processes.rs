//! Threads and process trees.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use foreread_plan::Kind::{Pread, Read as AtCursor};
use foreread_ring::{RINGS, What};

use super::harness::{Read, Seen, Stage, check_end, observe};
use foreread_tests::Need;
use foreread_tests::suite::{ALL, QUICK, Test};

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
    (
        "a_helper_thread_leaves_the_programs_descriptors_alone",
        ALL,
        &[Need::Command("cc")],
        helper,
    ),
    (
        "a_forked_child_shares_the_cursor",
        ALL,
        &[Need::Command("cc")],
        fork,
    ),
    (
        "a_vfork_child_leaves_the_parents_descriptors_alone",
        ALL,
        &[Need::Command("cc")],
        vfork,
    ),
    (
        "a_shell_that_the_c_library_starts_moves_the_cursor_it_was_handed",
        ALL,
        &[Need::Command("cc")],
        system,
    ),
    (
        "a_spawned_child_moves_the_cursor_it_was_handed",
        ALL,
        &[Need::Command("cc")],
        spawn,
    ),
    (
        "every_exec_is_followed",
        QUICK,
        &[Need::Command("cc")],
        exec,
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

fn helper() {
    let stage = Stage::new();
    let program = stage.cc("helper", &[]);
    let seen = observe(program, |command| {
        command.arg(stage.data()).arg(stage.other());
    });
    check_end(&seen, 0);
    assert_eq!(
        seen.reads(&stage.data()),
        [(AtCursor, 0, 100), (AtCursor, 100, 100), (Pread, 7000, 100)]
    );
    assert_eq!(seen.opens(&stage.data()), [0], "it is not looked for again");
    assert!(seen.opens(&stage.other()).is_empty());
}

fn threads() {
    let stage = Stage::new();
    let seen = run(&stage, "threads");
    // Thread numbers may be used again, so runs of reads are told apart by their length.
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

/// The reads of the data file, split by whether the started process made them.
fn by_family(seen: &Seen, stage: &Stage) -> (Vec<Read>, Vec<Read>) {
    let parent = seen.events.first().map(|event| event.pid);
    let (parents, others): (Vec<_>, Vec<_>) = seen
        .reads_by(&stage.data())
        .into_iter()
        .partition(|(pid, _)| Some(*pid) == parent);
    let strip = |reads: Vec<(u32, Read)>| reads.into_iter().map(|(_, read)| read).collect();
    (strip(parents), strip(others))
}

fn fork() {
    let stage = Stage::new();
    let (parent, children) = by_family(&run(&stage, "fork"), &stage);
    assert_eq!(
        parent,
        [(AtCursor, 0, 10), (AtCursor, 30, 30), (Pread, 50, 50)]
    );
    let reads = [
        (AtCursor, 10, 20),
        (AtCursor, 0, 21),
        (AtCursor, 21, 22),
        (AtCursor, 60, 40),
    ];
    assert_eq!(children, reads);
}

fn vfork() {
    let stage = Stage::new();
    let (parent, child) = by_family(&run(&stage, "vfork"), &stage);
    assert_eq!(
        parent,
        [(AtCursor, 0, 10), (AtCursor, 10, 20), (AtCursor, 0, 30)]
    );
    assert_eq!(child, [(AtCursor, 30, 19970)]);
}

fn spawn() {
    let stage = Stage::new();
    let seen = run(&stage, "spawn");
    let (parent, child) = by_family(&seen, &stage);
    assert_eq!(parent, [(AtCursor, 0, 10), (AtCursor, 30, 30)]);
    assert_eq!(child, [(AtCursor, 10, 20)]);
    assert!(
        seen.output.stdout.ends_with(b"30\n"),
        "{:?}",
        seen.output.stdout
    );
}

fn system() {
    let stage = Stage::new();
    let (parent, children) = by_family(&run(&stage, "system"), &stage);
    let parents = [
        (AtCursor, 0, 10),
        (AtCursor, 30, 30),
        (AtCursor, 100, 50),
        (AtCursor, 210, 70),
    ];
    assert_eq!(parent, parents);
    let handed = [(AtCursor, 10, 20), (AtCursor, 60, 40), (AtCursor, 150, 60)];
    assert_eq!(children, handed);
}

fn exec() {
    let stage = Stage::new();
    let seen = run(&stage, "exec");
    let reads: Vec<Read> = (1..=9).map(|len| (AtCursor, 0, len)).collect();
    assert_eq!(seen.reads(&stage.data()), reads);
    let heads = seen
        .programs()
        .iter()
        .filter(|name| *name == "head")
        .count();
    assert_eq!(heads, 8);
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
