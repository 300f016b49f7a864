//! The whole machine: opened files, started programs, and file pages that had to be fetched for them. For a daemon that learns which file
//! follows which. It needs the same as [`observe`](crate::observe).
//!
//! Invariants: the process that observes is not observed; a number of opens a second of each process and of each user are
//! reported, and the rest are counted; memory is bounded.
//!
//! Data flow: `module/bpf/system.bpf.c` → ring → `decode` → [`foreread_observe::Event`]; processes that wait for devices → a ring of their
//! own, whose reader is woken at once.

mod decode;
mod load;

pub use load::System;

use crate::decide;
use crate::facts::HostFacts;

/// Begin to observe the machine.
///
/// # Errors
/// In one sentence, why this host does not allow it.
pub fn observe() -> Result<System, String> {
    decide::allowed(&HostFacts::of_host()).map_err(|refused| refused.to_string())?;
    System::begin()
}
