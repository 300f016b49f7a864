//! I/O signatures: patterns of reads, recognised, written down and foretold (Byna and others, "Parallel I/O Prefetching
//! Using MPI File Caching and I/O Signatures", sections III to VI).
//!
//! Data flow: [`Builder`] takes reads one by one and has a [`Trace`] of nested loops at the end, and the reads expected
//! next ([`Builder::ahead`]) at any time.

mod builder;
mod fold;
mod markov;
mod pattern;
#[cfg(test)]
mod tests;
mod walk;

pub use builder::{Ahead, Builder, Limits, State};
pub use pattern::{Affine, Loop, Read, Term, Trace};
pub use walk::Walk;
