//! Who tells what the program does.
//!
//! An [`Observer`] reports the processes of the program, the files they open and what they read. The supervisor says how
//! much is wanted, takes the events in order of start, and knows nothing of how they are come by. One observer a file:
//!
//! - [`Preload`](ring::Preload): the preload library, which reports through a ring of shared memory.
//! - [`Ebpf`](ebpf::Ebpf): programs in the kernel, which need nothing of the observed one, and root.
//!
//! [`choice`] says which.
//!
//! Invariant: what an observer hands out is checked as to its form (a read's kind is one that a process can tell of), and
//! not as to its truth: paths, offsets and lengths may come from a hostile process.

mod choice;
mod ebpf;
mod mpi;
mod preload;
mod ring;
mod unobserved;

use std::path::{Path, PathBuf};

use foreread_plan::{Extent, Kind, Rank};
pub(super) use foreread_ring::Inode;

pub(super) use choice::Observing;
pub(super) use ebpf::Ebpf;
pub(super) use ring::{Preload, Seat};
use unobserved::of_program as why_hidden;

pub use choice::Choice;
pub(super) use mpi::library as mpi_library;
pub use preload::{find as find_preload, variables as preload_variables};

/// How much of what the program does is to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing: the program is left to itself, and pays next to nothing for being observed.
    Nothing,
    /// Where the program is, and the names that it waited for. What cannot be reported at once is dropped.
    Progress,
    /// Everything: the program is held up, within bounds, rather than an event dropped.
    Everything,
}

/// What a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Process.
    pub(super) pid: u32,
    /// Thread.
    pub(super) tid: u32,
    /// When it began, in ns since the run began.
    pub(super) start: u64,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A thread begins to be observed, or its process has become another program; comes before anything else of it.
    Begin {
        /// Parent process.
        ppid: u32,
        /// Absolute path of the program.
        exe: PathBuf,
        /// Whether reads through stdio are seen.
        stdio: bool,
    },
    /// A file was opened, or found open; comes before any read of it, unless events were lost.
    Open {
        /// The observer's number of the open file, no other file's in this run.
        handle: u32,
        /// Absolute path, as it was given.
        path: PathBuf,
        /// How long the call took, in ns.
        took: u64,
        how: How,
    },
    /// A file was read, or several times in a row, each time where and when the read before ended.
    Read {
        handle: u32,
        kind: Kind,
        extent: Extent,
        /// How long the read took, in ns.
        took: u64,
        /// How many reads followed it, of the same length and duration.
        more: u16,
    },
    /// The program drops pages of the file from memory, or asks which are there.
    Dropped { handle: u32 },
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
        handle: u32,
        extent: Extent,
        /// How long the process waited for that, in ns.
        took: u64,
    },
    /// The process is this rank of a parallel program, as its MPI library has it.
    Rank(Rank),
    /// The process is about to end or to become another program.
    Exit,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct How {
    /// As a directory.
    pub(super) directory: bool,
    /// To be written to.
    pub(super) writes: bool,
    /// Emptied.
    pub(super) truncates: bool,
}

/// Reports what a program and the processes that come from it do.
pub(super) trait Observer {
    /// Say how much is wanted from now on.
    fn want(&mut self, wanted: Wanted);

    /// How much is wanted.
    fn wanted(&self) -> Wanted;

    /// Hand out what has been reported, in order of start; how many events that were, each read by itself.
    fn poll(&mut self, each: &mut dyn FnMut(Event)) -> usize;

    /// Whether everything reported so far has been handed out.
    fn is_drained(&self) -> bool;

    /// Say whether what the program reads next is foreseen. Where the kernel was advised not to read ahead, it is to do so
    /// by itself again once nobody else does.
    fn foresee(&mut self, _foreseen: bool) {}

    /// Wait by `wait`, which does nothing else: a chance to see how this kernel treats a thread that sleeps.
    fn waiting(&self, wait: &mut dyn FnMut()) {
        wait();
    }

    /// Whether touches of mapped pages are reported as they happen. Else they are sampled from outside.
    fn sees_touches(&self) -> bool {
        false
    }

    /// Events that were dropped so far.
    fn lost(&self) -> u64;

    /// Sentences on the processes that are not observed, or not in full.
    fn unobserved(&self) -> Vec<String>;

    /// Why this observer does not see the program at this path, after "it is"; `None` if nothing is known to stand in the way.
    fn why_hidden(&self, _exe: &Path) -> Option<&'static str> {
        None
    }
}
