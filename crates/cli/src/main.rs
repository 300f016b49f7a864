//! `foreread`: knows what a program is about to read and has it in memory first.
//!
//! This program does `run` and `record`, and holds no code but theirs: a program waits to be started, and foreread's own
//! file is read from a cold disk before. All other commands, and what there is to say of wrong words, are those of
//! `foreread-tools` (`tools.rs`), which takes this program's place.
//!
//! Exit status: as the program ended, with 127 or 126 when it could not be found or started, and 2 when foreread failed.

#![forbid(unsafe_code)]

mod ending;
mod run;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use clap::{Args, Parser};
use foreread_run::RunArgs;
use foreread_sys::{own, spawn};

use ending::{end_as, ended};
use run::{Record, Run};

/// The program that has all the other commands.
const TOOLS: &str = "foreread-tools";

fn main() -> ExitCode {
    spawn::keep_children();
    ended(match given() {
        Some(run) => foreread_run::run(&run).map(end_as),
        None => Err(hand_over()),
    })
}

/// The run that this process was started for, if it is one and is said well.
fn given() -> Option<RunArgs> {
    let name = env::args_os().nth(1)?;
    if name == "run" {
        understood::<Run>()
    } else if name == "record" {
        understood::<Record>()
    } else {
        None
    }
}

/// The words after the program's name as those of this command.
fn understood<T: Args + Into<RunArgs>>() -> Option<RunArgs> {
    #[derive(Parser)]
    struct Alone<T: Args> {
        #[command(flatten)]
        command: T,
    }
    let alone = Alone::<T>::try_parse_from(env::args_os().skip(1));
    Some(alone.ok()?.command.into())
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
