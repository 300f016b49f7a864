//! For any input, the driver's status, messages and files equal the compiler's.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};

use foreread_tests::{Need, text};

use super::driver::{Driver, READS, succeeded};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "every_command_line_ends_as_the_compilers_does",
        QUICK,
        &[],
        every_command_line,
    ),
    (
        "dependency_files_are_the_compilers",
        ALL,
        &[],
        dependency_files,
    ),
    ("standard_input_is_compiled", ALL, &[], standard_input),
    (
        "a_compiler_that_is_killed_kills_the_driver",
        ALL,
        &[],
        killed,
    ),
    ("a_compiler_that_is_missing_is_named", ALL, &[], missing),
    (
        "another_compiler_can_be_named",
        ALL,
        &[Need::Command("clang-19")],
        another_compiler,
    ),
    (
        "an_object_of_another_compiler_is_left_whole",
        ALL,
        &[Need::Command("clang-19")],
        compiler_changes,
    ),
];

/// Sources for the compilers, good and bad.
fn sources(driver: &Driver) {
    let lab = &driver.lab;
    fs::create_dir(lab.path("out")).unwrap();
    lab.write(
        "good.c",
        format!("{READS}#include \"own.h\"\nint main(void) {{ return first_byte() * 0; }}\n"),
    );
    lab.write("own.h", "extern int own;\n");
    lab.write(
        "warns.c",
        "int f(int unused) { int x; return x; }\n#warning \"listen\"\n",
    );
    lab.write("broken.c", "int main(void) { return }\n");
    lab.write(
        "lonely.c",
        "int other(void);\nint main(void) { return other(); }\n",
    );
    lab.write("tool.c", "int main(void) { return 3; }\n");
    lab.write("words", "-c good.c -o out/good.o");
}

/// The files in `out`, with the content of those that are equal in two compilations.
fn left(driver: &Driver) -> BTreeMap<String, Vec<u8>> {
    let folder = driver.lab.path("out");
    let mut files = BTreeMap::new();
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let compared = [".d", ".i", ".s"]
            .iter()
            .any(|suffix| name.ends_with(suffix));
        let content = if compared {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        files.insert(name, content);
        fs::remove_file(path).unwrap();
    }
    files
}

fn every_command_line() {
    let driver = Driver::new();
    sources(&driver);
    for line in [
        "",
        "-v",
        "--version",
        "--help",
        "-dumpmachine",
        "-dumpversion",
        "-print-prog-name=ld",
        "-print-search-dirs",
        "-qversion",
        "-V",
        "nowhere.c",
        "-c nowhere.c",
        "-o",
        "-c",
        "-c -o out/x.o",
        "@nowhere",
        "@words",
        "-c good.c -o nowhere/x.o",
        "-c good.c tool.c -o out/x.o",
        "-c broken.c -o out/broken.o",
        "broken.c -o out/broken",
        "-c -Wall -Wextra warns.c -o out/warns.o",
        "-c -Wall -Werror warns.c -o out/warns.o",
        "-Wall warns.c good.c -o out/prog",
        "lonely.c -o out/lonely",
        "good.c -lnowhere -o out/prog",
        "good.c nowhere.o -o out/prog",
        "-fno-such-flag -c good.c -o out/x.o",
        "--no-such-flag -c good.c -o out/x.o",
        "-E good.c -o out/good.i",
        "-S -O1 good.c -o out/good.s",
        "-E -dM good.c",
        "-M good.c",
        "-MM -MT x.o good.c",
        "-fsyntax-only -Wall warns.c",
        "-### -c good.c",
        "-save-temps=obj -c good.c -o out/good.o",
        "-MMD -MP -MF out/dep.d -c good.c -o out/good.o",
        "-Wp,-MD,out/wp.d -c good.c -o out/good.o",
        "-MD good.c -o out/prog",
        "-x c++ -c good.c -o out/cpp.o",
        "-x none -c good.c -o out/good.o",
        "-Wl,--no-such-option good.c -o out/prog",
        "-Wl,-Map=out/map good.c -o out/prog",
        "-v -c good.c -o out/good.o",
        "own.h -o out/own.h.gch",
    ] {
        let words: Vec<_> = line.split_whitespace().collect();
        let plain = driver.lab.plain(&[&["cc"], words.as_slice()].concat());
        let plain_left = left(&driver);
        let ours = driver.cc(line);
        assert_eq!(ours.status, plain.status, "{line}");
        assert_eq!(said(&ours.stderr), said(&plain.stderr), "{line}");
        assert_eq!(said(&ours.stdout), said(&plain.stdout), "{line}");
        assert_eq!(left(&driver), plain_left, "{line}");
    }
}

/// Messages without the names of the compiler's temporary files.
fn said(bytes: &[u8]) -> String {
    let text = text(bytes);
    let words = text.split_inclusive(|letter: char| letter.is_whitespace() || letter == '"');
    words.filter(|word| !word.contains("/tmp/cc")).collect()
}

fn dependency_files() {
    let driver = Driver::new();
    sources(&driver);
    driver.builds("-MMD -c good.c -o out/good.o");
    let good = fs::read_to_string(driver.lab.path("out/good.d")).unwrap();
    assert_eq!(good, "out/good.o: good.c own.h\n");
    // Compiling and linking in one step compiles again for the slicer, which must not write another dependency file.
    driver.builds("-MMD good.c -o out/prog");
    let ours = left(&driver);
    driver.does("cc -MMD -c good.c -o out/good.o");
    driver.does("cc -MMD good.c -o out/prog");
    assert_eq!(ours, left(&driver));
    // Dependency files requested by the environment.
    let mut asked = driver.command();
    asked.args(["good.c", "-o", "out/prog"]);
    succeeded(
        &asked
            .env("DEPENDENCIES_OUTPUT", "asked.d")
            .output()
            .unwrap(),
    );
    let asked = fs::read_to_string(driver.lab.path("asked.d")).unwrap();
    assert_eq!(asked.lines().count(), 1, "{asked}");
}

fn with_input(mut command: std::process::Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn standard_input() {
    let driver = Driver::new();
    for args in ["-x c - -o prog", "-x c -c - -o prog.o"] {
        let mut command = driver.command();
        command.args(args.split(' '));
        let output = with_input(command, "int main(void) { return 5; }\n");
        assert!(output.status.success(), "{output:?}");
    }
    driver.does("cc prog.o -o prog2");
    for program in ["./prog", "./prog2"] {
        assert_eq!(driver.lab.plain(&[program]).status.code(), Some(5));
    }
}

fn killed() {
    let driver = Driver::new();
    sources(&driver);
    driver.lab.script("killed", "#!/bin/sh\nkill -TERM $$\n");
    let mut command = driver.command();
    let output = command
        .env("FOREREAD_CC", driver.lab.path("killed"))
        .args(["-c", "good.c"])
        .output();
    assert_eq!(output.unwrap().status.signal(), Some(15));
}

fn missing() {
    let driver = Driver::new();
    sources(&driver);
    for args in [["-c", "good.c"], ["-E", "good.c"]] {
        let output = driver
            .command()
            .env("FOREREAD_CC", "no-such-cc -O2")
            .args(args)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(127));
        assert!(
            text(&output.stderr).starts_with("foreread: no-such-cc: "),
            "{output:?}"
        );
    }
}

fn another_compiler() {
    let driver = Driver::new();
    sources(&driver);
    driver.lab.write(
        "which.c",
        format!(
            "{READS}int main(void) {{ /*here*/ puts(__VERSION__); return first_byte() * 0; }}\n"
        ),
    );
    let build = |args: &str| {
        let mut command = driver.command();
        let output = command
            .env("FOREREAD_CC", "clang-19 -O1")
            .args(args.split(' '))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    build("-c which.c");
    build("which.o -o prog");
    assert_eq!(driver.units_of("prog"), ["which.c"]);
    assert!(driver.does("./prog").contains("Clang"));
}

fn compiler_changes() {
    let driver = Driver::new();
    driver.lab.write(
        "main.c",
        format!("{READS}int main(void) {{ /*here*/ return first_byte() * 0; }}\n"),
    );
    let output = driver
        .command()
        .env("FOREREAD_CC", "clang-19")
        .args(["-c", "main.c"])
        .output();
    assert!(output.unwrap().status.success());
    driver.builds("main.o -o prog");
    assert!(driver.units_of("prog").is_empty());
    assert_eq!(
        driver.why_whole("main.o"),
        "compiled by clang-19, and linked by cc"
    );
}
