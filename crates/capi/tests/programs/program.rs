//! A C program: compiled, linked one way or another, run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::headers::INTERPOSERS;
use crate::library::{built, here, scratch};

/// A program that takes longer is hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// The programs of `tests/c` that check themselves.
pub const PROGRAMS: &[&str] = &[
    "slides",
    "bad_input",
    "descriptors",
    "told",
    "means",
    "closed",
    "threads",
    "signals",
    "fork",
    "locks",
    "cancel",
    "endless",
    "at_exit",
    "advice",
    "front_to_back",
    "failed",
    "table",
];

/// The way in which a program gets the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `-lforeread`, and so before the C library.
    Shared,
    /// `libforeread.a`.
    Archive,
    /// After the C library, where it intercepts nothing, and before it by `LD_PRELOAD`.
    Preload,
    /// As [`Link::Shared`], the program compiled with the address and undefined-behaviour
    /// sanitizers.
    Sanitized,
}

impl Link {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Shared, Self::Archive, Self::Preload, Self::Sanitized];

    /// For a test's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Archive => "archive",
            Self::Preload => "preloaded",
            Self::Sanitized => "sanitized",
        }
    }

    /// The part that this machine lacks for it.
    pub fn missing(self) -> Option<String> {
        if self != Self::Sanitized {
            return None;
        }
        let source = scratch().join("empty.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
        let program = scratch().join("empty");
        let compiled = cc()
            .args(SANITIZERS)
            .arg("-o")
            .args([&program, &source])
            .stderr(Stdio::null())
            .status();
        let runs = compiled.is_ok_and(|status| status.success())
            && Command::new(&program)
                .status()
                .is_ok_and(|status| status.success());
        (!runs).then(|| "the C compiler has no sanitizers".to_owned())
    }
}

const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The C compiler, with warnings as errors.
pub fn cc() -> Command {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-Wall", "-Wextra", "-Werror", "-g", "-O1", "-pthread", "-I"])
        .arg(here().join("include"));
    cc
}

/// Runs a command to its end, and fails if it does not succeed.
pub fn succeed(command: &mut Command) -> Result<Output, Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}\n{said}", output.status).into())
}

/// Compiles a program of `tests/c`.
pub fn compile(name: &str, link: Link, more: &[&str]) -> Result<PathBuf, Failed> {
    let library = built();
    let program = scratch().join(format!("{name}-{}{}", link.title(), more.concat()));
    let mut cc = cc();
    cc.args(more).arg("-o").arg(&program);
    cc.arg(here().join("tests/c").join(name).with_extension("c"));
    let flag = |flag: &str| [OsStr::new(flag), library.folder.as_os_str()].join(OsStr::new(""));
    match link {
        Link::Shared => cc
            .arg(flag("-L"))
            .arg("-lforeread")
            .arg(flag("-Wl,-rpath,")),
        Link::Sanitized => cc
            .args(SANITIZERS)
            .args([flag("-L"), flag("-Wl,-rpath,")])
            .arg("-lforeread"),
        Link::Archive => cc.arg(&library.archive).args(["-lgcc_s", "-ldl", "-lm"]),
        Link::Preload => cc.args([flag("-L"), flag("-Wl,-rpath,")]).args([
            "-Wl,--no-as-needed",
            "-lc",
            "-lforeread",
        ]),
    };
    succeed(&mut cc)?;
    Ok(program)
}

/// Runs a program in a directory of its own. It is killed if it hangs.
fn execute(program: &Path, link: Link) -> Result<Output, Failed> {
    let folder = tempfile::tempdir_in(scratch())?;
    let mut command = Command::new(program);
    command
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(folder.path().join("stdout"))?)
        .stderr(std::fs::File::create(folder.path().join("stderr"))?);
    if link == Link::Preload {
        command.env("LD_PRELOAD", built().folder.join("libforeread.so.1"));
    }
    let mut child = command.spawn()?;
    let end = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Err(format!("{} hangs", program.display()).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Ok(Output {
        status,
        stdout: std::fs::read(folder.path().join("stdout"))?,
        stderr: std::fs::read(folder.path().join("stderr"))?,
    })
}

/// Runs a program that checks itself.
pub fn run(name: &str, link: Link) -> Result<(), Failed> {
    let output = execute(&compile(name, link, &[])?, link)?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(77) => {
            eprintln!("{name}: cannot be tested here: {said}");
            Ok(())
        }
        _ => Err(format!("{}: {said}", output.status).into()),
    }
}

/// The examples compile as they are, and do the same work with foreread and without.
pub fn examples() -> Result<(), Failed> {
    let examples = here().join("../../examples/c");
    let folder = tempfile::tempdir_in(scratch())?;
    let compiled = |name: &str| -> Result<PathBuf, Failed> {
        let program = folder.path().join(name);
        let mut cc = cc();
        cc.args(["-std=c99", "-Wpedantic", "-o"]).arg(&program);
        cc.arg(examples.join(name).with_extension("c"))
            .arg(&built().archive);
        succeed(cc.args(["-lgcc_s", "-ldl", "-lm"]))?;
        Ok(program)
    };
    let said = |program: &Path, arguments: &[&str]| -> Result<Vec<u8>, Failed> {
        let mut command = Command::new(program);
        Ok(succeed(command.args(arguments).current_dir(&folder))?.stdout)
    };
    let tiles = compiled("tiles")?;
    said(&tiles, &["make", "image", "7", "11"])?;
    let plain = said(&tiles, &["plain", "image", "7", "11"])?;
    assert!(plain.starts_with(b"checksum "));
    assert_eq!(said(&tiles, &["foreread", "image", "7", "11"])?, plain);
    let blocks = compiled("random_blocks")?;
    let plain = said(&blocks, &["image", "plain"])?;
    assert!(plain.starts_with(b"checksum "));
    assert_eq!(said(&blocks, &["image"])?, plain);
    Ok(())
}

/// A program that prints the results of its calls prints the same without the library.
pub fn same_without(name: &str, link: Link) -> Result<(), Failed> {
    let with = execute(&compile(name, link, &[])?, link)?;
    let plain = scratch().join(format!("{name}-plain-{}", link.title()));
    let source = here().join("tests/c").join(name).with_extension("c");
    let mut cc = cc();
    cc.args(["-DPLAIN", "-o"]).args([&plain, &source]);
    if link == Link::Sanitized {
        cc.args(SANITIZERS);
    }
    succeed(&mut cc)?;
    let without = execute(&plain, Link::Shared)?;
    let said = String::from_utf8_lossy(&with.stderr);
    assert!(with.status.success() && without.status.success(), "{said}");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (with, without) = (text(&with.stdout), text(&without.stdout));
    assert!(without.lines().count() > 30, "{without}");
    for (one, other) in with.lines().zip(without.lines()) {
        assert_eq!(one, other, "with the library, and without");
    }
    assert_eq!(with.lines().count(), without.lines().count());
    if name == "conformance" {
        calls_all(&without);
    }
    Ok(())
}

/// Checks that every interposer was called, in every state.
fn calls_all(said: &str) {
    let mut called: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in said.lines() {
        let (state, call) = line.split_once(": ").expect("a state and a call");
        let function = call.split(' ').next().expect("a name");
        called.entry(state).or_default().insert(function);
    }
    assert!(called.len() >= 9, "{:?}", called.keys());
    for (state, functions) in &called {
        for interposer in INTERPOSERS {
            assert!(functions.contains(interposer), "{interposer}, {state}");
        }
    }
}
