//! Telling a process from the child it forked.
//!
//! Threads do not survive `fork`: a child (a `multiprocessing` worker, most often) inherits guards
//! whose engine is gone. Python calls back after each fork, so asking costs one load
//! instead of a system call.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

/// Forks between the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The process something was made in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Home(u64);

impl Home {
    /// This process.
    pub fn here() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether this is still that process.
    pub fn is_here(self) -> bool {
        self == Self::here()
    }
}

/// Have Python count forks.
pub fn watch(py: Python<'_>) -> PyResult<()> {
    let count = PyCFunction::new_closure(py, None, None, |_, _| {
        FORKS.fetch_add(1, Ordering::Relaxed);
    })?;
    let options = PyDict::new(py);
    options.set_item("after_in_child", count)?;
    py.import("os")?
        .call_method("register_at_fork", (), Some(&options))?;
    Ok(())
}
