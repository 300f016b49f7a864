//! I/O signatures: patterns of accesses, recognised, written down and predicted (the paper "Parallel I/O Prefetching Using
//! MPI File Caching and I/O Signatures", sections III to VI; `docs/signatures.md`).
//!
//! Data flow: [`Builder`] takes reads one by one and has a [`Trace`] of nested loops at the end, and the reads expected
//! next ([`Builder::ahead`]) at any time. A term of the trace with its operation is a [`Signature`], which prints as
//! the paper's trace signature and is read back by [`parse`]; [`PatternSignature`] names its kind.

mod adjust;
mod builder;
mod classify;
mod cursors;
mod detect_time;
mod flow;
mod fold;
mod follow;
mod lead;
mod markov;
mod nest;
mod notation;
mod notation_parse;
mod pattern;
mod roles;
mod rounded;
mod table;
#[cfg(test)]
mod tests;
mod walk;

pub use adjust::Learnt;
pub use builder::{Ahead, Builder, Limits, Recognition};
pub use classify::{PatternSignature, Repetition, Size, Spatial, Temporal, Variation, weight};
pub use detect_time::Times;
pub use follow::{KEPT_AFTER, Signatures};
pub use notation::{Signature, join};
pub use notation_parse::{Error, parse, parse_pattern};
pub use pattern::{Affine, Loop, Operation, Read, Term, Trace};
pub use roles::Roles;
pub use walk::Walk;
