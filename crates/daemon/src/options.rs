//! Options of the daemon.

use std::path::PathBuf;

/// The requested observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObserverChoice {
    /// eBPF, and fanotify where BPF is missing; without the rights for either, the preload library.
    #[default]
    Auto,
    /// eBPF.
    Ebpf,
    /// fanotify.
    Fanotify,
    /// The preload library, in the user's own programs.
    Preload,
}

/// The model that predicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// The file that followed last time.
    LastSuccessor,
    /// Partitions of 64 nodes, patterns of up to 8 events.
    Pcm,
    /// Deep partitions of 64 nodes that predict sequences, and go on in the next partition.
    #[default]
    Epcm,
    /// EPCM as it was published: without what the daemon has beside it (docs/models.md).
    PublishedEpcm,
}

/// The limits of a model's partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLimits {
    /// Nodes of a partition, with the one of its file.
    pub nodes: usize,
    /// Events of the longest pattern.
    pub order: usize,
}

/// The priority of hints compared with other reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoPriority {
    /// The last level of the best-effort class: a program may be waiting for pages that a hint has requested, so hints are never in the
    /// idle class.
    #[default]
    Low,
    /// The priority of the process that started the daemon.
    Normal,
}

/// All options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the models, of this user alone: `/var/lib/foreread`.
    pub state: PathBuf,
    /// The control socket: `/run/foreread/daemon.sock`.
    pub socket: PathBuf,
    /// The model.
    pub model: Model,
    /// Limits of the partitions of PCM and EPCM. `None`: those of docs/models.md.
    pub partitions: Option<PartitionLimits>,
    /// Likelihood from which on a file is fetched: over 0.5, up to 1.
    pub threshold: f64,
    /// Bytes that may lie in memory fetched and unread. `None`: what the engine finds right for the machine.
    pub budget: Option<u64>,
    /// The observer.
    pub observer: ObserverChoice,
    /// The priority of hints.
    pub priority: IoPriority,
    /// True if files on FUSE file systems are fetched, too: their servers see what is predicted.
    pub fuse: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            state: PathBuf::from("/var/lib/foreread"),
            socket: PathBuf::from("/run/foreread/daemon.sock"),
            model: Model::default(),
            partitions: None,
            threshold: 0.55,
            budget: None,
            observer: ObserverChoice::default(),
            priority: IoPriority::default(),
            fuse: false,
        }
    }
}
