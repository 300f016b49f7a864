//! Programs in languages other than C.

use std::process::Command;

use foreread_plan::Kind::{Pread, Preadv, Read as AtCursor};

use super::harness::{Read, Stage, check_end, observe, source};
use foreread_tests::Need;
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "python_reads_are_seen",
        QUICK,
        &[Need::Command("python3")],
        python,
    ),
    ("java_reads_are_seen", ALL, &[Need::Command("javac")], java),
    ("rust_reads_are_seen", ALL, &[Need::Command("rustc")], rust),
];

fn python() {
    let stage = Stage::new();
    let seen = observe("python3", |command| {
        command.arg(source("reader.py")).arg(stage.data());
    });
    check_end(&seen, 0);
    let reads = [
        (Pread, 12288, 100),
        (AtCursor, 0, 50),
        (AtCursor, 8000, 60),
        (Preadv, 9000, 70),
        (AtCursor, 4096, 4096),
        (AtCursor, 0, 4096),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
}

fn java() {
    let stage = Stage::new();
    stage.build(
        Command::new("javac")
            .arg("-d")
            .arg(stage.path(""))
            .arg(source("Reader.java")),
    );
    let seen = observe("java", |command| {
        command.args(["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp"]);
        command.arg(stage.path("")).arg("Reader").arg(stage.data());
    });
    check_end(&seen, 0);
    let reads: Vec<Read> = vec![
        (AtCursor, 0, 1000),
        (AtCursor, 1500, 1000),
        (AtCursor, 12288, 1000),
        (Pread, 8192, 4096),
        (AtCursor, 0, 100),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
}

fn rust() {
    let stage = Stage::new();
    let program = stage.path("reader");
    stage.build(
        Command::new("rustc")
            .args(["-O", "-o"])
            .arg(&program)
            .arg(source("reader.rs")),
    );
    let seen = observe(program, |command| {
        command.arg(stage.data());
    });
    check_end(&seen, 0);
    let reads: Vec<Read> = vec![
        (AtCursor, 0, 100),
        (AtCursor, 8192, 4096),
        (Pread, 12288, 10),
        (AtCursor, 0, 4096),
    ];
    assert_eq!(seen.reads(&stage.data()), reads);
}
