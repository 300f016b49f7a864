//! The headers compile in every version of C and C++, the library exports exactly the documented calls and the
//! interposers, and each call has its man page.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use libtest_mimic::Failed;

use crate::library::{built, here, scratch};
use crate::program::succeed;

/// A test: its title, the part that this machine lacks for it, and its function.
pub type Test = (&'static str, Option<String>, fn() -> Result<(), Failed>);

/// The tests of this module.
pub fn tests() -> Vec<Test> {
    let lacks = |command: &str| {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join(command).is_file());
        (!found).then(|| format!("no {command}"))
    };
    vec![
        ("the headers compile as C of 1989 to 2011", None, as_c),
        ("the headers compile as C++", lacks("c++"), as_cpp),
        (
            "the library exports the calls and the interposers",
            lacks("nm"),
            exports,
        ),
        (
            "the library has a version and a name",
            lacks("readelf"),
            versions,
        ),
        ("each call has its man page", None, pages),
        ("the man page is clean", lacks("mandoc"), clean_page),
    ]
}

fn compiles(compiler: &str, standard: &str, end: &str) -> Result<(), Failed> {
    for header in ["foreread.h", "libprefetch.h"] {
        let source = scratch().join(format!("header.{end}"));
        fs::write(
            &source,
            format!("#include \"{header}\"\nint main(void) {{ return 0; }}\n"),
        )?;
        succeed(
            Command::new(compiler)
                .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"])
                .arg(format!("-std={standard}"))
                .arg("-I")
                .arg(here().join("include"))
                .arg(&source),
        )?;
    }
    Ok(())
}

fn as_c() -> Result<(), Failed> {
    for standard in ["c89", "c99", "c11", "gnu17"] {
        compiles("cc", standard, "c")?;
    }
    Ok(())
}

fn as_cpp() -> Result<(), Failed> {
    for standard in ["c++98", "c++17", "c++20"] {
        compiles("c++", standard, "cpp")?;
    }
    // The declarations have C linkage, so this links.
    let source = scratch().join("linkage.cpp");
    fs::write(
        &source,
        "#include \"foreread.h\"\nint main() { return foreread_version() == nullptr; }\n",
    )?;
    let folder = built().folder.display();
    succeed(
        Command::new("c++")
            .arg("-I")
            .arg(here().join("include"))
            .arg("-o")
            .arg(scratch().join("linkage"))
            .arg(&source)
            .args([format!("-L{folder}"), format!("-Wl,-rpath,{folder}")])
            .arg("-lforeread"),
    )?;
    succeed(&mut Command::new(scratch().join("linkage")))?;
    Ok(())
}

/// The calls that the header declares.
fn declared() -> BTreeSet<String> {
    let header = include_str!("../../include/foreread.h");
    let names = header.lines().filter(|line| !line.starts_with([' ', '#']));
    names
        .filter_map(|line| {
            let before = line.split_once('(')?.0;
            let name = before.rsplit([' ', '*']).next()?;
            name.starts_with("foreread_").then(|| name.to_owned())
        })
        .collect()
}

/// Exports without a version, because programs ask for them with the C library's version.
pub const INTERPOSERS: [&str; 16] = [
    "__pread64_chk",
    "__pread_chk",
    "__read_chk",
    "close",
    "dup2",
    "dup3",
    "posix_fadvise",
    "posix_fadvise64",
    "pread",
    "pread64",
    "preadv",
    "preadv2",
    "preadv64",
    "preadv64v2",
    "read",
    "readv",
];

fn exports() -> Result<(), Failed> {
    let shared = built().folder.join("libforeread.so.1");
    let listed = succeed(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(shared),
    )?;
    let listed = String::from_utf8(listed.stdout)?;
    let exported: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .filter(|&name| name != "FOREREAD_1")
        .collect();
    let calls = declared();
    assert!(calls.len() > 5, "{calls:?}");
    let versioned: Vec<String> = calls
        .iter()
        .map(|call| format!("{call}@@FOREREAD_1"))
        .collect();
    let wanted: BTreeSet<&str> = versioned
        .iter()
        .map(String::as_str)
        .chain(INTERPOSERS)
        .collect();
    assert_eq!(exported, wanted);
    Ok(())
}

fn versions() -> Result<(), Failed> {
    let shared = built().folder.join("libforeread.so.1");
    let facts = succeed(Command::new("readelf").args(["-d", "-W"]).arg(shared))?;
    let facts = String::from_utf8(facts.stdout)?;
    for fact in ["soname: [libforeread.so.1]", "NODELETE"] {
        assert!(facts.contains(fact), "{fact} in {facts}");
    }
    Ok(())
}

fn pages() -> Result<(), Failed> {
    let page = include_str!("../../man/libforeread.3");
    for call in declared() {
        let alias = fs::read_to_string(here().join("man").join(format!("{call}.3")))
            .map_err(|error| format!("man/{call}.3: {error}"))?;
        assert_eq!(alias, ".so man3/libforeread.3\n", "{call}.3");
        let synopsis = [format!(".Fn {call} "), format!(".Fo {call}\n")];
        assert!(synopsis.iter().any(|line| page.contains(line)), "{call}");
    }
    Ok(())
}

fn clean_page() -> Result<(), Failed> {
    let page = here().join("man/libforeread.3");
    succeed(
        Command::new("mandoc")
            .args(["-T", "lint", "-W", "warning"])
            .arg(page),
    )?;
    Ok(())
}
