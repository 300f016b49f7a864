//! With the real slicer and runtime: programs behave as they do when compiled without them.

use std::fs;

use foreread_tests::{Lab, Need, eventually, finish, foreread, start, text};
use serde_json::Value;

use super::driver::succeeded;
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "translated_a_reader_behaves_the_same_with_its_prefetch_thread",
        QUICK,
        &[Need::Slicer],
        a_reader,
    ),
    (
        "translated_a_program_in_c_and_cxx_behaves_the_same",
        ALL,
        &[Need::Slicer, Need::Command("make")],
        mixture,
    ),
    (
        "translated_what_a_program_has_closed_can_be_leased_and_unmounted",
        QUICK,
        &[Need::Slicer, Need::Root],
        lets_go,
    ),
    (
        "translated_by_hand_a_program_can_be_read",
        ALL,
        &[Need::Slicer],
        by_hand,
    ),
];

/// Reads a file backward in blocks and adds up its bytes.
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
        if (sum == 12345 && block[0] == 6) {
            fprintf(stderr, "%s is damaged\n", argv[1]);
            exit(4);
        }
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
    // The explanation states the assumptions and the model of the file.
    let said = lab.foreread(&["cc", "--explain", "-O2", "-o", "sliced", "backward.c"]);
    let said = text(&said.stderr);
    for line in ["file (computed): data", "assumed: backward.c:"] {
        assert!(said.contains(line), "{said}");
    }
    // The prefetch thread finds the library next to foreread, and works.
    let report = lab.path("report");
    let mut command = lab.command("./sliced");
    let ran = command
        .arg("data")
        .env("FOREREAD_PREEXEC", "1")
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

/// Reads from a file in no order, closes it, leases it, and unmounts its file system.
const LETS_GO: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv) {
    unsigned char block[4096];
    unsigned long sum = 0;
    if (argc != 3)
        return 3;
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0)
        return 1;
    for (long i = 0; i < 200; i++) {
        if (pread(fd, block, sizeof block, i * 7919 % 256 * 4096) != (ssize_t)sizeof block)
            return 2;
        sum += block[0];
    }
    close(fd);
    fd = open(argv[1], O_RDONLY);
    int leased = fcntl(fd, F_SETLEASE, F_WRLCK);
    printf("%lu, leased %d (%d)\n", sum, leased, leased ? errno : 0);
    fcntl(fd, F_SETLEASE, F_UNLCK);
    close(fd);
    if (umount(argv[2]) != 0)
        perror(argv[2]);
    return 0;
}
"#;

/// In a mount namespace of its own, on an ext4 with nothing in memory, so that the prefetch process fetches.
const MOUNTED: &str = r#"
set -e
mount --make-rprivate /
mkdir -p mount
mount -o loop disk mount
cp data mount/data
sync mount/data
dd if=mount/data iflag=nocache count=0 2>/dev/null
"$1" mount/data mount
! mountpoint -q mount
"#;

fn lets_go() {
    let lab = Lab::new();
    lab.write("lets_go.c", LETS_GO);
    lab.data("data", 2);
    succeeded(&lab.plain(&["truncate", "-s", "16M", "disk"]));
    succeeded(&lab.plain(&["mkfs.ext4", "-q", "disk"]));
    succeeded(&lab.plain(&["cc", "-O2", "-o", "plain", "lets_go.c"]));
    succeeded(&lab.foreread(&["cc", "-O2", "-o", "sliced", "lets_go.c"]));
    let run = |program: &str| {
        let mut command = lab.command("unshare");
        command.args(["-m", "sh", "-c", MOUNTED, "sh", program]);
        finish(start(command.env("FOREREAD_PREEXEC", "1")))
    };
    let plain = run("./plain");
    succeeded(&plain);
    for _ in 0..5 {
        assert_eq!(run("./sliced"), plain);
    }
}

/// A class around a descriptor, and a C function that reads from it.
const BLOCKS: [(&str, &str); 4] = [
    (
        "main.cpp",
        r#"
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>
#include <fcntl.h>
#include <unistd.h>
#include "blocks.h"

namespace blocks {
class File {
public:
    explicit File(const std::string &path) : fd(open(path.c_str(), O_RDONLY)) {
        if (fd < 0)
            throw std::runtime_error("no " + path);
    }
    ~File() { close(fd); }
    unsigned long sum(long block) const { return sum_of(fd, block); }

private:
    int fd;
};
}

int main(int argc, char **argv) {
    try {
        blocks::File file(argc > 1 ? argv[1] : "data");
        std::vector<unsigned long> sums;
        for (long block = 499; block >= 0; block -= 3)
            sums.push_back(file.sum(block));
        for (unsigned long sum : sums)
            std::cout << sum << '\n';
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 3;
    }
    return 0;
}
"#,
    ),
    (
        "blocks.h",
        r#"
#ifdef __cplusplus
extern "C"
#endif
unsigned long sum_of(int fd, long block);
"#,
    ),
    (
        "blocks.c",
        r#"
#include <unistd.h>
#include "blocks.h"

unsigned long sum_of(int fd, long block) {
    unsigned char bytes[4096];
    unsigned long sum = 0;
    if (pread(fd, bytes, sizeof bytes, block * (long)sizeof bytes) != (ssize_t)sizeof bytes)
        return 1;
    for (unsigned i = 0; i < sizeof bytes; i++)
        sum = sum * 31 + bytes[i];
    return sum;
}
"#,
    ),
    (
        "Makefile",
        "prog: main.o blocks.o\n\t$(CXX) -o $@ main.o blocks.o\n",
    ),
];

fn mixture() {
    let lab = Lab::new();
    for (name, text) in BLOCKS {
        lab.write(name, text);
    }
    lab.data("data", 8);
    succeeded(&lab.plain(&["make", "prog"]));
    succeeded(&lab.plain(&["mv", "prog", "plain"]));
    succeeded(&lab.plain(&["rm", "main.o", "blocks.o"]));
    let driver = foreread();
    let driver = driver.display();
    let mut make = lab.command("make");
    make.arg("prog")
        .arg(format!("CC={driver} cc"))
        .arg(format!("CXX={driver} c++"))
        .env("FOREREAD_CC_EXPLAIN", lab.path("why.jsonl"));
    let output = finish(start(&mut make));
    succeeded(&output);
    assert_eq!(text(&output.stderr), "");
    let why = fs::read_to_string(lab.path("why.jsonl")).unwrap();
    let why: Value = serde_json::from_str(&why).unwrap();
    assert_eq!(why["sliced"], true, "{why}");
    for unit in why["units"].as_array().unwrap() {
        assert_eq!(unit["state"], "changed", "{why}");
    }
    for args in [&["data"][..], &["missing"], &[]] {
        let plain = lab.plain(&[&["./plain"], args].concat());
        let sliced = lab.plain(&[&["./prog"], args].concat());
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
