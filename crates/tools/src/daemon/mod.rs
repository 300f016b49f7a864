//! `foreread daemon` and `foreread predict`: the daemon from the command line's side.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`run`] | start the daemon |
//! | [`environment`] | what programs need to be seen by a user's own daemon |
//! | [`stop`] | end it |
//! | [`status`] | how it goes, as text and JSON |
//! | [`predict`] | what follows a file |
//!
//! Invariant: whatever a daemon or the names in its answers hold, a terminal is steered by none of it.

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

/// Does what is asked of or about the daemon.
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
