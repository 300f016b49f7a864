//! `foreread`: knows what a program is about to read and has it in memory first.
//!
//! This program does `run` and `record`, and holds no code but theirs: a program waits to be started, and foreread's own
//! file is read from a cold disk before. Everything else, help and errors of the command line among it, is
//! `foreread-tools`' (`crates/tools`), which takes this program's place.
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
        let tools = own::part(TOOLS, "../libexec")?;
        let words: Vec<OsString> = env::args_os().collect();
        Err(spawn::replace(&tools, &words, None)).context(tools.display().to_string())
    };
    let Err(why) = replaced();
    why
}
