//! What processes do with files, as every observer reports it.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Event`] | who did what, and when |
//! | [`Observer`] | whatever reports events, within the [`Budget`] of whoever takes them |
//! | [`Reports`] | the ring of the preload library as an observer |
//! | [`Allowance`] | how many events of one process, and of all, are looked at |
//!
//! The kernel's side is an observer of its own (`observers/ebpf`), and so is fanotify (`crates/daemon`). `crates/run` and
//! `crates/daemon` take events from any of them.
//!
//! Invariant: what an observer hands out is checked as to its form (a read's kind is one that the observer can see), and not as
//! to its truth: paths, offsets and lengths may come from a hostile process.

#![forbid(unsafe_code)]

mod allowance;
mod event;
mod observer;
mod reports;

pub use allowance::{Allowance, Rate};
pub use event::{Event, File, How, Inode, Node, What, Who};
pub use observer::{Budget, Observer, Progress, Wanted};
pub use reports::Reports;
