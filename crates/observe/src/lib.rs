//! Activities of processes with files, as every observer reports them.
//!
//! | part | purpose |
//! | --- | --- |
//! | [`Event`] | process, event and time |
//! | [`Observer`] | a source of events, within the [`Budget`] of its caller |
//! | [`Reports`] | the ring of the preload library as an observer |
//! | [`OwnPrograms`] | the same, as an observer of all programs of one user |
//! | [`Processes`] | the processes that an observer of the machine knows, with limits of their examined events |
//! | [`look`], [`mounts`] | observers' questions to the kernel about processes, files and file systems |
//!
//! The kernel's side is an observer of its own (`observers/ebpf`), and so is fanotify (`observers/fanotify`). `crates/run` and
//! `crates/daemon` take events from any of them.
//!
//! Invariant: the form of an observer's events is checked (a read has a kind that the observer can see), and not their truth: paths,
//! offsets and lengths may come from a hostile process.

#![forbid(unsafe_code)]

mod allowance;
mod event;
pub mod look;
pub mod mounts;
mod observer;
mod own;
mod processes;
mod reports;

use allowance::{Allowance, Rate};
pub use event::{Event, File, How, Inode, Node, What, Who};
pub use observer::{Budget, Observer, Progress, Wanted, now};
pub use own::OwnPrograms;
pub use processes::Processes;
pub use reports::Reports;
