//! The atomics that the area consists of: those of `core`, or loom's in the models.
//!
//! Loom's take more room and no mapped memory can hold them. The models make an area by value, with a few short rings:
//! each atomic costs them time, and a ring that is soon full shows more.

#[cfg(not(all(test, loom)))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// True in a build for the models.
pub(crate) const MODELLED: bool = cfg!(all(test, loom));
