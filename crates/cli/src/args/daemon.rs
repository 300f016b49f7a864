//! The part of the command line that is the daemon's.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use foreread_daemon::{IoPriority, Model, ObserverChoice};
use foreread_words::units;

/// Have the whole system's files read before programs ask for them
///
/// The daemon learns which files follow which, of all programs, and fetches those that are about to be opened. Root's daemon
/// is there for everybody; another user's for the programs that have the environment of `foreread daemon env`. docs/daemon.md says what it does, what it costs and who learns what from it.
#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    /// Be the daemon, in the foreground: what systemd starts
    ///
    /// Ends on SIGTERM, SIGINT and SIGHUP, and saves what was learned before.
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
    /// Say how it goes: what was predicted, fetched and used, and what that costs
    Status(Status),
    /// Show how it goes, as it goes, by program
    ///
    /// q, Esc and Ctrl-C quit.
    Top(Top),
    /// Print the status in Prometheus's text format
    Metrics(Where),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Leave the terminal and its session
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// Where the daemon is asked
#[derive(Debug, clap::Args)]
pub(crate) struct Where {
    /// The control socket, in a folder that is there [default: the user's own if there is one, else /run/foreread/daemon.sock]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
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

/// What the daemon is started with
#[derive(Debug, clap::Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The folder of what was learned [default: /var/lib/foreread; of other users than root, forereadd in the data folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Which model predicts
    #[arg(long, value_enum, default_value_t = Named::Epcm)]
    pub(crate) model: Named,
    /// The likelihood from which on a file is fetched: above 0.5, so that a sequence is predicted
    #[arg(long, value_name = "SHARE", default_value_t = 0.55, value_parser = super::share)]
    pub(crate) threshold: f64,
    /// Memory that may be filled with what nobody has read yet, such as 64M [default: by the memory there is]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_size)]
    pub(crate) budget: Option<u64>,
    /// Who observes the system
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Watcher::Auto)]
    pub(crate) observer: Watcher,
    /// How reads ahead are weighed against other reads
    #[arg(long, value_enum, default_value_t = Priority::Low)]
    pub(crate) priority: Priority,
    /// Watch and fetch on FUSE file systems, too: whoever serves one learns what is predicted
    #[arg(long)]
    pub(crate) fuse: bool,
    /// Keep the status in FILE in Prometheus's text format, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
}

/// How often the file with the status is replaced.
pub(crate) const METRICS: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Named {
    /// The file that followed last time
    Last,
    /// Patterns of up to 8 files
    Pcm,
    /// Deep patterns, which predict sequences
    Epcm,
}

impl From<Named> for Model {
    fn from(named: Named) -> Self {
        match named {
            Named::Last => Self::LastSuccessor,
            Named::Pcm => Self::Pcm,
            Named::Epcm => Self::Epcm,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Watcher {
    /// eBPF, and fanotify where BPF is missing; of other users than root, the preload library
    Auto,
    /// The kernel, by eBPF
    Ebpf,
    /// The kernel, by fanotify: opens and starts, not what is read
    Fanotify,
    /// The preload library, in programs that have the environment of `foreread daemon env`: opens and starts
    Preload,
}

impl From<Watcher> for ObserverChoice {
    fn from(watcher: Watcher) -> Self {
        match watcher {
            Watcher::Auto => Self::Auto,
            Watcher::Ebpf => Self::Ebpf,
            Watcher::Fanotify => Self::Fanotify,
            Watcher::Preload => Self::Preload,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Priority {
    /// The last level of the best-effort class
    Low,
    /// The priority of the process that starts the daemon
    Normal,
}

impl From<Priority> for IoPriority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Low => Self::Low,
            Priority::Normal => Self::Normal,
        }
    }
}
