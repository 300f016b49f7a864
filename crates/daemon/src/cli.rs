//! What a daemon is told on its command line: by `forereadd`, and by `foreread daemon`, which starts it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use foreread_words::units;

use crate::{IoPriority, Model, ObserverChoice, Options, PartitionLimits};

/// Where root's daemon is asked.
pub const SYSTEM_SOCKET: &str = "/run/foreread/daemon.sock";
/// Where root's daemon keeps what it has learned.
const SYSTEM_STATE: &str = "/var/lib/foreread";

/// Run the daemon in the foreground, as systemd does
///
/// SIGTERM, SIGINT and SIGHUP save the models and stop it.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// The settings
    #[command(flatten)]
    pub settings: Settings,
    /// Detach from the terminal and its session
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// The daemon's control socket
#[derive(Debug, clap::Args)]
pub struct Where {
    /// Control socket, in an existing folder [default: the user's, if there is one, else /run/foreread/daemon.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// The daemon's settings
#[derive(Debug, clap::Args)]
pub struct Settings {
    #[command(flatten)]
    /// The control socket
    pub place: Where,
    /// Folder of the models [default: /var/lib/foreread; for users other than root, forereadd in the data folder]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Model that predicts
    #[arg(long, value_enum, default_value_t = Named::Epcm)]
    pub model: Named,
    /// Nodes and order of the partitions of PCM and EPCM, for measurements
    #[arg(long, value_name = "NODES/ORDER", hide = true, value_parser = partitions)]
    pub partitions: Option<PartitionLimits>,
    /// Least likelihood at which a file is fetched, above 0.5
    #[arg(long, value_name = "SHARE", default_value_t = 0.55, value_parser = share)]
    pub threshold: f64,
    /// Limit of prefetched memory that nobody has read yet, such as 64M [default: depends on the free memory]
    #[arg(long = "memory", alias = "budget", value_name = "SIZE", value_parser = units::parse_size)]
    pub budget: Option<u64>,
    /// Observer of the system
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Watcher::Auto)]
    pub observer: Watcher,
    /// I/O priority of the daemon's reads
    #[arg(long, value_enum, default_value_t = Priority::Low)]
    pub priority: Priority,
    /// Include FUSE file systems; their servers see what is predicted
    #[arg(long)]
    pub fuse: bool,
    /// Keep the status in FILE in Prometheus's text format, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
}

impl Settings {
    /// What the daemon is started with, with the places of this user where none are named.
    ///
    /// # Errors
    /// When the environment names no place.
    pub fn options(&self) -> Result<Options> {
        let socket = self.place.socket.clone().or_else(own_socket);
        let state = self.state.clone().or_else(own_state);
        let socket =
            socket.context("no place for the control socket: XDG_RUNTIME_DIR is not set")?;
        let state =
            state.context("no place for the models: neither XDG_DATA_HOME nor HOME is set")?;
        Ok(Options {
            state: std::path::absolute(state)?,
            socket: std::path::absolute(socket)?,
            model: self.model.into(),
            partitions: self.partitions,
            threshold: self.threshold,
            budget: self.budget,
            observer: self.observer.into(),
            priority: self.priority.into(),
            fuse: self.fuse,
        })
    }
}

/// Makes the folder of models, for this user alone: file names are in there.
///
/// # Errors
/// When the folder cannot be made, is somebody else's, or others may write to it, with its name.
pub fn make_state(state: &Path) -> Result<()> {
    crate::state::own_folder(state)
}

/// A likelihood from which on files are fetched.
///
/// # Errors
/// When it is none.
pub fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok();
    let share = share.filter(|share| *share > 0.5 && *share <= 1.0);
    share.ok_or_else(|| "not a number above 0.5 and up to 1".to_owned())
}

/// The largest partition, as in `foreread sim`.
const MOST_NODES: usize = 4096;

/// The limits of partitions, as in `64/45`.
fn partitions(text: &str) -> Result<PartitionLimits, String> {
    let limits = text.split_once('/').and_then(|(nodes, order)| {
        let (nodes, order) = (nodes.parse().ok()?, order.parse().ok()?);
        Some(PartitionLimits { nodes, order })
    });
    let limits =
        limits.filter(|one| one.nodes <= MOST_NODES && (1..=one.nodes).contains(&one.order));
    limits.ok_or_else(|| {
        format!("not NODES/ORDER with at most {MOST_NODES} nodes and an order from 1 to the nodes")
    })
}

/// True if this process is root's.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The socket of a daemon that this user starts; `None` if there is no place for one.
pub fn own_socket() -> Option<PathBuf> {
    if is_root() {
        return Some(SYSTEM_SOCKET.into());
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)?;
    folder
        .is_absolute()
        .then(|| folder.join("foreread/daemon.sock"))
}

/// The folder of what a daemon of this user has learned.
pub fn own_state() -> Option<PathBuf> {
    if is_root() {
        return Some(SYSTEM_STATE.into());
    }
    foreread_profiles::data_home().map(|home| home.join("forereadd"))
}

/// Model that predicts
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Named {
    /// Last successor: the file that followed last time
    Last,
    /// PCM: patterns of up to 8 files
    Pcm,
    /// EPCM: deep patterns, which predict sequences of files
    Epcm,
    /// EPCM as published, for measurements
    #[value(hide = true)]
    PublishedEpcm,
}

impl From<Named> for Model {
    fn from(named: Named) -> Self {
        match named {
            Named::Last => Self::LastSuccessor,
            Named::Pcm => Self::Pcm,
            Named::Epcm => Self::Epcm,
            Named::PublishedEpcm => Self::PublishedEpcm,
        }
    }
}

/// Observer of the system
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Watcher {
    /// eBPF, or fanotify if BPF is missing; for users other than root, the preload library
    Auto,
    /// eBPF: program starts, opens, and pages read
    Ebpf,
    /// fanotify: program starts and opens
    Fanotify,
    /// The preload library: program starts and opens in the environment of foreread daemon env
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

/// I/O priority of the daemon's reads
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Priority {
    /// The lowest level of the best-effort class
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_partitions_are_two_numbers_of_which_the_second_is_not_larger() {
        let (nodes, order) = (64, 45);
        assert_eq!(partitions("64/45"), Ok(PartitionLimits { nodes, order }));
        for wrong in ["64", "4097/1", "45/64", "64/0", "0/0", "64/x", "-1/1", ""] {
            assert!(partitions(wrong).is_err(), "{wrong}");
        }
    }
}
