//! I/O signatures: patterns of reads, recognised, written down and foretold (Byna and others, "Parallel I/O Prefetching
//! Using MPI File Caching and I/O Signatures", sections III to VI).
//!
//! Data flow: [`Builder`] takes reads one by one and has a [`Trace`] of nested loops at the end, and the reads expected
//! next ([`Builder::ahead`]) at any time.

mod adjust;
mod builder;
mod cursors;
mod fold;
mod follow;
mod lead;
mod markov;
mod nest;
mod pattern;
mod roles;
#[cfg(test)]
mod tests;
mod walk;

pub use adjust::Learnt;
pub use builder::{Ahead, Builder, Limits, State};
pub use follow::Signatures;
pub use pattern::{Affine, Loop, Read, Term, Trace};
pub use roles::Roles;
pub use walk::Walk;
