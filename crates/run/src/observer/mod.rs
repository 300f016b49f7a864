//! The observer of a program.
//!
//! The supervisor takes [`foreread_observe`]'s events in order of start, and knows nothing of how they are come by:
//!
//! - [`Preload`](ring::Preload): the preload library, which reports through a ring of shared memory.
//! - [`Observation`](foreread_ebpf::Observation): programs in the kernel, which need nothing of the observed one, and root.
//!
//! [`choice`] says which, and [`Observing`] is either.

mod choice;
mod ebpf;
mod mpi;
mod preload;
mod ring;
mod unobserved;

pub(super) use choice::Observing;
pub(super) use ring::Seat;

pub use choice::Choice;
pub(super) use mpi::library as mpi_library;
pub use preload::{find as find_preload, variables as preload_variables};
