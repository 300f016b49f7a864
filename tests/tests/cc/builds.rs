//! Build systems: make with all its jobs, configure scripts and CMake use the driver as their compiler.

use foreread_tests::{Need, finish, start, text};

use super::driver::{Driver, READS, succeeded};
use foreread_tests::suite::{ALL, Test};

pub const TESTS: &[Test] = &[
    (
        "make_builds_with_many_jobs",
        ALL,
        &[Need::Command("make")],
        many_jobs,
    ),
    (
        "probes_of_configure_scripts_find_the_same",
        ALL,
        &[],
        probes,
    ),
    (
        "cmake_takes_it_for_the_compiler",
        ALL,
        &[Need::Command("cmake")],
        cmake,
    ),
];

/// Number of parts of the programs.
const PARTS: usize = 12;

/// A project: main.c and parts in two libraries, all of which report themselves.
fn project() -> Driver {
    let driver = Driver::new();
    let mut declared = String::new();
    let mut called = String::new();
    for part in 0..PARTS {
        driver.lab.write(
            &format!("part{part}.c"),
            format!("int part{part}(void) {{ /*here*/ return {part}; }}\n"),
        );
        declared += &format!("int part{part}(void);\n");
        called += &format!("part{part}() + ");
    }
    driver.lab.write("parts.h", declared);
    let main = format!(
        "#include \"parts.h\"\nint main(void) {{ /*here*/ return ({called} 0) * first_byte() * 0; }}\n"
    );
    driver.lab.write("main.c", format!("{READS}{main}"));
    driver
}

/// Asserts that the program has all its units in their changed form.
#[track_caller]
fn is_complete(driver: &Driver, program: &str) {
    let mut units = driver.units_of(program);
    units.sort();
    let mut wanted: Vec<_> = (0..PARTS).map(|part| format!("part{part}.c")).collect();
    wanted.push("main.c".to_owned());
    wanted.sort();
    assert_eq!(units, wanted);
}

fn many_jobs() {
    let driver = project();
    driver.lab.write(
        "Makefile",
        "PARTS := $(patsubst %.c,%.o,$(wildcard part*.c))\n\
         all: one two three four\n\
         one two three four: main.o libparts.a\n\t$(CC) $(CFLAGS) -o $@ main.o -L. -lparts\n\
         libparts.a: $(PARTS)\n\t$(AR) rcs $@ $^\n\
         -include $(wildcard *.d)\n",
    );
    let mut make = driver.lab.command("make");
    make.args(["-j8", "CFLAGS=-O1 -MMD -MP"])
        .arg(format!("CC={}", driver.as_cc()));
    let output = finish(start(&mut make));
    succeeded(&output);
    assert_eq!(text(&output.stderr), "");
    for program in ["one", "two", "three", "four"] {
        is_complete(&driver, program);
    }
    // No target is out of date.
    let again = driver.does("make -q CFLAGS=-O1");
    assert_eq!(again, "");
}

/// The checks that configure scripts make of a compiler, by its status, its messages and the status of its programs.
fn probes() {
    let driver = Driver::new();
    let probes = [
        ("int main(void) { return 0; }", "-o conftest"),
        ("int main(void) { return 0; ", "-o conftest"),
        (
            "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"conftest.out\", \"w\"); return ferror(f) || fclose(f) != 0; }",
            "-o conftest",
        ),
        (
            "char read(); int main(void) { return read(); }",
            "-o conftest",
        ),
        (
            "char no_such_function(); int main(void) { return no_such_function(); }",
            "-o conftest",
        ),
        (
            "char fgets(); int main(void) { return fgets == 0; }",
            "-o conftest -lm",
        ),
        ("#include <no_such_header.h>", "-c"),
        (
            "#include <sys/mman.h>\nint main(void) { return mmap(0, 4096, 1, 34, -1, 0) == (void *)-1; }",
            "-o conftest",
        ),
        (
            "static int a[1 - 2 * !(sizeof(long) == 8)]; int main(void) { return a[0]; }",
            "-c",
        ),
        ("#ifdef __GNUC__\n#error yes\n#endif", "-c -g"),
        (
            "int main(void) { return 0; }",
            "-pedantic-errors -Werror -c",
        ),
        (
            "int main() { puts(\"\"); return 0; }",
            "-Werror=implicit-function-declaration -c",
        ),
        (
            "void f(void); int main(void) { f(); return 0; }",
            "-shared -fPIC -Wl,-soname,x -o conftest.so",
        ),
    ];
    for (source, args) in probes {
        driver.lab.write("conftest.c", source);
        let words: Vec<_> = args.split(' ').chain(["conftest.c"]).collect();
        let plain = driver.lab.plain(&[&["cc"], words.as_slice()].concat());
        let linked =
            plain.status.success() && args.contains("-o conftest") && !args.contains("shared");
        let run = |driver: &Driver| linked.then(|| driver.lab.plain(&["./conftest"]).status);
        let plain_run = run(&driver);
        let ours = driver.cc_words(&words);
        assert_eq!(ours.status, plain.status, "{source}");
        assert_eq!(
            without_temporary(&ours.stderr),
            without_temporary(&plain.stderr),
            "{source}"
        );
        assert_eq!(run(&driver), plain_run, "{source}");
    }
}

/// Messages without the names of temporary objects.
fn without_temporary(bytes: &[u8]) -> String {
    let text = text(bytes);
    text.split(' ')
        .filter(|word| !word.contains("/tmp/cc"))
        .collect()
}

fn cmake() {
    let driver = project();
    driver.lab.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(parts C)\nfile(GLOB PARTS part*.c)\n\
         add_library(parts STATIC ${PARTS})\nadd_executable(prog main.c)\n\
         target_link_libraries(prog parts)\n",
    );
    let mut configure = driver.lab.command("cmake");
    configure.args(["-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release"]);
    let output = finish(start(configure.env("CC", driver.as_cc())));
    succeeded(&output);
    assert!(
        text(&output.stdout).contains("The C compiler identification is"),
        "{output:?}"
    );
    let build = driver
        .lab
        .command("cmake")
        .args(["--build", "build", "-j4"])
        .output();
    succeeded(&build.unwrap());
    is_complete(&driver, "build/prog");
}
