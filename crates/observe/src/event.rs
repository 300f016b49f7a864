//! The one form of what is observed.

use std::path::PathBuf;

use foreread_plan::{Extent, Kind, Rank};
pub use foreread_ring::Inode;

/// Something that a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The process.
    pub who: Who,
    /// When it began, in ns. Whoever opens the observer chooses the origin: the start of a run, or that of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// What it did.
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

/// What a process did. No observer reports all of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The process was made by another.
    Forked {
        /// The other.
        parent: u32,
    },
    /// A thread begins to be observed, or its process runs another program; comes before anything else of it.
    Begin {
        /// Parent process.
        parent: u32,
        /// The program; its path is empty where it is not known.
        program: File,
        /// Whether reads through stdio are seen.
        stdio: bool,
    },
    /// A file was opened, or found open; comes before any read of it, unless events were lost.
    Open {
        /// The observer's number of the open file, no other file's in its life; 0 where it reports no reads of it.
        handle: u32,
        /// The file.
        file: File,
        /// How long the call took, in ns.
        took: u64,
        /// What it is opened for.
        how: How,
    },
    /// A file was read, or several times in a row, each time where and when the read before ended.
    Read {
        /// The file.
        handle: u32,
        /// By which call.
        kind: Kind,
        /// What the call returned.
        extent: Extent,
        /// How long the read took, in ns.
        took: u64,
        /// How many reads followed it, of the same length and duration.
        more: u16,
    },
    /// The program drops pages of the file from memory, or asks which are there.
    Dropped {
        /// The file.
        handle: u32,
    },
    /// A name was used and no file read by it: an inode was looked at, or the entries of a directory were read.
    Named {
        /// Absolute path, as it was given.
        path: PathBuf,
        /// [`Kind::Stat`] or [`Kind::List`].
        kind: Kind,
        /// How long the call took, in ns.
        took: u64,
        /// Whether the symbolic link was followed that may be at the path itself.
        follows: bool,
        /// What the program was told of the inode of the path itself, where the observer has seen that.
        inode: Option<Inode>,
    },
    /// Pages of a mapped file came to be mapped in the process, in this order.
    Touched {
        /// The file.
        handle: u32,
        /// The pages.
        extent: Extent,
        /// How long the process waited for that, in ns.
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
    /// A process is about to wait for a device: pages, an inode or a directory are not in memory. Reported at once, and not of
    /// each that waits.
    Waits,
    /// The process is this rank of a parallel program, as its MPI library has it.
    Rank(Rank),
    /// The process says that it is about to end or to become another program. If that fails, its events go on.
    Exit,
    /// The process has ended.
    Ended,
}

/// A file as an event names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute path, as it was given; of an observer that has looked, in the process's mounts and without symbolic links.
    pub path: PathBuf,
    /// Where the path led, if the observer has looked.
    pub node: Option<Node>,
}

impl From<PathBuf> for File {
    /// A file that nobody has looked at.
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
    /// The inode's generation: another one when a deleted file's number is given again. 0 where it is not known.
    pub generation: u32,
    /// Size in bytes.
    pub size: u64,
}

/// What a file is opened for.
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
}
