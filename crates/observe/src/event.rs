//! The one form of observed events.

use std::path::PathBuf;

use foreread_plan::{Extent, Kind, Rank};
pub use foreread_ring::Inode;

/// Something that a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The process.
    pub who: Who,
    /// Start, in ns. The opener of the observer chooses the origin: the start of a run, or that of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// The event itself.
    pub what: What,
}

/// A process, as far as the observer knows it. Numbers that it does not know are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Effective user.
    pub uid: Option<u32>,
}

/// An event of a process. No observer reports all kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The process was made by another.
    Forked {
        /// The other.
        parent: u32,
    },
    /// A thread is observed from now on, or its process executes another program; comes before all its other events.
    Begin {
        /// Parent process.
        parent: u32,
        /// The program; its path is empty if it is unknown.
        program: File,
        /// True if reads through stdio are seen.
        stdio: bool,
    },
    /// A file was opened, or found open; comes before any read of it, unless events were lost.
    Open {
        /// The observer's number of the open file, unique in its life; 0 if the observer reports no reads of it.
        handle: u32,
        /// The file.
        file: File,
        /// Duration of the call, in ns.
        took: u64,
        /// The mode of the open.
        how: How,
    },
    /// A file was read, or several times in a row, each time where and when the read before ended.
    Read {
        /// The file.
        handle: u32,
        /// By which call.
        kind: Kind,
        /// The bytes that the call returned.
        extent: Extent,
        /// Duration of the read, in ns.
        took: u64,
        /// Number of following reads with the same length and duration.
        more: u16,
    },
    /// The program drops pages of the file from memory, or asks for their residency.
    Dropped {
        /// The file.
        handle: u32,
    },
    /// A name was used without reading a file: its inode was looked up, or its directory listed.
    Named {
        /// Absolute path as given.
        path: PathBuf,
        /// [`Kind::Stat`] or [`Kind::List`].
        kind: Kind,
        /// Duration of the call, in ns.
        took: u64,
        /// True if a symbolic link at the path itself was followed.
        follows: bool,
        /// The inode of the path itself as returned to the program, if the observer has seen it.
        inode: Option<Inode>,
    },
    /// Pages of a mapped file were mapped in the process, in this order.
    Touched {
        /// The file.
        handle: u32,
        /// The pages.
        extent: Extent,
        /// Waiting of the process for them, in ns.
        took: u64,
    },
    /// Pages of a file came into memory because the process read or touched them, or those before them.
    Fetched {
        /// Device number, as [`Node`] has it.
        device: u64,
        /// Inode number.
        inode: u64,
        /// The pages.
        extent: Extent,
    },
    /// A process is about to wait for a device: pages, an inode or a directory are not in memory. Reported at once, and not for every wait.
    Waits,
    /// The process is this rank of a parallel program, as its MPI library has it.
    Rank(Rank),
    /// The process is about to end or to execute another program. If that fails, its events continue.
    Exit,
    /// The process has ended.
    Ended,
}

/// A file as an event names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute path as given; from an observer that has examined it, in the process's mounts and without symbolic links.
    pub path: PathBuf,
    /// The target of the path, if the observer has examined it.
    pub node: Option<Node>,
}

impl From<PathBuf> for File {
    /// A file that was not examined.
    fn from(path: PathBuf) -> Self {
        Self { path, node: None }
    }
}

/// The inode of a regular file that a path led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Device number of its file system, as `st_dev` has it but for file systems that give their parts numbers of their own.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// The inode's generation: it changes when a deleted file's number is reused. 0 if it is unknown.
    pub generation: u32,
    /// Size in bytes.
    pub size: u64,
}

/// The mode of an open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// As a directory.
    pub directory: bool,
    /// To be written to.
    pub writes: bool,
    /// For nothing else: nothing is read by the handle.
    pub unread: bool,
    /// Emptied.
    pub truncates: bool,
    /// Not seen being opened, but found open.
    pub found: bool,
    /// With `O_DIRECT`: reads by the handle pass the page cache by.
    pub direct: bool,
}
