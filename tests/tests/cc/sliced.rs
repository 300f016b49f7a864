//! With the real slicer and runtime: programs behave as they do without.

use std::fs;

use foreread_tests::{Lab, eventually, finish, foreread, start, text};
use serde_json::Value;

use crate::Test;
use crate::driver::succeeded;

pub const TESTS: &[Test] = &[
    (
        "translated_a_reader_behaves_the_same_with_its_prefetch_thread",
        &[],
        a_reader,
    ),
    ("translated_by_hand_a_program_can_be_read", &[], by_hand),
];

/// Reads a file backward in blocks and adds up what is there.
const BACKWARD: &str = r#"
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    unsigned char block[4096];
    unsigned long sum = 0;
    if (argc != 2)
        return 3;
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0) {
        perror(argv[1]);
        return 1;
    }
    off_t blocks = lseek(fd, 0, SEEK_END) / (off_t)sizeof block;
    for (off_t i = blocks - 1; i >= 0; i--) {
        lseek(fd, i * (off_t)sizeof block, SEEK_SET);
        if (read(fd, block, sizeof block) != (ssize_t)sizeof block)
            return 2;
        for (unsigned j = 0; j < sizeof block; j++)
            sum = sum * 31 + block[j];
    }
    printf("%lu %ld\n", sum, (long)lseek(fd, 0, SEEK_CUR));
    assert(sum != 12345);
    return close(fd);
}
"#;

fn a_reader() {
    let lab = Lab::new();
    lab.write("backward.c", BACKWARD);
    lab.data("data", 8);
    succeeded(&lab.plain(&["cc", "-O2", "-o", "plain", "backward.c"]));
    let mut command = lab.command(foreread());
    command.args(["cc", "-O2", "-o", "sliced", "backward.c"]);
    succeeded(&finish(start(
        command.env("FOREREAD_CC_EXPLAIN", lab.path("why.jsonl")),
    )));
    let why = fs::read_to_string(lab.path("why.jsonl")).unwrap();
    let why: Value = serde_json::from_str(&why).unwrap();
    assert_eq!(why["sliced"], true, "{why}");
    // The prefetch thread finds the library that foreread came with, and works.
    let report = lab.path("report");
    let mut command = lab.command("./sliced");
    let ran = command
        .arg("data")
        .env("FOREREAD_PREEXEC_REPORT", &report)
        .env_remove("LD_LIBRARY_PATH");
    succeeded(&finish(start(ran)));
    eventually("the account of the prefetch thread", || {
        fs::read_to_string(&report).is_ok_and(|text| text.ends_with('\n'))
    });
    let account: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert_eq!(account["program_calls"], 2048, "{account}");
    assert!(account["library"].is_string(), "{account}");
    for args in [&["data"][..], &["missing"], &[], &["."]] {
        let plain = lab.plain(&[&["./plain"], args].concat());
        let sliced = lab.plain(&[&["./sliced"], args].concat());
        assert_eq!(sliced, plain, "{args:?}");
    }
}

fn by_hand() {
    let lab = Lab::new();
    lab.write("backward.c", BACKWARD);
    let output = lab.foreread(&["slice", "backward.c", "-o", "backward.pf.c"]);
    succeeded(&output);
    let sliced = fs::read_to_string(lab.path("backward.pf.c")).unwrap();
    assert!(sliced.contains("prefetch_read"), "{sliced}");
    let help = lab.foreread(&["slice", "--help"]);
    assert!(text(&help.stdout).contains("--prefetch"), "{help:?}");
}
