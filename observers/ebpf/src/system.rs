//! The whole machine: which files its processes open, which programs they run, and which pages of files had to be fetched
//! for them. For a daemon that learns which file follows which; it takes what [`observe`](crate::observe) takes.
//!
//! Invariants: the process that observes is not observed; a number of opens a second of each process and of each user are
//! reported, and the rest are counted; memory is bounded.
//!
//! Data flow: `module/bpf/system.bpf.c` → ring → `decode` → [`Event`]; processes that wait for devices → a ring of their own, whose reader is
//! woken at once.

mod decode;
mod load;

use std::path::PathBuf;
use std::sync::Arc;

pub use load::System;

use crate::decide;
use crate::facts::Facts;

/// A regular file on a device, as a process used it: the path is that of the process's mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute path from their root, without symbolic links; by fanotify, as the kernel names the open file.
    pub path: Arc<PathBuf>,
    /// Device number of its file system, as `st_dev` has it but for file systems that give their parts numbers of their own.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// The inode's generation: another one when a deleted file's number is given again. 0 where it is not known.
    pub generation: u32,
    /// Size in bytes.
    pub size: u64,
}

/// What a process did. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A process was made.
    Forked {
        /// The new one.
        pid: u32,
        /// By this one.
        parent: u32,
        /// When.
        at: u64,
    },
    /// A process runs another program.
    Started {
        /// The process.
        pid: u32,
        /// Its parent.
        parent: u32,
        /// Its user.
        uid: u32,
        /// The program.
        program: File,
        /// When.
        at: u64,
    },
    /// A process opens a file.
    Opened {
        /// The process.
        pid: u32,
        /// Its user.
        uid: u32,
        /// The file.
        file: File,
        /// Whether it may write to it.
        writes: bool,
        /// When.
        at: u64,
    },
    /// Pages of a file came into memory because a process read or touched them, or those before them. fanotify tells of none.
    Fetched {
        /// The process.
        pid: u32,
        /// Device number, as [`File`] has it.
        device: u64,
        /// Inode number.
        inode: u64,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// When the first of them was asked for.
        at: u64,
    },
    /// A process is about to wait for a device: pages, an inode or a directory are not in memory. Reported in time, and not of each
    /// that waits; fanotify and the preload library tell of none.
    Waits {
        /// When.
        at: u64,
    },
    /// A process has ended.
    Ended {
        /// The process.
        pid: u32,
        /// When.
        at: u64,
    },
}

/// Begin to observe the machine.
///
/// # Errors
/// In one sentence, why this host does not allow it.
pub fn observe() -> Result<System, String> {
    decide::allowed(&Facts::of_host()).map_err(|refused| refused.to_string())?;
    System::begin()
}
