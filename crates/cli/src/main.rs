//! `foreread`: prefetches the files that a program will read.
//!
//! This program holds the code of `run` and `record` only: a command waits until foreread's own file has been read from a
//! cold disk. All other commands, and the command line's help and errors, are in `foreread-tools` (`crates/tools`), which
//! replaces this process. `libforeread_ebpf.so` is loaded only by runs that use it.
//!
//! Other ways to link it were measured by 200 hot and 15 cold runs of `true` on two slow shared processors (alone 1.3 and
//! 2.2 ms): dynamic PIE 5.4 and 14.2 ms, static PIE 4.8 and 14.3, dynamic PIE with fat LTO 5.2 and 14.2, static at a fixed
//! address with LTO and an ordered linker script 4.4 and 16.1.
//!
//! Exit status: as the program ended, with 127 or 126 when it could not be found or started, and 2 when foreread failed.

#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use foreread::{end_as, ended, words};
use foreread_sys::{own, spawn};

/// The program that has all the other commands.
const TOOLS: &str = "foreread-tools";

fn main() -> ExitCode {
    // First of all: after the command line was read, a cold start of `true` took 17.9 ms in place of 15.0.
    own::fetch();
    spawn::keep_children();
    ended(match words::run(env::args_os().skip(1)) {
        Some(run) => foreread_run::run(&run).map(end_as),
        None => Err(hand_over()),
    })
}

/// Has the other program take this one's place. Comes back only with why it cannot.
fn hand_over() -> Error {
    let replaced = || -> Result<std::convert::Infallible> {
        let tools = own::part(TOOLS, "../libexec")
            .context("this command is part of another program, which `make build` builds")?;
        let words: Vec<OsString> = env::args_os().collect();
        Err(spawn::replace(&tools, &words, &[], None)).context(tools.display().to_string())
    };
    let Err(why) = replaced();
    why
}
