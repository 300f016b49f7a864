//! Records in objects: present where possible, correct when they are read, and removed from programs.

use foreread_tests::text;

use super::driver::{Driver, READS};
use foreread_tests::suite::{ALL, QUICK, Test};

pub const TESTS: &[Test] = &[
    (
        "an_object_carries_a_record_and_a_program_does_not",
        QUICK,
        &[],
        an_object_carries_a_record,
    ),
    (
        "records_outlive_stripping_and_archives",
        ALL,
        &[],
        records_outlive_stripping_and_archives,
    ),
    (
        "an_object_made_of_several_is_left_whole",
        ALL,
        &[],
        an_object_made_of_several_is_left_whole,
    ),
    (
        "an_object_whose_symbols_were_changed_is_left_whole",
        ALL,
        &[],
        changed_symbols,
    ),
    (
        "a_unit_whose_source_has_changed_is_left_whole",
        ALL,
        &[],
        a_changed_source,
    ),
    (
        "link_time_and_profiled_code_is_left_whole",
        ALL,
        &[],
        link_time_code_is_left_whole,
    ),
    (
        "a_unit_one_of_whose_headers_has_changed_is_left_whole",
        ALL,
        &[],
        a_changed_header,
    ),
    ("units_in_cxx_are_units_as_well", ALL, &[], units_in_cxx),
    (
        "other_languages_are_left_alone",
        ALL,
        &[],
        other_languages_are_left_alone,
    ),
    (
        "a_record_that_starts_programs_does_not_count",
        ALL,
        &[],
        a_record_that_starts_programs,
    ),
    (
        "a_record_that_does_not_parse_does_not_count",
        ALL,
        &[],
        a_record_that_does_not_parse,
    ),
    (
        "a_precompiled_header_is_the_compilers_alone",
        ALL,
        &[],
        a_precompiled_header,
    ),
    (
        "an_object_in_place_of_a_device_stays_one",
        ALL,
        &[],
        a_device,
    ),
];

/// A program of two units, main.c and part.c, which report themselves.
pub fn two_units() -> Driver {
    let driver = Driver::new();
    let main = "int part(void);\nint main(void) { /*here*/ return part() + first_byte() * 0; }\n";
    driver.lab.write("main.c", format!("{READS}{main}"));
    driver
        .lab
        .write("part.c", "int part(void) { /*here*/ return 0; }\n");
    driver
}

fn an_object_carries_a_record() {
    let driver = two_units();
    driver.builds("-O2 -c main.c part.c");
    assert!(driver.has_record("main.o") && driver.has_record("part.o"));
    // Apart from the record, the object equals the compiler's.
    driver.does("cc -O2 -c -o plain.o part.c");
    driver.does("objcopy -R .foreread.cc part.o bare.o");
    driver.does("objcopy plain.o plain2.o");
    assert_eq!(
        driver
            .does("objdump -drst bare.o")
            .lines()
            .skip(2)
            .collect::<Vec<_>>(),
        driver
            .does("objdump -drst plain2.o")
            .lines()
            .skip(2)
            .collect::<Vec<_>>()
    );
    driver.builds("main.o part.o -o prog");
    assert!(!driver.has_record("prog"));
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
    // Another linker accepts the objects as well.
    driver.does("cc main.o part.o -o plain");
    assert!(!driver.has_record("plain"));
    assert!(driver.units_of("plain").is_empty());
}

fn records_outlive_stripping_and_archives() {
    let driver = two_units();
    driver.builds("-g -c main.c part.c");
    driver.does("strip -g part.o");
    driver.does("ar qcs libpart.a part.o");
    driver.builds("main.o libpart.a -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
}

fn an_object_made_of_several_is_left_whole() {
    let driver = two_units();
    driver
        .lab
        .write("other.c", "int other(void) { return 1; }\n");
    driver.builds("-c main.c part.c other.c");
    driver.does("ld -r part.o other.o -o both.o");
    driver.builds("main.o both.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    assert_eq!(
        driver.why_whole("both.o"),
        "put together of several objects"
    );
    // Joined with an object that has no record, the result would look like one unit.
    driver.does("cc -c other.c -o plain.o");
    driver.does("ld -r part.o plain.o -o both.o");
    driver.builds("main.o both.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    assert_eq!(driver.why_whole("both.o"), "changed since it was compiled");
}

fn changed_symbols() {
    let driver = two_units();
    driver.lab.write("uses.c", format!("{READS}int renamed(void);\nint main(void) {{ /*here*/ return renamed() + 0 * first_byte(); }}\n"));
    driver.builds("-c uses.c part.c");
    driver.does("objcopy --redefine-sym part=renamed part.o");
    driver.builds("uses.o part.o -o prog");
    assert_eq!(driver.units_of("prog"), ["uses.c"]);
    assert_eq!(driver.why_whole("part.o"), "changed since it was compiled");
}

fn a_changed_source() {
    let driver = two_units();
    driver.builds("-c main.c part.c");
    driver
        .lab
        .write("part.c", "int part(void) { /*here*/ return 7; }\n");
    driver.builds("main.o part.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    assert_eq!(driver.why_whole("part.o"), "its source has changed");
}

fn a_changed_header() {
    let driver = two_units();
    let header = driver.lab.path("the #1.h");
    std::fs::write(&header, "#define N 7\n").unwrap();
    let part = "#include \"the #1.h\"\nint part(void) { /*here*/ return N * 0; }\n";
    driver.lab.write("part.c", part);
    driver.builds("-c main.c part.c");
    driver.builds("main.o part.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
    std::fs::write(&header, "#define N 8\n").unwrap();
    driver.builds("main.o part.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    let why = driver.why_whole("part.c");
    assert!(
        why.ends_with("the #1.h has changed since it was compiled"),
        "{why}"
    );
    // A header whose text already stands in the unit, so that the unit no longer includes it.
    let part = "/* stands here: the #1.h */ int part(void) { /*here*/ return 0; }\n";
    driver.lab.write("part.c", part);
    driver.builds("-c part.c");
    driver.builds("main.o part.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c", "part.c"]);
    std::fs::write(&header, "#define N 9\n").unwrap();
    driver.builds("main.o part.o -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
}

fn link_time_code_is_left_whole() {
    let driver = two_units();
    for flag in ["-flto", "-flto=auto -ffat-lto-objects", "-pg"] {
        driver.builds(&format!("{flag} -c part.c"));
        assert!(!driver.has_record("part.o"));
        driver.builds("-c main.c");
        driver.builds("main.o part.o -o prog");
        assert_eq!(driver.units_of("prog"), ["main.c"]);
    }
    driver.builds("-flto main.c part.c -o prog");
    assert!(driver.units_of("prog").is_empty());
    assert_eq!(driver.why(), "linked with -flto");
}

fn units_in_cxx() {
    let driver = two_units();
    driver.lab.write(
        "part.cpp",
        "extern \"C\" int part() { bool none = false; /*here*/ return none; }\n",
    );
    driver.builds("-c main.c");
    for by_cxx in [true, false] {
        if by_cxx {
            driver.builds_cxx("-c part.cpp");
            driver.builds_cxx("main.o part.o -o prog");
        } else {
            driver.builds("-c part.cpp");
            driver.builds("main.o part.o -lstdc++ -o prog");
        }
        assert!(driver.has_record("part.o"));
        assert_eq!(driver.units_of("prog"), ["main.c", "part.cpp"]);
    }
    // The C++ compiler treats every source as C++.
    let main = "int main() { bool none = false; /*here*/ return none; }\n";
    driver.lab.write("main.c", format!("{READS}{main}"));
    driver.builds_cxx("main.c -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
    // The header that is included first in every source is not C.
    driver.lab.write("all.hpp", "class All {};\n");
    driver.builds_cxx("-include all.hpp main.c -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
}

fn other_languages_are_left_alone() {
    let driver = two_units();
    driver.lab.write(
        "part.s",
        ".globl part\npart: xor %eax, %eax\nret\n.section .note.GNU-stack\n",
    );
    driver.builds("-c part.s -o part.o");
    driver.does("cc -c part.s -o plain.o");
    assert_eq!(
        std::fs::read(driver.lab.path("part.o")).unwrap(),
        std::fs::read(driver.lab.path("plain.o")).unwrap()
    );
    driver.builds("main.c part.s -o prog");
    assert_eq!(driver.units_of("prog"), ["main.c"]);
}

/// A copy of part.o with a changed record.
fn forge(driver: &Driver, change: impl Fn(String) -> String) {
    driver.does("objcopy --dump-section .foreread.cc=record part.o");
    let record = std::fs::read_to_string(driver.lab.path("record")).unwrap();
    driver.lab.write("record", change(record));
    driver.does("objcopy --update-section .foreread.cc=record part.o");
}

fn a_record_that_starts_programs() {
    let driver = two_units();
    let touched = driver.lab.path("touched");
    let wrapper = format!("touch,{}", touched.display());
    for words in [
        ["-wrapper", &wrapper],
        ["-B", "."],
        ["-I", "@words"],
        ["-O2", "-specs=x"],
    ] {
        driver.builds("-c main.c part.c");
        let [first, second] = words;
        forge(&driver, |record| {
            record.replace(
                "\"arguments\":[]",
                &format!("\"arguments\":[\"{first}\",\"{second}\"]"),
            )
        });
        driver.builds("main.o part.o -o prog");
        assert_eq!(driver.units_of("prog"), ["main.c"]);
        assert!(
            driver.why_whole("part.o").starts_with("compiled with "),
            "{words:?}"
        );
        assert!(!touched.exists());
    }
}

fn a_record_that_does_not_parse() {
    let driver = two_units();
    let nonsense = |record: String| record[..record.len() / 2].to_owned();
    for (change, why) in [
        (
            &nonsense as &dyn Fn(String) -> String,
            "its record does not parse",
        ),
        (&|_| "\u{fffd}\0{}".to_owned(), "its record does not parse"),
        (
            &|record: String| record.replace("\"version\":3", "\"version\":9"),
            "of version 9",
        ),
    ] {
        driver.builds("-c main.c part.c");
        forge(&driver, change);
        driver.builds("main.o part.o -o prog");
        assert_eq!(driver.units_of("prog"), ["main.c"]);
        assert!(
            driver.why_whole("part.o").contains(why),
            "{}",
            driver.why_whole("part.o")
        );
    }
}

fn a_precompiled_header() {
    let driver = two_units();
    driver.lab.write("all.h", READS);
    driver.builds("all.h");
    let made = std::fs::read(driver.lab.path("all.h.gch")).unwrap();
    assert!(made.starts_with(b"gpch"));
    driver.lab.write(
        "use.c",
        "#include \"all.h\"\nint main(void) { /*here*/ return first_byte() * 0; }\n",
    );
    driver.builds("-Winvalid-pch use.c -o prog");
    assert_eq!(driver.units_of("prog"), ["use.c"]);
}

fn a_device() {
    let driver = two_units();
    for args in ["-c part.c -o /dev/null", "main.c part.c -o /dev/null"] {
        let output = driver.cc(args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let null = std::fs::metadata("/dev/null").unwrap();
        assert!(std::os::unix::fs::FileTypeExt::is_char_device(
            &null.file_type()
        ));
    }
}
