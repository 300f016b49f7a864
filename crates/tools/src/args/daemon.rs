//! The part of the command line that is the daemon's.

use std::path::PathBuf;

use clap::Subcommand;
use foreread_daemon::cli::{Run, Settings, Where};

/// Have the whole system's files read before programs ask for them
///
/// The daemon learns which files follow which, of all programs, and fetches those that are about to be opened. Root's daemon
/// is there for everybody; another user's for the programs that have the environment of `foreread daemon env`. docs/daemon.md says what it does, what it costs and who learns what from it.
#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    Run(Run),
    /// Start the daemon in the background
    ///
    /// Returns when the daemon answers, or says why it does not. What the daemon has to say later goes to daemon.log in
    /// its folder.
    Start(Settings),
    /// Print the shell commands that have a user's own daemon see the programs started from then on
    ///
    /// For a daemon that observes by the preload library: eval "$(foreread daemon env)". A daemon that is started anew has to be
    /// asked anew: programs of the old environment go on unseen.
    Env(Where),
    /// Stop the daemon; what it has learned is saved
    Stop(Where),
    /// Show the status: what was predicted, fetched and used, and what that costs
    Status(Status),
    /// Show the status by program, once a second
    ///
    /// q, Esc and Ctrl-C quit.
    Top(Top),
    /// Print the status in Prometheus's text format
    Metrics(Where),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Seconds between two looks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) every: u64,
}

/// Say which files follow a file, as far as the daemon knows
///
/// Nearest first, with how likely they are, and how much of each is in memory. Without a daemon, what was saved is asked.
/// Files are named only to those who can list their folder and read them.
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: Where,
    /// The folder of the models that are asked where no daemon runs [default: as of the daemon]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
