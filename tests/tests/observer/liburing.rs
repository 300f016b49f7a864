//! Programs that read by liburing, by each observer.

use std::fs;
use std::process::Command;

use foreread_plan::Kind::{Pread, Read as AtCursor};
use foreread_tests::Need;
use foreread_tests::suite::{ALL, Test};

use super::conform::{built, reads_of, record, said};
use super::harness::{Read, Stage};

pub const TESTS: &[Test] = &[
    (
        "reads_of_liburing_programs_are_seen_without_root",
        ALL,
        &[Need::Command("cc")],
        liburing_by_preload,
    ),
    (
        "a_program_that_loads_liburing_later_runs_as_ever",
        ALL,
        &[Need::Command("cc")],
        liburing_loaded_later,
    ),
];

/// The one that takes eBPF.
pub const EBPF: &[Test] = &[(
    "ebpf_sees_reads_by_liburing_and_of_registered_files",
    ALL,
    &[Need::Ebpf, Need::Command("cc")],
    liburing_by_ebpf,
)];

/// What the program on liburing reads at places, and by files that were not registered.
const LIBURING: &[Read] = &[
    (Pread, 12288, 100),
    (Pread, 0, 10),
    (Pread, 1000, 10),
    (Pread, 2000, 10),
    (Pread, 3000, 10),
    (Pread, 4000, 10),
    (Pread, 5000, 10),
    (Pread, 6000, 10),
    (Pread, 7000, 10),
    (Pread, 8000, 10),
    (Pread, 5000, 4100),
    (Pread, 7000, 64),
    (Pread, 19000, 1000),
];

/// Records the program on liburing; `None` where that cannot be.
fn liburing(observer: &str) -> Option<Vec<Read>> {
    let stage = Stage::new();
    if !built(&stage, "liburing", ("cc", &["-luring"])) {
        eprintln!("skipped: no liburing to build with (liburing-dev)");
        return None;
    }
    let data = stage.data();
    let command = ["./liburing", data.to_str().expect("text")];
    let output = record(&stage, observer, &command);
    if output.status.code() == Some(99) {
        eprintln!("skipped: io_uring is not to be had: {}", said(&output));
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(reads_of(&stage, &data))
}

fn liburing_by_preload() {
    let Some(reads) = liburing("preload") else {
        return;
    };
    // The 33 bytes before it were read at the cursor by io_uring, which is asked for.
    let after = [(AtCursor, 33, 7)];
    assert_eq!(reads, [LIBURING, &after].concat());
}

fn liburing_by_ebpf() {
    let Some(mut reads) = liburing("ebpf") else {
        return;
    };
    // Of several that are submitted at once the kernel may begin with any.
    reads[1..10].sort_by_key(|(_, offset, _)| *offset);
    let more = [(Pread, 0, 33), (AtCursor, 33, 7), (Pread, 300, 20)];
    let mut all = [LIBURING, &more].concat();
    all[1..10].sort_by_key(|(_, offset, _)| *offset);
    assert_eq!(reads, all);
}

fn liburing_loaded_later() {
    let stage = Stage::new();
    // The same program as a library, which is loaded out of everybody's reach.
    let library: &[&str] = &["-shared", "-fPIC", "-Dmain=reads", "-luring"];
    let renamed = built(&stage, "liburing", ("cc", library));
    if !renamed {
        eprintln!("skipped: no liburing to build with (liburing-dev)");
        return;
    }
    let loader = "#include <dlfcn.h>\nint main(int count, char **words) {\
        void *library = dlopen(\"./liburing\", RTLD_NOW | RTLD_LOCAL);\
        int (*reads)(int, char **) = library ? (int (*)(int, char **))dlsym(library, \"reads\") : 0;\
        return reads ? reads(count, words) : 98; }\n";
    fs::write(stage.path("loader.c"), loader).expect("a source");
    let mut compile = Command::new("cc");
    stage.build(compile.args(["-o", "loader", "loader.c", "-ldl"]));
    let data = stage.data();
    let command = ["./loader", data.to_str().expect("text")];
    let plain = Command::new(stage.path("loader"))
        .arg(&data)
        .current_dir(stage.path(""))
        .output()
        .expect("the program");
    let output = record(&stage, "preload", &command);
    assert_ne!(plain.status.code(), Some(98), "liburing is loaded");
    assert_eq!(output.status, plain.status, "{output:?}");
    assert_eq!(output.stdout, plain.stdout);
}
