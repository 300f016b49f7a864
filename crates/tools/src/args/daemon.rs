//! The part of the command line that is the daemon's.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Subcommand;
use foreread_daemon::cli::{Run, Settings, Where};

/// Predict and prefetch the files that any program opens next
///
/// The daemon learns which files are opened after which, and fetches files that are about to be opened. Root's daemon
/// serves all users. A user's daemon serves programs started in the environment of foreread daemon env. See docs/daemon.md.
#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    Run(Run),
    /// Start the daemon in the background
    ///
    /// Returns once the daemon answers, or prints the reason why it does not. Later messages go to daemon.log in its
    /// state folder.
    Start(Settings),
    /// Print shell commands that make a user's daemon observe programs started later
    ///
    /// For a daemon that observes by the preload library: eval "$(foreread daemon env)". Repeat this after the daemon was
    /// restarted: programs in the old environment are not observed any more.
    Env(Where),
    /// Save the models and stop the daemon
    Stop(Where),
    /// Show the daemon's status: files predicted, fetched and used, and the daemon's cost
    Status(Status),
    /// As foreread top
    #[command(hide = true)]
    Top(Top),
    /// Print the daemon's status in Prometheus's text format
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

/// Show runs and the daemon, live
///
/// A line for each foreread run of yours (as root, of everybody): by what it is prefetched (its record, patterns; observed or alone if
/// nothing is fetched), bytes fetched or found in memory, how far that is ahead of the program, what the program has read of it, how long its
/// reads waited, and what its devices read. Below, the daemon's status. q, Esc and Ctrl-C quit.
#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Seconds between updates
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) every: u64,
    /// Print it once, as text, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON, once
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show which files are predicted after a file
///
/// Nearest first, with the likelihood of each and its share in memory. If no daemon runs, the saved models are used. Only
/// files that you can read, in folders that you can list, are shown. Exit status: 0 if files are predicted, 1 if nothing
/// is known of what follows the file.
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: Where,
    /// Folder of the saved models, used if no daemon runs [default: the daemon's]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Print at most N files, the nearest ones
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
