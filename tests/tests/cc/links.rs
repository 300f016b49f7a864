//! Programs: every way to link one, with the changed units in place of the originals.

use std::fs;

use foreread_tests::text;

use super::driver::{Driver, READS, succeeded};
use super::objects::two_units;
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "sources_and_objects_can_be_mixed_in_one_step",
        QUICK,
        &[],
        one_step,
    ),
    (
        "of_a_library_the_members_taken_are_replaced",
        ALL,
        &[],
        members_of_libraries,
    ),
    (
        "a_thin_librarys_members_are_replaced",
        ALL,
        &[],
        thin_libraries,
    ),
    (
        "a_library_can_be_named_in_every_way",
        ALL,
        &[],
        ways_to_name_a_library,
    ),
    ("response_files_are_read", ALL, &[], response_files),
    ("paths_may_hold_blanks", ALL, &[], blanks),
    (
        "a_unit_keeps_its_name_its_lines_and_its_headers",
        ALL,
        &[],
        names_and_headers,
    ),
    (
        "sources_of_the_same_name_are_told_apart",
        ALL,
        &[],
        same_names,
    ),
    ("a_source_may_be_called_anything", ALL, &[], called_anything),
    ("what_reads_nothing_is_not_sliced", ALL, &[], reads_nothing),
    (
        "what_is_no_program_is_linked_as_it_is",
        ALL,
        &[],
        no_program,
    ),
    (
        "without_the_tools_programs_are_plain",
        QUICK,
        &[],
        without_tools,
    ),
    (
        "a_slicer_that_fails_costs_the_prefetch_thread_alone",
        ALL,
        &[],
        failing_slicer,
    ),
    (
        "a_unit_that_does_not_compile_is_left_whole",
        ALL,
        &[],
        does_not_compile,
    ),
    (
        "a_unit_the_slicer_makes_nothing_of_says_why",
        ALL,
        &[],
        makes_nothing_of,
    ),
    (
        "a_program_that_does_not_link_stays_plain",
        ALL,
        &[],
        does_not_link,
    ),
    (
        "a_program_keeps_its_mode_and_its_link",
        ALL,
        &[],
        mode_and_link,
    ),
    ("an_explanation_says_what_was_done", ALL, &[], explanation),
    (
        "a_program_with_functions_of_the_c_librarys_is_left_whole",
        ALL,
        &[],
        own_functions,
    ),
];

fn one_step() {
    let driver = two_units();
    driver.builds("main.c part.c -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
    driver.builds("-c part.c");
    driver.builds("-O2 main.c part.o");
    assert_eq!(driver.units_of("a.out"), ["main.c", "part.c"]);
    assert_eq!(driver.explained()["sliced"], true);
}

fn members_of_libraries() {
    let driver = two_units();
    // If this member were linked too, main would be defined twice.
    driver.lab.write(
        "unused.c",
        "int unused(void) { /*here*/ return 1; }\nint main(void) { return 1; }\n",
    );
    driver.builds("-c main.c part.c unused.c");
    driver.does("ar qcs libpart.a unused.o part.o");
    driver.builds("main.o libpart.a -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
    let explained = driver.explained();
    let units = explained["units"].as_array().unwrap();
    assert!(
        units.iter().all(|unit| unit["name"] != "unused.c"),
        "{explained}"
    );
    // The library itself is unchanged.
    driver.does("cc main.o libpart.a -o plain");
    assert!(driver.units_of("plain").is_empty());
}

fn thin_libraries() {
    let driver = two_units();
    fs::create_dir(driver.lab.path("sub")).unwrap();
    driver.builds("-c main.c");
    driver.builds("-c part.c -o sub/part.o");
    driver.does("ar qcsT sub/libpart.a sub/part.o");
    driver.builds("main.o sub/libpart.a -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
}

fn ways_to_name_a_library() {
    let driver = two_units();
    fs::create_dir(driver.lab.path("lib")).unwrap();
    driver.builds("-c main.c part.c");
    driver.does("ar qcs lib/libpart.a part.o");
    for named in [
        "lib/libpart.a",
        "-Llib -lpart",
        "-L lib -l part -lm",
        "-Llib -l:libpart.a",
        "-Wl,--start-group,lib/libpart.a,--end-group",
        "-Wl,--whole-archive lib/libpart.a -Wl,--no-whole-archive",
        "-Wl,--start-group -Llib -lpart -lpart -Wl,--end-group",
        "lib/libpart.a -lm lib/libpart.a",
    ] {
        driver.builds(&format!("main.o {named} -o prog"));
        assert_eq!(driver.units_of("prog"), ["main.c", "part.c"], "{named}");
        let explained = driver.explained();
        assert_eq!(
            explained["units"].as_array().map(Vec::len),
            Some(2),
            "{named}"
        );
    }
}

fn response_files() {
    let driver = two_units();
    driver
        .lab
        .write("compile.rsp", "-c 'main.c'\n  -DTEXT=\"\\\"a b\\\"\"");
    driver.builds("@compile.rsp");
    assert!(driver.has_record("main.o"));
    driver.builds("-c part.c");
    driver.lab.write("link.rsp", "main.o\npart.o -o prog");
    driver.builds("@link.rsp");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
}

fn blanks() {
    let driver = two_units();
    fs::create_dir(driver.lab.path("a b")).unwrap();
    for name in ["main.c", "part.c"] {
        fs::rename(driver.lab.path(name), driver.lab.path("a b").join(name)).unwrap();
    }
    succeeded(&driver.cc_words(&["-c", "a b/main.c", "-o", "a b/main \"1\".o"]));
    succeeded(&driver.cc_words(&["-c", "a b/part.c", "-o", "a b/part.o"]));
    succeeded(
        &driver
            .lab
            .plain(&["ar", "qcs", "a b/libpart.a", "a b/part.o"]),
    );
    succeeded(&driver.cc_words(&["a b/main \"1\".o", "-La b", "-lpart", "-o", "a b/the prog"]));
    assert_eq!(driver.units_of("a b/the prog"), ["main.c", "part.c"]);
}

fn own_functions() {
    let driver = two_units();
    driver.lab.write(
        "part.c",
        "char *getenv(const char *name) { return 0; }\nint part(void) { /*here*/ return 0; }\n",
    );
    driver.lab.write(
        "wrap.c",
        "char *__wrap_getenv(const char *name) { return 0; }\nint part(void) { /*here*/ return 0; }\n",
    );
    for line in ["part.c", "-Wl,--wrap=getenv wrap.c"] {
        driver.builds(&format!("main.c {line} -o prog"));
        assert!(driver.units_of("prog").is_empty());
        assert_eq!(
            driver.why(),
            "it has a getenv() of its own, which the runtime would call"
        );
    }
}

/// The names in a program's messages: its own name as its author wrote it, a line's number, headers' names.
fn names_and_headers() {
    let driver = Driver::new();
    let body = "#include \"local.h\"\nint main(void) { /*here*/ printf(\"%s %d %s %d\\n\", __FILE__, \
                __LINE__, local(), WHICH); puts(__BASE_FILE__); puts(__TIMESTAMP__); return first_byte() * 0; }\n";
    for folder in ["src", "src/deep"] {
        fs::create_dir(driver.lab.path(folder)).unwrap();
    }
    for (name, which) in [("local.h", 1), ("src/local.h", 2), ("src/deep/local.h", 3)] {
        let header = format!(
            "#define WHICH {which}\nstatic const char *local(void) {{ return __FILE__; }}\n"
        );
        driver.lab.write(name, header);
    }
    for source in ["main.c", "src/main.c", "src/deep/main.c"] {
        driver.lab.write(source, format!("{READS}{body}"));
        driver.does(&format!("touch -d 2001-02-03T04:05:06 {source}"));
        let absolute = driver.lab.path(source);
        for named in [source, &format!("./{source}"), absolute.to_str().unwrap()] {
            driver.builds(&format!("-I. -Isrc {named} -o prog"));
            driver.does(&format!("cc -I. -Isrc {named} -o plain"));
            assert_eq!(driver.units_of("prog"), ["main.c"], "{named}");
            assert_eq!(driver.does("./prog"), driver.does("./plain"), "{named}");
        }
    }
}

fn same_names() {
    let driver = two_units();
    fs::create_dir(driver.lab.path("sub")).unwrap();
    driver
        .lab
        .write("sub/main.c", "int part(void) { /*here*/ return 0; }\n");
    driver.builds("main.c sub/main.c -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "main.c"]);
}

fn called_anything() {
    let driver = two_units();
    fs::rename(driver.lab.path("part.c"), driver.lab.path("part.in")).unwrap();
    driver.builds("-x c part.in -x none main.c -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.in"]);
    driver.builds("-o prog main.c -x c part.in");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.in"]);
}

fn reads_nothing() {
    let driver = Driver::new();
    driver
        .lab
        .write("main.c", "int main(void) { /*here*/ return 0; }\n");
    driver.builds("main.c -o prog");
    assert_eq!(driver.why(), "it reads no files through the C library");
    assert!(driver.units_of("prog").is_empty());
}

fn no_program() {
    let driver = two_units();
    driver.builds("-fPIC -c main.c part.c");
    for (args, why) in [
        ("-shared main.o part.o -o lib.so", "linked with -shared"),
        ("-r main.o part.o -o both.o", "linked with -r"),
        ("-static main.o part.o -o prog", "linked with -static"),
        (
            "-static-pie -fPIE main.c part.c -o prog",
            "linked with -static-pie",
        ),
        ("-flto main.c part.c -o prog", "linked with -flto"),
        (
            "-fsanitize=address main.c part.c -o prog",
            "linked with -fsanitize=address",
        ),
        (
            "-fsanitize=undefined main.c part.c -o prog",
            "linked with -fsanitize=undefined",
        ),
        ("--coverage main.c part.c -o prog", "linked with --coverage"),
    ] {
        driver.builds(args);
        assert_eq!(driver.why(), why);
    }
}

fn without_tools() {
    for tool in [
        "foreread-slice",
        "libforeread_preexec.a",
        "foreread_preexec.h",
    ] {
        let driver = two_units().without(tool);
        // The message comes once per program, not for its objects.
        driver.builds("-c main.c");
        driver.builds("-c part.c");
        let output = driver.cc("main.o part.o -o prog");
        succeeded(&output);
        let said = text(&output.stderr);
        let start = "foreread cc: prog: no prefetch thread: the translator is missing: ";
        assert!(said.starts_with(start), "{said}");
        assert!(said.contains(tool) && said.contains("make slicer builds it"));
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(driver.units_of("prog").is_empty());
        assert!(driver.why().contains(tool), "{}", driver.why());
        // With --explain the message is printed, and once.
        let output = driver.cc("--explain main.o part.o -o prog");
        assert_eq!(text(&output.stderr).matches("is missing").count(), 1);
        // A shared library can have no prefetch thread, so the missing tool is no problem.
        driver.builds("-shared -fPIC main.c part.c -o lib.so");
        // With -w the message is suppressed.
        driver.builds("-w main.c part.c -o prog");
        let mut silent = driver.command();
        silent.env("FOREREAD_CC_EXPLAIN", "0");
        let output = silent.args(["main.o", "part.o", "-o", "prog"]).output();
        assert_eq!(text(&output.unwrap().stderr), "");
    }
    let driver = two_units();
    let mut named = driver.command();
    named.env("FOREREAD_SLICE", "/no/such/translator");
    let output = named.args(["main.c", "part.c", "-o", "prog"]).output();
    let said = text(&output.unwrap().stderr);
    assert!(
        said.contains("the translator is missing: /no/such/translator"),
        "{said}"
    );
}

fn failing_slicer() {
    let driver = two_units();
    let output = driver
        .command()
        .env("FAKE_FAILS", "1")
        .args(["main.c", "part.c", "-o", "prog"])
        .output();
    let output = output.unwrap();
    succeeded(&output);
    assert_eq!(text(&output.stderr), "");
    assert!(driver.units_of("prog").is_empty());
    assert!(driver.why().contains("no luck today"), "{}", driver.why());
    driver
        .lab
        .script("tools/foreread-slice", "#!/bin/sh\necho nonsense\n");
    driver.builds("main.c part.c -o prog");
    assert!(driver.units_of("prog").is_empty());
    assert!(
        driver.why().starts_with("the slicer's answer"),
        "{}",
        driver.why()
    );
    driver.lab.script(
        "tools/foreread-slice",
        "#!/bin/sh\necho '{\"units\":[{\"index\":7,\"output\":\"x\"}]}'\n",
    );
    driver.builds("main.c part.c -o prog");
    assert!(driver.why().contains("was not given"), "{}", driver.why());
}

fn does_not_compile() {
    let driver = two_units();
    driver.builds("-c main.c part.c");
    let output = driver
        .command()
        .env("FAKE_BREAKS", "part.c")
        .args(["main.o", "part.o", "-o", "prog"])
        .output();
    succeeded(&output.unwrap());
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    let why = driver.why_whole("part.c");
    assert!(
        why.starts_with("does not compile when sliced: part.c:1:"),
        "{why}"
    );
}

fn makes_nothing_of() {
    let driver = two_units();
    driver.lab.write(
        "part.c",
        "/* nonsense to me */ int part(void) { return 0; }\n",
    );
    driver.builds("main.c part.c -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    assert_eq!(driver.why_whole("part.c"), "it does not parse");
}

fn does_not_link() {
    let driver = two_units();
    driver.does("ar d tools/libforeread_preexec.a runtime.o");
    driver.builds("main.c part.c -o prog");
    assert!(driver.units_of("prog").is_empty());
    let why = driver.why();
    assert!(why.starts_with("it does not link when sliced:\n"), "{why}");
    // Not only the line in which the linker's caller sums up.
    assert!(why.contains("undefined reference to `fake'"), "{why}");
}

fn mode_and_link() {
    use std::os::unix::fs::PermissionsExt;
    let driver = two_units();
    driver.lab.write("real", "");
    std::os::unix::fs::symlink("real", driver.lab.path("prog")).unwrap();
    driver.builds("main.c part.c -o prog");
    driver.does("cc main.c part.c -o plain");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
    let mode = |name: &str| {
        fs::metadata(driver.lab.path(name))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("prog"), mode("plain"));
    let link = |name: &str| {
        fs::symlink_metadata(driver.lab.path(name))
            .unwrap()
            .is_symlink()
    };
    driver.does("cc main.c part.c -o real");
    assert_eq!(link("prog"), driver.lab.path("prog").is_symlink());
    // No hidden file is left beside the program.
    let hidden = fs::read_dir(driver.lab.path("")).unwrap().filter(|file| {
        file.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".foreread")
    });
    assert_eq!(hidden.count(), 0);
}

fn explanation() {
    let driver = two_units();
    let output = driver.cc("--explain main.c part.c -o prog");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("foreread cc: prog: has a prefetch thread"),
        "{said}"
    );
    assert!(
        said.contains("  part.c: changed\n") && said.contains("  main.c:1: main: sliced\n"),
        "{said}"
    );
    let explained = driver.explained();
    assert_eq!(explained["output"], "prog");
    assert!(explained["bytes"]["sliced"].as_u64() > explained["bytes"]["plain"].as_u64());
    assert!(explained["seconds"]["slicing"].as_f64() > Some(0.0));
    let quiet = driver
        .command()
        .env("FOREREAD_CC_EXPLAIN", "1")
        .args(["-c", "-flto", "part.c"])
        .output();
    assert_eq!(
        text(&quiet.unwrap().stderr),
        "foreread cc: part.o: no prefetch thread: compiled with -flto\n"
    );
}
