//! The command alone, as the tests of this crate run it. Users have it as
//! `foreread slowdisk`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use foreread_slowdisk::cli::{SlowdiskArgs, run};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: SlowdiskArgs,
}

fn main() -> ExitCode {
    run(Cli::parse().args).unwrap_or_else(|error| {
        eprintln!("slowdisk: {}", error.in_full());
        ExitCode::FAILURE
    })
}
