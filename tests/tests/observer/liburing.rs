//! Programs that load liburing dynamically.

use std::fs;
use std::process::Command;

use foreread_tests::Need;
use foreread_tests::suite::{ALL, Test};

use super::harness::Stage;
use super::recorded::{built, record_command};

pub const TESTS: &[Test] = &[(
    "a_program_that_loads_liburing_later_runs_as_ever",
    ALL,
    &[Need::Command("cc")],
    liburing_loaded_later,
)];

fn liburing_loaded_later() {
    let stage = Stage::new();
    // The same program as a library that is loaded into a scope of its own.
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
    let output = record_command(&stage, "preload", &command);
    assert_ne!(plain.status.code(), Some(98), "liburing is loaded");
    assert_eq!(output.status, plain.status, "{output:?}");
    assert_eq!(output.stdout, plain.stdout);
}
