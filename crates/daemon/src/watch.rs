//! Who reports what the processes of the machine do.

mod ebpf;
mod fanotify;
mod mounts;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

pub use ebpf::Ebpf;
pub use fanotify::Fanotify;

use crate::{ObserverChoice, Options};

/// A file, as it was used: its path is that of the process that used it, in that process's mount namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute path, without symbolic links where the observer knows it (eBPF), else as the kernel names the open file.
    pub path: PathBuf,
    /// Device number, as `st_dev` has it.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// The inode's generation, which tells a file from a later one of the same number; 0 where it is not known.
    pub generation: u32,
    /// Size in bytes.
    pub size: u64,
}

/// One thing that a process did. Times are ns of `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A process was made by another.
    Forked {
        /// The new process.
        pid: u32,
        /// The process that made it.
        parent: u32,
        /// When.
        at: u64,
    },
    /// A process has begun to run a program.
    Started {
        /// The process.
        pid: u32,
        /// Its parent.
        parent: u32,
        /// Whose process it is.
        uid: u32,
        /// The program.
        program: File,
        /// When.
        at: u64,
    },
    /// A regular file was opened.
    Opened {
        /// The process.
        pid: u32,
        /// Whose process it is.
        uid: u32,
        /// The file.
        file: File,
        /// Whether it was opened to be written to.
        writes: bool,
        /// When the call began.
        at: u64,
    },
    /// Pages of a file had to be fetched for a process: it read or touched what was not in memory. Observers that cannot
    /// tell report none.
    Fetched {
        /// The process.
        pid: u32,
        /// Device number of the file.
        device: u64,
        /// Inode number of the file.
        inode: u64,
        /// The first byte, at the beginning of a page.
        offset: u64,
        /// Bytes, whole pages.
        len: u64,
        /// When the first of them was asked for.
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

/// An observer of the whole machine. The daemon's own process is not reported.
pub trait Watch {
    /// What `status` calls it: `ebpf` or `fanotify`.
    fn name(&self) -> &'static str;

    /// Becomes readable when there is something to take. `None`: [`Watch::poll`] has to be called now and then.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Hands out what has happened, at most a bounded number of events, in the order in which it happened; whether there is
    /// more at once. Never waits.
    fn poll(&mut self, out: &mut dyn FnMut(Happened)) -> bool;

    /// How many events were lost so far, by probe: a full ring, a full queue. Empty where none was.
    fn lost(&self) -> Vec<(&'static str, u64)>;
}

/// The observer that the options ask for.
///
/// # Errors
/// Why there is none, in a sentence.
pub fn open(options: &Options) -> Result<Box<dyn Watch>, String> {
    let fanotify = || match Fanotify::new(options.fuse) {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no fanotify: {why}")),
    };
    let ebpf = || match Ebpf::begin() {
        Ok(watch) => Ok(Box::new(watch) as Box<dyn Watch>),
        Err(why) => Err(format!("no eBPF: {why}")),
    };
    match options.observer {
        ObserverChoice::Ebpf => ebpf(),
        ObserverChoice::Fanotify => fanotify(),
        ObserverChoice::Auto => {
            ebpf().or_else(|why| fanotify().map_err(|other| format!("{why}, and {other}")))
        }
    }
}
