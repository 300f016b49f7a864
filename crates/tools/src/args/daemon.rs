//! The declarations of the daemon's commands: `daemon`, `top` and `predict`.

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
    /// The same as foreread top
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
/// Shows a line for each foreread run of yours (as root, of all users): the source of its prefetching (its record or patterns), the bytes
/// fetched or found in memory, their distance ahead of the program, the bytes that the program has read of them, the time that its reads
/// waited, and the bytes read from its devices. Runs that fetch nothing are marked observed or alone. The daemon's status follows. Press q,
/// Esc or Ctrl-C to quit.
#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Seconds between updates
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) every: u64,
    /// Print once, as text, and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON once and exit
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show which files are predicted after a file
///
/// The nearest file comes first. Each line has the file's likelihood and its share in memory. If no daemon runs, the saved models are used.
/// Only files that you can read, in folders that you can list, are shown. Exit status: 0 if files are predicted, 1 if the models know no
/// successor of the file.
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// The file whose successors are shown
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
