//! `foreread daemon` and `foreread predict`: the command line's side of the daemon.
//!
//! | part | purpose |
//! | --- | --- |
//! | [`run`] | starts the daemon |
//! | [`environment`] | the environment of programs that a user's daemon observes |
//! | [`stop`] | ends the daemon |
//! | [`status`] | its status as text and JSON |
//! | [`predict`] | the predicted successors of a file |
//!
//! Invariant: control characters in a daemon's answers never reach the terminal.

pub(crate) mod asking;
mod environment;
mod predict;
mod run;
pub(crate) mod status;
mod stop;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use foreread_daemon::metrics;

use crate::args::daemon::Daemon;
use crate::output::{output, unable};
use asking::{status_at, to_ask};

pub(crate) use predict::predict;

/// Runs a command of the daemon.
pub(crate) fn daemon(args: Daemon) -> Result<ExitCode> {
    match args {
        Daemon::Run(_) => match run::run().map_err(unable)? {},
        Daemon::Start(settings) => run::start(&settings).map_err(unable),
        Daemon::Env(place) => environment::print(&place).map_err(unable),
        Daemon::Stop(place) => stop::stop(&place).map_err(unable),
        Daemon::Status(args) => status::status(&args).map_err(unable),
        Daemon::Top(args) => crate::top::top(&args),
        Daemon::Metrics(place) => {
            let status = status_at(&to_ask(&place)).map_err(unable)?;
            output().write_all(metrics::text(&status).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
